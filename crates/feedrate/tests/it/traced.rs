//! Runs under the tracer `tracer.c`: its log compared with the access pattern in the results.

use crate::harness::{Answer, Test};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const WORKLOAD: &str = "\
model: {name: traced}
framework: pytorch
dataset: {data_folder: data, num_files_train: 8, record_length_bytes: 3000}
reader: {data_loader: pytorch, batch_size: 2, read_threads: 2}
train: {epochs: 3, computation_time: 0.001}
";

/// Opens and reads of the workers, from the log.
#[derive(Default)]
struct Trace {
    opens: u64,
    reads: u64,
    read_bytes: u64,
    read_ns: u64,
    /// The accelerators that read each byte of each file.
    readers: BTreeMap<(String, u64), BTreeSet<u32>>,
}

impl Trace {
    fn read(path: &Path) -> Trace {
        let mut trace = Trace::default();
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let number = |index: usize| fields[index].parse::<u64>().unwrap();
            match fields[1] {
                "read" => {}
                operation => {
                    trace.opens += u64::from(operation == "open");
                    continue;
                }
            }
            let (offset, bytes) = (number(3), number(4));
            trace.reads += 1;
            trace.read_bytes += bytes;
            trace.read_ns += number(5);
            for position in offset..offset + bytes {
                let readers = trace.readers.entry((fields[2].into(), position)).or_default();
                readers.insert(number(0) as u32);
            }
        }
        trace
    }

    fn overlap_share(&self) -> f64 {
        let several = self.readers.values().filter(|readers| readers.len() > 1).count();
        several as f64 / self.readers.len() as f64
    }

    fn files_by_ranks(&self) -> Value {
        let mut by_file: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        for (byte, readers) in &self.readers {
            by_file.entry(&byte.0).or_default().extend(readers);
        }
        let mut by_ranks: BTreeMap<usize, u64> = BTreeMap::new();
        for readers in by_file.values() {
            *by_ranks.entry(readers.len()).or_default() += 1;
        }
        by_ranks.iter().map(|(ranks, files)| json!({"ranks": ranks, "files": files})).collect()
    }
}

fn check_access(settings: &[&str]) -> (Value, Trace, String) {
    let test = Test::with_workload(WORKLOAD);
    let mut arguments = vec!["run", "workload.yaml", "--json", "-n", "2"];
    arguments.extend(settings);
    let mut command = test.command(&arguments);
    command
        .env("LD_PRELOAD", test.compile_library("tracer.c"))
        .env("TRACE_FILE", test.path("trace"));
    let answer = Answer::from_output(&command.output().unwrap());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let json: Value = serde_json::from_str(&answer.stdout).unwrap();
    let trace = Trace::read(&test.path("trace"));
    let access = &json["access"];
    assert!(trace.reads > 0, "the tracer saw nothing");
    assert_eq!((&access["reads"], &access["opens"]), (&json!(trace.reads), &json!(trace.opens)));
    assert_eq!(json["bytes"]["logical"], trace.read_bytes);
    assert_eq!(access["unique_bytes"], trace.readers.len() as u64);
    assert_eq!(access["overlap_share"], trace.overlap_share());
    assert_eq!(access["files_by_ranks"], trace.files_by_ranks());
    // The record's time of a call includes the tracer, the tracer's time does not.
    let duration_s = json["duration_s"].as_f64().unwrap();
    let recorded_s = access["mean_in_flight"].as_f64().unwrap() * duration_s;
    assert!(recorded_s >= trace.read_ns as f64 / 1e9, "{recorded_s} s of {} ns", trace.read_ns);
    // Two accelerators with two workers each. The I/O time includes opens.
    let io_s = access["io_time_percent"].as_f64().unwrap() / 100.0 * 4.0 * duration_s;
    assert!(io_s > recorded_s, "{io_s} s in calls, {recorded_s} s of them reads");
    let shown = test.feedrate(&["show", json["run_dir"].as_str().unwrap()]);
    let in_flight = access["mean_in_flight"].as_f64().unwrap();
    assert!(shown.stdout.contains(&format!("{in_flight:.2} reads in flight")), "{}", shown.stdout);
    (json, trace, shown.stdout)
}

#[test]
fn shuffled_files_move_between_accelerators() {
    let (json, _, shown) = check_access(&["dataset.format=npz", "reader.file_shuffle=seed"]);
    let by_ranks = json["access"]["files_by_ranks"].as_array().unwrap();
    assert_eq!(by_ranks.len(), 2, "eight files in three orders: {by_ranks:?}");
    assert!(shown.contains(" read by 1 accelerator, "), "{shown}");
}

#[test]
fn unshuffled_accelerators_read_disjoint_files() {
    let (json, trace, shown) = check_access(&["dataset.format=npz", "reader.file_shuffle=off"]);
    assert_eq!(json["access"]["overlap_share"], 0.0);
    assert!(trace.readers.len() as u64 * 3 <= trace.read_bytes, "each epoch reads all");
    assert!(shown.contains("of 8 files · each read by 1 accelerator\n"), "{shown}");
}

#[test]
fn accelerators_with_the_same_samples_overlap_completely() {
    let (json, _, shown) = check_access(&["dataset.format=hdf5", "reader.file_access=same"]);
    assert_eq!(json["access"]["overlap_share"], 1.0);
    assert_eq!(json["access"]["files_by_ranks"], json!([{"ranks": 2, "files": 8}]));
    let words = "of 8 files · each read by 2 accelerators · 100 % of these bytes by several";
    assert!(shown.contains(words), "{shown}");
}

#[test]
fn index_files_are_counted_as_files() {
    check_access(&[
        "dataset.format=tfrecord",
        "dataset.num_samples_per_file=4",
        "reader.file_access=shared",
        "reader.sample_shuffle=random",
    ]);
}
