//! Files are read in the requests of the libraries that training jobs use, which strace shows.

use crate::harness::{Test, venv_python};
use std::path::Path;

const SCRIPT: &str = "library_requests.py";
const FILES: u64 = 4;
/// Allowed difference of numbers of reads and bytes.
const TOLERANCE: f64 = 0.1;

/// Four files of one sample of about a million bytes.
const LARGE_FILES: &str = "\
model: {name: large}
framework: pytorch
dataset: {data_folder: data, num_files_train: 4, record_dims: [600, 600, 3]}
reader: {data_loader: pytorch, batch_size: 2}
train: {epochs: 1}
";

/// Reads that are not empty.
#[derive(Debug, PartialEq)]
struct Reads {
    count: u64,
    bytes: u64,
}

/// Reads a file with its library under strace.
fn library_reads(test: &Test, file: &Path) -> Reads {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(SCRIPT);
    let python = venv_python();
    let paths = [&python, &script].map(|path| path.to_str().unwrap());
    let strace = ["-f", "-qq", "-y", "-e", "trace=read,pread64", "-o", "calls"];
    let read = [paths[0], paths[1], "read", file.to_str().unwrap()];
    let output = test.program("strace", &[&strace[..], &read].concat()).output();
    let output = output.unwrap_or_else(|error| {
        panic!("cannot start `strace`: {error}\n  hint: run `cargo xtask setup`")
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let calls = std::fs::read_to_string(test.path("calls")).unwrap();
    let of_file = format!("{}>, ", file.file_name().unwrap().to_str().unwrap());
    let lengths = calls.lines().filter(|call| call.contains(&of_file));
    let lengths = lengths.filter_map(|call| call.rsplit_once(" = ")?.1.parse::<u64>().ok());
    let lengths: Vec<u64> = lengths.filter(|bytes| *bytes > 0).collect();
    Reads { count: lengths.len() as u64, bytes: lengths.iter().sum() }
}

#[test]
fn files_are_read_in_the_requests_of_their_library() {
    let test = Test::with_workload(LARGE_FILES);
    test.python(&venv_python(), SCRIPT, ["write", "theirs"].map(String::from));
    for format in ["npz", "npy", "png", "jpeg", "hdf5"] {
        let dataset_format = format!("dataset.format={format}");
        // HDF5 files that feedrate generates have newer structures than those of DLIO.
        let is_foreign = format == "hdf5";
        let foreign = ["--foreign", "--data", "theirs"];
        let settings =
            [&[dataset_format.as_str()][..], if is_foreign { &foreign[..] } else { &[] }];
        let reads = |requests: &str| {
            let json = test.run_json(&[&settings.concat()[..], &[requests]].concat());
            let number = |value: &serde_json::Value| value.as_u64().unwrap() / FILES;
            Reads {
                count: number(&json["latency"]["read"]["count"]),
                bytes: number(&json["bytes"]["logical"]),
            }
        };
        let found = reads("reader.requests=library");
        let extension = format!(".{format}");
        let files = test.files_below(if is_foreign { "theirs" } else { "data" }, &extension);
        let expected = library_reads(&test, &files[0]);
        for [found, expected] in [[found.count, expected.count], [found.bytes, expected.bytes]]
            .map(|pair| pair.map(|n| n as f64))
        {
            let difference = (found - expected).abs();
            assert!(difference <= TOLERANCE * expected, "{format}: {found} instead of {expected}");
        }
        let large = reads("reader.requests=large");
        assert!(large.count < found.count, "{format}: {large:?} {found:?}");
        let given = reads("reader.transfer_size=1MiB");
        assert_eq!(given, large, "{format}: an explicit size wins");
    }
}
