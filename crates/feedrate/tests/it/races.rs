//! Several processes in the same folder: each has its own results, and only one generates or changes a dataset.

use crate::dlio_benchmark::with_workloads;
use crate::harness::{Answer, TINY, Test, send_signal, wait_until};
use crate::hung::{hang_opens, is_hanging};
use feedrate_data::lock::{DatasetLock, LOCK_FILE, LockAccess, LockAttempt};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

/// Starts a command in the background, with its output in pipes.
fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn start_dlio_benchmark(test: &Test, arguments: &[&str]) -> Child {
    let mut command = test.program(env!("CARGO_BIN_EXE_dlio_benchmark"), &["--config-dir", "conf"]);
    start(command.arg("workload=tiny").args(arguments))
}

#[track_caller]
fn wait_for_success(child: Child) -> Answer {
    let answer = Answer::from_output(&child.wait_with_output().unwrap());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    answer
}

/// A test folder with the dataset of the workload `tiny`.
fn with_dataset() -> Test {
    let test = with_workloads();
    wait_for_success(start_dlio_benchmark(
        &test,
        &["++workload.workflow.generate_data=True", "++workload.workflow.train=False"],
    ));
    fs::remove_dir_all(test.path("hydra_log")).unwrap();
    test
}

fn overrides(folder: &Path) -> String {
    fs::read_to_string(folder.join(".hydra/overrides.yaml")).unwrap()
}

/// The overrides in each of Hydra's folders, sorted.
fn recorded_overrides(test: &Test) -> Vec<String> {
    let folders = fs::read_dir(test.path("hydra_log/tiny")).unwrap();
    let mut all: Vec<String> = folders.map(|folder| overrides(&folder.unwrap().path())).collect();
    all.sort();
    all
}

/// `xargs -P 6` would start runs like this.
#[test]
fn six_runs_in_the_same_second_have_separate_results() {
    let test = with_dataset();
    let settings: Vec<String> =
        (1..=6).map(|run| format!("++workload.output.folder=out{run}")).collect();
    let runs: Vec<Child> =
        settings.iter().map(|setting| start_dlio_benchmark(&test, &[setting])).collect();
    runs.into_iter().for_each(|run| drop(wait_for_success(run)));
    for run in 1..=6 {
        let summary = test.path(&format!("out{run}/summary.json"));
        assert!(summary.exists() && summary.with_file_name("dlio.log").exists());
    }
    let expected: Vec<String> =
        settings.iter().map(|setting| format!("- workload=tiny\n- {setting}\n")).collect();
    assert_eq!(recorded_overrides(&test), expected);
    let parts = test.files_below("", ".part");
    assert!(parts.is_empty(), "{parts:?}");
}

/// Without a given folder, each run creates a folder named by the time.
#[test]
fn runs_in_the_same_second_create_different_folders() {
    let test = with_dataset();
    let settings: Vec<String> =
        (1..=6).map(|epochs| format!("++workload.train.epochs={epochs}")).collect();
    let runs: Vec<Child> =
        settings.iter().map(|setting| start_dlio_benchmark(&test, &[setting])).collect();
    runs.into_iter().for_each(|run| drop(wait_for_success(run)));
    let expected: Vec<String> =
        settings.iter().map(|setting| format!("- workload=tiny\n- {setting}\n")).collect();
    assert_eq!(recorded_overrides(&test), expected);
    for folder in fs::read_dir(test.path("hydra_log/tiny")).unwrap() {
        let folder = folder.unwrap().path();
        let stats = fs::read(folder.join("0_per_epoch_stats.json")).unwrap();
        let stats: serde_json::Value = serde_json::from_slice(&stats).unwrap();
        let epochs = stats.as_object().unwrap().len();
        assert!(overrides(&folder).contains(&format!("epochs={epochs}\n")), "{folder:?}");
    }
}

/// Locks a dataset in place of another process.
fn hold_lock(dataset: &Path, access: LockAccess) -> DatasetLock {
    match DatasetLock::try_acquire(dataset, access, "process 7 on h, since then").unwrap() {
        LockAttempt::Held(lock) => lock,
        other => panic!("{other:?}"),
    }
}

