//! Detection of reads from the page cache if the kernel's counters are incomplete: file systems whose reads are not counted, processes without
//! access to their counters, and files of other users. The tests need root and bindfs, which `cargo xtask setup` installs.

use crate::harness::{Answer, MountedDisk, TINY, Test};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

/// User `nobody`.
const USER: &str = "65534";

const RUN: [&str; 5] = [
    "run",
    "workload.yaml",
    "train.epochs=1",
    "train.computation_time=0.01",
    // A library reads some bytes of these tiny files twice.
    "reader.requests=large",
];
/// A target that is reached on a busy machine too, so that only missing evidence keeps the answer from being YES.
const REACHED: &str = "metric.au=0.001";

/// The JSON of a run, and the host of the first epoch in its record.
fn summary_and_host(test: &Test, answer: &Answer) -> (Value, Value) {
    let record = test.files_below("results", "record.json").pop().unwrap();
    let record: Value = serde_json::from_slice(&fs::read(record).unwrap()).unwrap();
    (answer.json(), record["epochs"][0]["host"].clone())
}

fn doubts(summary: &Value) -> Vec<&str> {
    let doubts = summary["doubts"].as_array().unwrap().iter();
    doubts.map(|doubt| doubt["name"].as_str().unwrap()).collect()
}

/// A test folder that belongs to `nobody`, with a copy of the program that has this mode.
fn with_program_of_nobody(mode: u32) -> Test {
    let test = Test::with_workload(TINY);
    let folder = test.path("");
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    chown(&folder, Some(65534), Some(65534)).expect("these tests change users: run them as root");
    fs::copy(env!("CARGO_BIN_EXE_feedrate"), test.path("feedrate")).unwrap();
    fs::set_permissions(test.path("feedrate"), Permissions::from_mode(mode)).unwrap();
    test
}

fn run_as_nobody(test: &Test, arguments: &[&str]) -> Answer {
    // `setpriv` keeps root's capabilities for the program that it starts, `env`. The program that `env` starts has none.
    let user = ["--reuid", USER, "--regid", USER, "--clear-groups", "env", "./feedrate"];
    let mut command = test.program("setpriv", &[&user[..], arguments].concat());
    Answer::from_output(&command.env("HOME", test.path("")).output().unwrap())
}

fn read_into_cache(files: &[impl AsRef<Path>]) {
    files.iter().for_each(|file| drop(fs::read(file).unwrap()));
}

/// Mounts the folder `data` as `fuse`.
fn mount_bindfs(test: &Test) -> MountedDisk {
    fs::create_dir_all(test.path("data")).unwrap();
    fs::create_dir(test.path("fuse")).unwrap();
    // Without this option, opening a file removes it from the page cache.
    let bindfs = test.program("bindfs", &["-o", "kernel_cache", "data", "fuse"]).status();
    let hint = "install it with `apt-get install bindfs`, and run these tests as root";
    assert!(bindfs.is_ok_and(|status| status.success()), "bindfs does not mount: {hint}");
    MountedDisk(test.path("fuse"))
}

/// Mounts an overlay of `lower` and a folder in memory as `overlay`. An upper folder must not be on an overlay itself, as in a container.
fn mount_overlay(test: &Test, lower: &str) -> [MountedDisk; 2] {
    let memory = MountedDisk::tmpfs(&test.path("memory"), "size=16m");
    for folder in ["memory/upper", "memory/work", "overlay"] {
        fs::create_dir(test.path(folder)).unwrap();
    }
    let path = |folder: &str| test.path(folder).display().to_string();
    let [lower, upper, work] = [lower, "memory/upper", "memory/work"].map(path);
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
    let mount = ["-t", "overlay", "-o", &options, "overlay", "overlay"];
    let status = test.program("mount", &mount).status();
    let hint = "overlayfs does not mount: run these tests as root";
    assert!(status.is_ok_and(|status| status.success()), "{hint}");
    // The overlay is unmounted first.
    [MountedDisk(test.path("overlay")), memory]
}

/// If the page cache was cold, slow reads are slow, but fast reads may have come from caches of the program behind FUSE.
#[test]
fn bytes_from_a_device_are_unknown_on_fuse() {
    let test = Test::with_workload(TINY);
    assert_eq!(test.feedrate(&["generate", "workload.yaml"]).code, 0);
    let _mounted = mount_bindfs(&test);
    for (target, may_be_cached) in [(REACHED, true), ("metric.au=1", false)] {
        let options = [target, "--data", "fuse", "--cold", "--json"];
        let answer = test.feedrate(&[&RUN[..], &options].concat());
        let (summary, host) = summary_and_host(&test, &answer);
        assert_eq!(host["process_device_read_bytes"], Value::Null);
        assert_eq!(summary["bytes"]["device"], Value::Null);
        assert_ne!(summary["answer"]["kind"], "yes", "{summary}");
        let is_cache_fed = summary["answer"]["unknown_because"] == "cache-fed";
        assert_eq!(is_cache_fed, may_be_cached, "{summary}");
        assert_eq!(summary["answer"]["is_memory_served"], false);
        assert!(!doubts(&summary).contains(&"page_cache"), "{summary}");
        assert!(doubts(&summary).contains(&"device_bytes_unknown"), "{summary}");
        fs::remove_dir_all(test.path("results")).unwrap();
    }
    // The files are now in the page cache, and how many bytes come from the device is still unknown.
    read_into_cache(&test.files_below("fuse", ".npz"));
    let answer = test.feedrate(&[&RUN[..], &[REACHED, "--data", "fuse", "--json"]].concat());
    let (summary, _) = summary_and_host(&test, &answer);
    assert_eq!(summary["answer"]["kind"], "unknown", "{summary}");
    assert_eq!(summary["answer"]["is_memory_served"], true);
    assert_eq!(summary["bytes"]["device"], Value::Null);
}

