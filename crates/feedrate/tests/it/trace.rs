//! `run --trace`: the trace of a run compared with its record.

use crate::harness::{Answer, MountedDisk, Test, send_signal, wait_until};
use crate::mpi::OPEN_MPI;
use flate2::read::MultiGzDecoder;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

/// A format of three files, with an evaluation and a checkpoint after each epoch.
const WORKLOAD: &str = "\
model: {name: traced, model_size: 10000}
framework: pytorch
workflow: {checkpoint: True, evaluation: True}
dataset: {data_folder: data, format: indexed_binary, num_files_train: 8, num_files_eval: 4, num_samples_per_file: 4, record_length_bytes: 30000}
reader: {data_loader: pytorch, batch_size: 2, read_threads: 2, transfer_size: 8192}
train: {epochs: 3, computation_time: 0.001}
checkpoint: {checkpoint_folder: checkpoints, type: all_ranks}
";

/// All events of a trace, which must be complete.
fn all_events(file: &Path) -> Vec<Value> {
    let mut text = String::new();
    MultiGzDecoder::new(File::open(file).unwrap()).read_to_string(&mut text).unwrap();
    let lines = text.strip_prefix("[\n").unwrap().strip_suffix("]\n").unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The events with a duration. Checks that the files that they name are in the trace.
fn events(file: &Path) -> Vec<Value> {
    let all = all_events(file).into_iter();
    let (events, metadata): (Vec<_>, Vec<_>) = all.partition(|event| event["ph"] == "X");
    let files = metadata.iter().filter(|event| event["name"] == "FH");
    let named: BTreeSet<String> =
        files.map(|event| event["args"]["value"].as_str().unwrap().into()).collect();
    for event in &events {
        if let Some(hash) = event["args"]["fhash"].as_str() {
            assert!(named.contains(hash), "{event}");
        }
    }
    events
}

fn count(events: &[Value], name: &str) -> u64 {
    events.iter().filter(|event| event["name"] == name).count() as u64
}

/// Checks that the traces of all processes have the counts of the record, over epochs and evaluations.
fn check_counts(record: &Value, events: &[Value]) {
    let (mut opens, mut reads, mut bytes, mut steps) = (0, 0, 0, 0);
    let both = ["epochs", "evaluations"].map(|key| record[key].as_array().into_iter().flatten());
    for accelerator in both.into_iter().flatten().flat_map(|epoch| epoch["accelerators"].as_array())
    {
        for values in accelerator {
            let io = &values["io"];
            opens += io["opens"].as_u64().unwrap();
            reads += io["reads"].as_u64().unwrap();
            bytes += io["read_bytes"].as_u64().unwrap();
            for block in values["blocks"].as_array().unwrap() {
                steps += block["compute_ns"].as_array().unwrap().len() as u64;
            }
        }
    }
    let returned = |event: &Value| event["args"]["ret"].as_u64().unwrap();
    let traced_bytes: u64 = events.iter().filter(|e| e["name"] == "pread").map(returned).sum();
    assert!(reads > 0);
    assert_eq!((count(events, "open"), count(events, "pread")), (opens, reads));
    assert_eq!((traced_bytes, count(events, "compute")), (bytes, steps));
    let end: Vec<_> = events.iter().filter(|event| event["name"] == "end").collect();
    let announced: u64 = end.iter().map(|end| end["args"]["num_events"].as_u64().unwrap()).sum();
    assert_eq!(announced as usize, events.len() - end.len());
    assert!(end.iter().all(|end| end["args"]["dropped_events"] == 0));
}

fn record_of(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("record.json")).unwrap()).unwrap()
}

