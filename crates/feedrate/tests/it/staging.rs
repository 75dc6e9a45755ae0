//! Staging: datasets are copied, before training or file by file, and read from the copy.

use crate::harness::{Answer, MountedDisk, TINY, Test};
use crate::mpi::LAUNCHERS;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const STAGE: &str = "reader.stage=stage";

/// The record of a run.
#[track_caller]
fn record(test: &Test, summary: &Value) -> Value {
    let path = test.path(summary["run_dir"].as_str().unwrap()).join("record.json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// All files below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() { folders.push(entry) } else { files.push(entry) }
        }
    }
    files.sort();
    files
}

fn data_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = files(folder);
    files.retain(|file| file.extension().is_some_and(|extension| extension == "npz"));
    files
}

fn bytes_of(files: &[PathBuf]) -> u64 {
    files.iter().map(|file| file.metadata().unwrap().len()).sum()
}

#[test]
fn a_dataset_is_copied_once_and_read_from_its_copy() {
    let test = Test::with_workload(TINY);
    test.run_json(&["train.epochs=1"]);
    let originals = data_files(&test.path("data"));
    let summary = test.run_json(&[
        STAGE,
        "train.epochs=3",
        "storage.delay.open_seconds=0.05",
        "workflow.evaluation=false",
    ]);
    let staging = &summary["staging"];
    assert_eq!(staging["files"], originals.len());
    assert_eq!(staging["bytes"], bytes_of(&originals));
    let copy_s = staging["copy_s"].as_f64().unwrap();
    let threads =
        1.0_f64.max(record(&test, &summary)["plan"]["loader"]["workers"].as_f64().unwrap());
    assert!(
        copy_s >= originals.len() as f64 * 0.05 / threads,
        "copying opens the original files: {copy_s}"
    );
    let usual = summary["latency"]["open"]["p50_s"].as_f64().unwrap();
    assert!(usual < 0.05, "epochs open only copies: {usual}");
    let phase = &summary["phases"][0];
    assert_eq!((&phase["phase"], &phase["epoch"]), (&"staging".into(), &1.into()));
    assert_eq!(phase["duration_s"], staging["copy_s"]);
    let doubts = summary["doubts"].as_array().unwrap();
    assert!(doubts.iter().any(|doubt| doubt["name"] == "staged" && doubt["severity"] == "note"));
    assert!(!test.path("stage").exists(), "the copy is removed after the run");
    assert_eq!(data_files(&test.path("data")), originals);
    let run = summary["run_dir"].as_str().unwrap();
    let shown = test.feedrate(&["show", run]);
    assert!(
        shown.stdout.contains("Staged") && shown.stdout.contains("staging"),
        "{}",
        shown.stdout
    );
    let timeline = fs::read_to_string(test.path(run).join("phases.csv")).unwrap();
    assert!(timeline.lines().nth(1).unwrap().starts_with("staging,"), "{timeline}");
}

#[test]
fn a_dataset_above_the_limit_is_refused_before_training() {
    let test = Test::with_workload(TINY);
    test.run_json(&["train.epochs=1"]);
    let originals = data_files(&test.path("data"));
    let limit = format!("reader.stage_limit={}", bytes_of(&originals[..2]));
    let answer = test.feedrate(&["run", "workload.yaml", STAGE, &limit]);
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    assert!(answer.stderr.contains("`reader.stage_limit`"), "{}", answer.stderr);
    assert!(answer.stderr.contains("hint: raise `reader.stage_limit`"), "{}", answer.stderr);
    assert!(!test.path("stage").exists());
}

#[test]
fn datasets_that_cannot_be_copied_are_refused_before_a_run() {
    let test = Test::with_workload(TINY);
    let plan = |more: &[&str]| test.feedrate(&[&["plan", "workload.yaml"], more].concat());
    plan(&[STAGE, "storage.storage_type=memory"])
        .refuses(2, &["reader.stage", "no files that can be copied"]);
    plan(&["reader.stage=''"]).refuses(2, &["reader.stage", "the name of the folder is empty"]);
    plan(&[STAGE, "reader.file_access=mpio"]).refuses(2, &["reader.stage", "MPI-IO"]);
    let library = ["dataset.format=hdf5", "storage.engine=libhdf5"];
    plan(&[STAGE, "reader.stage_when=first_read"]).refuses(2, &["reader.stage_when", "hint:"]);
    assert_eq!(plan(&[&library[..], &[STAGE]].concat()).code, 0);
    let alone = plan(&["reader.stage_keep=true"]);
    assert!(
        alone.code == 0 && alone.stderr.contains("the dataset is not copied"),
        "{}",
        alone.stderr
    );
}

