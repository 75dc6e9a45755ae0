//! Runs under a supervisor, and the processes that remain after a kill. All processes of a run hold a pipe open; the end of the pipe shows
//! that all have exited.

use crate::harness::Test;
use feedrate_study::supervise::{ScriptEnd, Supervised, Supervision, wait_until_alone};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const FEEDRATE: &str = env!("CARGO_BIN_EXE_feedrate");

/// Script that starts two processes that ignore SIGTERM (one in its own session) and an orphan.
const STUBBORN: &str = "\
trap '' TERM
(echo child >&3; exec sleep 1000) &
setsid bash -c 'echo session >&3; exec sleep 1000' &
(setsid bash -c 'echo orphan >&3; exec sleep 1000' &)
wait
";

/// Supervision of a script that holds the pipe open as descriptor 3.
fn new_supervision(test: &Test, script: &str) -> Supervision {
    let pipe = test.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    test.write("script.sh", format!("exec 3>{}\n{script}", pipe.display()));
    Supervision {
        script: test.path("script.sh"),
        cleanup: Some(format!("echo done >> {}", test.path("cleaned").display())),
        stdout: test.path("stdout.log"),
        stderr: test.path("stderr.log"),
        running: test.path("running"),
        grace: Duration::from_millis(200),
    }
}

/// Waits for the end of the run. With `stops`, the run is stopped first.
fn wait_for_end(run: &mut Supervised, stops: bool) -> ScriptEnd {
    run.wait_for_end(&AtomicBool::new(stops), &AtomicBool::new(false)).unwrap()
}

fn start(supervision: &Supervision) -> Supervised {
    Supervised::start(Path::new(FEEDRATE), supervision).unwrap()
}

/// Opens the pipe for reading. Waits until the script has opened it for writing.
fn open_pipe(test: &Test) -> BufReader<File> {
    BufReader::new(File::open(test.path("pipe")).unwrap())
}

fn sorted_lines(pipe: &mut impl BufRead, count: usize) -> Vec<String> {
    let mut lines: Vec<String> = pipe.lines().take(count).map(Result::unwrap).collect();
    lines.sort();
    lines
}

/// Checks that all processes of the run have exited.
#[track_caller]
fn check_all_exited(mut pipe: impl Read) {
    assert_eq!(pipe.read_to_string(&mut String::new()).unwrap(), 0);
}

/// Checks that no supervisor is running.
#[track_caller]
fn check_no_supervisor(test: &Test) {
    let never = AtomicBool::new(false);
    assert!(wait_until_alone(&test.path("running"), &[], &never, &mut || {}).unwrap());
    assert_eq!(fs::read_to_string(test.path("running")).unwrap(), "");
}

fn text(test: &Test, name: &str) -> String {
    fs::read_to_string(test.path(name)).unwrap_or_default()
}

#[test]
fn if_a_runner_is_killed_all_processes_of_its_run_end() {
    let test = Test::new();
    let supervision = new_supervision(&test, STUBBORN);
    let mut runner = test
        .program("bash", &["-c", "coproc RUN { exec \"$@\"; }; read -r", "runner"])
        .args([FEEDRATE, "supervise", &serde_json::to_string(&supervision).unwrap()])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = open_pipe(&test);
    assert_eq!(sorted_lines(&mut pipe, 3), ["child", "orphan", "session"]);
    runner.kill().unwrap();
    runner.wait().unwrap();
    check_all_exited(pipe);
    check_no_supervisor(&test);
    assert_eq!(text(&test, "cleaned"), "done\n");
}

#[test]
fn a_stopped_run_can_still_write() {
    let test = Test::new();
    let script = "trap 'echo written; exit 5' TERM\necho ready >&3\nsleep 1000\n";
    let supervision =
        Supervision { grace: Duration::from_secs(100), ..new_supervision(&test, script) };
    let mut run = start(&supervision);
    assert_eq!(sorted_lines(&mut open_pipe(&test), 1), ["ready"]);
    assert_eq!(wait_for_end(&mut run, true), ScriptEnd::Exited(5));
    assert_eq!(text(&test, "stdout.log"), "written\n");
    assert_eq!(text(&test, "cleaned"), "done\n");
    check_no_supervisor(&test);
}

#[test]
fn a_run_ends_like_its_script_and_leaves_no_processes() {
    let check = |script: &str, ended: ScriptEnd, cleaned: &str| {
        let test = Test::new();
        let supervision =
            new_supervision(&test, &format!("sleep 1000 &\necho message >&2\n{script}\n"));
        let mut run = start(&supervision);
        let pipe = open_pipe(&test);
        assert_eq!(wait_for_end(&mut run, false), ended, "{script}");
        check_all_exited(pipe);
        assert_eq!(text(&test, "stderr.log"), "message\n");
        assert_eq!(text(&test, "cleaned"), cleaned, "{script}");
        check_no_supervisor(&test);
    };
    check("exit 0", ScriptEnd::Exited(0), "");
    check("exit 7", ScriptEnd::Exited(7), "done\n");
    check("kill -KILL $$", ScriptEnd::Signalled(9), "done\n");
}

