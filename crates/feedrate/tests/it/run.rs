//! `feedrate run`: output, result files, and interruption.

use crate::harness::{Answer, TINY, Test};
use serde_json::Value;
use std::process::Stdio;

#[test]
fn a_data_folder_without_effect_is_noted() {
    let test = Test::with_workload(TINY);
    let run = ["run", "workload.yaml", "--data", "nowhere"];
    let answer = test.feedrate(&[&run[..], &["storage.storage_type=memory"]].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stderr.contains("note: no effect: `--data` (`memory` "), "{}", answer.stderr);
}

#[test]
fn the_json_has_every_promised_key() {
    let test = Test::with_workload(TINY);
    let json = test.run_json(&["train.computation_time=0.001", "-n", "2"]);
    assert_eq!(json["workload"], "workload");
    assert_eq!(json["accelerators"], 2);
    assert_eq!(json["epochs"], 2);
    assert_eq!(json["steps"], 1);
    assert_eq!(json["complete"], true);
    for (section, keys) in [
        (
            "au",
            &[
                "windowed_percent",
                "all_steps_percent",
                "sustained_percent",
                "sustained_needs_steps",
            ][..],
        ),
        (
            "throughput",
            &["delivered_bytes_per_second", "nominal_bytes_per_second", "samples_per_second"],
        ),
        ("time", &["load_s", "compute_s", "barrier_s"]),
        ("stall", &["open_s", "read_s", "decode_s", "queue_s"]),
        ("bytes", &["logical", "device"]),
    ] {
        for key in keys {
            assert!(json[section].get(key).is_some(), "{section}.{key} is missing: {json}");
        }
    }
    for key in ["delivered_bytes_per_second", "nominal_bytes_per_second", "samples_per_second"] {
        assert!(
            json["throughput"][key].get("windowed").is_some()
                && json["throughput"][key].get("whole").is_some()
        );
    }
    assert!(json["au"]["sustained_percent"].is_null(), "one step is not enough");
    for doubt in json["doubts"].as_array().unwrap() {
        assert!(
            doubt["name"].is_string()
                && doubt["severity"].is_string()
                && doubt["advice"].is_string()
        );
    }
}

