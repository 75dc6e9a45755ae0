//! Runs under a supervisor, and what is left of them when somebody is killed. What a run started holds a pipe open: its end tells
//! that all are gone.

use crate::harness::Test;
use feedrate_study::supervise::{ScriptEnd, Supervised, Supervision, wait_until_alone};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const FEEDRATE: &str = env!("CARGO_BIN_EXE_feedrate");

/// Two that no TERM ends, one of them in a session of its own, and one that nobody waits for.
const STUBBORN: &str = "\
trap '' TERM
(echo child >&3; exec sleep 1000) &
setsid bash -c 'echo session >&3; exec sleep 1000' &
(setsid bash -c 'echo orphan >&3; exec sleep 1000' &)
wait
";

/// A script that holds the pipe as descriptor 3.
fn supervision(test: &Test, script: &str) -> Supervision {
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

/// Stop the run if `stops`, and wait for its end.
fn end(run: &mut Supervised, stops: bool) -> ScriptEnd {
    run.wait_for_end(&AtomicBool::new(stops), &AtomicBool::new(false)).unwrap()
}

fn start(order: &Supervision) -> Supervised {
    Supervised::start(Path::new(FEEDRATE), order).unwrap()
}

/// Opened once somebody has opened it to write.
fn pipe(test: &Test) -> BufReader<File> {
    BufReader::new(File::open(test.path("pipe")).unwrap())
}

fn lines(pipe: &mut impl BufRead, count: usize) -> Vec<String> {
    let mut lines: Vec<String> = pipe.lines().take(count).map(Result::unwrap).collect();
    lines.sort();
    lines
}

/// Nobody holds the pipe any more.
#[track_caller]
fn all_are_gone(mut pipe: impl Read) {
    assert_eq!(pipe.read_to_string(&mut String::new()).unwrap(), 0);
}

#[track_caller]
fn is_alone(test: &Test) {
    let never = AtomicBool::new(false);
    assert!(wait_until_alone(&test.path("running"), &[], &never, &mut || {}).unwrap());
    assert_eq!(fs::read_to_string(test.path("running")).unwrap(), "");
}

fn text(test: &Test, name: &str) -> String {
    fs::read_to_string(test.path(name)).unwrap_or_default()
}

#[test]
fn a_killed_runner_takes_all_that_its_run_started_with_it() {
    let test = Test::new();
    let order = supervision(&test, STUBBORN);
    let mut runner = test
        .program("bash", &["-c", "coproc RUN { exec \"$@\"; }; read -r", "runner"])
        .args([FEEDRATE, "supervise", &serde_json::to_string(&order).unwrap()])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = pipe(&test);
    assert_eq!(lines(&mut pipe, 3), ["child", "orphan", "session"]);
    runner.kill().unwrap();
    runner.wait().unwrap();
    all_are_gone(pipe);
    is_alone(&test);
    assert_eq!(text(&test, "cleaned"), "done\n");
}

#[test]
fn a_run_that_is_told_to_stop_may_still_write() {
    let test = Test::new();
    let script = "trap 'echo written; exit 5' TERM\necho ready >&3\nsleep 1000\n";
    let order = Supervision { grace: Duration::from_secs(100), ..supervision(&test, script) };
    let mut run = start(&order);
    assert_eq!(lines(&mut pipe(&test), 1), ["ready"]);
    assert_eq!(end(&mut run, true), ScriptEnd::Exited(5));
    assert_eq!(text(&test, "stdout.log"), "written\n");
    assert_eq!(text(&test, "cleaned"), "done\n");
    is_alone(&test);
}

#[test]
fn a_run_ends_as_its_script_and_leaves_nothing_behind() {
    let check = |script: &str, ended: ScriptEnd, cleaned: &str| {
        let test = Test::new();
        let order = supervision(&test, &format!("sleep 1000 &\necho told >&2\n{script}\n"));
        let mut run = start(&order);
        let pipe = pipe(&test);
        assert_eq!(end(&mut run, false), ended, "{script}");
        all_are_gone(pipe);
        assert_eq!(text(&test, "stderr.log"), "told\n");
        assert_eq!(text(&test, "cleaned"), cleaned, "{script}");
        is_alone(&test);
    };
    check("exit 0", ScriptEnd::Exited(0), "");
    check("exit 7", ScriptEnd::Exited(7), "done\n");
    check("kill -KILL $$", ScriptEnd::Signalled(9), "done\n");
}

/// What a terminal sends goes to its session.
#[test]
fn supervisor_and_run_have_sessions_of_their_own() {
    let test = Test::new();
    let session = "session() { read -r -a of <\"/proc/$1/stat\"; echo \"${of[5]}\" >&3; }";
    let order = supervision(&test, &format!("{session}\nsession $$\nsession $PPID\n"));
    let mut run = start(&order);
    let mut sessions = lines(&mut pipe(&test), 2);
    let own = fs::read_to_string("/proc/self/stat").unwrap();
    let own = own.rsplit_once(')').unwrap().1.split_whitespace().nth(3).unwrap();
    sessions.push(own.into());
    sessions.sort();
    sessions.dedup();
    assert_eq!(sessions.len(), 3, "{sessions:?}");
    assert_eq!(end(&mut run, false), ScriptEnd::Exited(0));
}

#[test]
fn the_next_run_ends_what_a_killed_supervisor_left() {
    let test = Test::new();
    let order = supervision(&test, &format!("echo $PPID >&3\n{STUBBORN}"));
    let mut run = start(&order);
    let mut pipe = pipe(&test);
    let supervisor = lines(&mut pipe, 4).swap_remove(0);
    assert!(Command::new("kill").args(["-KILL", &supervisor]).status().unwrap().success());
    assert_eq!(end(&mut run, false), ScriptEnd::Lost);
    let cleanup = Vec::from_iter(order.cleanup);
    let never = AtomicBool::new(false);
    assert!(wait_until_alone(&order.running, &cleanup, &never, &mut || {}).unwrap());
    all_are_gone(pipe);
    assert_eq!(text(&test, "cleaned"), "done\n");
    is_alone(&test);
}

#[test]
fn what_cannot_be_cleaned_up_keeps_the_next_run_from_measuring() {
    let test = Test::new();
    let cleanup = Some("echo no controller >&2; exit 1".to_string());
    let order = Supervision { cleanup: cleanup.clone(), ..supervision(&test, "exit 1") };
    let mut run = start(&order);
    drop(pipe(&test));
    let never = AtomicBool::new(false);
    assert_eq!(end(&mut run, false), ScriptEnd::Exited(1));
    let ended = end(&mut start(&order), false);
    assert_eq!(ended, ScriptEnd::Busy, "it is for the runner to clean up first");
    let cleanup = Vec::from_iter(cleanup);
    let error = wait_until_alone(&order.running, &cleanup, &never, &mut || {}).unwrap_err();
    assert!(error.to_string().ends_with("of an earlier run: no controller"), "{error}");
    is_alone(&test);
}

#[test]
fn two_runs_do_not_go_on_at_once() {
    let test = Test::new();
    let order = supervision(&test, "echo ready >&3\nexec sleep 1000\n");
    let mut run = start(&order);
    let pipe = &mut pipe(&test);
    assert_eq!(lines(pipe, 1), ["ready"]);
    let mut waits = 0;
    let stop = AtomicBool::new(true);
    assert!(!wait_until_alone(&order.running, &[], &stop, &mut || waits += 1).unwrap());
    assert_eq!(waits, 1);
    let ended = end(&mut start(&order), false);
    assert_eq!(ended, ScriptEnd::Busy);
    assert_eq!(end(&mut run, true), ScriptEnd::Signalled(15));
    is_alone(&test);
}

#[test]
fn what_lost_its_runner_before_it_began_is_not_begun() {
    let test = Test::new();
    let order = supervision(&test, "");
    test.write("script.sh", format!("touch {}\n", test.path("begun").display()));
    let mut command = Command::new(FEEDRATE);
    let (ended_runner, runner) = std::io::pipe().unwrap();
    drop(runner);
    command.args(["supervise", &serde_json::to_string(&order).unwrap()]).stdin(ended_runner);
    let output = command.output().unwrap().stdout;
    assert!(String::from_utf8_lossy(&output).contains("its runner is gone"));
    assert!(!test.path("begun").exists());
    is_alone(&test);
}
