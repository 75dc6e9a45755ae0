//! Reads of whole files and row groups, as MLPerf Storage v3's client issues them, and the settings that lead to them.

use crate::dlio_benchmark::{dlio_benchmark, with_workloads};
use crate::harness::{Test, venv_python};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// unet3d in small: files of one sample, of different lengths.
const FILES: &str = "\
model: {name: unet3d}
framework: pytorch
workflow: {train: True}
dataset: {data_folder: data, format: npz, num_files_train: 28, num_samples_per_file: 1, record_length_bytes: 40000, record_length_bytes_stdev: 9000}
reader: {data_loader: pytorch, batch_size: 7, read_threads: 1, file_shuffle: seed, sample_shuffle: seed, decode: False}
train: {epochs: 2, computation_time: 0.001}
";

/// flux in small: its columns, in six row groups a file.
const ROW_GROUPS: &str = "\
model: {name: flux}
framework: pytorch
workflow: {train: True}
dataset:
  data_folder: data
  format: parquet
  num_files_train: 12
  num_samples_per_file: 48
  parquet:
    columns:
      - {name: t5_encodings, dtype: float32, size: 5243}
      - {name: clip_encodings, dtype: float32, size: 5}
      - {name: mean, dtype: float32, size: 82}
      - {name: logvar, dtype: float32, size: 82}
      - {name: timestamp, dtype: float32, size: 7}
    row_group_size: 8
reader: {data_loader: pytorch, batch_size: 8, read_threads: 1, file_shuffle: seed}
train: {epochs: 1, computation_time: 0.001}
";

/// One read of a file: its offset, the bytes it requested, and the bytes it returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Read {
    offset: u64,
    requested: u64,
    returned: u64,
}

/// One open of a data file, and the reads until it is closed.
#[derive(Clone, Debug)]
struct Open {
    file: String,
    is_direct: bool,
    reads: Vec<Read>,
    /// Number of the thread among those that opened data files.
    thread: usize,
}

/// Runs the workload under strace, and returns the opens of data files while training, and the summary of the run.
fn trace(test: &Test, arguments: &[&str]) -> (Vec<Open>, Value) {
    assert_eq!(test.feedrate(&["generate", "workload.yaml"]).code, 0);
    let logs = test.path("logs");
    fs::create_dir(&logs).unwrap();
    let calls = "trace=openat,read,pread64,preadv,preadv2,readv,mmap,close";
    let mut command = test.program("strace", &["-ff", "-s", "32", "-e", calls, "-o"]);
    command.arg(logs.join("log")).arg(env!("CARGO_BIN_EXE_feedrate"));
    command.args(["run", "workload.yaml", "--json"]).args(arguments);
    let output = command.output().expect("cannot start strace: run `cargo xtask setup`");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let mut paths: Vec<_> =
        fs::read_dir(&logs).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let threads = paths.iter().map(|path| fs::read_to_string(path).unwrap());
    let opens = threads.enumerate().flat_map(|(thread, log)| opens_of_thread(&log, thread));
    (opens.collect(), serde_json::from_slice(&output.stdout).unwrap())
}

/// Returns the opens of data files in the log of one thread that reads nothing else than requests.
fn opens_of_thread(log: &str, thread: usize) -> Vec<Open> {
    let mut opens: Vec<Open> = Vec::new();
    let mut open_files: BTreeMap<&str, usize> = BTreeMap::new();
    for line in log.lines() {
        let Some((call, arguments, returned)) = parse(line) else { continue };
        let returned_number: Option<u64> =
            returned.split(' ').next().unwrap_or_default().parse().ok();
        let Some(number) = returned_number else { continue };
        let first = arguments.split(", ").next().unwrap_or_default();
        match call {
            "openat" => {
                let mut parts = arguments.splitn(3, ", ");
                let path = parts.nth(1).unwrap_or_default().trim_matches('"');
                let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
                if name.starts_with("img_") {
                    let is_direct = parts.next().unwrap_or_default().contains("O_DIRECT");
                    let descriptor = returned.split(' ').next().unwrap_or_default();
                    open_files.insert(descriptor, opens.len());
                    let file = name.into_owned();
                    opens.push(Open { file, is_direct, reads: Vec::new(), thread });
                }
            }
            "close" => {
                open_files.remove(first);
            }
            _ => {
                let Some(open) = open_files.get(first).map(|index| &mut opens[*index]) else {
                    continue;
                };
                let lengths = || arguments.split("iov_len=").skip(1);
                let requested: u64 = if call.starts_with("preadv") {
                    lengths()
                        .filter_map(|text| text.split(['}', ',']).next()?.parse::<u64>().ok())
                        .sum()
                } else {
                    arguments.rsplit(", ").nth(1).unwrap_or_default().parse().unwrap()
                };
                let offset = arguments.rsplit(", ").next().unwrap_or_default().parse().unwrap();
                open.reads.push(Read { offset, requested, returned: number });
            }
        }
    }
    opens
}

