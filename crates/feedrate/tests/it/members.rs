//! Samples in foreign containers: decoding, and workers that read whole shards.

use crate::harness::{TINY, Test, venv_python};
use serde_json::Value;

fn doubt<'a>(json: &'a Value, name: &str) -> Option<&'a str> {
    let doubts = json["doubts"].as_array().unwrap();
    doubts.iter().find(|doubt| doubt["name"] == name)?["evidence"].as_str()
}

#[test]
fn samples_that_are_not_decoded_are_reported() {
    let test = Test::with_workload(TINY);
    test.python(&venv_python(), "members.py", ["."].map(String::from));
    for (format, data) in [("webdataset", "tar"), ("parquet", "parquet")] {
        for (decode, evidence) in [
            ("true", Some("read but not decoded: 12 samples of 24 samples (12 webp (`")),
            ("false", None),
        ] {
            let (format, decode) =
                (format!("dataset.format={format}"), format!("reader.decode={decode}"));
            let json = test.run_json(&[
                "--foreign",
                "--data",
                data,
                &format,
                &decode,
                "dataset.num_files_train=4",
                "dataset.num_samples_per_file=6",
                "reader.batch_size=2",
                "train.epochs=1",
            ]);
            let doubt = doubt(&json, "members_not_decoded");
            assert_eq!(doubt.is_some(), evidence.is_some(), "{format} {decode}");
            assert!(doubt.is_none_or(|text| text.starts_with(evidence.unwrap())), "{doubt:?}");
        }
    }
}

/// Eight shards of 45 small samples.
const SHARDS: [&str; 7] = [
    "dataset.format=webdataset",
    "dataset.num_files_train=8",
    "dataset.num_samples_per_file=45",
    "dataset.record_length_bytes=1000",
    "reader.batch_size=4",
    "reader.file_shuffle=seed",
    "train.epochs=2",
];

/// As in tf.data, for any number of threads: each file is opened once and read in requests of 256 KiB. `tensorflow-cpu` 2.21.0 makes the same
/// opens and reads with each of these numbers of threads, and one more read, which is empty, at the end of each file (`TFRecordDataset` with
/// `num_parallel_reads`, and `interleave`, under strace: 8 opens and 208 reads of 8 files of 6,559,600 bytes).
#[test]
fn threads_of_an_interleave_open_each_file_once() {
    let test = Test::with_workload(TINY);
    for threads in [1, 3, 4, 5, 8, 12] {
        let json = test.run_json(&[
            "dataset.format=tfrecord",
            "reader.data_loader=tensorflow",
            "dataset.num_files_train=8",
            "dataset.num_samples_per_file=45",
            "dataset.record_length_bytes=65536",
            "reader.batch_size=4",
            "train.epochs=1",
            &format!("reader.read_threads={threads}"),
        ]);
        let file_bytes = test.data_files(".tfrecord")[0].metadata().unwrap().len();
        assert_eq!(json["latency"]["open"]["count"], 8, "{threads} threads");
        let reads = 8 * file_bytes.div_ceil(256 * 1024);
        assert_eq!(json["latency"]["read"]["count"], reads, "{threads} threads");
        assert_eq!(json["bytes"]["logical"], 8 * file_bytes, "{threads} threads");
        assert_eq!(json["latency"]["sample"]["count"], 8 * 45, "{threads} threads");
        let idle =
            "4 of 12 workers have nothing to read: each reads whole files, and there are 8 files";
        let expected = (threads == 12).then_some(idle);
        assert_eq!(doubt(&json, "workers_outnumber_shards"), expected);
    }
}

#[test]
fn workers_read_whole_foreign_shards() {
    let test = Test::with_workload(TINY);
    test.feedrate(&[&["generate", "workload.yaml"], &SHARDS[..]].concat());
    let manifest = &test.data_files("manifest.json")[0];
    std::fs::remove_file(manifest).unwrap();
    let shards = test.data_files(".tar");
    let bytes: u64 = shards.iter().map(|shard| shard.metadata().unwrap().len()).sum();
    let folder = manifest.parent().unwrap().to_string_lossy().into_owned();
    let run = |more: &[&str]| {
        let foreign = ["--foreign", "--data", &folder];
        test.run_json(&[&foreign, &SHARDS[..], more].concat())
    };
    for loader in ["pytorch", "dali", "native"] {
        let loader = format!("reader.data_loader={loader}");
        for (accelerators, threads) in [("1", 8), ("2", 2), ("4", 2)] {
            let threads = format!("reader.read_threads={threads}");
            let json = run(&["-n", accelerators, &threads, &loader]);
            // Each epoch has 90 batches, which all accelerators share.
            assert_eq!(json["steps"], 90 / accelerators.parse::<u64>().unwrap());
            assert_eq!(json["bytes"]["logical"], 2 * bytes, "{loader} {accelerators} {threads}");
            assert_eq!(doubt(&json, "workers_outnumber_shards"), None);
            let payload = json["latency"]["sample"]["count"].as_u64().unwrap() * 31 * 31;
            let amplification = json["access"]["read_amplification"].as_f64().unwrap();
            assert!((amplification - 2.0 * bytes as f64 / payload as f64).abs() < 1e-9);
        }
    }
    let json = run(&["-n", "1", "reader.read_threads=8", "dataset.split=samples"]);
    let read = json["bytes"]["logical"].as_u64().unwrap();
    assert!(read > 3 * 2 * bytes, "{read} of {bytes}");
    let json = run(&["-n", "1", "reader.read_threads=11"]);
    assert_eq!(
        doubt(&json, "workers_outnumber_shards"),
        Some("3 of 11 workers have nothing to read: each reads whole files, and there are 8 files")
    );
    assert_eq!(json["bytes"]["logical"], 2 * bytes);
}
