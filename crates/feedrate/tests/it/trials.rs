//! `feedrate advise --try`: changes that are run against the workload.

use crate::harness::{Answer, Test, signal, until};
use crate::schema::holds;
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

/// One reading thread waits 4 ms for each of 4 reads of a batch that is computed on for 8 ms.
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
fn advice_is_tried_and_what_was_made_for_it_is_removed() {
    let test = Test::with(LATENCY);
    let more = ["--also", "dataset.format=tfrecord", "--budget", "40s", "--json"];
    let answer = test.feedrate(&[&["advise", "workload.yaml", "--try"][..], &more].concat());
    assert!([0, 4].contains(&answer.code), "{answer:?}");
    let report = answer.json();
    holds("trials", &report);
    let baseline = report["baseline"]["mean_percent"].as_f64().unwrap();
    let advice = report["advice"].as_array().unwrap();
    let helps = advice.iter().find(|of| of["outcome"] == "helps");
    let helps = helps.unwrap_or_else(|| panic!("nothing helps: {report}"));
    assert!(baseline + 10.0 < helps["tried"]["mean_percent"].as_f64().unwrap(), "{report}");
    assert!(2 <= helps["tried"]["n"].as_u64().unwrap() && helps["tried"]["interval"][1].is_f64());
    for of in advice {
        let is_tried = of["outcome"] != "not_tried";
        assert_eq!(of["tried"].is_null(), !is_tried, "{of}");
        assert!(is_tried || of["reason"].is_string(), "{of}");
        let change = of["change"].as_str().unwrap();
        assert!(of["command"].is_string() || change.contains("instead of"), "{of}");
    }
    let asked = advice.iter().find(|of| of["name"] == "asked").unwrap();
    assert_eq!(asked["overrides"][0], "dataset.format=tfrecord", "{asked}");
    assert!(asked["tried"]["n"].as_u64() >= Some(1), "{asked}");
    let left: Vec<_> = std::fs::read_dir(test.path("data")).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    // The same outcomes stand in a report of the runs that were made.
    let answer = test.feedrate(&["report", report["results"].as_str().unwrap(), "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let page = answer.json();
    let [of] = &page["advice"].as_array().unwrap()[..] else { panic!("{page}") };
    let outcome =
        |of: &Value| (of["overrides"].clone(), of["outcome"].clone(), of["tried"].clone());
    let told: Vec<_> = of["changes"].as_array().unwrap().iter().map(outcome).collect();
    assert_eq!(told, advice.iter().map(outcome).collect::<Vec<_>>());
    assert!(page["opening"].as_array().unwrap().iter().any(|line| line["name"] == "Advice"));
}

/// Utilisation would say that a checkpoint in the background brings nothing.
#[test]
fn a_change_of_checkpoints_is_judged_by_the_waits_for_them() {
    let test = Test::with(LATENCY);
    let storm = [
        "++workload.workflow.checkpoint=true",
        "++workload.checkpoint.steps_between_checkpoints=2",
        "++workload.model.model_size=4194304",
        "dataset.num_files_train=32",
        "train.computation_time=0.05",
        "++workload.checkpoint.fsync=true",
    ];
    let more = ["--also", "checkpoint.asynchronous=true", "--budget", "40s", "--json"];
    let arguments = [&["advise", "workload.yaml", "--try"][..], &storm, &more].concat();
    let report = test.feedrate(&arguments).json();
    let advice = report["advice"].as_array().unwrap();
    let of = advice.iter().find(|of| of["overrides"][0] == "checkpoint.asynchronous=true");
    let of = of.unwrap_or_else(|| panic!("{report}"));
    assert_eq!(of["outcome"], "helps", "{of}");
    assert!(of["reason"].as_str().unwrap().starts_with("training waits "), "{of}");
}

/// Of files that others made, and of a budget that no run fits into.
#[test]
fn what_cannot_be_tried_says_why() {
    let test = Test::with(LATENCY);
    std::fs::create_dir(test.path("made")).unwrap();
    let made = test.run_json(&["--data", "made"]);
    assert!(made["run_dir"].is_string());
    let folder = std::fs::read_dir(test.path("made")).unwrap().next().unwrap().unwrap().path();
    std::fs::rename(folder.join("train"), test.path("train")).unwrap();
    let foreign = ["--foreign", "--data", ".", "--also", "dataset.format=hdf5"];
    let arguments = ["advise", "workload.yaml", "--try", "--budget", "0", "--json"];
    let answer = test.feedrate(&[&arguments[..], &foreign].concat());
    assert_eq!(answer.code, 4, "{answer:?}");
    let report = answer.json();
    holds("trials", &report);
    // The run that the advice is from.
    assert_eq!((&report["runs"], &report["baseline"]["n"]), (&1.into(), &1.into()), "{report}");
    assert_eq!(report["stopped"], "the budget is used up", "{report}");
    for of in report["advice"].as_array().unwrap() {
        let why = match of["name"].as_str().unwrap() {
            "asked" => "not generated for a foreign dataset",
            "storage" => "the storage lacks ",
            _ => "the budget is used up",
        };
        let reason = of["reason"].as_str().unwrap();
        assert!(of["outcome"] == "not_tried" && reason.contains(why), "{of}");
    }
}

#[test]
fn what_runs_by_itself_is_refused_to_several_processes() {
    let test = Test::with(LATENCY);
    for command in ["advise", "diagnose", "scale"] {
        let ranks = [0, 1].map(|rank: i32| {
            let more: &[&str] = if command == "scale" { &["--au", "50"] } else { &[] };
            let mut ranked = test.command(&[&[command, "workload.yaml"], more].concat());
            ranked.env("OMPI_COMM_WORLD_RANK", rank.to_string()).env("OMPI_COMM_WORLD_SIZE", "2");
            Answer::of(&ranked.output().unwrap())
        });
        ranks[0].refuses(2, &["several processes of it were started", "-n"]);
        assert_eq!((ranks[1].code, ranks[1].stderr.as_str()), (2, ""), "{command}");
    }
    assert!(!test.path("results").exists());
}

/// Where it would be told to the runs by other characters they would make another.
#[test]
fn a_folder_whose_name_is_not_utf_8_is_refused_where_it_cannot_be_told() {
    let test = Test::with(LATENCY);
    let name = OsStr::from_bytes(b"data\xff");
    std::fs::create_dir(test.path("").join(name)).unwrap();
    for command in [&["scale", "--au", "50"][..], &["advise"]] {
        let mut started = test.command(&[command, &["workload.yaml"]].concat());
        let answer = Answer::of(&started.arg("--data").arg(name).output().unwrap());
        answer.refuses(2, &["is not valid UTF-8"]);
    }
    let names = std::fs::read_dir(test.path("")).unwrap().flatten().map(|of| of.file_name());
    assert!(names.filter_map(|name| name.into_string().ok()).all(|name| !name.starts_with("data")));
}

#[test]
fn runs_that_are_interrupted_leave_a_table_of_what_is_known() {
    let advise = ["advise", "workload.yaml", "--try", "--results", "out"];
    let scale = ["scale", "workload.yaml", "--results", "out", "--au", "5"];
    for (command, known, why) in [
        (&advise[..], "unchanged", "Stopped: the trials were interrupted"),
        (&scale, "one run", "the search was interrupted"),
    ] {
        let test = Test::with(LATENCY);
        let mut command = test.command(command);
        let command: &mut Command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let second_run = || {
            let folder = std::fs::read_dir(test.path("out")).ok()?.next()?.ok()?.path();
            folder.join("study.study/logs/2-run").exists().then_some(())
        };
        until("a second run", || second_run().is_some());
        signal("-INT", child.id());
        let answer = Answer::of(&child.wait_with_output().unwrap());
        assert_eq!(answer.code, 130, "{answer:?}");
        assert!(answer.stdout.contains(known) && answer.stdout.contains(why), "{answer:?}");
    }
}

/// A run removes its copy unless it is to be kept, also one that an earlier run kept.
#[test]
fn no_trial_removes_a_copy_that_is_kept() {
    let test = Test::with(LATENCY);
    test.run_json(&["reader.stage=copies", "reader.stage_keep=true", "--results", "first"]);
    let kept = std::fs::read_dir(test.path("copies")).unwrap().next().unwrap().unwrap().path();
    let change = "reader.stage=copies reader.read_threads=2";
    let more = ["--also", change, "--budget", "20s", "--json"];
    let answer = test.feedrate(&[&["advise", "workload.yaml", "--try"][..], &more].concat());
    let report = answer.json();
    let advice = report["advice"].as_array().unwrap();
    let of = advice.iter().find(|of| of["name"] == "asked").unwrap_or_else(|| panic!("{report}"));
    assert_eq!(of["outcome"], "not_tried", "{of}");
    assert!(of["reason"].as_str().unwrap().contains("already exists, and a run would"), "{of}");
    assert!(kept.join("stage.json").exists() && kept.join("train").exists());
}

#[test]
fn the_cheapest_setting_of_the_best_is_found_for_a_goal() {
    let test = Test::with(LATENCY);
    let trials = ["advise", "workload.yaml", "--try", "--goal", "throughput", "--budget", "60s"];
    let answer = test.feedrate(&[&trials[..], &["--json"]].concat());
    assert!([0, 4].contains(&answer.code), "{answer:?}");
    let report = answer.json();
    holds("trials", &report);
    assert_eq!(report["goal"], "throughput");
    let best = &report["best"];
    assert!(best[0].as_str().is_some_and(|key| key.starts_with("reader.")), "{report}");
    let advice = report["advice"].as_array().unwrap();
    assert!(advice.iter().any(|of| of["name"] == "setting"), "{report}");
    let chosen = advice.iter().find(|of| of["overrides"] == *best).unwrap();
    assert_eq!(chosen["outcome"], "helps", "{report}");
    // What was measured counts.
    let again = test.feedrate(&[&trials[..], &["--json"]].concat());
    assert!(again.stderr.contains("note: no run was made now"), "{again:?}");
    assert_eq!(again.json(), report);
}