#[test]
fn a_trace_has_the_counts_of_the_record() {
    let test = Test::with_workload(WORKLOAD);
    test.run_json(&["-n", "2", "--run-dir", "run", "--trace", "t.pfw.gz"]);
    let (record, events) = (record_of(&test.path("run")), events(&test.path("t.pfw.gz")));
    check_counts(&record, &events);
    let pids: BTreeSet<u64> = events.iter().map(|event| event["pid"].as_u64().unwrap()).collect();
    assert_eq!(pids, BTreeSet::from([1, 2]), "one process id for each accelerator");
    for (name, expected) in [("epoch.block", 6), ("evaluate", 6), ("train", 2)] {
        assert_eq!(count(&events, name), expected, "{name}");
    }
    let saved = record["epochs"].as_array().unwrap().iter().flat_map(|epoch| {
        epoch["checkpoints"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|saved| saved["ranks"].as_array().unwrap())
    });
    let saved: u64 = saved.map(|rank| rank[3].as_u64().unwrap()).sum();
    let traced = events.iter().filter(|event| event["name"] == "capture");
    let traced: u64 = traced.map(|event| event["args"]["image_size"].as_u64().unwrap()).sum();
    assert!(saved > 0);
    assert_eq!(traced, saved);
}

#[test]
fn a_run_equals_its_own_trace() {
    let test = Test::with_workload(WORKLOAD);
    // Long reads, since a trace has whole microseconds, and compute time, so that the run is longer than its reads.
    test.run_json(&[
        "--run-dir",
        "run",
        "--trace",
        "t.pfw.gz",
        "dataset.format=npy",
        "dataset.num_samples_per_file=1",
        "workflow.evaluation=False",
        "storage.delay.read_seconds=0.001",
        "train.computation_time=0.02",
    ]);
    let answer = test.feedrate(&["compare", "run", "t.pfw.gz", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let aspects = answer.json()["aspects"].as_array().unwrap().clone();
    assert_eq!(aspects.len(), 8);
    for aspect in aspects {
        let (a, b) = (&aspect["a"], &aspect["b"]);
        match a.as_f64().zip(b.as_f64()) {
            Some((a, b)) => assert!((a - b).abs() <= 0.004 * a, "{aspect}"),
            None => assert!(a == b && !a.is_null(), "{aspect}"),
        }
    }
}

#[test]
fn each_rank_writes_its_own_trace() {
    let test = Test::with_workload(WORKLOAD);
    let (program, first) = OPEN_MPI;
    let feedrate = env!("CARGO_BIN_EXE_feedrate");
    let words = ["2", feedrate, "run", "workload.yaml", "--run-dir", "run", "--trace", "t.pfw.gz"];
    let output = test.program(program, &[first, &words].concat()).output();
    let answer = Answer::from_output(&output.expect("run `cargo xtask setup`"));
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let [mut both, other] = ["t.0.pfw.gz", "t.1.pfw.gz"].map(|name| events(&test.path(name)));
    let pids: BTreeSet<_> =
        other.iter().filter(|e| e["cat"] == "POSIX").filter_map(|e| e["pid"].as_u64()).collect();
    assert_eq!(pids, BTreeSet::from([2]), "the second accelerator is in the second process");
    both.extend(other);
    check_counts(&record_of(&test.path("run")), &both);
}

#[test]
fn if_one_rank_cannot_write_its_trace_no_rank_writes_one() {
    let test = Test::with_workload(WORKLOAD);
    let (program, first) = OPEN_MPI;
    // Rank 1 has a read-only folder for the trace.
    let script = format!(
        "mount -t tmpfs -o ro none traces; exec {} run workload.yaml --run-dir run --trace traces/t.pfw.gz",
        env!("CARGO_BIN_EXE_feedrate")
    );
    test.write("rank.sh", format!(
        "if [ \"$OMPI_COMM_WORLD_RANK\" = 1 ]; then exec unshare -m sh -c '{script}'; else {}; fi\n",
        script.split_once("; ").unwrap().1
    ));
    fs::create_dir(test.path("traces")).unwrap();
    let output = test.program(program, &[first, &["2", "sh", "rank.sh"]].concat()).output();
    let answer = Answer::from_output(&output.expect("run `cargo xtask setup`"));
    assert_ne!(answer.code, 0);
    assert!(
        answer.stderr.contains("rank 1: cannot create `traces/t.1.pfw.gz`"),
        "{}",
        answer.stderr
    );
    assert_eq!(fs::read_dir(test.path("traces")).unwrap().count(), 0, "no trace of rank 0");
    assert!(!test.path("data").exists() && !test.path("run").exists(), "nothing was generated");
}

#[test]
fn an_interrupted_run_leaves_a_complete_trace() {
    let test = Test::with_workload(WORKLOAD);
    let mut command = test.command(&["run", "workload.yaml", "train.epochs=100000", "--json"]);
    command.args(["workflow.evaluation=False", "workflow.checkpoint=False"]);
    command.args(["--run-dir", "run", "--trace", "t.pfw.gz"]).stdout(Stdio::piped());
    let run = command.stderr(Stdio::piped()).spawn().unwrap();
    let grown = |path: &Path| path.metadata().is_ok_and(|found| found.len() > 20_000);
    wait_until("a trace of some epochs", || {
        let entries = fs::read_dir(test.path("")).unwrap().flatten().map(|entry| entry.path());
        entries.into_iter().any(|path| path.to_string_lossy().contains("t.pfw.gz") && grown(&path))
    });
    send_signal("-INT", run.id());
    let answer = Answer::from_output(&run.wait_with_output().unwrap());
    answer.refuses(130, &["interrupted"]);
    check_counts(&record_of(&test.path("run")), &events(&test.path("t.pfw.gz")));
}

#[test]
fn a_full_disk_loses_the_trace_but_not_the_measurement() {
    let test = Test::with_workload(WORKLOAD);
    let disk = MountedDisk::tmpfs(&test.path("disk"), "size=8k");
    let answer = test.feedrate(&[
        "run",
        "workload.yaml",
        "--json",
        "--run-dir",
        "run",
        "--trace",
        "disk/t.pfw.gz",
    ]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stderr.contains("warning: cannot write `disk/t.pfw.gz`: "), "{}", answer.stderr);
    assert_eq!(record_of(&test.path("run"))["complete"], true);
    assert_eq!(fs::read_dir(&disk.0).unwrap().count(), 0, "no incomplete file is left");
}

#[test]
fn a_trace_never_overwrites_a_file() {
    let test = Test::with_workload(WORKLOAD);
    test.write("t.pfw.gz", "mine");
    let disk = MountedDisk::tmpfs(&test.path("read only"), "size=8k,ro");
    for (file, words) in [
        ("t.pfw.gz", "`t.pfw.gz` is there already"),
        ("t.json", "`--trace t.json`: a trace is compressed JSON"),
        ("nowhere/t.pfw.gz", "cannot create `nowhere/t.pfw.gz`: No such file"),
        ("t.pfw.gz/t.pfw.gz", "cannot create `t.pfw.gz/t.pfw.gz`: Not a directory"),
        ("read only/t.pfw.gz", "cannot create `read only/t.pfw.gz`: Read-only file system"),
    ] {
        let answer = test.feedrate(&["run", "workload.yaml", "--trace", file]);
        answer.refuses(2, &[words, "hint: "]);
    }
    drop(disk);
    assert_eq!(fs::read_to_string(test.path("t.pfw.gz")).unwrap(), "mine");
    assert!(!test.path("data").exists(), "nothing was generated before the refusal");
}

#[test]
fn no_output_is_written_into_data_folders() {
    let test = Test::with_workload(WORKLOAD);
    assert_eq!(test.feedrate(&["generate", "workload.yaml"]).code, 0);
    fs::create_dir_all(test.path("theirs/a")).unwrap();
    fs::write(test.path("theirs/a/x.npy"), "").unwrap();
    let manifest = test.data_files("manifest.json")[0].clone();
    let ours = manifest.parent().unwrap().strip_prefix(test.path("")).unwrap().join("train");
    let ours = ours.to_str().unwrap();
    for (command, folder) in [
        (["run", "workload.yaml"], ours),
        (["run", "--data=theirs"], "theirs/a"),
        (["run", "--data=theirs"], ours),
    ] {
        let before = test.files_below(folder, "");
        for (option, name) in [("--trace", "t.pfw.gz"), ("--write-yaml", "w.yaml")] {
            let file = format!("{folder}/{name}");
            let refused = test.feedrate(&[&command[..], &[option, &file]].concat());
            refused.refuses(2, &[&format!("`{file}` would be in the data folder `"), option]);
        }
        assert_eq!(test.files_below(folder, ""), before);
    }
}

/// Converts a trace to the format of strace.
fn to_strace(trace: &Path) -> String {
    let all = all_events(trace);
    let named = |hash: &Value| {
        all.iter().find(|event| event["name"] == "FH" && event["args"]["value"] == *hash)
    };
    let mut calls: Vec<&Value> = all.iter().filter(|event| event["cat"] == "POSIX").collect();
    calls.sort_by_key(|event| event["ts"].as_u64());
    let mut text = "5 1.000000 execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>\n".to_string();
    for call in calls {
        let [us, dur_us] = ["ts", "dur"].map(|key| call[key].as_u64().unwrap());
        let args = &call["args"];
        let operation = match call["name"].as_str().unwrap() {
            "open" => {
                let name = &named(&args["fhash"]).unwrap()["args"]["name"];
                format!("openat(AT_FDCWD, {name}, O_RDONLY) = 3")
            }
            "pread" => format!("pread64(3, \"\", 65536, {}) = {}", args["offset"], args["ret"]),
            "close" => "close(3) = 0".into(),
            _ => continue,
        };
        let (start_s, duration_s) = (us as f64 / 1e6, dur_us as f64 / 1e6);
        text += &format!("5 {start_s:.6} {operation} <{duration_s:.6}>\n");
    }
    text
}

#[test]
fn a_run_equals_the_log_of_its_own_calls() {
    let test = Test::with_workload(WORKLOAD);
    let settings = ["dataset.format=npz", "reader.read_threads=1", "workflow.evaluation=False"];
    let run = |folder: &str, trace: &str, transfer: &str| {
        let more = ["--run-dir", folder, "--trace", trace, transfer];
        test.run_json(&[&settings[..], &more].concat());
    };
    run("run", "t.pfw.gz", "reader.transfer_size=8192");
    run("other", "o.pfw.gz", "reader.transfer_size=65536");
    test.write("log", to_strace(&test.path("t.pfw.gz")));
    let compared = |folder: &str| test.feedrate(&["compare", folder, "log", "--json"]).json();
    let is_same = |compared: &Value, name: &str| {
        let aspects = compared["aspects"].as_array().unwrap();
        let found = aspects.iter().find(|aspect| aspect["aspect"] == name).unwrap();
        !found["a"].is_null() && found["a"] == found["b"]
    };
    let same_run = compared("run");
    for aspect in ["sizes", "order", "opens", "rereads", "overlap"] {
        assert!(is_same(&same_run, aspect), "{aspect}: {same_run}");
    }
    assert_eq!(same_run["b"]["kind"], "strace");
    let other_run = compared("other");
    for aspect in ["sizes", "opens"] {
        assert!(!is_same(&other_run, aspect), "{aspect}: {other_run}");
    }
    let page = test.feedrate(&["compare", "run", "log"]).stdout;
    assert!(page.contains("sizes of reads") && page.contains("reads in flight"), "{page}");
    assert!(page.lines().all(|line| line.len() <= 80), "{page}");
    test.feedrate(&["compare", "run", "log", "--within", "2%"]).refuses(2, &["access patterns"]);
    test.feedrate(&["compare", "log", "data"])
        .refuses(2, &["neither a log nor the folder of a feedrate run"]);
}
