//! A command for each exit code in the program's help.

use crate::harness::{Answer, TINY, Test, send_signal, wait_until};
use std::fs;
use std::process::Stdio;

#[test]
fn each_code_of_the_table_has_a_case() {
    let test = Test::with_workload(TINY);
    assert_eq!(test.feedrate(&["generate", "workload.yaml"]).code, 0);
    let file = test.data_files(".npz").remove(0);
    let broken = Test::with_workload(TINY);
    assert_eq!(broken.feedrate(&["generate", "workload.yaml"]).code, 0);
    fs::write(broken.data_files(&file.file_name().unwrap().to_string_lossy()).remove(0), "")
        .unwrap();
    let slow = ["storage.delay.read_seconds=0.02", "train.computation_time=0.001"];
    let run = |words: &[&str]| test.feedrate(&[&["run", "workload.yaml"], words].concat());
    let cases = [
        (0, run(&["--fail-on", "checkpoints-only"])),
        (1, broken.feedrate(&["generate", "--verify", "workload.yaml"])),
        (2, test.feedrate(&["run", "nothing"])),
        (3, run(&[&slow[..], &["--fail-below-au", "90"]].concat())),
        // Without compute time there is no utilisation.
        (4, run(&["--fail-below-au", "90"])),
        (130, interrupt_run(&test)),
    ];
    for (code, answer) in &cases {
        assert_eq!(answer.code, *code, "{answer:?}");
    }
    let help = test.feedrate(&["help", "all"]).stdout.replace('\n', " ");
    let (_, table) = help.split_once("Exit codes: ").unwrap();
    let codes = table.split("; ").map(|row| row.split(' ').next().unwrap().to_string());
    assert_eq!(Vec::from_iter(codes), cases.map(|(code, _)| code.to_string()), "{table}");
}

/// Starts a run and interrupts it in its first step.
fn interrupt_run(test: &Test) -> Answer {
    let mut command =
        test.command(&["run", "workload.yaml", "--compute", "1h", "--results", "stopped"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("a record", || !test.files_below("stopped", "record.json").is_empty());
    send_signal("-INT", child.id());
    Answer::from_output(&child.wait_with_output().unwrap())
}