#[test]
fn dlios_files_are_written_as_strict_json() {
    let test = Test::with_workload(TINY);
    let json = test.run_json(&["-n", "2", "reader.batch_size=2"]);
    let dir = test.path(json["run_dir"].as_str().unwrap());
    for name in [
        "summary.json",
        "0_output.json",
        "1_output.json",
        "0_per_epoch_stats.json",
        "1_per_epoch_stats.json",
        "record.json",
    ] {
        let text = std::fs::read_to_string(dir.join(name)).unwrap();
        serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    for name in ["dlio.log", ".hydra/config.yaml", ".hydra/overrides.yaml", ".hydra/hydra.yaml"] {
        assert!(dir.join(name).exists(), "{name}");
    }
    let summary: Value =
        serde_json::from_slice(&std::fs::read(dir.join("summary.json")).unwrap()).unwrap();
    assert_eq!(summary["num_accelerators"], 2);
    assert!(summary["metric"]["train_au_mean_percentage"].is_number());
    assert!(
        std::fs::read_to_string(dir.join(".hydra/config.yaml")).unwrap().starts_with("workload:")
    );
}

#[test]
fn above_1024_accelerators_rank_files_are_written_only_if_requested() {
    let test = Test::with_workload(TINY);
    let many = ["-n", "1025", "dataset.format=synthetic", "dataset.num_files_train=1025"];
    let one_step = ["reader.batch_size=1", "reader.read_threads=1", "train.epochs=1"];
    for (option, is_written) in [("--quiet", false), ("--rank-files", true)] {
        let json = test.run_json(&[&many[..], &one_step, &[option]].concat());
        let dir = test.path(json["run_dir"].as_str().unwrap());
        assert_eq!(dir.join("1024_output.json").exists(), is_written, "{option}");
        assert!(dir.join("summary.json").exists(), "{option}");
    }
}

#[test]
fn the_summary_of_a_record_equals_the_output_of_the_run() {
    let test = Test::with_workload(TINY);
    let json = test.run_json(&["train.computation_time=0.001"]);
    let dir = json["run_dir"].as_str().unwrap();
    let answer = test.feedrate(&["show", dir, "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&answer.stdout).unwrap(), json);
    let table = test.feedrate(&["show", dir]);
    assert_eq!(table.code, 0, "{}", table.stderr);
}

#[test]
fn each_run_has_a_new_folder() {
    let test = Test::with_workload(TINY);
    let dirs: Vec<String> =
        (0..3).map(|_| test.run_json(&[])["run_dir"].as_str().unwrap().to_string()).collect();
    assert_ne!(dirs[0], dirs[1]);
    assert_ne!(dirs[1], dirs[2]);
    assert!(dirs.iter().all(|dir| test.path(dir).join("record.json").exists()));
}

#[test]
fn a_quiet_run_prints_the_answer_only() {
    let test = Test::with_workload(TINY);
    let answer = test.feedrate(&["run", "workload.yaml", "--quiet"]);
    assert_eq!(answer.code, 0);
    assert!(answer.stdout.contains("AU"), "{}", answer.stdout);
    assert_eq!(answer.stderr, "");
}

#[test]
fn total_steps_limit_the_whole_run() {
    let test = Test::with_workload(TINY);
    let json = test.run_json(&["train.total_training_steps=3", "train.epochs=5"]);
    let dir = test.path(json["run_dir"].as_str().unwrap());
    let record: Value =
        serde_json::from_slice(&std::fs::read(dir.join("record.json")).unwrap()).unwrap();
    let steps: usize = record["epochs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|epoch| epoch["accelerators"][0]["blocks"][0]["load_ns"].as_array().unwrap().len())
        .sum();
    assert_eq!(steps, 3);
}

/// Starts a run that would last for hours, interrupts it when its record exists, and returns the record.
fn interrupt_run(overrides: &[&str]) -> Value {
    let test = Test::with_workload(TINY);
    let mut arguments = vec!["run", "workload.yaml"];
    arguments.extend(overrides);
    let mut child =
        test.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let parent = test.path("results/tiny");
    let record = loop {
        let run = std::fs::read_dir(&parent).ok().and_then(|mut entries| entries.next());
        if let Some(record) = run.map(|run| run.unwrap().path().join("record.json"))
            && record.exists()
        {
            break record;
        }
        assert!(child.try_wait().unwrap().is_none(), "the run ended by itself");
        std::thread::yield_now();
    };
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let answer = Answer::from_output(&child.wait_with_output().unwrap());
    answer.refuses(130, &["interrupted"]);
    assert!(answer.stdout.starts_with("UNKNOWN: interrupted, "), "{}", answer.stdout);
    let record: Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
    assert_eq!(record["complete"], false);
    assert_eq!(record["stopped_because"], "interrupted");
    record
}

#[test]
fn ctrl_c_leaves_an_incomplete_record() {
    interrupt_run(&["train.computation_time=0.05", "train.epochs=20000"]);
}

#[test]
fn ctrl_c_ends_the_waits_of_an_emulated_storage() {
    interrupt_run(&["storage.delay_seconds=3600"]);
    interrupt_run(&["storage.throttle.bytes_per_second=1"]);
}

#[test]
fn a_failed_run_keeps_its_last_epoch() {
    let test = Test::with_workload(TINY);
    assert_eq!(test.feedrate(&["generate", "workload.yaml"]).code, 0);
    std::fs::write(&test.data_files(".npz")[7], b"short").unwrap();
    let arguments = ["run", "workload.yaml", "reader.batch_size=1", "train.computation_time=0.01"];
    test.feedrate(&arguments).refuses(1, &["img_7_of_8.npz", "what was measured is in"]);
    let run = std::fs::read_dir(test.path("results/tiny")).unwrap().next().unwrap().unwrap().path();
    let record: Value =
        serde_json::from_slice(&std::fs::read(run.join("record.json")).unwrap()).unwrap();
    assert_eq!(record["complete"], false);
    assert!(record["stopped_because"].as_str().unwrap().contains("img_7_of_8.npz"));
    let reads = &record["epochs"][0]["accelerators"][0]["io"]["read_bytes"];
    assert!(reads.as_u64().unwrap() > 6 * 4096, "{reads}");
    assert!(run.join("summary.json").exists());
}

/// The reads that warm the cache do not count as reads of the run.
#[test]
fn a_warm_run_begins_with_the_whole_dataset_in_memory() {
    let test = Test::with_workload(TINY);
    let large = "dataset.record_length_bytes=1000000";
    assert_eq!(test.feedrate(&["generate", "workload.yaml", large]).code, 0);
    let files = test.data_files(".npz");
    for file in &files {
        let target = format!("of={}", file.display());
        let drop_cache =
            ["if=/dev/null", &target, "oflag=nocache", "conv=notrunc,fdatasync", "status=none"];
        assert!(test.program("dd", &drop_cache).status().unwrap().success());
    }
    let json = test.run_json(&["--warm", large]);
    let doubts = json["doubts"].as_array().unwrap();
    assert!(doubts.iter().all(|doubt| doubt["name"] != "not_warm"), "{doubts:?}");
    let path = test.path(json["run_dir"].as_str().unwrap()).join("record.json");
    let record: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(record["plan"]["train"]["cache"], "warm");
    let length: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
    let host = &record["epochs"][0]["host"];
    assert!(length <= host["resident_before_bytes"].as_u64().unwrap(), "{host}");
    let read = host["process_device_read_bytes"].as_u64();
    assert!(read.is_none_or(|bytes| bytes < length / 2), "{host}");
}
