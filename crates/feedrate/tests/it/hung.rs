//! Storage that does not answer. An interrupted command names the file that it waits for, keeps its measurements, and exits.

use crate::harness::{Answer, TINY, Test, send_signal, wait_until};
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Replaces a file by a named pipe, whose open hangs.
fn make_hang(file: &Path) {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).unwrap();
    }
    let _ = fs::remove_file(file);
    assert!(Command::new("mkfifo").arg(file).status().unwrap().success());
}

/// Name of the file for the messages of the last started command.
const MESSAGES: &str = "messages.txt";

fn start(test: &Test, command: &mut Command) -> Child {
    let messages = File::create(test.path(MESSAGES)).unwrap();
    command.stdout(Stdio::piped()).stderr(messages).spawn().unwrap()
}

/// Makes the command and its child processes hang when they open a file with `name_part` in its path.
pub(crate) fn hang_opens<'c>(
    test: &Test,
    command: &'c mut Command,
    name_part: &str,
) -> &'c mut Command {
    make_hang(&test.path("hung"));
    command.env("LD_PRELOAD", test.compile_library("hang.c"));
    command.env("HANGS_AT", name_part).env("HANGS_IN", test.path("hung"))
}

/// Whether a thread of this process or of a child process hangs: it waits for the other end of a named pipe.
pub(crate) fn is_hanging(process: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    tasks.into_iter().any(|task| {
        let text = |name| fs::read_to_string(task.path().join(name)).unwrap_or_default();
        text("wchan") == "wait_for_partner"
            || text("children").split_whitespace().any(|child| is_hanging(child.parse().unwrap()))
    })
}

/// Starts a command, waits until it hangs, sends a signal, and repeats it when the command has said what it waits for. An earlier second
/// signal would end it without these words.
fn interrupt(test: &Test, command: &mut Command) -> Answer {
    let mut child = start(test, command);
    let is_running = |child: &mut Child| child.try_wait().unwrap().is_none();
    wait_until("a call that hangs", || {
        assert!(is_running(&mut child), "it ended by itself");
        is_hanging(child.id())
    });
    send_signal("-TERM", child.id());
    let messages = || fs::read_to_string(test.path(MESSAGES)).unwrap();
    wait_until("words about the call", || {
        messages().contains("still waiting for") || !is_running(&mut child)
    });
    signal_until_exit(&mut child, "-TERM");
    Answer { stderr: messages(), ..Answer::from_output(&child.wait_with_output().unwrap()) }
}

