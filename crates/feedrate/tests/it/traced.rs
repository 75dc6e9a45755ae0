//! What a tracer before the C library sees of a run, against what the run says of itself.

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

/// Opens and reads of workers.
#[derive(Default)]
struct Trace {
    opens: u64,
    reads: u64,
    read_bytes: u64,
    read_ns: u64,
    /// Each byte of each file, and the accelerators that read it.
    readers: BTreeMap<(String, u64), BTreeSet<u32>>,
}

impl Trace {
    fn read(path: &Path) -> Trace {
        let mut trace = Trace::default();
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| fields[at].parse::<u64>().unwrap();
            match fields[1] {
                "read" => {}
                of => {
                    trace.opens += u64::from(of == "open");
                    continue;
                }
            }
            let (offset, bytes) = (number(3), number(4));
            trace.reads += 1;
            trace.read_bytes += bytes;
            trace.read_ns += number(5);
            for at in offset..offset + bytes {
                let readers = trace.readers.entry((fields[2].into(), at)).or_default();
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
        let mut of_files: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        for (byte, readers) in &self.readers {
            of_files.entry(&byte.0).or_default().extend(readers);
        }
        let mut by_ranks: BTreeMap<usize, u64> = BTreeMap::new();
        for readers in of_files.values() {
            *by_ranks.entry(readers.len()).or_default() += 1;
        }
        by_ranks.iter().map(|some| json!({"ranks": some.0, "files": some.1})).collect()
    }
}

fn check(settings: &[&str]) -> (Value, Trace, String) {
    let test = Test::with(WORKLOAD);
    let mut arguments = vec!["run", "workload.yaml", "--json", "-n", "2"];
    arguments.extend(settings);
    let mut command = test.command(&arguments);
    command.env("LD_PRELOAD", test.library("tracer.c")).env("TRACE_FILE", test.path("trace"));
    let answer = Answer::of(&command.output().unwrap());
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
    // The tracer times the call alone; the record, the call through the tracer.
    let duration_s = json["duration_s"].as_f64().unwrap();
    let recorded_s = access["mean_in_flight"].as_f64().unwrap() * duration_s;
    assert!(recorded_s >= trace.read_ns as f64 / 1e9, "{recorded_s} s of {} ns", trace.read_ns);
    // Two accelerators of two workers, whose opens take time too.
    let io_s = access["io_time_percent"].as_f64().unwrap() / 100.0 * 4.0 * duration_s;
    assert!(io_s > recorded_s, "{io_s} s in calls, {recorded_s} s of them reads");
    let shown = test.feedrate(&["show", json["run_dir"].as_str().unwrap()]);
    let in_flight = access["mean_in_flight"].as_f64().unwrap();
    assert!(shown.stdout.contains(&format!("{in_flight:.2} reads in flight")), "{}", shown.stdout);
    (json, trace, shown.stdout)
}

#[test]
fn files_of_their_own_change_hands_between_epochs() {
    let (json, _, shown) = check(&["dataset.format=npz", "reader.file_shuffle=seed"]);
    let by_ranks = json["access"]["files_by_ranks"].as_array().unwrap();
    assert_eq!(by_ranks.len(), 2, "eight files in three orders: {by_ranks:?}");
    assert!(shown.contains(" read by 1 accelerator, "), "{shown}");
}

#[test]
fn each_its_own_files_overlap_nowhere() {
    let (json, trace, shown) = check(&["dataset.format=npz", "reader.file_shuffle=off"]);
    assert_eq!(json["access"]["overlap_share"], 0.0);
    assert!(trace.readers.len() as u64 * 3 <= trace.read_bytes, "each epoch reads all");
    assert!(shown.contains("of 8 files · each read by 1 accelerator\n"), "{shown}");
}

#[test]
fn all_that_read_the_same_overlap_everywhere() {
    let (json, _, shown) = check(&["dataset.format=hdf5", "reader.file_access=same"]);
    assert_eq!(json["access"]["overlap_share"], 1.0);
    assert_eq!(json["access"]["files_by_ranks"], json!([{"ranks": 2, "files": 8}]));
    let words = "of 8 files · each read by 2 accelerators · 100 % of these bytes by several";
    assert!(shown.contains(words), "{shown}");
}

#[test]
fn indexes_are_files_of_their_own() {
    check(&[
        "dataset.format=tfrecord",
        "dataset.num_samples_per_file=4",
        "reader.file_access=shared",
        "reader.sample_shuffle=random",
    ]);
}