/// `cachestat` reports nothing for files of overlayfs, as their pages belong to the file below.
#[test]
fn files_below_an_overlay_are_seen_in_the_page_cache() {
    let test = Test::with_workload(TINY);
    assert_eq!(test.feedrate(&["generate", "workload.yaml"]).code, 0);
    let _mounted = mount_overlay(&test, "data");
    read_into_cache(&test.files_below("overlay", ".npz"));
    let answer = test.feedrate(&[&RUN[..], &[REACHED, "--data", "overlay", "--json"]].concat());
    let (summary, host) = summary_and_host(&test, &answer);
    let bytes: u64 =
        test.data_files(".npz").iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    assert!(bytes / 2 < host["resident_before_bytes"].as_u64().unwrap(), "{host}");
    assert_eq!(summary["answer"]["kind"], "unknown", "{summary}");
    assert_eq!(summary["answer"]["is_memory_served"], true);
    assert_eq!(summary["bytes"]["device"], 0);
}

/// The kernel counts no reads of FUSE, neither below an overlay nor of a copy of the dataset there.
#[test]
fn bytes_from_a_device_are_unknown_where_fuse_is_below() {
    let test = Test::with_workload(TINY);
    assert_eq!(test.feedrate(&["generate", "workload.yaml"]).code, 0);
    let _fuse = mount_bindfs(&test);
    let _overlay = mount_overlay(&test, "fuse");
    for place in [&["--data", "overlay"][..], &["reader.stage=fuse/stage"]] {
        let options = [&[REACHED, "--cold", "--json"], place].concat();
        let answer = test.feedrate(&[&RUN[..], &options].concat());
        let (summary, host) = summary_and_host(&test, &answer);
        assert_eq!(host["process_device_read_bytes"], Value::Null, "{place:?}");
        assert_eq!(summary["bytes"]["device"], Value::Null, "{place:?}");
        assert_eq!(summary["answer"]["kind"], "unknown", "{summary}");
        fs::remove_dir_all(test.path("results")).unwrap();
    }
}

/// Files in memory cannot be removed from it, so no advice names `--cold`.
#[test]
fn a_dataset_in_memory_is_not_advised_to_be_cold() {
    let test = Test::with_workload(TINY);
    fs::create_dir(test.path("memory")).unwrap();
    let _memory = MountedDisk::tmpfs(&test.path("memory"), "size=64m");
    for more in [&[][..], &["--cold"]] {
        let arguments = [&RUN[..], &["--data", "memory", REACHED], more].concat();
        let answer = test.feedrate(&[&arguments[..], &["--json"]].concat());
        let (summary, _) = summary_and_host(&test, &answer);
        assert_eq!(summary["answer"]["kind"], "unknown", "{summary}");
        let doubts = summary["doubts"].as_array().unwrap();
        let doubt = doubts.iter().find(|doubt| doubt["name"] == "page_cache").unwrap();
        assert!(doubt["advice"].as_str().unwrap().contains("since tmpfs is memory"), "{doubt}");
        let text = test.feedrate(&arguments).stdout;
        assert!(!text.contains("use `--cold`") && text.contains("tmpfs"), "{text}");
        fs::remove_dir_all(test.path("results")).unwrap();
    }
}

/// If a user may not read a program's file, the kernel shows the program's counters only to root.
#[test]
fn a_cached_dataset_without_process_counters_gives_no_answer() {
    let test = with_program_of_nobody(0o711);
    assert_eq!(run_as_nobody(&test, &["generate", "workload.yaml"]).code, 0);
    read_into_cache(&test.data_files(".npz"));
    let answer = run_as_nobody(&test, &[&RUN[..], &["--json", "--fail-below-au", "0"]].concat());
    assert_eq!(answer.code, 4, "{}", answer.stderr);
    let (summary, host) = summary_and_host(&test, &answer);
    assert_eq!(host["process_device_read_bytes"], Value::Null);
    assert_ne!(summary["answer"]["kind"], "yes");
    assert!(doubts(&summary).contains(&"page_cache"), "{summary}");
}

#[test]
fn the_cached_bytes_of_other_users_files_are_unknown() {
    let test = with_program_of_nobody(0o755);
    assert_eq!(test.feedrate(&["generate", "workload.yaml"]).code, 0);
    let answer = run_as_nobody(&test, &[&RUN[..], &["--cold", "--json"]].concat());
    let (summary, host) = summary_and_host(&test, &answer);
    assert_eq!(host["resident_before_bytes"], Value::Null);
    assert!(!doubts(&summary).contains(&"not_cold"), "{summary}");
    fs::remove_dir_all(test.path("results")).unwrap();
    // The process's counters are enough for the answer.
    read_into_cache(&test.data_files(".npz"));
    let (summary, _) =
        summary_and_host(&test, &run_as_nobody(&test, &[&RUN[..], &[REACHED, "--json"]].concat()));
    assert_eq!(summary["answer"]["is_memory_served"], true);
}
