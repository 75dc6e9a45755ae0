//! Folders of files that the formats' libraries wrote: `scan` and `run --data` find the samples, dimensions and bytes that
//! the libraries read in one epoch.
//!
//! `library_files/` writes the folders and counts what the libraries read.

use crate::harness::{Test, venv_python};
use serde_json::{Value, json};
use std::fs;
use std::thread;

/// Allowed difference of the bytes that feedrate and a library read: metadata is read again, or in larger pieces.
const METADATA_SHARE: f64 = 0.1;
const METADATA_BYTES: f64 = 4096.0;
/// A batch of folders with more samples; they must be multiples of it.
const MANY_SAMPLES: u64 = 5000;
const LARGE_BATCH: &str = "80";
const THREADS: usize = 2;
/// Kinds that are refused, each with a part of the message.
const REFUSED: &[(&str, &str)] = &[(
    "hdf5 with external raw files",
    "`images`, the largest dataset, cannot be read: its data is in external files, which are not followed; train on those files",
)];

#[test]
fn hdf5_files_are_read_as_h5py_reads_them() {
    check_kinds(&["hdf5"], 95);
}

#[test]
fn arrays_are_read_as_numpy_reads_them() {
    check_kinds(&["npy", "npz", "raw"], 40);
}

#[test]
fn tables_are_read_as_pyarrow_reads_them() {
    check_kinds(&["parquet", "arrow"], 60);
}

#[test]
fn shards_are_read_as_webdataset_and_tfrecord_read_them() {
    check_kinds(&["tar", "tfrecord"], 25);
}

#[test]
fn images_are_read_as_pillow_reads_them() {
    check_kinds(&["jpeg", "png", "whole"], 50);
}

#[test]
fn lines_and_records_are_read_as_their_libraries_read_them() {
    let text = ["jsonl", "json", "ndjson", "csv", "tsv", "txt", "xml"];
    let records = ["wav", "nifti", "pickle", "megatron", "mds", "zarr"];
    check_kinds(&[&text[..], &records].concat(), 25);
}

#[test]
fn one_odd_file_does_not_change_how_the_others_are_read() {
    check_kinds(&["mixed"], 25);
}

/// Writes the kinds whose names begin with one of the words, at least `kinds_min`, and checks each.
fn check_kinds(words: &[&str], kinds_min: usize) {
    let test = Test::new();
    let arguments = [&["."], words].concat();
    test.python(&venv_python(), "library_files", arguments);
    let text = fs::read_to_string(test.path("expected.json")).unwrap();
    let kinds: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
    assert!(kinds.len() >= kinds_min, "{} kinds", kinds.len());
    let kinds: Vec<(&String, &Value)> = kinds.iter().collect();
    let check_some = |kinds: &[(&String, &Value)]| -> Vec<String> {
        let check = |(name, expected): &(&String, &Value)| match REFUSED
            .iter()
            .find(|(refused, _)| refused == name)
        {
            Some((_, message)) => check_refused(&test, name, message),
            None => check_kind(&test, name, expected),
        };
        kinds.iter().flat_map(check).collect()
    };
    let differences: Vec<String> = thread::scope(|scope| {
        let parts = kinds.chunks(kinds.len().div_ceil(THREADS));
        let started: Vec<_> = parts.map(|part| scope.spawn(|| check_some(part))).collect();
        started.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Returns whether `scan` and `run` accept the files, or refuse them with another message.
fn check_refused(test: &Test, name: &str, message: &str) -> Vec<String> {
    let answers = [test.feedrate(&["scan", name]), test.feedrate(&["run", "--data", name])];
    let others =
        answers.iter().filter(|answer| answer.code == 0 || !answer.stderr.contains(message));
    others.map(|answer| format!("{name}: {} instead of a refusal", answer.stderr)).collect()
}

/// Returns how `scan` and `run` differ from the library.
fn check_kind(test: &Test, name: &str, expected: &Value) -> Vec<String> {
    let mut differences = vec![];
    let mut compare = |subject: &str, found: &Value, expected: &Value| {
        if found != expected {
            differences.push(format!("{name}: {subject}: {found} instead of {expected}"));
        }
    };
    let scanned = test.feedrate(&["scan", name, "--json"]);
    let batch =
        if expected["samples"].as_u64().unwrap() > MANY_SAMPLES { LARGE_BATCH } else { "1" };
    let run = ["run", "--data", name, "--json", "--quiet", "--workers", "1", "--batch", batch];
    let in_order = ["train.epochs=1", "reader.file_shuffle=off", "reader.sample_shuffle=off"];
    // Requests of libraries read some bytes twice.
    let once = ["reader.requests=large"];
    let run = test.feedrate(&[&run[..], &in_order, &once].concat());
    if scanned.code != 0 || run.code != 0 {
        return vec![format!("{name}: {}{}", scanned.stderr, run.stderr)];
    }
    let (found, run) = (scanned.json(), run.json());
    for key in ["files", "samples"] {
        compare(key, &found[key], &expected[key]);
    }
    compare("samples of the epoch", &run["latency"]["sample"]["count"], &expected["samples"]);
    if !expected["left_out"].is_null() {
        let left_out = found["left_out"].as_array().unwrap().iter();
        let files: u64 = left_out.map(|left| left["files"].as_u64().unwrap()).sum();
        compare("files left out", &json!(files), &expected["left_out"]);
    }
    let is_decoded = expected["is_decoded"].as_bool();
    if is_decoded == Some(true) {
        for key in ["dims", "element"] {
            if !expected[key].is_null() {
                compare(key, &found[key], &expected[key]);
            }
        }
    }
    if let Some(is_decoded) = is_decoded {
        compare("whether samples are decoded", &json!(is_each_decoded(&run)), &json!(is_decoded));
    }
    let doubts = run["doubts"].as_array().unwrap();
    let is_about_unread = |doubt: &&Value| {
        ["bytes_left_unread", "values_elsewhere"].iter().any(|name| doubt["name"] == *name)
    };
    let evidence: Vec<&str> = doubts
        .iter()
        .filter(is_about_unread)
        .map(|doubt| doubt["evidence"].as_str().unwrap())
        .collect();
    let evidence = evidence.join("; ");
    let is_expected = match &expected["unread"] {
        Value::String(part) => evidence.contains(&**part),
        Value::Null => !evidence.contains("stored elsewhere"),
        _ => evidence.is_empty(),
    };
    if !is_expected {
        compare("bytes left unread", &json!(evidence), &expected["unread"]);
    }
    let [read, bytes, bytes_max] =
        [&run["bytes"]["logical"], &expected["bytes"], &expected["bytes_max"]]
            .map(|bytes| bytes.as_f64().unwrap());
    let tolerance = bytes * METADATA_SHARE + METADATA_BYTES * expected["files"].as_f64().unwrap();
    if read < bytes - tolerance || bytes_max + tolerance < read {
        compare("bytes of the epoch", &json!(read), &expected["bytes"]);
    }
    differences
}

/// Whether the run decoded all samples, or says that it did not.
fn is_each_decoded(run: &Value) -> bool {
    let is_plain = run["found"]["format"] == "raw";
    let has_doubt = |doubt: &Value| doubt["name"] == "members_not_decoded";
    !is_plain && !run["doubts"].as_array().unwrap().iter().any(has_doubt)
}
