//! Whether storage or memory served a run, where the kernel does not say all: file systems whose reads it does not count, processes
//! that may not read their counters, files of other users. Needs root and bindfs, which `cargo xtask setup` installs; fails without.

use crate::harness::{Answer, Mounted, TINY, Test};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

/// `nobody`
const USER: &str = "65534";

const RUN: [&str; 4] = ["run", "workload.yaml", "train.epochs=1", "train.computation_time=0.01"];

/// What a run says, and its epoch's machine as it is in the record.
fn told(test: &Test, answer: &Answer) -> (Value, Value) {
    let record = test.files_below("results", "record.json").pop().unwrap();
    let record: Value = serde_json::from_slice(&fs::read(record).unwrap()).unwrap();
    (answer.json(), record["epochs"][0]["host"].clone())
}

fn doubts(summary: &Value) -> Vec<&str> {
    let doubts = summary["doubts"].as_array().unwrap().iter();
    doubts.map(|doubt| doubt["name"].as_str().unwrap()).collect()
}

/// A folder of `nobody`, who has the program under `mode`.
fn of_nobody(mode: u32) -> Test {
    let test = Test::with(TINY);
    let folder = test.path("");
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    chown(&folder, Some(65534), Some(65534)).expect("these tests change users: run them as root");
    fs::copy(env!("CARGO_BIN_EXE_feedrate"), test.path("feedrate")).unwrap();
    fs::set_permissions(test.path("feedrate"), Permissions::from_mode(mode)).unwrap();
    test
}

fn as_nobody(test: &Test, arguments: &[&str]) -> Answer {
    // `setpriv` starts its program with the capabilities of root: `env` starts the next without.
    let user = ["--reuid", USER, "--regid", USER, "--clear-groups", "env", "./feedrate"];
    let mut command = test.program("setpriv", &[&user[..], arguments].concat());
    Answer::of(&command.env("HOME", test.path("")).output().unwrap())
}

fn read(files: &[impl AsRef<Path>]) {
    files.iter().for_each(|file| drop(fs::read(file).unwrap()));
}

#[test]
fn bytes_from_a_device_are_unknown_on_fuse() {
    let test = Test::with(TINY);
    assert_eq!(test.feedrate(&["generate", "workload.yaml"]).code, 0);
    fs::create_dir(test.path("fuse")).unwrap();
    let bindfs = test.program("bindfs", &["data", "fuse"]).status();
    let hint = "install it with `apt-get install bindfs`, and run these tests as root";
    assert!(bindfs.is_ok_and(|status| status.success()), "bindfs does not mount: {hint}");
    let _mounted = Mounted(test.path("fuse"));
    let answer = test.feedrate(&[&RUN[..], &["--data", "fuse", "--cold", "--json"]].concat());
    let (summary, host) = told(&test, &answer);
    assert_eq!(host["process_device_read_bytes"], Value::Null);
    assert_eq!(summary["bytes"]["device"], Value::Null);
    assert_ne!(summary["verdict"]["name"], "cache-fed");
    assert!(!doubts(&summary).contains(&"page_cache"), "{summary}");
}

/// The kernel shows the counters of a program that its user may not read to root alone.
#[test]
fn a_cached_dataset_without_counters_of_the_process_is_not_judged() {
    let test = of_nobody(0o711);
    assert_eq!(as_nobody(&test, &["generate", "workload.yaml"]).code, 0);
    read(&test.data_files(".npz"));
    let answer = as_nobody(&test, &[&RUN[..], &["--json", "--fail-below-au", "0"]].concat());
    assert_eq!(answer.code, 4, "{}", answer.stderr);
    let (summary, host) = told(&test, &answer);
    assert_eq!(host["process_device_read_bytes"], Value::Null);
    assert_ne!(summary["answer"]["kind"], "yes");
    assert!(doubts(&summary).contains(&"page_cache"), "{summary}");
}

#[test]
fn how_much_is_cached_of_the_files_of_others_is_unknown() {
    let test = of_nobody(0o755);
    assert_eq!(test.feedrate(&["generate", "workload.yaml"]).code, 0);
    let answer = as_nobody(&test, &[&RUN[..], &["--cold", "--json"]].concat());
    let (summary, host) = told(&test, &answer);
    assert_eq!(host["resident_before_bytes"], Value::Null);
    assert!(!doubts(&summary).contains(&"not_cold"), "{summary}");
    fs::remove_dir_all(test.path("results")).unwrap();
    // The process's counters tell without it.
    read(&test.data_files(".npz"));
    let (summary, _) = told(&test, &as_nobody(&test, &[&RUN[..], &["--json"]].concat()));
    assert_eq!(summary["answer"]["is_memory_served"], true);
}
