//! Several processes in one place at once: each with its own results, one of them with the dataset.

use crate::dlio_benchmark::with_workloads;
use crate::harness::{Answer, Test};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Starts in the background, with its output kept.
fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn dlio(test: &Test, arguments: &[&str]) -> Child {
    let mut command = test.program(env!("CARGO_BIN_EXE_dlio_benchmark"), &["--config-dir", "conf"]);
    start(command.arg("workload=tiny").args(arguments))
}

#[track_caller]
fn ends_well(child: Child) -> Answer {
    let answer = Answer::of(&child.wait_with_output().unwrap());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    answer
}

/// With the dataset of `tiny`.
fn with_dataset() -> Test {
    let test = with_workloads();
    ends_well(dlio(
        &test,
        &["++workload.workflow.generate_data=True", "++workload.workflow.train=False"],
    ));
    fs::remove_dir_all(test.path("hydra_log")).unwrap();
    test
}

fn overrides(folder: &Path) -> String {
    fs::read_to_string(folder.join(".hydra/overrides.yaml")).unwrap()
}

/// Hydra's folders, each with the only override of its run.
fn told_by_hydra(test: &Test) -> Vec<String> {
    let folders = fs::read_dir(test.path("hydra_log/tiny")).unwrap();
    let mut told: Vec<String> = folders.map(|folder| overrides(&folder.unwrap().path())).collect();
    told.sort();
    told
}

/// As `xargs -P 6` starts them.
#[test]
fn six_runs_of_one_second_do_not_meet() {
    let test = with_dataset();
    let told: Vec<String> =
        (1..=6).map(|run| format!("++workload.output.folder=out{run}")).collect();
    let runs: Vec<Child> = told.iter().map(|own| dlio(&test, &[own])).collect();
    runs.into_iter().for_each(|run| drop(ends_well(run)));
    for run in 1..=6 {
        let summary = test.path(&format!("out{run}/summary.json"));
        assert!(summary.exists() && summary.with_file_name("dlio.log").exists());
    }
    let expected: Vec<String> =
        told.iter().map(|own| format!("- workload=tiny\n- {own}\n")).collect();
    assert_eq!(told_by_hydra(&test), expected);
    let parts = test.files_below("", ".part");
    assert!(parts.is_empty(), "{parts:?}");
}

/// Without folders of their own, each has a folder called after the time, its own.
#[test]
fn results_of_two_runs_of_one_second_lie_side_by_side() {
    let test = with_dataset();
    let told: Vec<String> =
        (1..=6).map(|epochs| format!("++workload.train.epochs={epochs}")).collect();
    let runs: Vec<Child> = told.iter().map(|own| dlio(&test, &[own])).collect();
    runs.into_iter().for_each(|run| drop(ends_well(run)));
    let expected: Vec<String> =
        told.iter().map(|own| format!("- workload=tiny\n- {own}\n")).collect();
    assert_eq!(told_by_hydra(&test), expected);
    for folder in fs::read_dir(test.path("hydra_log/tiny")).unwrap() {
        let folder = folder.unwrap().path();
        let stats = fs::read(folder.join("0_per_epoch_stats.json")).unwrap();
        let stats: serde_json::Value = serde_json::from_slice(&stats).unwrap();
        let epochs = stats.as_object().unwrap().len();
        assert!(overrides(&folder).contains(&format!("epochs={epochs}\n")), "{folder:?}");
    }
}
