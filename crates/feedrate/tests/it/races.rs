//! Several processes in one place at once: each with its own results, one of them with the dataset.

use crate::dlio_benchmark::with_workloads;
use crate::harness::{Answer, TINY, Test, signal, until};
use crate::hung::{hang_opens, hangs};
use feedrate_data::lock::{DatasetLock, LOCK_FILE, LockAccess, LockAttempt};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

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

/// Somebody of the test's own.
fn hold(dataset: &Path, access: LockAccess) -> DatasetLock {
    match DatasetLock::try_acquire(dataset, access, "process 7 on h, since then").unwrap() {
        LockAttempt::Held(lock) => lock,
        other => panic!("{other:?}"),
    }
}

/// Until the process says this on stderr.
#[track_caller]
fn until_said(child: &mut Child, words: &str) {
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut all = String::new();
    while !all.contains(words) {
        assert!(stderr.read_line(&mut all).unwrap() > 0, "it ended without `{words}`: {all}");
    }
    // It may go on talking.
    thread::spawn(move || stderr.read_to_end(&mut Vec::new()));
}

/// The only dataset below `data`.
fn dataset_of(test: &Test) -> PathBuf {
    let datasets: Vec<_> = fs::read_dir(test.path("data")).unwrap().collect();
    assert_eq!(datasets.len(), 1, "{datasets:?}");
    datasets[0].as_ref().unwrap().path()
}