/// Repeats a signal until the process has exited.
fn signal_until_exit(child: &mut Child, name: &str) {
    wait_until("the process ends", || {
        let is_gone = child.try_wait().unwrap().is_some();
        if !is_gone {
            send_signal(name, child.id());
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        is_gone
    });
}

fn interrupt_hanging(test: &Test, arguments: &[&str], hangs_at: &str) -> Answer {
    interrupt(test, hang_opens(test, &mut test.command(arguments), hangs_at))
}

/// The record of the only run.
fn record(test: &Test) -> Value {
    let record = test.files_below("results", "record.json").pop().unwrap();
    serde_json::from_slice(&fs::read(record).unwrap()).unwrap()
}

fn with_dataset() -> Test {
    let test = Test::with_workload(TINY);
    assert_eq!(test.feedrate(&["generate", "workload.yaml"]).code, 0);
    test
}

#[test]
fn a_run_whose_reads_hang_keeps_its_measurements() {
    for cache in ["--cold", "--warm"] {
        let test = with_dataset();
        // The first run hangs when it drops or warms the cache, the second when it reads.
        make_hang(&test.data_files("img_7_of_8.npz")[0]);
        for run in [&["run", "workload.yaml", cache][..], &["run", "workload.yaml"]] {
            let answer = interrupt(&test, &mut test.command(run));
            let words = ["warning: still waiting for `", "img_7_of_8.npz`", "error: interrupted"];
            answer.refuses(130, &words);
            assert!(answer.stdout.starts_with("UNKNOWN: interrupted, "), "{}", answer.stdout);
        }
        for record in test.files_below("results", "record.json") {
            let record: Value = serde_json::from_slice(&fs::read(record).unwrap()).unwrap();
            assert_eq!(record["stopped_because"], "interrupted");
        }
    }
}

#[test]
fn a_run_whose_checkpoint_hangs_keeps_the_steps_before() {
    for mode in ["checkpoint.asynchronous=true", "checkpoint.asynchronous=false"] {
        let test = with_dataset();
        let steps = ["workflow.checkpoint=true", "checkpoint.steps_between_checkpoints=1"];
        let run = [&["run", "workload.yaml", mode, "model.model_size=1000"][..], &steps].concat();
        let answer = interrupt_hanging(&test, &run, "step1.manifest");
        answer.refuses(130, &["warning: still waiting for `", "/hung`", "error: interrupted"]);
        let record = record(&test);
        assert_eq!(record["stopped_because"], "interrupted");
        let blocks = &record["epochs"][0]["accelerators"][0]["blocks"];
        assert_eq!(blocks[0]["load_ns"].as_array().unwrap().len(), 1, "{blocks}");
    }
}

#[test]
fn hanging_checkpoints_without_training_can_be_interrupted() {
    let test = Test::with_workload(TINY);
    let alone = ["workflow.train=false", "workflow.checkpoint=true", "model.model_size=1000"];
    let run =
        [&["run", "workload.yaml", "checkpoint.num_checkpoints_write=3"][..], &alone].concat();
    let answer = interrupt_hanging(&test, &run, "step2.manifest");
    answer.refuses(130, &["still waiting for `", "/hung`"]);
    let record = record(&test);
    assert_eq!(record["epochs"][0]["checkpoints"].as_array().unwrap().len(), 1);
}

#[test]
fn commands_that_hang_before_a_run_can_be_interrupted() {
    for command in ["run", "generate"] {
        let run = [command, "workload.yaml"];
        let answer = interrupt_hanging(&with_dataset(), &run, "manifest.json");
        answer.refuses(130, &["error: interrupted, still waiting for `", "/hung`"]);
    }
    let test = with_dataset();
    make_hang(&test.data_files("img_3_of_8.npz")[0]);
    let answer = interrupt(&test, &mut test.command(&["generate", "--verify", "workload.yaml"]));
    answer.refuses(130, &["error: interrupted, still waiting for `", "img_3_of_8.npz`"]);
}

#[test]
fn a_study_whose_run_hangs_can_be_interrupted_and_resumed() {
    let test = with_dataset();
    test.write("study.csv", "model,processes,run\nworkload.yaml,1,N\n");
    let file = test.data_files("img_2_of_8.npz").pop().unwrap();
    let content = fs::read(&file).unwrap();
    make_hang(&file);
    let run = ["study", "run", "study.csv"];
    let answer = interrupt(&test, &mut test.command(&run));
    answer.refuses(130, &["still waiting for `", "img_2_of_8.npz`"]);
    fs::remove_file(&file).unwrap();
    fs::write(&file, content).unwrap();
    let again = test.feedrate(&run);
    assert_eq!(again.code, 0, "{}", again.stderr);
}

#[test]
fn a_search_whose_run_hangs_can_be_interrupted() {
    for name in ["img_2_of_8.npz", "manifest.json"] {
        let test = with_dataset();
        let search = ["scale", "workload.yaml", "--response=samples_per_second", "--au=1"];
        let answer = interrupt_hanging(&test, &search, name);
        answer.refuses(130, &["still waiting for `", "/hung`"]);
    }
}

/// A stopped process ignores SIGINT, like a process whose threads cannot be ended.
#[test]
fn the_parent_exits_even_if_its_child_cannot() {
    let test = with_dataset();
    let mut child =
        start(&test, &mut test.command(&["run", "workload.yaml", "storage.delay_seconds=3600"]));
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let first_child = || {
        let children = fs::read_to_string(&children).unwrap();
        children.split_whitespace().next().map(str::to_string)
    };
    wait_until("a child process", || first_child().is_some());
    let child_id = first_child().unwrap();
    wait_until("a run", || !test.files_below("results", "record.json").is_empty());
    send_signal("-STOP", &child_id);
    signal_until_exit(&mut child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    wait_until("the end of the child", || !Path::new(&format!("/proc/{child_id}")).exists());
}
