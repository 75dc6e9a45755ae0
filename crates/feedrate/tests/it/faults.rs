//! Failures of the system: errors of system calls, injected with strace, impossible clocks, and manifests with impossible numbers.

use crate::harness::{Answer, TINY, Test};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// Runs `feedrate` while system calls fail. `rule` is what strace injects; `path` limits it to calls on this path.
fn with_failing_calls(test: &Test, rule: &str, path: Option<&str>, arguments: &[&str]) -> Answer {
    let program = env!("CARGO_BIN_EXE_feedrate");
    let inject = format!("inject={rule}");
    let limit: &[&str] = match &path {
        Some(path) => &["-P", path],
        None => &[],
    };
    let strace = [&["-f", "-qq", "-o", "calls"], limit, &["-e", &inject, program]].concat();
    let mut command = test.program("strace", &[&strace[..], arguments].concat());
    let output = command.output();
    let answer = Answer::from_output(&output.unwrap_or_else(|error| {
        panic!("cannot start `strace`: {error}\n  hint: run `cargo xtask setup`")
    }));
    let calls = fs::read_to_string(test.path("calls")).unwrap();
    assert!(calls.contains("(INJECTED)"), "no call failed: {calls}\n{}", answer.stderr);
    answer
}

fn dataset(test: &Test) -> PathBuf {
    assert_eq!(test.feedrate(&["generate", "workload.yaml"]).code, 0);
    let manifest = test.data_files("manifest.json").remove(0);
    manifest.parent().unwrap().to_path_buf()
}

/// The standard library panics in this case.
#[test]
fn an_error_when_a_folder_is_closed_is_no_panic() {
    let test = Test::with_workload(TINY);
    let folder = fs::canonicalize(dataset(&test)).unwrap().join("train");
    let folder = folder.to_str();
    for arguments in [["generate", "workload.yaml"], ["clean", "data"]] {
        let answer = with_failing_calls(&test, "close:error=EIO", folder, &arguments);
        assert!([0, 1].contains(&answer.code), "{arguments:?}: {}", answer.stderr);
        assert!(!answer.stderr.contains("panicked"), "{arguments:?}: {}", answer.stderr);
    }
}

#[test]
fn a_clock_beyond_all_calendars_is_no_panic() {
    let test = Test::with_workload(TINY);
    dataset(&test);
    let library = test.compile_library("far_clock.c");
    let mut run = test.command(&["run", "workload.yaml"]);
    let answer = Answer::from_output(&run.env("LD_PRELOAD", &library).output().unwrap());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stdout.contains("Results: results/tiny/9999-12-30-"), "{}", answer.stdout);
}

/// A manifest may claim a billion files. The work is bounded by the files that exist.
#[test]
fn a_manifest_that_claims_far_too_many_files_takes_no_time() {
    let small = TINY.replace("4096", "100");
    let test = Test::with_workload(&small);
    let folder = dataset(&test);
    test.write("huge.yaml", small.replace("files_train: 8", "files_train: 1000000000"));
    let missing = test.feedrate(&["generate", "huge.yaml", "--verify"]);
    // The message names the folder of the dataset that the workload needs.
    let name = missing.stderr.split('`').find(|word| word.contains("data/npz-")).unwrap();
    let mut manifest: Value =
        serde_json::from_slice(&fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    manifest["settings"]["files_train"] = 1_000_000_000.into();
    manifest["files"][0]["files"] = 1_000_000_000.into();
    fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
    // The files of a larger dataset have other names.
    fs::rename(&folder, test.path(name)).unwrap();
    for file in test.files_below(name, ".npz") {
        let number = file.file_name().unwrap().to_str().unwrap().split('_').nth(1).unwrap();
        let number: u64 = number.parse().unwrap();
        fs::rename(&file, file.with_file_name(format!("img_{number:010}_of_1000000000.npz")))
            .unwrap();
    }
    let verified = test.feedrate(&["generate", "huge.yaml", "--verify"]);
    verified.refuses(1, &["img_0000000008_of_1000000000.npz`: is missing"]);
    assert!(
        verified.stdout.contains("8 of 1,000,000,000 files"),
        "{}{}",
        verified.stdout,
        verified.stderr
    );
    let listed = test.feedrate(&["clean", "data", "--json"]).json();
    assert_eq!(listed["items"][0]["files"], 8, "{listed}");
    assert_eq!(test.feedrate(&["clean", "data", "--yes"]).code, 0);
    assert!(!test.path(name).exists());
}

#[test]
fn a_file_that_cannot_be_removed_is_named() {
    let test = Test::with_workload(TINY);
    dataset(&test);
    let answer =
        with_failing_calls(&test, "unlink,unlinkat:error=EPERM", None, &["clean", "data", "--yes"]);
    answer.refuses(1, &["cannot remove `", "Operation not permitted"]);
    assert_eq!(answer.stdout, "", "it does not say that nothing was found");
}

#[test]
fn the_folder_of_a_file_that_cannot_be_synced_is_named() {
    let test = Test::with_workload(TINY);
    dataset(&test);
    let arguments = ["report", "out", "-o", "page.html"];
    assert_eq!(test.feedrate(&["run", "workload.yaml", "--run-dir", "out"]).code, 0);
    let answer = with_failing_calls(&test, "fsync:error=EIO", None, &arguments);
    answer.refuses(1, &["cannot sync `.`"]);
}
