//! Small runs of the ten bundled applications. Each row has the access pattern that the I/O analysis found; feedrate's figures and Darshan's
//! counters of the run must show the same.

use crate::darshan::Darshan;
use crate::harness::{Answer, Test};
use serde_json::Value;
use std::ops::RangeInclusive;

/// When an accelerator reads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ReadTime {
    /// Only before the end of the first step.
    AtStart,
    /// During the whole run.
    Throughout,
    Never,
}

/// A scaled-down application, and its access pattern in the analysis.
struct Row {
    name: &'static str,
    /// Settings that shorten the run to a second and do not change the access pattern.
    small: &'static [&'static str],
    /// Most frequent request sizes, and their minimum share of all reads.
    sizes: (&'static [u64], f64),
    /// Share of sequential reads, among reads that follow another.
    sequential: RangeInclusive<f64>,
    consecutive: RangeInclusive<f64>,
    /// Share of consecutive reads among all reads, as Darshan counts them.
    darshan_consecutive: RangeInclusive<f64>,
    amplification: RangeInclusive<f64>,
    /// Number of files that one accelerator reads in an epoch.
    files: u64,
    /// Number of opens of one accelerator in an epoch.
    opens: u64,
    when: ReadTime,
}

const ALL: RangeInclusive<f64> = 0.999..=1.0;
const NO_VALUE: RangeInclusive<f64> = 1.0..=0.0;

const ROWS: &[Row] = &[
    // The ratio of threads to files is kept: each thread of a rank reads another file.
    Row {
        name: "imagenet_cnn",
        small: &[
            "--scale=0.0157",
            "-n=2",
            "dataset.num_samples_per_file=100",
            "reader.read_threads=2",
            "reader.batch_size=20",
        ],
        sizes: (&[256 << 10], 0.96),
        sequential: ALL,
        consecutive: ALL,
        darshan_consecutive: 0.95..=0.99,
        amplification: 1.0..=1.01,
        files: 6,
        opens: 6,
        when: ReadTime::Throughout,
    },
    // A file head, chunks of 6 KiB (the last chunk of a sample has one row), and index blocks between them.
    Row {
        name: "cosmic_tagger",
        small: &["--scale=0.006", "-n=2", "reader.batch_size=8"],
        sizes: (&[6 << 10, 2 << 10, 13 << 10], 0.97),
        sequential: 0.95..=1.0,
        consecutive: 0.9..=0.999,
        darshan_consecutive: 0.9..=0.95,
        amplification: 1.0..=1.1,
        files: 1,
        opens: 1,
        when: ReadTime::Throughout,
    },
    Row {
        name: "ffn",
        small: &["--scale=0.05"],
        sizes: (&[28 << 10], 0.9),
        sequential: 0.98..=1.0,
        consecutive: 0.0..=0.1,
        darshan_consecutive: 0.0..=0.06,
        amplification: 1.0..=1.05,
        files: 1,
        opens: 1,
        when: ReadTime::Throughout,
    },
    // 450 bytes in 45 reads, and HDF5's own headers.
    Row {
        name: "climate_segmentation",
        small: &["-n=2", "train.epochs=2", "checkpoint.checkpoint_after_epoch=2"],
        sizes: (&[10], 0.95),
        sequential: 0.3..=0.7,
        consecutive: 0.13..=0.14,
        darshan_consecutive: 0.1304..=0.1305,
        amplification: 1.0..=10.0,
        files: 1,
        opens: 1,
        when: ReadTime::AtStart,
    },
    Row {
        name: "cosmoflow_io",
        small: &["--scale=0.000016", "-n=1"],
        sizes: (&[256 << 10], 0.93),
        sequential: ALL,
        consecutive: ALL,
        darshan_consecutive: 0.98..=1.0,
        amplification: 1.0..=1.01,
        files: 1,
        opens: 1,
        when: ReadTime::Throughout,
    },
    // Text: a number of two bytes takes more than four bytes.
    Row {
        name: "candle_nt3",
        small: &["--scale=0.005", "-n=2", "train.epochs=2", "reader.batch_size=2"],
        sizes: (&[256 << 10], 0.9),
        sequential: ALL,
        consecutive: ALL,
        darshan_consecutive: 0.9..=1.0,
        amplification: 4.0..=6.0,
        files: 1,
        opens: 1,
        when: ReadTime::AtStart,
    },
    Row {
        name: "l2hmc",
        small: &["--scale=0.25", "-n=2"],
        sizes: (&[], 0.0),
        sequential: NO_VALUE,
        consecutive: NO_VALUE,
        darshan_consecutive: NO_VALUE,
        amplification: NO_VALUE,
        files: 0,
        opens: 0,
        when: ReadTime::Never,
    },
    Row {
        name: "bert_mrpc",
        small: &["--scale=0.1", "reader.batch_size=4", "train.epochs=2"],
        sizes: (&[200], 0.99),
        sequential: ALL,
        consecutive: ALL,
        darshan_consecutive: 0.99..=1.0,
        amplification: 3.0..=4.0,
        files: 1,
        opens: 1,
        when: ReadTime::AtStart,
    },
    Row {
        name: "mma_adsp",
        small: &["--scale=0.016", "reader.batch_size=8", "train.epochs=2"],
        sizes: (&[64 << 10], 0.8),
        sequential: ALL,
        consecutive: ALL,
        darshan_consecutive: 0.99..=1.0,
        amplification: 1.0..=1.01,
        files: 1,
        opens: 1,
        when: ReadTime::AtStart,
    },
    // One read per file, so no read follows another.
    Row {
        name: "frnn",
        small: &["--scale=0.012", "-n=2"],
        sizes: (&[2_097_202], 1.0),
        sequential: NO_VALUE,
        consecutive: NO_VALUE,
        darshan_consecutive: 0.0..=0.0,
        amplification: 1.0..=1.01,
        files: 6,
        opens: 6,
        when: ReadTime::Throughout,
    },
];