/// Divides a line of strace into the call, its arguments and its result.
fn parse(line: &str) -> Option<(&str, &str, &str)> {
    let (call, rest) = line.split_once('(')?;
    let (arguments, returned) = rest.rsplit_once(") = ")?;
    Some((call, arguments, returned.trim()))
}

/// Leaves out opens without reads: they ask the page cache for its content.
fn requests(opens: Vec<Open>) -> Vec<Open> {
    opens.into_iter().filter(|open| !open.reads.is_empty()).collect()
}

fn lengths(test: &Test, ending: &str) -> BTreeMap<String, u64> {
    let files = test.data_files(ending).into_iter();
    files
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::metadata(path).unwrap().len())
        })
        .collect()
}

fn threads(opens: &[Open]) -> usize {
    opens.iter().map(|open| open.thread).collect::<BTreeSet<_>>().len()
}

/// Delays reads by so much that one thread executes only one request while the others begin.
const SLOW: &str = "storage.delay.read_seconds=0.2";

/// Checks that a worker had 64 requests in flight, each on a thread of its own.
#[track_caller]
fn check_64_in_flight(opens: &[Open], summary: &Value) {
    let threads = threads(opens);
    assert!((33..=64).contains(&threads), "{threads} threads");
    let in_flight = summary["access"]["requests_in_flight"].as_f64().unwrap();
    assert!(1.0 < in_flight && in_flight <= 64.0, "{in_flight} requests in flight");
}

/// "files": whole file by open and read, one in flight.
#[test]
fn files_are_read_whole_one_at_a_time() {
    let test = Test::with_workload(FILES);
    let (opens, summary) = trace(&test, &[]);
    let opens = requests(opens);
    let lengths = lengths(&test, ".npz");
    assert_eq!((lengths.len(), opens.len()), (28, 2 * 28));
    for open in &opens {
        let bytes = lengths[&open.file];
        let read = Read { offset: 0, requested: bytes, returned: bytes };
        assert_eq!((open.is_direct, &open.reads[..]), (false, &[read][..]), "{}", open.file);
    }
    assert_eq!(threads(&opens), 1);
    assert!(summary["access"]["requests_in_flight"].as_f64().unwrap() <= 1.0);
}

/// "files, O_DIRECT (`direct_fs`)": whole files, 64 in flight.
#[test]
fn direct_files_are_read_whole_and_64_at_a_time() {
    for setting in
        ["storage.storage_type=direct_fs", "storage.storage_options.storage_library=direct"]
    {
        let test = Test::with_workload(&FILES.replace("files_train: 28", "files_train: 140"));
        let (opens, summary) = trace(&test, &[setting, SLOW]);
        let opens = requests(opens);
        let lengths = lengths(&test, ".npz");
        assert_eq!((lengths.len(), opens.len()), (140, 2 * 140));
        for open in &opens {
            let bytes = lengths[&open.file];
            let read = Read { offset: 0, requested: bytes.next_multiple_of(4096), returned: bytes };
            assert_eq!((open.is_direct, &open.reads[..]), (true, &[read][..]), "{}", open.file);
        }
        check_64_in_flight(&opens, &summary);
    }
}

