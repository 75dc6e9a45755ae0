//! Output: progress lines, full devices and closed pipes.

use crate::harness::{Answer, TINY, Test};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

/// Two runs in `results/tiny`, and a study that is done.
fn results() -> Test {
    let test = Test::with_workload(TINY);
    test.write(
        "study.csv",
        "model,epochs,processes,run\nworkload.yaml,1,1,N\nworkload.yaml,1,2,N\n",
    );
    for run_dir in ["results/tiny/a", "results/tiny/b"] {
        test.run_json(&["--run-dir", run_dir]);
    }
    let answer = test.feedrate(&["study", "run", "study.csv"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    test
}

/// Commands that print on stdout, with and without `--json`.
const PRINTING: &[&str] = &[
    "--help",
    "--version",
    "help run",
    "help all",
    "run workload.yaml",
    "run workload.yaml --json",
    "run workload.yaml --details",
    "generate workload.yaml",
    "generate workload.yaml --json",
    "plan workload.yaml",
    "plan workload.yaml --json",
    "generate workload.yaml --verify",
    "generate workload.yaml --verify --json",
    "show results/tiny/a",
    "show results/tiny/a --json",
    "analyze results/tiny",
    "analyze results/tiny --all",
    "analyze results/tiny --json",
    "compare results/tiny/a results/tiny/b",
    "compare results/tiny/a results/tiny/b --json",
    "report results/tiny",
    "report results/tiny --json",
    "report results/tiny --format html",
    "scale workload.yaml --au 50 dataset.num_files_train=64 --dry-run",
    "scale workload.yaml --au 50 dataset.num_files_train=64 --dry-run --json",
    "plot status study.csv -o status.svg --force",
    "plot status study.csv -o status.svg --force --json",
    "list formats",
    "list formats --json",
    "system",
    "system --json",
    "slurm workload.yaml",
    "study new --design two_level --model workload.yaml --factor reader.read_threads=1,2 -o -",
    "study status study.csv",
    "study status study.csv --json",
    "study status study.csv #1",
    "study status study.csv #1 --json",
    "study run study.csv",
    "study run study.csv --json",
    "study run study.csv --dry-run",
];

#[test]
fn every_command_fails_if_stdout_is_full() {
    let test = results();
    for line in PRINTING {
        let words: Vec<&str> = line.split(' ').collect();
        let whole = test.feedrate(&words);
        assert!(!whole.stdout.is_empty(), "`{line}` prints nothing: {whole:?}");
        let full = File::options().write(true).open("/dev/full").unwrap();
        let cut = Answer::from_output(&test.command(&words).stdout(full).output().unwrap());
        assert_eq!(cut.code, 1, "{line}: {cut:?}");
        let message = "error: cannot write to stdout: No space left on device";
        assert!(cut.stderr.contains(message), "{line}: {cut:?}");
        // A closed pipe is no error: its reader has read enough.
        let answer = with_closed_pipe(&test.command(&words), Stream::Stdout);
        assert_eq!(answer, whole.code, "{line}");
    }
}

#[test]
fn dlio_benchmark_fails_if_stdout_is_full() {
    let test = Test::new();
    for words in [&["--help"][..], &["--version"], &["--cfg", "job"], &["--hydra-help"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = test.program(env!("CARGO_BIN_EXE_dlio_benchmark"), words);
        let cut = Answer::from_output(&command.stdout(full).output().unwrap());
        cut.refuses(1, &["cannot write to stdout"]);
    }
}

#[test]
fn the_work_continues_if_stderr_cannot_be_written() {
    for (file, is_pipe) in [("/dev/full", false), ("", true)] {
        let test = Test::with_workload(TINY);
        let csv = "model,epochs,processes,run\nworkload.yaml,1,1,N\nworkload.yaml,1,2,N\n";
        test.write("study.csv", csv);
        for words in [
            &["run", "workload.yaml", "--run-dir", "a"][..],
            &["generate", "workload.yaml", "reader.batch_size=2"],
            &["study", "run", "study.csv"],
            &["run", "workload.yaml", "--run-dir", "b", "--fail-below-au", "0"],
        ] {
            let mut command = test.command(words);
            let code = if is_pipe {
                with_closed_pipe(&command, Stream::Both)
            } else {
                let full = File::options().write(true).open(file).unwrap();
                command.stdout(Stdio::null()).stderr(full).status().unwrap().code().unwrap()
            };
            assert!([0, 4].contains(&code), "{words:?}: {code}");
        }
        assert!(is_complete(&test.path("a")) && is_complete(&test.path("b")));
        let done = fs::read_to_string(test.path("study.csv")).unwrap();
        assert_eq!(done, csv.replace(",N\n", ",Y\n"));
    }
}

#[test]
fn exit_codes_do_not_depend_on_closed_pipes() {
    let test = Test::new();
    for (words, code) in
        [(&["run", "nothing"][..], 2), (&["nothing"], 2), (&["show", "nothing"], 1)]
    {
        assert_eq!(with_closed_pipe(&test.command(words), Stream::Both), code, "{words:?}");
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Stream {
    Stdout,
    Both,
}

/// Runs a command whose output goes to a closed pipe. Returns the exit code.
fn with_closed_pipe(command: &Command, stream: Stream) -> i32 {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut again = Command::new(command.get_program());
    again.args(command.get_args()).current_dir(command.get_current_dir().unwrap());
    let stderr = match stream {
        Stream::Stdout => Stdio::null(),
        Stream::Both => writer.try_clone().unwrap().into(),
    };
    again.stdin(Stdio::null()).stdout(writer).stderr(stderr).status().unwrap().code().unwrap()
}

fn is_complete(run_dir: &Path) -> bool {
    feedrate_results::load_run(run_dir).is_ok_and(|record| record.complete)
}

/// A workload of two epochs with ten steps that compute for `step_s`.
fn with_compute_time(step_s: f64) -> Test {
    let yaml = TINY.replace("num_files_train: 8", "num_files_train: 40");
    Test::with_workload(
        &yaml.replace("train:\n", &format!("train:\n  computation_time: {step_s}\n")),
    )
}

/// Runs a command with `period_s` seconds between progress lines. Returns stderr.
fn stderr_of(test: &Test, arguments: &str, period_s: &str) -> String {
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let mut command = test.command(&arguments);
    let answer =
        Answer::from_output(&command.env("FEEDRATE_PROGRESS_S", period_s).output().unwrap());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    answer.stderr
}

#[test]
fn a_run_without_a_terminal_prints_progress_lines() {
    let test = with_compute_time(0.05);
    let text = stderr_of(&test, "run workload.yaml --json", "0.02");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(" step ")).collect();
    let parts = ["epoch 2/2 step ", "/10 · ", "AU ", " % · ", "/s · stall "];
    let is_whole = |line: &&&str| parts.iter().all(|part| line.contains(part));
    assert!(lines.iter().find(is_whole).is_some(), "{text}");
    assert!(lines.iter().any(|line| line.contains(" · ≈ ") && line.contains(" left · ")), "{text}");
    assert!(text.lines().all(|line| line.chars().count() < 80), "{text}");
    for (arguments, period_s) in
        [("run workload.yaml --json", "0"), ("run workload.yaml -q", "0.02")]
    {
        let text = stderr_of(&test, arguments, period_s);
        assert!(!text.contains(" step "), "{arguments}: {text}");
    }
}

#[test]
fn a_study_without_a_terminal_prints_the_progress_of_its_run() {
    let test = with_compute_time(0.2);
    test.write("study.csv", "model,epochs,processes,run\nworkload.yaml,2,1,N\n");
    let text = stderr_of(&test, "study run study.csv --cache warm", "0.05");
    let is_of_run = |line: &str| line.starts_with("[1/1] ") && line.contains(" step ");
    assert!(text.lines().any(is_of_run), "{text}");
    assert!(text.lines().all(|line| line.chars().count() < 80), "{text}");
}
