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

/// Number of reads of a file, and their bytes.
#[derive(Debug, PartialEq)]
struct Reads {
    count: u64,
    bytes: u64,
}

/// Runs a program under strace. Returns the lengths of its reads of a file that are not empty, if one thread reads the file.
fn traced_lengths(test: &Test, program: &[&str], file: &Path) -> Vec<u64> {
    let folder = tempfile::tempdir().unwrap();
    let calls = folder.path().join("calls");
    let options = ["-ff", "-qq", "-y", "-e", "trace=read,pread64", "-o", calls.to_str().unwrap()];
    let output = test.program("strace", &[&options[..], program].concat()).output();
    let output = output.unwrap_or_else(|error| {
        panic!("cannot start `strace`: {error}\n  hint: run `cargo xtask setup`")
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let of_file = format!("{}>, ", file.file_name().unwrap().to_str().unwrap());
    // Each thread has a file.
    let threads = std::fs::read_dir(folder.path()).unwrap();
    let calls = threads.map(|thread| std::fs::read_to_string(thread.unwrap().path()).unwrap());
    let calls = calls.collect::<String>();
    let of_file = calls.lines().filter(|call| call.contains(&of_file));
    let lengths = of_file.filter_map(|call| call.rsplit_once(" = ")?.1.parse::<u64>().ok());
    lengths.filter(|bytes| *bytes > 0).collect()
}

/// Returns the lengths of the reads of a file by its library.
fn library_lengths(test: &Test, file: &Path) -> Vec<u64> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(SCRIPT);
    let python = venv_python();
    let [python, script, file_name] = [&python, &script, file].map(|path| path.to_str().unwrap());
    traced_lengths(test, &[python, script, file_name], file)
}

#[test]
fn default_requests_of_tf_data_are_those_of_the_library() {
    let test = Test::with_workload(LARGE_FILES);
    let requests = ["plan", "workload.yaml", "reader.requests=library"];
    for (format, is_unused) in [("tfrecord", false), ("csv", true)] {
        let dataset_format = format!("dataset.format={format}");
        let answer = test.feedrate(&[&requests[..], &[&dataset_format]].concat());
        assert_eq!(answer.code, 0, "{answer:?}");
        let printed = answer.stdout.clone() + &answer.stderr;
        let warns = printed.contains("the requests of this format's library are not known");
        assert_eq!(warns, is_unused, "{answer:?}");
    }
}

/// Options for a plan of data in a store. Nothing connects to it.
const BUCKET: &[&str] = &[
    "--data",
    "s3://bucket/data",
    "storage.storage_options.endpoint_url=http://127.0.0.1:1",
    "storage.storage_options.access_key_id=key",
    "storage.storage_options.secret_access_key=secret",
];

#[test]
fn loaders_that_call_a_library_make_its_requests_by_default() {
    let test = Test::with_workload(LARGE_FILES);
    for (settings, makes_them) in [
        (&[][..], true),
        (&["reader.data_loader=tensorflow"], true),
        (&["reader.data_loader=native"], false),
        (&["reader.data_loader=native", "reader.requests=library"], true),
        (&["reader.requests=large"], false),
        (&["reader.transfer_size=1MiB"], false),
        (&["storage.engine=mmap"], false),
        (&["reader.in_flight=4"], false),
        (BUCKET, false),
    ] {
        let plan = ["plan", "workload.yaml", "dataset.format=npz"];
        let answer = test.feedrate(&[&plan[..], settings].concat());
        assert_eq!(answer.code, 0, "{answer:?}");
        assert_eq!(
            answer.stdout.contains("about 16 requests a sample, as numpy reads npz"),
            makes_them,
            "{settings:?}: {answer:?}"
        );
        assert!(!answer.stderr.contains("reader.requests"), "{settings:?}: {answer:?}");
    }
}

#[test]
fn an_answer_names_the_requests_of_a_library_if_their_latency_matters() {
    let test = Test::with_workload(LARGE_FILES);
    let run = |storage: &str| {
        let files = ["dataset.format=npz", "dataset.num_files_train=16", "reader.read_threads=2"];
        let steps = ["train.computation_time=0.02", "storage.storage_type=memory", storage];
        test.feedrate(&[&["run", "workload.yaml"], &files[..], &steps].concat())
    };
    let line = "Requests: 16 a sample, as numpy reads npz; reader.requests=large would take 3\n";
    let latency = run("storage.throttle.latency_seconds=0.01");
    assert!(latency.stdout.contains("NO: ") && latency.stdout.contains(line), "{latency:?}");
    let bandwidth = run("storage.throttle.bytes_per_second=10MB/s");
    assert!(bandwidth.stdout.contains("NO: "), "{bandwidth:?}");
    assert!(!bandwidth.stdout.contains("Requests: "), "{bandwidth:?}");
}

#[test]
fn huge_files_are_planned_in_the_requests_of_a_library() {
    let test = Test::with_workload(LARGE_FILES);
    let huge = "dataset.record_dims=[1000000000000,1000000000000]";
    for format in ["npy", "hdf5", "npz"] {
        let dataset_format = format!("dataset.format={format}");
        let settings = ["plan", "workload.yaml", "reader.requests=library", huge, &dataset_format];
        let answer = test.feedrate(&settings);
        assert!([0, 2].contains(&answer.code), "{answer:?}");
        assert!(!answer.stderr.contains("panicked"), "{answer:?}");
    }
}

#[test]
fn files_are_read_in_the_requests_of_their_library() {
    let test = Test::with_workload(LARGE_FILES);
    for format in ["npz", "npy", "png", "jpeg", "hdf5"] {
        let dataset_format = format!("dataset.format={format}");
        let reads = |requests: &str| {
            let json = test.run_json(&[dataset_format.as_str(), requests]);
            let number = |value: &serde_json::Value| value.as_u64().unwrap() / FILES;
            Reads {
                count: number(&json["latency"]["read"]["count"]),
                bytes: number(&json["bytes"]["logical"]),
            }
        };
        let found = reads("reader.requests=library");
        let extension = format!(".{format}");
        let files = test.files_below("data", &extension);
        let lengths = library_lengths(&test, &files[0]);
        // The directories of npz and hdf5 are read by feedrate's readers.
        if !["npz", "hdf5"].contains(&format) {
            let run = [env!("CARGO_BIN_EXE_feedrate"), "run", "workload.yaml"];
            let settings = [dataset_format.as_str(), "reader.requests=library"];
            let found = traced_lengths(&test, &[&run[..], &settings].concat(), &files[0]);
            assert_eq!(found, lengths, "{format}");
        }
        let expected = Reads { count: lengths.len() as u64, bytes: lengths.iter().sum() };
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