#[test]
fn user_files_in_the_folder_of_a_copy_are_kept() {
    let test = Test::with_workload(TINY);
    test.run_json(&[STAGE, "reader.stage_keep=true", "train.epochs=1"]);
    let copy = fs::read_dir(test.path("stage")).unwrap().next().unwrap().unwrap().path();
    fs::write(copy.join("train/thesis.txt"), "mine").unwrap();
    let answer = test.feedrate(&["run", "workload.yaml", STAGE, "train.epochs=1"]);
    assert!(answer.code == 1 && answer.stderr.contains("thesis.txt"), "{}", answer.stderr);
    assert_eq!(fs::read(copy.join("train/thesis.txt")).unwrap(), b"mine");
    fs::remove_file(copy.join("train/thesis.txt")).unwrap();
    // A file with another length is not a file of the copy.
    let changed = data_files(&copy)[0].clone();
    fs::write(&changed, "mine").unwrap();
    let answer = test.feedrate(&["run", "workload.yaml", STAGE, "train.epochs=1"]);
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    assert_eq!(fs::read(&changed).unwrap(), b"mine");
    // A folder of the user with the name of the copy is left alone.
    fs::remove_dir_all(&copy).unwrap();
    fs::create_dir_all(copy.join("train")).unwrap();
    let answer = test.feedrate(&["run", "workload.yaml", STAGE, "train.epochs=1"]);
    assert!(
        answer.code == 1 && answer.stderr.contains("is not a file of the copy"),
        "{}",
        answer.stderr
    );
    assert_eq!(files(&copy), Vec::<PathBuf>::new());
}

/// Starts a run, and sends `signal` after the first file is copied.
fn signal_while_copying(test: &Test, signal: &str, more: &[&str]) {
    let arguments =
        [&["run", "workload.yaml", STAGE, "storage.delay.open_seconds=1"], more].concat();
    let mut child = test.command(&arguments).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while !test.path("stage").exists() || data_files(&test.path("stage")).is_empty() {
        assert!(
            Instant::now() < deadline && child.try_wait().unwrap().is_none(),
            "nothing is copied"
        );
    }
    let id = child.id().to_string();
    assert!(test.program("kill", &[signal, &id]).status().unwrap().success());
    child.wait().unwrap();
}

#[test]
fn the_copy_of_a_killed_run_is_completed_and_of_an_interrupted_run_removed() {
    let test = Test::with_workload(TINY);
    test.run_json(&["train.epochs=1"]);
    let originals = data_files(&test.path("data"));
    signal_while_copying(&test, "-KILL", &[]);
    // Child processes of the killed run may still use the copy for a moment.
    let deadline = Instant::now() + Duration::from_secs(30);
    let summary = loop {
        let answer =
            test.feedrate(&["run", "workload.yaml", STAGE, "train.epochs=1", "--verify", "--json"]);
        if answer.code == 0 {
            break serde_json::from_str::<Value>(&answer.stdout).unwrap();
        }
        assert!(answer.stderr.contains("another run uses the copy"), "{}", answer.stderr);
        assert!(Instant::now() < deadline, "{}", answer.stderr);
    };
    let [copied, kept] =
        ["files", "kept_files"].map(|key| summary["staging"][key].as_u64().unwrap());
    assert!(kept > 0 && copied + kept == originals.len() as u64, "{}", summary["staging"]);
    assert_eq!(files(&test.path("stage")), Vec::<PathBuf>::new());
    signal_while_copying(&test, "-INT", &[]);
    assert_eq!(files(&test.path("stage")), Vec::<PathBuf>::new());
}

