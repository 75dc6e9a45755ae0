//! `feedrate advise --set`: predicts a changed run from the record of a run.

use crate::harness::Test;
use feedrate_engine::job::ReadJob;
use feedrate_engine::simulated::{SimulatedDriver, SimulatedStorage};
use feedrate_measure::record::{EpochRecord, file};
use feedrate_spec::workload::TimeSpec;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// One thread needs 4 ms for each of the 4 reads of a batch. A step computes for 8 ms.
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

/// Replaces the measured times of a run's record by exact times: the same plan in virtual time, on a storage with the latency of [`LATENCY`].
fn replay_in_virtual_time(run_dir: &Path) {
    let mut record = file::read(run_dir).unwrap();
    let latency = TimeSpec::Constant { mean: 0.004 };
    let storage = SimulatedStorage { latency, ..SimulatedStorage::default() };
    let job = ReadJob::without_files(&record.plan).unwrap();
    let mut driver = SimulatedDriver::new(job, storage);
    let accelerators = driver.run_epoch(record.plan.train.steps_per_epoch).unwrap();
    let end_ns = accelerators[0].blocks[0].end_ns;
    let causes = Some(driver.take_causes());
    record.epochs =
        vec![EpochRecord { number: 1, end_ns, accelerators, causes, ..EpochRecord::default() }];
    file::write(run_dir, &record).unwrap();
}

#[test]
fn a_change_is_predicted_from_the_record_with_the_plan_of_a_real_run() {
    let test = Test::with_workload(LATENCY);
    let run = test.run_json(&["--quiet", "--scale", "0.5", "-n", "2"]);
    let run_dir = run["run_dir"].as_str().unwrap();
    replay_in_virtual_time(&test.path(run_dir));
    let answer = test.feedrate(&["advise", run_dir, "--set", "reader.read_threads=4", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let report: Value = serde_json::from_str(&answer.stdout).unwrap();
    let predicted = &report["whatif"][0];
    assert_eq!(report["schema"], "whatif/2");
    assert_eq!(predicted["changes"][0], "reader.read_threads=4");
    let au = |prediction: &Value| prediction["au_percent"].as_f64().unwrap();
    let measured = report["measured_au_percent"].as_f64().unwrap();
    // A batch takes 16 ms. One thread reads 16 batches one after another, and only the last step of 8 ms follows. Four threads read as
    // fast as the steps compute, so only the first step waits.
    let is_close = |a: f64, b: f64| (a - b).abs() < 1e-6;
    let alone = 100.0 * 128.0 / (16.0 * 16.0 + 8.0);
    assert!(is_close(measured, alone) && is_close(au(&report["as_it_was"]), alone), "{report}");
    assert!(is_close(au(predicted), 100.0 * 128.0 / (16.0 + 128.0)), "{report}");
    // The changed run has the files, accelerators and scale of the original run.
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
fn unpredictable_changes_are_refused_with_the_run_that_is_needed() {
    let test = Test::with_workload(LATENCY);
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
        (
            &["--set", "reader.read_threads=2", "--set", "data_reader.read_threads=4"],
            "`reader.read_threads` is set twice",
        ),
        (&["--set", "reader.read_thread=4"], "did you mean `reader.read_threads`"),
        (&["--table", "-n", "1000"], "share 256 samples"),
    ] {
        let answer = test.feedrate(&[&["advise", run_dir], arguments].concat());
        assert_eq!(answer.code, 2, "{}", answer.stdout);
        assert!(answer.stderr.contains(says), "{says}: {}", answer.stderr);
    }
    test.feedrate(&["advise", "nowhere", "--table"]).refuses(2, &["no bundled workload"]);
    // Without compute time there is no utilisation to predict.
    let run = test.run_json(&["--quiet", "train.computation_time=0"]);
    let answer = test.feedrate(&["advise", run["run_dir"].as_str().unwrap(), "--table"]);
    assert!(answer.code == 2 && answer.stderr.contains("computation_time"), "{}", answer.stderr);
}

/// The reads wait only for latency, so more bandwidth has no effect.
#[test]
fn a_change_without_effect_names_effective_alternatives() {
    let test = Test::with_workload(LATENCY);
    let run = test.run_json(&["--quiet", "--scale", "0.5"]);
    replay_in_virtual_time(&test.path(run["run_dir"].as_str().unwrap()));
    let folder = "results";
    let bandwidth = test.feedrate(&["advise", folder, "--set", "storage.bandwidth=1TB/s"]);
    let names_alternatives = |text: &str| {
        let start = text.find("alternatives: ").unwrap_or_else(|| panic!("{text}"));
        text[start..].contains("storage.latency=0.5x (")
            && text[start..].contains("reader.read_threads=2 (")
    };
    assert!(bandwidth.code == 0 && names_alternatives(&bandwidth.stdout), "{bandwidth:?}");
    let words = "storage.bandwidth=1TB/s does not raise the AU; alternatives: ";
    assert!(bandwidth.stdout.contains(words), "{bandwidth:?}");
    assert!(
        bandwidth.stderr.contains(run["run_dir"].as_str().unwrap()),
        "the newest run: {bandwidth:?}"
    );
    let unseen = test.feedrate(&["advise", folder, "--set", "storage.bandwidth=2x"]);
    assert!(unseen.code == 2 && names_alternatives(&unseen.stderr), "{unseen:?}");
    for arguments in [&["--set", "storage.latency=0.5x"][..], &["--table", "-n", "8"]] {
        let answer = test.feedrate(&[&["advise", folder], arguments].concat());
        assert!(answer.code == 0 && !answer.stdout.contains("does not raise"), "{answer:?}");
    }
}

#[test]
fn a_pipe_in_place_of_a_runs_settings_does_not_hang() {
    let test = Test::with_workload(LATENCY);
    let run = test.run_json(&["--quiet", "--scale", "0.5"]);
    let run_dir = run["run_dir"].as_str().unwrap();
    let settings = test.path(run_dir).join(".hydra/config.yaml");
    std::fs::remove_file(&settings).unwrap();
    assert!(Command::new("mkfifo").arg(&settings).status().unwrap().success());
    let refused = test.feedrate(&["advise", run_dir, "--set", "reader.read_threads=4"]);
    refused.refuses(2, &["cannot read the workload of the run", "it is no file", "hint:"]);
    assert_eq!(test.feedrate(&["report", run_dir, "--json"]).code, 0);
}