/// Waits until the process prints `words` on stderr.
#[track_caller]
fn wait_for_stderr(child: &mut Child, words: &str) {
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut all = String::new();
    while !all.contains(words) {
        assert!(stderr.read_line(&mut all).unwrap() > 0, "it ended without `{words}`: {all}");
    }
    // Further output must not block the process.
    thread::spawn(move || stderr.read_to_end(&mut Vec::new()));
}

/// The only dataset below `data`.
fn dataset_of(test: &Test) -> PathBuf {
    let datasets: Vec<_> = fs::read_dir(test.path("data")).unwrap().collect();
    assert_eq!(datasets.len(), 1, "{datasets:?}");
    datasets[0].as_ref().unwrap().path()
}

/// Checks the dataset by `feedrate generate --verify`.
#[track_caller]
fn check_dataset(test: &Test) {
    let answer = test.feedrate(&["generate", "--verify", "workload.yaml"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(test.data_files(".part").is_empty());
}

#[test]
fn a_run_waits_for_the_process_that_generates_its_dataset() {
    let test = Test::with_workload(TINY);
    test.run_json(&[]);
    let dataset = dataset_of(&test);
    fs::remove_dir_all(&dataset).unwrap();
    let generator = hold_lock(&dataset, LockAccess::Exclusive);
    let mut run = start(&mut test.command(&["run", "workload.yaml"]));
    wait_for_stderr(&mut run, ": process 7 on h, since then");
    let mut second = start(&mut test.command(&["generate", "workload.yaml"]));
    wait_for_stderr(&mut second, ": process 7 on h, since then");
    assert_eq!(test.data_files(".npz").len(), 0);
    // Removes the folder with the lock, as a study does.
    generator.remove().unwrap();
    wait_for_success(run);
    wait_for_success(second);
    check_dataset(&test);
}

#[test]
fn a_waiting_process_completes_the_dataset_of_a_killed_process() {
    let test = Test::with_workload(TINY);
    // The generation hangs at its sixth file.
    let mut first = test.command(&["generate", "workload.yaml"]);
    let mut first = start(hang_opens(&test, &mut first, "img_5_of_8"));
    wait_until("a generation", || is_hanging(first.id()));
    let holder = fs::read_to_string(dataset_of(&test).join(LOCK_FILE)).unwrap();
    let generator_id = holder.split(' ').nth(1).unwrap();
    let mut second = start(&mut test.command(&["run", "workload.yaml"]));
    wait_for_stderr(&mut second, &format!("process {generator_id} on "));
    send_signal("-KILL", generator_id);
    assert!(!first.wait().unwrap().success());
    wait_for_success(second);
    check_dataset(&test);
}

/// A dataset with other settings replaces it after the last reader has finished.
#[test]
fn a_dataset_is_not_replaced_while_it_is_read() {
    let test = with_dataset();
    let reader = hold_lock(&test.path("data"), LockAccess::Shared);
    let mut other = start_dlio_benchmark(
        &test,
        &["++workload.dataset.num_files_train=4", "++workload.workflow.generate_data=True"],
    );
    wait_for_stderr(&mut other, ": process 7 on h, since then");
    assert_eq!(test.data_files("_of_8.npz").len(), 8);
    let run = wait_for_success(start_dlio_benchmark(&test, &[]));
    assert!(!run.stderr.contains("waiting"), "{}", run.stderr);
    drop(reader);
    wait_for_success(other);
    assert_eq!((test.data_files("_of_8.npz").len(), test.data_files("_of_4.npz").len()), (0, 4));
}

#[test]
fn a_study_first_runs_rows_whose_datasets_are_not_locked() {
    let test = Test::with_workload(TINY);
    test.run_json(&[]);
    let busy = dataset_of(&test);
    test.write(
        "study.csv",
        "model,processes,overrides,run\nworkload.yaml,1,,N\nworkload.yaml,1,dataset.format=npy,N\n",
    );
    let generator = hold_lock(&busy, LockAccess::Exclusive);
    let mut study = start(&mut test.command(&["study", "run", "study.csv"]));
    wait_until("the other row", || {
        fs::read_to_string(test.path("study.csv")).unwrap().contains("npy,Y")
    });
    assert!(study.try_wait().unwrap().is_none(), "the first row waits");
    drop(generator);
    let answer = wait_for_success(study);
    assert!(answer.stderr.contains("process 7 on h, since then"), "{}", answer.stderr);
    assert!(fs::read_to_string(test.path("study.csv")).unwrap().contains("1,,Y"));
}

#[test]
fn a_refused_run_writes_nothing_into_a_foreign_folder() {
    let test = with_workloads();
    fs::create_dir_all(test.path("data/train")).unwrap();
    test.write("data/train/.mydownload.part", "mine");
    let refused = start_dlio_benchmark(&test, &["++workload.workflow.generate_data=True"]);
    let refused = Answer::from_output(&refused.wait_with_output().unwrap());
    refused.refuses(1, &["`train/.mydownload.part` is in the folder"]);
    assert_eq!(test.data_files(""), [test.path("data/train/.mydownload.part")]);
    assert_eq!(fs::read(test.path("data/train/.mydownload.part")).unwrap(), b"mine");
}

#[test]
fn a_file_system_without_locks_causes_a_warning() {
    let test = Test::with_workload(TINY);
    let mut generate = test.command(&["generate", "workload.yaml"]);
    let answer =
        wait_for_success(start(generate.env("LD_PRELOAD", test.compile_library("no_locks.c"))));
    answer.warns(&["cannot be locked (Function not implemented (os error 38))"]);
    check_dataset(&test);
    assert!(dataset_of(&test).join(LOCK_FILE).exists());
}

/// Two runs in the same folder of checkpoints would overwrite each other's files.
#[test]
fn a_run_is_refused_if_another_run_uses_its_checkpoint_folder() {
    let test = Test::with_workload(TINY);
    let training = ["run", "workload.yaml", "workflow.checkpoint=true"];
    let alone = ["run", "workload.yaml", "workflow.checkpoint=true", "workflow.train=false"];
    let counts = |writes: &str, reads: &str| {
        [
            format!("checkpoint.num_checkpoints_write={writes}"),
            format!("checkpoint.num_checkpoints_read={reads}"),
        ]
    };
    let run_checkpoints = |counts: &[String; 2]| {
        let all: Vec<&str> = alone.into_iter().chain(counts.iter().map(String::as_str)).collect();
        test.feedrate(&all)
    };
    assert_eq!(run_checkpoints(&counts("1", "0")).code, 0);
    let mut first = test.command(&training);
    let mut first = start(hang_opens(&test, &mut first, "model_states-0"));
    wait_until("a checkpoint", || is_hanging(first.id()));
    let before = test.files_below("checkpoints", "");
    for answer in [test.feedrate(&training), run_checkpoints(&counts("0", "1"))] {
        let words =
            ["the folder of checkpoints `./checkpoints/` is in use: process ", "hint: wait"];
        answer.refuses(1, &words);
        assert!(answer.stderr.contains("nothing was measured"), "{}", answer.stderr);
    }
    assert_eq!(test.files_below("checkpoints", ""), before);
    let clean = test.feedrate(&["clean", "checkpoints", "--yes"]);
    assert_eq!(clean.code, 3, "{}", clean.stderr);
    assert!(clean.stdout.contains("in use"), "{}", clean.stdout);
    assert_eq!(test.files_below("checkpoints", ""), before);
    send_signal("-KILL", first.id());
    first.wait().unwrap();
    let next = test.feedrate(&training);
    assert_eq!(next.code, 0, "a lock whose holder died is free: {}", next.stderr);
    // Several runs may read at the same time.
    let folder = test.path("checkpoints");
    let reader = hold_lock(&folder, LockAccess::Shared);
    assert_eq!(run_checkpoints(&counts("0", "1")).code, 0);
    run_checkpoints(&counts("1", "0")).refuses(1, &["is in use: runs are reading it"]);
    drop(reader);
    assert_eq!(test.feedrate(&["clean", "checkpoints", "--yes"]).code, 0);
    assert!(!folder.exists());
}