/// "parquet": raw bytes of whole row groups, after the footers, 64 in flight.
#[test]
fn row_groups_are_read_whole_and_64_at_a_time() {
    let test = Test::with_workload(ROW_GROUPS);
    let (opens, summary) = trace(&test, &["reader.in_flight=64", SLOW]);
    let printed = test.python(&venv_python(), "row_groups.py", ["data"]);
    let files: BTreeMap<String, Vec<[u64; 2]>> = serde_json::from_slice(&printed).unwrap();
    let lengths = lengths(&test, ".parquet");
    let mut expected = Vec::new();
    for (file, row_groups) in &files {
        assert_eq!(row_groups.len(), 6);
        let tail = (64 << 10).min(lengths[file]);
        expected.push((file.clone(), [lengths[file] - tail, tail]));
        expected.extend(row_groups.iter().map(|range| (file.clone(), *range)));
    }
    let opens = requests(opens);
    let mut found: Vec<(String, [u64; 2])> = Vec::new();
    for open in &opens {
        let [read] = open.reads[..] else { panic!("{open:?}") };
        assert!(!open.is_direct && read.requested == read.returned, "{open:?}");
        found.push((open.file.clone(), [read.offset, read.returned]));
    }
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    // Footers are read one after another.
    let row_groups: Vec<Open> = opens
        .into_iter()
        .filter(|open| {
            let ranges = &files[&open.file];
            ranges.contains(&[open.reads[0].offset, open.reads[0].returned])
        })
        .collect();
    assert_eq!(row_groups.len(), 12 * 6);
    check_64_in_flight(&row_groups, &summary);
}

/// The rows of the table of MLPerf Storage v3's client, for its own workloads.
#[test]
fn bundled_workloads_read_as_the_official_client() {
    let test = Test::new();
    let requests = |workload: &str, settings: &[&str]| {
        let answer = test.feedrate(&[&["plan", workload, "--json"], settings].concat());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        let plan = &answer.json()["plan"];
        (plan["storage"]["engine"].clone(), plan["loader"]["requests"].clone())
    };
    let files = json!({"in_flight": 1, "unit": "file", "ahead": "none"});
    let direct = json!({"in_flight": 64, "unit": "file", "ahead": {"windows": 256}});
    for workload in ["unet3d_b200", "unet3d_mi355", "retinanet_b200", "retinanet_mi355"] {
        assert_eq!(requests(workload, &[]), (json!("psync"), files.clone()), "{workload}");
        let found = requests(workload, &["storage.storage_type=direct_fs"]);
        assert_eq!(found, (json!("direct"), direct.clone()), "{workload}");
    }
    let row_groups = json!({"in_flight": 64, "unit": "row_group", "ahead": {"sliding": 64}});
    for workload in ["flux_b200", "flux_mi355", "dlrm_b200", "dlrm_mi355"] {
        assert_eq!(requests(workload, &[]), (json!("psync"), row_groups.clone()), "{workload}");
    }
    let words = test.feedrate(&["plan", "flux_b200"]).stdout;
    let expected = "64 requests in flight per worker: whole row groups, 64 ahead, not decoded";
    assert!(words.contains(expected), "{words}");
}

#[test]
fn the_plan_names_requests() {
    let test = Test::with_workload(FILES);
    let plan = |arguments: &[&str]| {
        let arguments = [&["plan", "workload.yaml", "--json"], arguments].concat();
        let answer = test.feedrate(&arguments);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        answer.json()["plan"].clone()
    };
    let direct = plan(&["storage.storage_type=direct_fs"]);
    assert_eq!(direct["storage"]["engine"], "direct");
    let windows = json!({"in_flight": 64, "unit": "file", "ahead": {"windows": 256}});
    assert_eq!(direct["loader"]["requests"], windows);
    let smaller = plan(&["reader.in_flight=8", "storage.storage_options.prefetch_window=32"]);
    let windows = json!({"in_flight": 8, "unit": "file", "ahead": {"windows": 32}});
    assert_eq!(smaller["loader"]["requests"], windows);
    let single = json!({"in_flight": 1, "unit": "file", "ahead": "none"});
    assert_eq!(plan(&[])["loader"]["requests"], single);
    let decoded = plan(&["reader.decode=True", "storage.storage_type=direct_fs"]);
    assert!(decoded["loader"]["requests"].is_null() && decoded["storage"]["engine"] == "direct");
    let odirect = plan(&["reader.decode=True", "reader.odirect=True"]);
    assert!(odirect["loader"]["requests"].is_null() && odirect["storage"]["engine"] == "direct");
    let words = test.feedrate(&["plan", "workload.yaml", "storage.storage_type=direct_fs"]).stdout;
    assert!(words.contains("64 requests in flight per worker"), "{words}");
}