#[test]
fn image_classification_reads_whole_files_in_order() {
    let (_, darshan) = check("imagenet_cnn");
    assert_eq!(
        darshan.files_by_ranks(),
        [(1, 4), (2, 4)].into(),
        "half of the files are read by two ranks"
    );
    assert_eq!(darshan.read_amplification(), 1.5);
}

#[test]
fn all_ranks_of_the_tagger_read_the_same_chunks() {
    let (record, darshan) = check("cosmic_tagger");
    let accelerators = record["epochs"][0]["accelerators"].as_array().unwrap();
    assert_eq!(accelerators[0]["io"]["access"], accelerators[1]["io"]["access"]);
    assert!(darshan.all_ranks_read_the_same());
    let head: Vec<_> = (0..50).map(|i| (i * 13_312, 13_312)).collect();
    assert!(darshan.first_reads(50).all(|reads| reads == head), "50 reads of 13 KB first");
}

#[test]
fn flood_filling_reads_the_same_everywhere_and_skips_between_samples() {
    let (_, darshan) = check("ffn");
    assert_eq!(darshan.files_by_ranks(), [(8, 1)].into());
    assert!(darshan.all_ranks_read_the_same());
    assert!(darshan.share("POSIX_SEQ_READS") >= 0.97, "{darshan:?}");
}

#[test]
fn climate_segmentation_reads_a_few_bytes() {
    let (record, darshan) = check("climate_segmentation");
    let access = &record["epochs"][0]["accelerators"][0]["io"]["access"];
    assert_eq!(access["sizes"][0], 45, "45 reads of 10 bytes: {access}");
    assert_eq!(access["payload_bytes"], 400);
    let files: Vec<_> = darshan.posix_writes.iter().filter(|&&bytes| bytes == 4 << 20).collect();
    assert_eq!(files.len(), 2 * 3, "each file in one write");
    // Three files of 4 MB by each rank, at the end.
    assert!(record["epochs"][0].get("checkpoints").is_none());
    assert_eq!(record["epochs"][1]["checkpoints"][0]["bytes"], 2 * 3 * (4 << 20));
}

#[test]
fn cosmology_reads_samples_of_8_mb_in_pieces() {
    check("cosmoflow_io");
}

#[test]
fn each_rank_reads_gene_expression_once() {
    let (record, darshan) = check("candle_nt3");
    assert!(darshan.all_ranks_read_the_same());
    let accelerators = record["epochs"][0]["accelerators"].as_array().unwrap();
    assert_eq!(accelerators[0]["io"]["read_bytes"], accelerators[1]["io"]["read_bytes"]);
}

#[test]
fn lattices_are_not_read_but_checkpointed() {
    let (record, darshan) = check("l2hmc");
    let checkpoints = record["epochs"][0]["checkpoints"].as_array().unwrap();
    let after: Vec<u64> = checkpoints.iter().map(|c| c["after_step"].as_u64().unwrap()).collect();
    assert_eq!(after, [50, 100, 150]);
    let sizes = [1024, 7 << 20, 32 << 20, 5120, 4096];
    assert_eq!(checkpoints[0]["bytes"], sizes.iter().sum::<u64>());
    assert_eq!(darshan.stdio_writes, sizes.repeat(3), "each file in one operation of STDIO");
    assert_eq!(darshan.get("STDIO_OPENS"), 15);
}

#[test]
fn sentences_are_read_at_start() {
    check("bert_mrpc");
}

#[test]
fn gravitational_waves_are_read_at_start() {
    check("mma_adsp");
}

#[test]
fn each_time_step_of_the_tokamak_is_a_file() {
    check("frnn");
}

