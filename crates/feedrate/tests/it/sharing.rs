//! Processes that read for each other, and processes that read together, under Debian's Open MPI and MPICH. Each process runs in its own
//! folder, and only some folders have the data. This shows which processes read.

use crate::harness::{Answer, Test};
use crate::mpi::{LAUNCHERS, Launcher, MPICH, OPEN_MPI};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;

/// Eight files of eight samples for training, and two for evaluation.
const WORKLOAD: &str = "\
model:
  name: tiny
framework: pytorch
workflow:
  evaluation: true
dataset:
  data_folder: data
  format: npz
  num_files_train: 8
  num_files_eval: 2
  num_samples_per_file: 8
  record_length_bytes: 4096
reader:
  data_loader: pytorch
  batch_size: 2
  batch_size_eval: 1
  read_threads: 2
train:
  epochs: 2
";

/// Script that runs a command in the folder of its rank.
const RUN_IN_FOLDER: &str = "cd rank${OMPI_COMM_WORLD_RANK:-$PMI_RANK} && exec \"$0\" \"$@\"";

/// A test folder with a folder for each rank. The folders of `readers` have the data.
fn with_data(ranks: u32, readers: &[u32], more: &[&str]) -> Test {
    let test = Test::with_workload(WORKLOAD);
    for rank in 0..ranks {
        fs::create_dir(test.path(&format!("rank{rank}"))).unwrap();
    }
    let generate = [&["generate", "workload.yaml", "--quiet"], more].concat();
    assert_eq!(test.feedrate(&generate).code, 0);
    for reader in readers {
        symlink(test.path("data"), test.path(&format!("rank{reader}/data"))).unwrap();
    }
    test
}

fn run(test: &Test, (program, first): Launcher, ranks: u32, more: &[&str]) -> Answer {
    let ranks = ranks.to_string();
    let feedrate = env!("CARGO_BIN_EXE_feedrate");
    let run = [feedrate, "run", "../workload.yaml", "--verify", "--json"];
    let before = [&["60", program], first, &[&ranks, "sh", "-c", RUN_IN_FOLDER], &run];
    let output = test.program("timeout", &before.concat()).args(more).output().unwrap();
    let answer = Answer::from_output(&output);
    assert_ne!(answer.code, 127, "run `cargo xtask setup`: {}", answer.stderr);
    assert_ne!(answer.code, 124, "timeout: {}", answer.stderr);
    answer
}

/// The record of a run that went well.
#[track_caller]
fn record(test: &Test, answer: &Answer) -> Value {
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let summary: Value = serde_json::from_str(&answer.stdout).unwrap();
    let path = test.path("rank0").join(summary["run_dir"].as_str().unwrap()).join("record.json");
    let record: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(record["complete"], true);
    record
}

/// Checks how many samples each accelerator read in every epoch and evaluation.
#[track_caller]
fn check_samples(record: &Value, training: &[u64], evaluation: &[u64]) {
    for (epochs, expected) in [("epochs", training), ("evaluations", evaluation)] {
        let epochs = record[epochs].as_array().unwrap();
        assert_eq!(epochs.len(), 2);
        for epoch in epochs {
            let accelerators = epoch["accelerators"].as_array().unwrap();
            let samples = |accelerator: &Value| accelerator["io"]["samples"].as_u64().unwrap();
            assert_eq!(accelerators.iter().map(samples).collect::<Vec<_>>(), expected);
            assert!(
                accelerators
                    .iter()
                    .all(|accelerator| accelerator["io"]["reads"].as_u64().unwrap() > 0)
            );
        }
    }
}

const COLLECTIVE: &str = "reader.file_access=collective";

#[test]
fn one_process_of_a_group_opens_the_files_and_sends_to_the_others() {
    for launcher in LAUNCHERS {
        for (size, readers) in [("2", &[0, 2][..]), ("0", &[0])] {
            let test = with_data(4, readers, &[]);
            let size = format!("reader.collective_size={size}");
            let answer = run(&test, launcher, 4, &[COLLECTIVE, &size]);
            check_samples(&record(&test, &answer), &[16; 4], &[4; 4]);
        }
    }
    let test = with_data(4, &[0], &[]);
    let answer = run(&test, MPICH, 4, &["reader.file_access=shared"]);
    assert!(answer.code != 0 && answer.stderr.contains("cannot open"), "{}", answer.stderr);
}

#[test]
fn one_process_of_a_group_broadcasts_the_samples_of_all() {
    for launcher in LAUNCHERS {
        let test = with_data(4, &[0, 2], &[]);
        let more = ["reader.file_access=broadcast", "reader.collective_size=2"];
        let record = record(&test, &run(&test, launcher, 4, &more));
        for epoch in record["epochs"].as_array().unwrap() {
            for (rank, accelerator) in epoch["accelerators"].as_array().unwrap().iter().enumerate()
            {
                let io = &accelerator["io"];
                assert_eq!(io["samples"], 64, "{rank}: {io}");
                let reads = io["read_bytes"].as_u64().unwrap() > 0;
                assert_eq!(reads, rank % 2 == 0, "{rank}: {io}");
                assert_eq!(io["memory_bytes"].as_u64().unwrap() > 0, !reads, "{rank}: {io}");
            }
        }
    }
}

/// Three processes have eight accelerators (two, three and three) in groups of three.
#[test]
fn a_process_may_have_accelerators_of_two_groups() {
    let test = with_data(3, &[0, 1, 2], &[]);
    let more = [COLLECTIVE, "reader.collective_size=3", "-n", "8", "reader.batch_size=1"];
    let answer = run(&test, OPEN_MPI, 3, &more);
    check_samples(&record(&test, &answer), &[8; 8], &[2; 8]);
}