#[test]
fn what_cannot_be_combined_with_requests_is_refused() {
    let test = Test::with_workload(FILES);
    for settings in [
        &["dataset.num_samples_per_file=2"][..],
        &["dataset.format=tfrecord"],
        &["dataset.format=indexed_binary"],
        &["reader.data_loader=tensorflow"],
        &["reader.read_threads=0"],
        &["reader.decode=True"],
        &["reader.verify=True"],
        &["reader.materialize=True"],
        &["reader.read_type=memory"],
        &["reader.transfer_size=8192"],
        &["reader.head.reads=1", "reader.head.bytes=100"],
        &["reader.preprocess_time=0.1"],
        &["client=pytorch-npz"],
        &["reader.file_access=broadcast", "-n", "2"],
        &["dataset.format=parquet", "dataset.split=samples", "reader.sample_shuffle=off"],
        &["dataset.format=parquet"],
    ] {
        let arguments = [&["plan", "workload.yaml", "reader.in_flight=8"], settings].concat();
        let answer = test.feedrate(&arguments);
        answer.refuses(2, &["reader.in_flight", "hint:"]);
    }
    for (settings, words) in [
        (["reader.in_flight=0", "reader.decode=False"], "reader.in_flight"),
        (["reader.in_flight=9", "storage.storage_options.prefetch_window=none"], "prefetch_window"),
        (["storage.storage_type=direct_fs", "storage.engine=psync"], "storage.storage_type"),
        (
            ["storage.storage_options.uri_scheme=direct", "storage.engine=mmap"],
            "storage.storage_options",
        ),
    ] {
        let arguments = [&["plan", "workload.yaml"][..], &settings].concat();
        test.feedrate(&arguments).refuses(2, &[words, "hint:"]);
    }
}

/// `dlio_benchmark` reads as MLPerf's client does: that of v3.0, if the workload is of no other edition.
#[test]
fn dlio_benchmark_reads_as_the_official_client() {
    for (name, yaml, overrides, engine, requests) in [
        (
            "unet3d_b200_small",
            FILES.replace(", decode: False", ""),
            "++workload.storage.storage_type=local_fs",
            "psync",
            json!({"in_flight": 1, "unit": "file", "ahead": "none"}),
        ),
        (
            "unet3d_h100_small",
            FILES.replace(", decode: False", ""),
            "++workload.storage.storage_type=local_fs",
            "psync",
            Value::Null,
        ),
        (
            "unet3d_h100_small",
            FILES.replace(", decode: False", ""),
            "++workload.storage.storage_type=direct_fs",
            "direct",
            json!({"in_flight": 64, "unit": "file", "ahead": {"windows": 256}}),
        ),
        (
            "flux_b200_small",
            ROW_GROUPS.into(),
            "++workload.storage.storage_type=local_fs",
            "psync",
            json!({"in_flight": 64, "unit": "row_group", "ahead": {"sliding": 64}}),
        ),
    ] {
        let test = with_workloads();
        test.write(&format!("conf/workload/{name}.yaml"), yaml);
        let workload = format!("workload={name}");
        let generate =
            ["++workload.workflow.generate_data=True", "++workload.workflow.train=False"];
        let generated = dlio_benchmark(&test, &[&[&*workload, overrides], &generate[..]].concat());
        assert_eq!(generated.code, 0, "{}", generated.stderr);
        let answer = dlio_benchmark(&test, &[&workload, overrides]);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        let records = test.files_below("hydra_log", "record.json");
        let record: Value = serde_json::from_slice(&fs::read(&records[0]).unwrap()).unwrap();
        assert_eq!(record["plan"]["storage"]["engine"], engine);
        assert_eq!(record["plan"]["loader"]["requests"], requests);
    }
}
