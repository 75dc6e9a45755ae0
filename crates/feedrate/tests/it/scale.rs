//! `feedrate scale`: the largest number that a storage of known rate can feed.

use crate::harness::{Answer, Test};
use serde_json::Value;
use std::process::Stdio;

/// Each accelerator reads 65 536 bytes in each step of 20 ms: 3.2768 MB/s. The storage serves 19 MB/s to all together, so that n of them
/// compute for 19 ÷ 3.2768 ÷ n = 5.8 ÷ n of the time: 96.7 % with 6, 82.9 % with 7.
const KNEE: &str = "\
model:
  name: knee
framework: pytorch
dataset:
  data_folder: data
  format: raw
  num_files_train: 8
  record_length_bytes: 65536
reader:
  data_loader: pytorch
  batch_size: 1
  read_threads: 1
train:
  epochs: 3
  computation_time: 0.02
storage:
  storage_type: memory
  throttle:
    bytes_per_second: 19005440
";

fn json(answer: &Answer) -> Value {
    serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

#[test]
fn a_planted_knee_is_found_in_few_runs() {
    let test = Test::with(KNEE);
    let answer = test.feedrate(&["scale", "workload.yaml", "--au", "90", "--max", "16", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let report = json(&answer);
    let found = report["found"].as_u64().unwrap();
    assert!((5..=7).contains(&found), "{report}");
    let runs = report["runs"].as_f64().unwrap();
    assert!(runs <= 2.0 * (found as f64).log2() + 4.0, "{runs} runs for {found}");
    // 16 accelerators need 8 steps each, of one sample.
    assert_eq!(report["overrides"][0], "train.epochs=1");
    assert_eq!(report["overrides"][1], "dataset.num_files_train=128");
    assert!(
        answer.stderr.contains("run 1: 1 accelerator: au_sustained_percent"),
        "{}",
        answer.stderr
    );
    assert!(report["why"].as_str().unwrap().contains("wait for nothing at"), "{report}");
    let numbers = report["numbers"].as_array().unwrap();
    let at = |number: u64| numbers.iter().find(|one| one["number"] == number).unwrap();
    for (number, holds) in [(found, true), (found + 1, false)] {
        assert_eq!(at(number)["holds"], holds);
        assert_eq!(at(number)["values"].as_array().unwrap().len(), 2);
        assert!(at(number)["interval"]["low"].is_number());
    }
    let mut datasets = Vec::new();
    for dir in numbers.iter().flat_map(|one| one["run_dirs"].as_array().unwrap()) {
        let dir = dir.as_str().unwrap();
        assert!(dir.starts_with(report["results"].as_str().unwrap()), "{dir}");
        let record = std::fs::read(test.path(dir).join("record.json")).unwrap();
        let record: Value = serde_json::from_slice(&record).unwrap();
        datasets.push(record["plan"]["dataset"].clone());
    }
    assert_eq!(datasets.len() as f64, runs);
    datasets.dedup();
    assert_eq!(datasets.len(), 1, "all runs read the same dataset: {datasets:?}");
}

#[test]
fn other_keys_and_responses_can_be_scaled() {
    let test = Test::with(KNEE);
    // Without compute nothing is fed: what is asked for is not met even by the smallest.
    let answer = test.feedrate(&[
        "scale",
        "workload.yaml",
        "--key",
        "reader.batch_size",
        "--response",
        "au_all_steps",
        "--au",
        "99.9",
        "--replicates",
        "1",
        "train.computation_time=0.0001",
        "--quiet",
    ]);
    assert_eq!((answer.code, answer.stderr.as_str()), (3, ""), "{answer:?}");
    assert!(answer.stdout.contains("does not hold at reader.batch_size=1"), "{}", answer.stdout);
    // Stall is good when it is low; eight files end the search at batches of eight.
    let answer = test.feedrate(&[
        "scale",
        "workload.yaml",
        "--key",
        "reader.batch_size",
        "--response",
        "stall",
        "--at-least",
        "100",
        "--replicates",
        "1",
        "train.computation_time=0.0001",
        "--json",
    ]);
    let report = json(&answer);
    assert_eq!((report["found"].as_u64(), report["runs"].as_u64()), (Some(8), Some(4)), "{report}");
    assert!(report["why"].as_str().unwrap().contains("batches of `9`"), "{report}");
    assert_eq!(report["overrides"].as_array().unwrap().len(), 0);
}

#[test]
fn what_cannot_be_searched_is_refused_before_anything_runs() {
    let test = Test::with(KNEE);
    for (arguments, words) in [
        // Eight samples are eight steps of one accelerator, and four of two.
        (
            &["--au", "90", "--from", "2"][..],
            &["2 accelerators an epoch has 4 steps", "from 8 on", "--max"][..],
        ),
        (&["--au", "90", "-n", "4"], &["`--accelerators` is what is looked for"]),
        (&["--au", "nan"], &["`--au NaN` is no number"]),
        (&["--au", "inf", "--response", "duration_s"], &["`--au inf` is no number"]),
        (&["--au", "1000"], &["`--au 1000` is no percentage", "between 0 and 100"]),
        (&["--au", "90", "--response", "au"], &["no response `au`", "au_windowed_percent"]),
        (&["--au", "90", "--key", "reader.read_thread"], &["did you mean `reader.read_threads`"]),
        (&["--au", "90", "--from", "4", "--max", "3"], &["--from 4"]),
        (&["--au", "90", "--key", "reader.batch_size", "reader.batch_size=2"], &["leave it out"]),
    ] {
        let all = [&["scale", "workload.yaml"], arguments].concat();
        test.feedrate(&all).refuses(2, words);
    }
    assert!(!test.path("results").exists());
}

#[test]
fn a_run_that_fails_ends_the_search_and_says_why() {
    let test = Test::with(&KNEE.replace("storage_type: memory", "storage_type: local_fs"));
    test.write("data", "a file in the way");
    let answer = test.feedrate(&["scale", "workload.yaml", "--au", "90"]);
    answer.refuses(1, &["run-1 failed", "data"]);
}

#[test]
fn ctrl_c_ends_the_search_and_its_run() {
    let test = Test::with(KNEE);
    let arguments = ["scale", "workload.yaml", "--au", "90", "train.computation_time=3600"];
    let mut command = test.command(&arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let record = loop {
        if let Some(record) = test.files_below("results", "record.json").pop() {
            break record;
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    };
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    Answer::of(&child.wait_with_output().unwrap()).refuses(130, &["interrupted"]);
    let record: Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
    assert_eq!(record["stopped_because"], "interrupted");
}