#[test]
fn read_errors_of_the_reading_process_reach_its_group() {
    for launcher in LAUNCHERS {
        let test = with_data(2, &[0], &[]);
        for file in test.data_files(".npz") {
            fs::write(file, "cut off").unwrap();
        }
        let answer = run(&test, launcher, 2, &[COLLECTIVE]);
        assert_ne!(answer.code, 0);
        assert!(answer.stderr.contains("img_"), "{}", answer.stderr);
        assert!(!answer.stderr.contains("cannot reach"), "{}", answer.stderr);
    }
}

const MPIO: [&str; 3] =
    ["reader.file_access=mpio", "reader.read_threads=1", "reader.file_shuffle=seed"];

#[test]
fn all_processes_read_collectively() {
    for (launcher, ranks, format) in
        [(OPEN_MPI, 4, "hdf5"), (OPEN_MPI, 2, "raw"), (MPICH, 2, "npz"), (MPICH, 2, "hdf5")]
    {
        let format = format!("dataset.format={format}");
        let test = with_data(ranks, &[0, 1, 2, 3][..ranks as usize], &[&format]);
        let answer = run(&test, launcher, ranks, &[&MPIO[..], &[&format]].concat());
        let record = record(&test, &answer);
        let each = |samples: u64| vec![samples / u64::from(ranks); ranks as usize];
        check_samples(&record, &each(64), &each(16));
        assert_eq!(record["plan"]["loader"]["file_access"], "mpio");
        assert_eq!(record["plan"]["storage"]["engine"], Value::Null, "MPI reads");
    }
}

/// One process finds a damaged sample, while the other waits in a collective read.
#[test]
fn an_error_in_one_process_ends_processes_that_wait_in_a_read() {
    for launcher in LAUNCHERS {
        let format = "dataset.format=raw";
        let test = with_data(2, &[0, 1], &[format]);
        let file = &test.data_files(".raw")[0];
        let mut bytes = fs::read(file).unwrap();
        bytes[2 * 4096 + 5] ^= 1;
        fs::write(file, bytes).unwrap();
        let more = ["train.epochs=1000", "workflow.evaluation=false", format];
        let answer = run(&test, launcher, 2, &[&MPIO[..], &more].concat());
        assert_ne!(answer.code, 0);
        let count = answer.stderr.matches("payload of sample 2 differs").count();
        assert_eq!(count, 1, "{}", answer.stderr);
        assert!(answer.stderr.contains("error: rank 1 on "), "{}", answer.stderr);
    }
}

/// With these settings, processes could wait for each other forever.
#[test]
fn settings_that_prevent_collective_reads_are_refused() {
    let test = Test::with_workload(WORKLOAD);
    let check_refused = |accelerators: &str, more: &[&str], words: &[&str]| {
        let plan = ["plan", "workload.yaml", "-n", accelerators];
        let answer = test.feedrate(&[&plan, &MPIO[..], more].concat());
        answer.refuses(2, &[words, &["hint:", "mpio"]].concat());
    };
    assert_eq!(test.feedrate(&[&["plan", "workload.yaml", "-n", "4"], &MPIO[..]].concat()).code, 0);
    check_refused("1", &[], &["several processes"]);
    check_refused("3", &[], &["reader.batch_size", "`6` samples"]);
    check_refused("4", &["reader.batch_size_eval=3"], &["reader.batch_size_eval", "`12` samples"]);
    check_refused("4", &["reader.read_threads=2"], &["reader.read_threads"]);
    check_refused("4", &["reader.read_type=memory"], &["reader.read_type"]);
    check_refused("4", &["reader.sample_shuffle=seed"], &["reader.sample_shuffle"]);
    check_refused("4", &["storage.engine=direct"], &["storage.engine"]);
    check_refused("4", &["storage.storage_type=memory"], &["storage.storage_type"]);
    check_refused("4", &["dataset.compression=zip"], &["dataset.compression"]);
    check_refused("4", &["dataset.record_length_bytes_stdev=9"], &["_stdev"]);
    for format in ["tfrecord", "csv", "parquet", "webdataset", "mmap_indexed_binary", "synthetic"] {
        check_refused(
            "4",
            &[&format!("dataset.format={format}")],
            &["dataset.format", "indexed_binary"],
        );
    }
    let chunks = ["dataset.format=hdf5", "dataset.hdf5.chunk_dims=[1,8,8]"];
    check_refused("4", &chunks, &["dataset.hdf5.chunk_dims"]);
    check_refused("4", &["dataset.record_length_bytes=3GB"], &["2 GiB"]);
    let run = [&["run", "workload.yaml", "-n", "4"], &MPIO[..]].concat();
    test.feedrate(&run).refuses(2, &["this is one", "hint: start it with `mpirun -np N`"]);
    let foreign = ["--foreign", "--data", "elsewhere"];
    fs::create_dir_all(test.path("elsewhere/train")).unwrap();
    let ranks = ["-np", "2", env!("CARGO_BIN_EXE_feedrate"), "run", "workload.yaml"];
    let mut launched = test.program("mpiexec.hydra", &ranks);
    let answer = Answer::from_output(&launched.args(MPIO).args(foreign).output().unwrap());
    assert!(answer.stderr.contains("these are foreign"), "{}", answer.stderr);
}