/// Runs `feedrate generate --verify`.
#[track_caller]
fn is_whole(test: &Test) {
    let answer = test.feedrate(&["generate", "--verify", "workload.yaml"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(test.data_files(".part").is_empty());
}

#[test]
fn a_run_waits_for_who_makes_its_dataset() {
    let test = Test::with(TINY);
    test.run_json(&[]);
    let dataset = dataset_of(&test);
    fs::remove_dir_all(&dataset).unwrap();
    let maker = hold(&dataset, LockAccess::Exclusive);
    let mut run = start(&mut test.command(&["run", "workload.yaml"]));
    until_said(&mut run, ": process 7 on h, since then");
    let mut second = start(&mut test.command(&["generate", "workload.yaml"]));
    until_said(&mut second, ": process 7 on h, since then");
    assert_eq!(test.data_files(".npz").len(), 0);
    // As a study deletes what it does not need, folder and all.
    maker.remove().unwrap();
    ends_well(run);
    ends_well(second);
    is_whole(&test);
}

#[test]
fn a_dataset_whose_maker_was_killed_is_completed_by_who_waits() {
    let test = Test::with(TINY);
    // It comes to its sixth file, and no further.
    let mut first = test.command(&["generate", "workload.yaml"]);
    let mut first = start(hang_opens(&test, &mut first, "img_5_of_8"));
    until("a generation", || hangs(first.id()));
    let holder = fs::read_to_string(dataset_of(&test).join(LOCK_FILE)).unwrap();
    let maker = holder.split(' ').nth(1).unwrap();
    let mut second = start(&mut test.command(&["run", "workload.yaml"]));
    until_said(&mut second, &format!("process {maker} on "));
    signal("-KILL", maker);
    assert!(!first.wait().unwrap().success());
    ends_well(second);
    is_whole(&test);
}

/// A dataset of other settings takes its place when nobody reads it any more.
#[test]
fn nothing_is_replaced_while_it_is_read() {
    let test = with_dataset();
    let reader = hold(&test.path("data"), LockAccess::Shared);
    let mut other = dlio(
        &test,
        &["++workload.dataset.num_files_train=4", "++workload.workflow.generate_data=True"],
    );
    until_said(&mut other, ": process 7 on h, since then");
    assert_eq!(test.data_files("_of_8.npz").len(), 8);
    let run = ends_well(dlio(&test, &[]));
    assert!(!run.stderr.contains("waiting"), "{}", run.stderr);
    drop(reader);
    ends_well(other);
    assert_eq!((test.data_files("_of_8.npz").len(), test.data_files("_of_4.npz").len()), (0, 4));
}

#[test]
fn a_study_goes_on_with_a_row_whose_dataset_nobody_makes() {
    let test = Test::with(TINY);
    test.run_json(&[]);
    let busy = dataset_of(&test);
    test.write(
        "study.csv",
        "model,processes,overrides,run\nworkload.yaml,1,,N\nworkload.yaml,1,dataset.format=npy,N\n",
    );
    let maker = hold(&busy, LockAccess::Exclusive);
    let mut study = start(&mut test.command(&["study", "run", "study.csv"]));
    until("the other row", || {
        fs::read_to_string(test.path("study.csv")).unwrap().contains("npy,Y")
    });
    assert!(study.try_wait().unwrap().is_none(), "the first row waits");
    drop(maker);
    let answer = ends_well(study);
    assert!(answer.stderr.contains("process 7 on h, since then"), "{}", answer.stderr);
    assert!(fs::read_to_string(test.path("study.csv")).unwrap().contains("1,,Y"));
}

#[test]
fn a_folder_of_others_keeps_nothing_of_a_refusal() {
    let test = with_workloads();
    fs::create_dir_all(test.path("data/train")).unwrap();
    test.write("data/train/.mydownload.part", "mine");
    let refused = dlio(&test, &["++workload.workflow.generate_data=True"]);
    let refused = Answer::of(&refused.wait_with_output().unwrap());
    refused.refuses(1, &["`train/.mydownload.part` is in the folder"]);
    assert_eq!(test.data_files(""), [test.path("data/train/.mydownload.part")]);
    assert_eq!(fs::read(test.path("data/train/.mydownload.part")).unwrap(), b"mine");
}

#[test]
fn a_file_system_without_locks_is_told() {
    let test = Test::with(TINY);
    let mut generate = test.command(&["generate", "workload.yaml"]);
    let answer = ends_well(start(generate.env("LD_PRELOAD", test.library("no_locks.c"))));
    answer.warns(&["cannot be locked (Function not implemented (os error 38))"]);
    is_whole(&test);
    assert!(dataset_of(&test).join(LOCK_FILE).exists());
}

/// Two that share a folder of checkpoints would tear each other's.
#[test]
fn a_run_that_would_write_the_checkpoints_of_another_is_refused() {
    let test = Test::with(TINY);
    let training = ["run", "workload.yaml", "workflow.checkpoint=true"];
    let alone = ["run", "workload.yaml", "workflow.checkpoint=true", "workflow.train=false"];
    let counts = |writes: &str, reads: &str| {
        [
            format!("checkpoint.num_checkpoints_write={writes}"),
            format!("checkpoint.num_checkpoints_read={reads}"),
        ]
    };
    let asks = |counts: &[String; 2]| {
        let all: Vec<&str> = alone.into_iter().chain(counts.iter().map(String::as_str)).collect();
        test.feedrate(&all)
    };
    assert_eq!(asks(&counts("1", "0")).code, 0);
    let mut first = test.command(&training);
    let mut first = start(hang_opens(&test, &mut first, "model_states-0"));
    until("a checkpoint", || hangs(first.id()));
    let before = test.files_below("checkpoints", "");
    for answer in [test.feedrate(&training), asks(&counts("0", "1"))] {
        let told = ["the folder of checkpoints `./checkpoints/` is in use: process ", "hint: wait"];
        answer.refuses(1, &told);
        assert!(answer.stderr.contains("nothing was measured"), "{}", answer.stderr);
    }
    assert_eq!(test.files_below("checkpoints", ""), before);
    let clean = test.feedrate(&["clean", "checkpoints", "--yes"]);
    assert_eq!(clean.code, 3, "{}", clean.stderr);
    assert!(clean.stdout.contains("in use"), "{}", clean.stdout);
    assert_eq!(test.files_below("checkpoints", ""), before);
    signal("-KILL", first.id());
    first.wait().unwrap();
    let next = test.feedrate(&training);
    assert_eq!(next.code, 0, "a lock whose holder died is free: {}", next.stderr);
    // Many may read.
    let folder = test.path("checkpoints");
    let reader = hold(&folder, LockAccess::Shared);
    assert_eq!(asks(&counts("0", "1")).code, 0);
    asks(&counts("1", "0")).refuses(1, &["is in use: runs read it"]);
    drop(reader);
    assert_eq!(test.feedrate(&["clean", "checkpoints", "--yes"]).code, 0);
    assert!(!folder.exists());
}