#[test]
fn a_changed_dataset_is_copied_again() {
    let test = Test::with_workload(TINY);
    let keep = [STAGE, "reader.stage_keep=true", "train.epochs=1"];
    let first = test.run_json(&keep);
    let again = test.run_json(&keep);
    let count = |summary: &Value, key: &str| summary["staging"][key].as_u64().unwrap();
    assert_eq!((count(&again, "files"), count(&again, "kept_files")), (0, count(&first, "files")));
    let changed = data_files(&test.path("data"))[0].clone();
    fs::write(&changed, fs::read(&changed).unwrap()).unwrap();
    let anew = test.run_json(&keep);
    assert_eq!((count(&anew, "files"), count(&anew, "kept_files")), (count(&first, "files"), 0));
}

/// Foreign files are copied with their names and index files.
#[test]
fn foreign_datasets_are_copied_too() {
    for format in ["hdf5", "webdataset", "indexed_binary"] {
        let test = Test::with_workload(TINY);
        let format_key = format!("dataset.format={format}");
        test.run_json(&[&format_key, "train.epochs=1"]);
        let folder = fs::read_dir(test.path("data")).unwrap().next().unwrap().unwrap().path();
        fs::rename(folder, test.path("theirs")).unwrap();
        fs::remove_file(test.path("theirs/manifest.json")).unwrap();
        fs::remove_file(test.path("theirs/.feedrate.lock")).unwrap();
        let originals = files(&test.path("theirs"));
        let more = ["--foreign", "--data", "theirs", &format_key, STAGE, "train.epochs=2"];
        let summary = test.run_json(&more);
        assert_eq!(summary["staging"]["files"], originals.len(), "{format}");
        assert!(!test.path("stage").exists());
        assert_eq!(files(&test.path("theirs")), originals);
    }
}

#[test]
fn a_device_without_room_is_refused_before_training() {
    let test = Test::with_workload(TINY);
    let more = ["dataset.record_length_bytes=65536", "train.epochs=1"];
    test.run_json(&more);
    fs::create_dir(test.path("small")).unwrap();
    let _small = MountedDisk::tmpfs(&test.path("small"), "size=300k");
    let stage = ["run", "workload.yaml", "reader.stage=small", "--json"];
    let answer = test.feedrate(&[&stage[..], &more].concat());
    answer.refuses(1, &["the copy needs", "has room for", "hint: free space there"]);
    assert_eq!(files(&test.path("small")), Vec::<PathBuf>::new());
}

#[test]
fn ranks_of_a_machine_share_one_copy() {
    let test = Test::with_workload(TINY);
    test.run_json(&["train.epochs=1"]);
    let originals = data_files(&test.path("data"));
    let feedrate = env!("CARGO_BIN_EXE_feedrate");
    for (program, first) in LAUNCHERS {
        let run = [feedrate, "run", "workload.yaml", STAGE, "train.epochs=2", "--verify", "--json"];
        let arguments = [&["60", program], first, &["2"], &run].concat();
        let answer = Answer::from_output(&test.program("timeout", &arguments).output().unwrap());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        let summary: Value = serde_json::from_str(&answer.stdout).unwrap();
        assert_eq!(summary["staging"]["files"], originals.len(), "{}", summary["staging"]);
        assert_eq!(summary["staging"]["bytes"], bytes_of(&originals));
        assert!(!test.path("stage").exists());
    }
}

#[test]
fn clean_removes_a_kept_copy() {
    let test = Test::with_workload(TINY);
    test.run_json(&["train.epochs=1", STAGE, "reader.stage_keep=true"]);
    let copied = data_files(&test.path("data")).len();
    let manifest = &test.files_below("stage", "stage.json")[0];
    fs::write(manifest.with_file_name("thesis.txt"), "mine").unwrap();
    let clean = |more: &[&str]| {
        let answer = test.feedrate(&[&["clean", "stage", "--json"][..], more].concat());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        answer.json()["items"].clone()
    };
    let shown = clean(&[]);
    assert_eq!((&shown[0]["kind"], &shown[0]["files"]), (&"copies".into(), &copied.into()));
    assert_eq!(shown[0]["stays"], serde_json::json!(["thesis.txt"]));
    assert_eq!(clean(&["--yes"]), shown, "as announced");
    assert_eq!(files(&test.path("stage")), [manifest.with_file_name("thesis.txt")]);
}
