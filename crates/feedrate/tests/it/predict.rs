//! `feedrate advise --set`: a changed run, predicted from the record of another.

use crate::harness::Test;
use serde_json::Value;
use std::process::Command;

/// One reading thread, and 4 ms for each of 4 reads of a batch that is computed on for 20 ms.
const LATENCY: &str = "\
model:
  name: latency
framework: pytorch
dataset:
  data_folder: data
  format: raw
  num_files_train: 256
  record_length_bytes: 4096
reader:
  data_loader: pytorch
  batch_size: 4
  read_threads: 1
train:
  epochs: 1
  computation_time: 0.008
storage:
  storage_type: memory
  throttle:
    latency_seconds: 0.004
";

#[test]
fn a_change_is_predicted_from_the_record_and_its_plan_is_that_of_a_run() {
    let test = Test::with(LATENCY);
    let run = test.run_json(&["--quiet", "--scale", "0.5", "-n", "2"]);
    let run_dir = run["run_dir"].as_str().unwrap();
    let answer = test.feedrate(&["advise", run_dir, "--set", "reader.read_threads=4", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let report: Value = serde_json::from_str(&answer.stdout).unwrap();
    let asked = &report["whatif"][0];
    assert_eq!(report["schema"], "whatif/2");
    assert_eq!(asked["changes"][0], "reader.read_threads=4");
    let au = |of: &Value| of["au_percent"].as_f64().unwrap();
    let measured = report["measured_au_percent"].as_f64().unwrap();
    assert!((au(&report["as_it_was"]) - measured).abs() < 10.0, "{report}");
    // 16 ms of reading for 8 ms of computing become 4 ms.
    assert!(measured < 55.0 && 70.0 < au(asked), "{report}");
    // The same files, accelerators and scale as the run had, and what is asked on top.
    let four = test.run_json(&["--quiet", "--scale", "0.5", "-n", "2", "reader.read_threads=4"]);
    assert_eq!(four["steps"], run["steps"]);
    let plan = test.feedrate(&["plan", run_dir, "-n", "2", "--scale", "0.5", "--json"]);
    let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
    assert_eq!(plan["plan"]["workload"], "workload");
    assert_eq!(plan["plan"]["dataset"]["files_train"], 128);

    let table = test.feedrate(&["advise", run_dir, "--table"]);
    assert_eq!(table.code, 0, "{}", table.stderr);
    let rows =
        ["storage.latency=0.5x", "reader.read_threads=2", "accelerators=16", "all from memory"];
    assert!(rows.iter().all(|row| table.stdout.contains(row)), "{}", table.stdout);
    assert!(table.stdout.lines().count() <= 23, "{}", table.stdout);
    let mut rows =
        table.stdout.lines().filter(|line| line.starts_with(' ') && !line.starts_with("  "));
    assert!(rows.all(|line| line.chars().count() <= 80), "{}", table.stdout);
}

#[test]
fn what_the_record_cannot_tell_is_refused_with_the_run_that_would() {
    let test = Test::with(LATENCY);
    let run = test.run_json(&["--quiet"]);
    let run_dir = run["run_dir"].as_str().unwrap();
    for (arguments, says) in [
        (&["--set", "dataset.format=npz"][..], "hint: run it with this change"),
        (
            &["--set", "storage.latency=3y"],
            "`storage.latency=3y` is not a valid change of `storage.latency`",
        ),
        (&["--set", "storage.latency=0.002"], "it has no unit: write `0.002s`, or `0.002ms`"),
        (&["--set", "decode.time=1"], "it has no unit: write `1s`, or `1ms`"),
        (&["--set", "storage.bandwidth=400"], "it has no unit: write `400MB/s`, or `400B/s`"),
        (&["--set", "reader.read_thread=4"], "did you mean `reader.read_threads`"),
        (&["--table", "-n", "1000"], "share 256 samples"),
    ] {
        let answer = test.feedrate(&[&["advise", run_dir], arguments].concat());
        assert_eq!(answer.code, 2, "{}", answer.stdout);
        assert!(answer.stderr.contains(says), "{says}: {}", answer.stderr);
    }
    test.feedrate(&["advise", "nowhere", "--table"]).refuses(2, &["no bundled workload"]);
    // A run that computes nothing has no utilisation to be changed.
    let run = test.run_json(&["--quiet", "train.computation_time=0"]);
    let answer = test.feedrate(&["advise", run["run_dir"].as_str().unwrap(), "--table"]);
    assert!(answer.code == 2 && answer.stderr.contains("computation_time"), "{}", answer.stderr);
}

/// Reads wait for latency alone: more bandwidth is no answer, and what is one is named.
#[test]
fn a_change_of_what_does_not_bind_names_what_does() {
    let test = Test::with(LATENCY);
    let run = test.run_json(&["--quiet", "--scale", "0.5"]);
    let folder = "results";
    let vain = test.feedrate(&["advise", folder, "--set", "storage.bandwidth=1TB/s"]);
    let binds = |text: &str| {
        let at = text.find("alternatives: ").unwrap_or_else(|| panic!("{text}"));
        text[at..].contains("storage.latency=0.5x (")
            && text[at..].contains("reader.read_threads=2 (")
    };
    assert!(vain.code == 0 && binds(&vain.stdout), "{vain:?}");
    assert!(vain.stderr.contains(run["run_dir"].as_str().unwrap()), "the newest run: {vain:?}");
    let unseen = test.feedrate(&["advise", folder, "--set", "storage.bandwidth=2x"]);
    assert!(unseen.code == 2 && binds(&unseen.stderr), "{unseen:?}");
    for helps in [&["--set", "storage.latency=0.5x"][..], &["--table", "-n", "8"]] {
        let told = test.feedrate(&[&["advise", folder], helps].concat());
        assert!(told.code == 0 && !told.stdout.contains("has no effect"), "{told:?}");
    }
}

#[test]
fn settings_of_a_run_that_are_a_pipe_are_not_waited_for() {
    let test = Test::with(LATENCY);
    let run = test.run_json(&["--quiet", "--scale", "0.5"]);
    let run_dir = run["run_dir"].as_str().unwrap();
    let settings = test.path(run_dir).join(".hydra/config.yaml");
    std::fs::remove_file(&settings).unwrap();
    assert!(Command::new("mkfifo").arg(&settings).status().unwrap().success());
    let refused = test.feedrate(&["advise", run_dir, "--set", "reader.read_threads=4"]);
    refused.refuses(2, &["cannot read the workload of the run", "it is no file", "hint:"]);
    assert_eq!(test.feedrate(&["report", run_dir, "--json"]).code, 0);
}
