//! `feedrate advise --try`: trials of changes.

use crate::harness::{Answer, Test, send_signal, wait_until};
use crate::schema::assert_matches_schema;
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

/// One thread needs 4 ms for each of the 4 reads of a batch. A step computes for 8 ms.
const LATENCY: &str = "\
model:
  name: latency
framework: pytorch
dataset:
  data_folder: data
  format: npz
  num_files_train: 128
  record_length_bytes: 4096
reader:
  data_loader: pytorch
  batch_size: 4
  read_threads: 1
train:
  epochs: 1
  computation_time: 0.008
storage:
  delay:
    read_seconds: 0.004
";

#[test]
fn advice_is_tried_and_the_generated_datasets_are_removed() {
    let test = Test::with_workload(LATENCY);
    let more = ["--also", "dataset.format=tfrecord", "--budget", "40s", "--json"];
    let answer = test.feedrate(&[&["advise", "workload.yaml", "--try"][..], &more].concat());
    assert!([0, 4].contains(&answer.code), "{answer:?}");
    let report = answer.json();
    assert_matches_schema("trials", &report);
    let baseline = report["baseline"]["mean_percent"].as_f64().unwrap();
    let advice = report["advice"].as_array().unwrap();
    let helps = advice.iter().find(|row| row["outcome"] == "helps");
    let helps = helps.unwrap_or_else(|| panic!("nothing helps: {report}"));
    assert!(baseline + 10.0 < helps["tried"]["mean_percent"].as_f64().unwrap(), "{report}");
    assert!(2 <= helps["tried"]["n"].as_u64().unwrap() && helps["tried"]["interval"][1].is_f64());
    for row in advice {
        let is_tried = row["outcome"] != "not_tried";
        assert_eq!(row["tried"].is_null(), !is_tried, "{row}");
        assert!(is_tried || row["reason"].is_string(), "{row}");
        let ends = [0, 1].map(|end| row["interval"][end].as_f64());
        let is_judged = ends.iter().all(Option::is_some) && is_tried;
        assert_eq!(row["mispredicted"].is_boolean(), is_judged, "{row}");
        let change = row["change"].as_str().unwrap();
        assert!(row["command"].is_string() || change.contains("instead of"), "{row}");
    }
    let requested = advice.iter().find(|row| row["name"] == "asked").unwrap();
    assert_eq!(requested["overrides"][0], "dataset.format=tfrecord", "{requested}");
    assert!(requested["tried"]["n"].as_u64() >= Some(1), "{requested}");
    let remaining: Vec<_> = std::fs::read_dir(test.path("data")).unwrap().flatten().collect();
    assert_eq!(remaining.len(), 1, "{remaining:?}");
    // A report on the runs has the same outcomes.
    let answer = test.feedrate(&["report", report["results"].as_str().unwrap(), "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let page = answer.json();
    let [row] = &page["advice"].as_array().unwrap()[..] else { panic!("{page}") };
    let outcome =
        |row: &Value| (row["overrides"].clone(), row["outcome"].clone(), row["tried"].clone());
    let reported: Vec<_> = row["changes"].as_array().unwrap().iter().map(outcome).collect();
    assert_eq!(reported, advice.iter().map(outcome).collect::<Vec<_>>());
    assert!(page["opening"].as_array().unwrap().iter().any(|line| line["name"] == "Advice"));
}

/// Utilisation does not show the benefit of checkpoints in the background.
#[test]
fn a_change_of_checkpoints_is_judged_by_all_waits() {
    let test = Test::with_workload(LATENCY);
    let checkpoints = [
        "++workload.workflow.checkpoint=true",
        "++workload.checkpoint.steps_between_checkpoints=2",
        "++workload.model.model_size=4194304",
        "dataset.num_files_train=32",
        "train.computation_time=0.05",
        "++workload.checkpoint.fsync=true",
        // Else reading is the limit: batches are loaded during checkpoints, so training waits as long without these.
        "reader.requests=large",
    ];
    let more = ["--also", "checkpoint.asynchronous=true", "--budget", "40s", "--json"];
    let arguments = [&["advise", "workload.yaml", "--try"][..], &checkpoints, &more].concat();
    let report = test.feedrate(&arguments).json();
    let advice = report["advice"].as_array().unwrap();
    let advice_row =
        advice.iter().find(|row| row["overrides"][0] == "checkpoint.asynchronous=true");
    let advice_row = advice_row.unwrap_or_else(|| panic!("{report}"));
    assert_eq!(advice_row["outcome"], "helps", "{advice_row}");
    assert!(advice_row["reason"].as_str().unwrap().starts_with("training waits "), "{advice_row}");
}

/// The files are foreign, and the budget is too small for a run.
#[test]
fn changes_that_are_not_tried_have_a_reason() {
    let test = Test::with_workload(LATENCY);
    std::fs::create_dir(test.path("made")).unwrap();
    let run = test.run_json(&["--data", "made"]);
    assert!(run["run_dir"].is_string());
    let folder = std::fs::read_dir(test.path("made")).unwrap().next().unwrap().unwrap().path();
    std::fs::create_dir(test.path("theirs")).unwrap();
    std::fs::rename(folder.join("train"), test.path("theirs/train")).unwrap();
    let foreign = ["--foreign", "--data", "theirs", "--also", "dataset.format=hdf5"];
    let arguments = ["advise", "workload.yaml", "--try", "--budget", "0", "--json"];
    let answer = test.feedrate(&[&arguments[..], &foreign].concat());
    assert_eq!(answer.code, 4, "{answer:?}");
    let report = answer.json();
    assert_matches_schema("trials", &report);
    // The only run is the one that the advice is based on.
    assert_eq!((&report["runs"], &report["baseline"]["n"]), (&1.into(), &1.into()), "{report}");
    assert_eq!(report["stopped"], "the budget is used up", "{report}");
    for row in report["advice"].as_array().unwrap() {
        let why = match row["name"].as_str().unwrap() {
            "asked" => "not generated for a foreign dataset",
            "storage" => "the storage lacks ",
            _ => "the budget is used up",
        };
        let reason = row["reason"].as_str().unwrap();
        assert!(row["outcome"] == "not_tried" && reason.contains(why), "{row}");
    }
}

#[test]
fn commands_that_start_their_own_runs_refuse_several_processes() {
    let test = Test::with_workload(LATENCY);
    for command in ["advise", "diagnose", "scale"] {
        let ranks = [0, 1].map(|rank: i32| {
            let more: &[&str] = if command == "scale" { &["--au", "50"] } else { &[] };
            let mut ranked = test.command(&[&[command, "workload.yaml"], more].concat());
            ranked.env("OMPI_COMM_WORLD_RANK", rank.to_string()).env("OMPI_COMM_WORLD_SIZE", "2");
            Answer::from_output(&ranked.output().unwrap())
        });
        ranks[0].refuses(2, &["was itself started in several processes", "-n"]);
        assert_eq!((ranks[1].code, ranks[1].stderr.as_str()), (2, ""), "{command}");
    }
    assert!(!test.path("results").exists());
}

/// The name could not be passed to the runs unchanged, and they would create another folder.
#[test]
fn a_data_folder_whose_name_is_not_utf_8_is_refused() {
    let test = Test::with_workload(LATENCY);
    let name = OsStr::from_bytes(b"data\xff");
    std::fs::create_dir(test.path("").join(name)).unwrap();
    for command in [&["scale", "--au", "50"][..], &["advise"]] {
        let mut started = test.command(&[command, &["workload.yaml"]].concat());
        let answer = Answer::from_output(&started.arg("--data").arg(name).output().unwrap());
        answer.refuses(2, &["is not valid UTF-8"]);
    }
    let names = std::fs::read_dir(test.path("")).unwrap().flatten().map(|entry| entry.file_name());
    assert!(names.filter_map(|name| name.into_string().ok()).all(|name| !name.starts_with("data")));
}

#[test]
fn interrupted_trials_and_searches_print_their_results_so_far() {
    let advise = ["advise", "workload.yaml", "--try", "--results", "out"];
    let scale = ["scale", "workload.yaml", "--results", "out", "--au", "5"];
    for (command, known, why) in [
        (&advise[..], "unchanged", "Stopped: the trials were interrupted"),
        (&scale, "one run", "the search was interrupted"),
    ] {
        let test = Test::with_workload(LATENCY);
        let mut command = test.command(command);
        let command: &mut Command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let second_run = || {
            let folder = std::fs::read_dir(test.path("out")).ok()?.next()?.ok()?.path();
            folder.join("study.study/logs/2-run").exists().then_some(())
        };
        wait_until("a second run", || second_run().is_some());
        send_signal("-INT", child.id());
        let answer = Answer::from_output(&child.wait_with_output().unwrap());
        assert_eq!(answer.code, 130, "{answer:?}");
        assert!(answer.stdout.contains(known) && answer.stdout.contains(why), "{answer:?}");
    }
}

/// A run without `stage_keep` would remove the copy that an earlier run kept.
#[test]
fn no_trial_removes_a_kept_copy() {
    let test = Test::with_workload(LATENCY);
    test.run_json(&["reader.stage=copies", "reader.stage_keep=true", "--results", "first"]);
    let kept = std::fs::read_dir(test.path("copies")).unwrap().next().unwrap().unwrap().path();
    let change = "reader.stage=copies reader.read_threads=2";
    let more = ["--also", change, "--budget", "20s", "--json"];
    let answer = test.feedrate(&[&["advise", "workload.yaml", "--try"][..], &more].concat());
    let report = answer.json();
    let advice = report["advice"].as_array().unwrap();
    let row =
        advice.iter().find(|row| row["name"] == "asked").unwrap_or_else(|| panic!("{report}"));
    assert_eq!(row["outcome"], "not_tried", "{row}");
    assert!(row["reason"].as_str().unwrap().contains("already exists, and a run would"), "{row}");
    assert!(kept.join("stage.json").exists() && kept.join("train").exists());
}

#[test]
fn the_cheapest_of_the_best_settings_is_found_for_a_goal() {
    let test = Test::with_workload(LATENCY);
    let trials = ["advise", "workload.yaml", "--try", "--goal", "throughput", "--budget", "60s"];
    let answer = test.feedrate(&[&trials[..], &["--json"]].concat());
    assert!([0, 4].contains(&answer.code), "{answer:?}");
    let report = answer.json();
    assert_matches_schema("trials", &report);
    assert_eq!(report["goal"], "throughput");
    let best = &report["best"];
    assert!(best[0].as_str().is_some_and(|key| key.starts_with("reader.")), "{report}");
    let advice = report["advice"].as_array().unwrap();
    assert!(advice.iter().any(|row| row["name"] == "setting"), "{report}");
    let chosen = advice.iter().find(|row| row["overrides"] == *best).unwrap();
    assert_eq!(chosen["outcome"], "helps", "{report}");
    // The same command uses the earlier runs.
    let again = test.feedrate(&[&trials[..], &["--json"]].concat());
    assert!(again.stderr.contains("note: no run was made now"), "{again:?}");
    assert_eq!(again.json(), report);
}