/// Signals of a terminal go to all processes of its session.
#[test]
fn supervisor_and_run_have_separate_sessions() {
    let test = Test::new();
    let session = "session() { read -r -a of <\"/proc/$1/stat\"; echo \"${of[5]}\" >&3; }";
    let supervision = new_supervision(&test, &format!("{session}\nsession $$\nsession $PPID\n"));
    let mut run = start(&supervision);
    let mut sessions = sorted_lines(&mut open_pipe(&test), 2);
    let own_session = fs::read_to_string("/proc/self/stat").unwrap();
    let own_session = own_session.rsplit_once(')').unwrap().1.split_whitespace().nth(3).unwrap();
    sessions.push(own_session.into());
    sessions.sort();
    sessions.dedup();
    assert_eq!(sessions.len(), 3, "{sessions:?}");
    assert_eq!(wait_for_end(&mut run, false), ScriptEnd::Exited(0));
}

#[test]
fn the_next_run_ends_the_processes_of_a_killed_supervisor() {
    let test = Test::new();
    let supervision = new_supervision(&test, &format!("echo $PPID >&3\n{STUBBORN}"));
    let mut run = start(&supervision);
    let mut pipe = open_pipe(&test);
    let supervisor = sorted_lines(&mut pipe, 4).swap_remove(0);
    assert!(Command::new("kill").args(["-KILL", &supervisor]).status().unwrap().success());
    assert_eq!(wait_for_end(&mut run, false), ScriptEnd::Lost);
    let cleanup = Vec::from_iter(supervision.cleanup);
    let never = AtomicBool::new(false);
    assert!(wait_until_alone(&supervision.running, &cleanup, &never, &mut || {}).unwrap());
    check_all_exited(pipe);
    assert_eq!(text(&test, "cleaned"), "done\n");
    check_no_supervisor(&test);
}

#[test]
fn a_failed_cleanup_prevents_the_next_run() {
    let test = Test::new();
    let cleanup = Some("echo no controller >&2; exit 1".to_string());
    let supervision = Supervision { cleanup: cleanup.clone(), ..new_supervision(&test, "exit 1") };
    let mut run = start(&supervision);
    drop(open_pipe(&test));
    let never = AtomicBool::new(false);
    assert_eq!(wait_for_end(&mut run, false), ScriptEnd::Exited(1));
    let ended = wait_for_end(&mut start(&supervision), false);
    assert_eq!(ended, ScriptEnd::Busy, "the runner must clean up first");
    let cleanup = Vec::from_iter(cleanup);
    let error = wait_until_alone(&supervision.running, &cleanup, &never, &mut || {}).unwrap_err();
    assert!(error.to_string().ends_with("of an earlier run: no controller"), "{error}");
    check_no_supervisor(&test);
}

#[test]
fn two_runs_cannot_run_at_the_same_time() {
    let test = Test::new();
    let supervision = new_supervision(&test, "echo ready >&3\nexec sleep 1000\n");
    let mut run = start(&supervision);
    let pipe = &mut open_pipe(&test);
    assert_eq!(sorted_lines(pipe, 1), ["ready"]);
    let mut waits = 0;
    let stop = AtomicBool::new(true);
    assert!(!wait_until_alone(&supervision.running, &[], &stop, &mut || waits += 1).unwrap());
    assert_eq!(waits, 1);
    let ended = wait_for_end(&mut start(&supervision), false);
    assert_eq!(ended, ScriptEnd::Busy);
    assert_eq!(wait_for_end(&mut run, true), ScriptEnd::Signalled(15));
    check_no_supervisor(&test);
}

#[test]
fn a_run_whose_runner_is_gone_does_not_start() {
    let test = Test::new();
    let supervision = new_supervision(&test, "");
    test.write("script.sh", format!("touch {}\n", test.path("begun").display()));
    let mut command = Command::new(FEEDRATE);
    let (ended_runner, runner) = std::io::pipe().unwrap();
    drop(runner);
    command.args(["supervise", &serde_json::to_string(&supervision).unwrap()]).stdin(ended_runner);
    let output = command.output().unwrap().stdout;
    assert!(String::from_utf8_lossy(&output).contains("its runner is gone"));
    assert!(!test.path("begun").exists());
    check_no_supervisor(&test);
}