/// Runs the scaled-down application and checks its row. Returns the record, and the counters that Darshan would have.
fn check(name: &str) -> (Value, Darshan) {
    let row = ROWS.iter().find(|row| row.name == name).unwrap();
    let test = Test::new();
    let mut arguments = vec!["run", name, "--json", "train.computation_time=0.001"];
    arguments.extend(row.small);
    let mut command = test.command(&arguments);
    command
        .env("LD_PRELOAD", test.compile_library("tracer.c"))
        .env("TRACE_FILE", test.path("trace"));
    let answer = Answer::from_output(&command.output().unwrap());
    assert_eq!(answer.code, 0, "{name}: {}", answer.stderr);
    let json: Value = serde_json::from_str(&answer.stdout).unwrap();
    let access = &json["access"];
    let darshan = Darshan::from_trace(&test.path("trace"));
    check_darshan(row, &json, &darshan);
    check_sizes(row, access);
    for (key, expected) in [
        ("sequential_share", &row.sequential),
        ("consecutive_share", &row.consecutive),
        ("read_amplification", &row.amplification),
    ] {
        match access[key].as_f64() {
            Some(found) => assert!(expected.contains(&found), "{name}: {key}: {found}"),
            None => assert!(expected.is_empty(), "{name}: {key} is missing"),
        }
    }
    assert_eq!(access["files"], row.files, "{name}");
    let folder = json["run_dir"].as_str().unwrap();
    let text = std::fs::read(test.path(folder).join("record.json")).unwrap();
    let record: Value = serde_json::from_slice(&text).unwrap();
    check_when(row, &record);
    (record, darshan)
}

fn check_darshan(row: &Row, json: &Value, darshan: &Darshan) {
    let (name, access) = (row.name, &json["access"]);
    assert_eq!(access["reads"], darshan.get("POSIX_READS"), "{name}");
    assert_eq!(access["opens"], darshan.get("POSIX_OPENS"), "{name}");
    assert_eq!(json["bytes"]["logical"], darshan.get("POSIX_BYTES_READ"), "{name}");
    let sizes: serde_json::Map<_, _> =
        darshan.sizes().map(|size| (size.0, Value::from(size.1))).collect();
    assert_eq!(access["request_bytes"]["histogram"], Value::from(sizes), "{name}");
    for common in access["request_bytes"]["common"].as_array().unwrap() {
        let count = darshan.accesses[&common["bytes"].as_u64().unwrap()];
        assert_eq!(common["count"], count, "{name}: {common}");
    }
    let share = darshan.share("POSIX_CONSEC_READS");
    let is_as_expected = row.darshan_consecutive.contains(&share)
        || share.is_nan() && row.darshan_consecutive.is_empty();
    assert!(is_as_expected, "{name}: {share} consecutive: {darshan:?}");
}

fn check_sizes(row: &Row, access: &Value) {
    let name = row.name;
    let common = access["request_bytes"]["common"].as_array().unwrap();
    let count = |bytes: &u64| {
        let found = common.iter().find(|size| size["bytes"] == *bytes);
        found.map_or(0, |size| size["count"].as_u64().unwrap())
    };
    let (sizes, share) = row.sizes;
    let counted: u64 = sizes.iter().map(count).sum();
    let reads = access["reads"].as_u64().unwrap();
    assert!(counted as f64 >= share * reads as f64, "{name}: {counted} of {reads}: {access}");
    let histogram = access["request_bytes"]["histogram"].as_object().unwrap();
    let in_bins: u64 = histogram.values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(in_bins, reads, "{name}: every read is in a bin");
}

fn check_when(row: &Row, record: &Value) {
    let name = row.name;
    let loader = &record["plan"]["loader"];
    let in_flight = loader["batches_in_flight"].as_u64().unwrap();
    let epochs = record["epochs"].as_array().unwrap();
    for (number, epoch) in epochs.iter().enumerate() {
        for accelerator in epoch["accelerators"].as_array().unwrap() {
            let io = &accelerator["io"];
            let blocks = accelerator["blocks"].as_array().unwrap();
            let steps = blocks.iter().flat_map(|block| block["read_bytes"].as_array().unwrap());
            let bytes: Vec<u64> = steps.map(|bytes| bytes.as_u64().unwrap()).collect();
            let (first, last) = (bytes[0], *bytes.last().unwrap());
            assert_eq!(io["read_bytes"], last, "{name}");
            let reads_now =
                row.when == ReadTime::Throughout || row.when == ReadTime::AtStart && number == 0;
            assert_eq!(last > 0, reads_now, "{name}: epoch {}", number + 1);
            assert_eq!(io["opens"], if reads_now { row.opens } else { 0 }, "{name}");
            match row.when {
                // A loader that can buffer the whole epoch may have read all of it by the end of the first step.
                ReadTime::Throughout if in_flight + 1 < bytes.len() as u64 => {
                    assert!(first < last, "{name}: {bytes:?}");
                }
                ReadTime::Throughout => {
                    assert_eq!(loader["held_at_start"], loader["held_batches"], "{name}");
                }
                ReadTime::AtStart | ReadTime::Never => assert_eq!(first, last, "{name}: {bytes:?}"),
            }
        }
    }
}
