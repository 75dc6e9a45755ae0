//! Storage that does not answer: whoever is told to stop says which file is waited for, keeps what was measured, and leaves.

use crate::harness::{Answer, TINY, Test, signal, until};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// An open of it lasts until somebody writes to it, and a write until somebody reads.
fn hang(file: &Path) {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).unwrap();
    }
    let _ = fs::remove_file(file);
    assert!(Command::new("mkfifo").arg(file).status().unwrap().success());
}

fn start(test: &Test, arguments: &[&str]) -> Child {
    test.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Have the program, with all that it starts, open files with this in their name and never get further.
pub(crate) fn hang_opens<'c>(test: &Test, command: &'c mut Command, at: &str) -> &'c mut Command {
    hang(&test.path("hung"));
    command.env("LD_PRELOAD", test.library("hang.c"));
    command.env("HANGS_AT", at).env("HANGS_IN", test.path("hung"))
}

/// Whether a thread of this process, or of one that it started, is in a call that its storage does not answer: it waits for the
/// other end of a pipe with a name.
pub(crate) fn hangs(process: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    tasks.into_iter().any(|task| {
        let text = |name| fs::read_to_string(task.path().join(name)).unwrap_or_default();
        text("wchan") == "wait_for_partner"
            || text("children").split_whitespace().any(|child| hangs(child.parse().unwrap()))
    })
}

/// Interrupt it, once it hangs, as one does who has no patience.
fn interrupt(mut child: Child) -> Answer {
    until("a call that hangs", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        hangs(child.id())
    });
    leaves(&mut child, "-TERM");
    Answer::of(&child.wait_with_output().unwrap())
}

/// Signal it until it is gone.
fn leaves(child: &mut Child, name: &str) {
    until("its end", || {
        let is_gone = child.try_wait().unwrap().is_some();
        if !is_gone {
            signal(name, child.id());
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        is_gone
    });
}

fn start_hanging(test: &Test, arguments: &[&str], hangs_at: &str) -> Child {
    let mut command = test.command(arguments);
    let command = hang_opens(test, &mut command, hangs_at);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The record of the only run.
fn record(test: &Test) -> Value {
    let record = test.files_below("results", "record.json").pop().unwrap();
    serde_json::from_slice(&fs::read(record).unwrap()).unwrap()
}

fn generated() -> Test {
    let test = Test::with(TINY);
    assert_eq!(test.feedrate(&["generate", "workload.yaml"]).code, 0);
    test
}

#[test]
fn a_run_whose_reads_hang_keeps_what_it_measured() {
    for cache in ["--cold", "--warm"] {
        let test = generated();
        // Whoever looks at the page cache asks for all files, and the second run for none.
        hang(&test.data_files("img_7_of_8.npz")[0]);
        for run in [&["run", "workload.yaml", cache][..], &["run", "workload.yaml"]] {
            let answer = interrupt(start(&test, run));
            let told = ["warning: still waiting for `", "img_7_of_8.npz`", "error: interrupted"];
            answer.refuses(130, &told);
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
        let test = generated();
        let steps = ["workflow.checkpoint=true", "checkpoint.steps_between_checkpoints=1"];
        let run = [&["run", "workload.yaml", mode, "model.model_size=1000"][..], &steps].concat();
        let answer = interrupt(start_hanging(&test, &run, "step1.manifest"));
        answer.refuses(130, &["warning: still waiting for `", "/hung`", "error: interrupted"]);
        let record = record(&test);
        assert_eq!(record["stopped_because"], "interrupted");
        let blocks = &record["epochs"][0]["accelerators"][0]["blocks"];
        assert_eq!(blocks[0]["load_ns"].as_array().unwrap().len(), 1, "{blocks}");
    }
}

#[test]
fn checkpoints_alone_that_hang_can_be_left() {
    let test = Test::with(TINY);
    let alone = ["workflow.train=false", "workflow.checkpoint=true", "model.model_size=1000"];
    let run =
        [&["run", "workload.yaml", "checkpoint.num_checkpoints_write=3"][..], &alone].concat();
    let answer = interrupt(start_hanging(&test, &run, "step2.manifest"));
    answer.refuses(130, &["still waiting for `", "/hung`"]);
    let record = record(&test);
    assert_eq!(record["epochs"][0]["checkpoints"].as_array().unwrap().len(), 1);
}

#[test]
fn whatever_hangs_before_or_without_a_run_can_be_left() {
    for command in ["run", "generate"] {
        let run = [command, "workload.yaml"];
        let answer = interrupt(start_hanging(&generated(), &run, "manifest.json"));
        answer.refuses(130, &["error: interrupted, still waiting for `", "/hung`"]);
    }
    let test = generated();
    hang(&test.data_files("img_3_of_8.npz")[0]);
    let answer = interrupt(start(&test, &["generate", "--verify", "workload.yaml"]));
    answer.refuses(130, &["error: interrupted, still waiting for `", "img_3_of_8.npz`"]);
}

#[test]
fn a_study_whose_run_hangs_can_be_left_and_goes_on() {
    let test = generated();
    test.write("study.csv", "model,processes,run\nworkload.yaml,1,N\n");
    let file = test.data_files("img_2_of_8.npz").pop().unwrap();
    let content = fs::read(&file).unwrap();
    hang(&file);
    let run = ["study", "run", "study.csv"];
    let answer = interrupt(start(&test, &run));
    answer.refuses(130, &["still waiting for `", "img_2_of_8.npz`"]);
    fs::remove_file(&file).unwrap();
    fs::write(&file, content).unwrap();
    let again = test.feedrate(&run);
    assert_eq!(again.code, 0, "{}", again.stderr);
}

#[test]
fn a_search_whose_run_hangs_can_be_left() {
    for name in ["img_2_of_8.npz", "manifest.json"] {
        let test = generated();
        let search = ["scale", "workload.yaml", "--response=samples_per_second", "--au=1"];
        let answer = interrupt(start_hanging(&test, &search, name));
        answer.refuses(130, &["still waiting for `", "/hung`"]);
    }
}

/// A process that is stopped hears no signal, as one whose threads cannot be ended.
#[test]
fn a_process_that_cannot_end_holds_nobody_up() {
    let test = generated();
    let mut child = start(&test, &["run", "workload.yaml", "storage.delay_seconds=3600"]);
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let behind = || {
        let children = fs::read_to_string(&children).unwrap();
        children.split_whitespace().next().map(str::to_string)
    };
    until("a process behind it", || behind().is_some());
    let behind = behind().unwrap();
    until("a run", || !test.files_below("results", "record.json").is_empty());
    signal("-STOP", &behind);
    leaves(&mut child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    until("its end too", || !Path::new(&format!("/proc/{behind}")).exists());
}
