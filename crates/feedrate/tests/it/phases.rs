//! The timeline of a run, and its phases: epochs, evaluations, and before, during and after checkpoints.

use crate::harness::{Answer, TINY, Test};
use serde_json::Value;
use std::process::Command;

/// Checkpoints of several MB, so that their write times can be measured.
const CHECKPOINTS: [&str; 4] = [
    "workflow.checkpoint=true",
    "model.model_size=8388608",
    "checkpoint.checkpoint_after_epoch=2",
    "checkpoint.epochs_between_checkpoints=2",
];

fn read(test: &Test, summary: &Value, name: &str) -> String {
    let path = test.path(summary["run_dir"].as_str().unwrap()).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn phases_named<'s>(summary: &'s Value, name: &str) -> Vec<&'s Value> {
    let phases = summary["phases"].as_array().unwrap();
    phases.iter().filter(|phase| phase["phase"] == name).collect()
}

#[test]
fn checkpoints_and_evaluations_are_separate_phases() {
    let test = Test::with_workload(TINY);
    let more = [
        "train.epochs=5",
        "train.computation_time=0.005",
        "workflow.evaluation=true",
        "dataset.num_files_eval=4",
    ];
    let summary = test.run_json(&[&CHECKPOINTS[..], &more].concat());
    let epochs: Vec<&Value> =
        phases_named(&summary, "checkpoint").iter().map(|phase| &phase["epoch"]).collect();
    assert_eq!(epochs, [2, 4]);
    assert_eq!(
        (phases_named(&summary, "epoch").len(), phases_named(&summary, "evaluation").len()),
        (5, 5)
    );
    for phase in phases_named(&summary, "checkpoint") {
        assert!(8_388_608 <= phase["written_bytes"].as_u64().unwrap(), "{phase}");
        assert!(phase["au_percent"].is_null() && phase["steps"] == 0, "{phase}");
    }
    for name in ["before_checkpoint", "after_checkpoint"] {
        assert_eq!(phases_named(&summary, name).len(), 2);
        assert!(phases_named(&summary, name).iter().all(|phase| phase["stall_share"].is_number()));
    }
    let evaluation = phases_named(&summary, "evaluation")[0];
    assert!(evaluation["delivered_bytes_per_second"].as_f64().unwrap() > 0.0);
    let timeline = read(&test, &summary, "timeline.csv");
    let rows: Vec<Vec<&str>> = timeline.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|title| *title == name).unwrap();
    let sum = |name: &str, during: Option<&str>| -> u64 {
        let rows = rows[1..].iter().filter(|row| during.is_none_or(|d| row[column("during")] == d));
        rows.map(|row| row[column(name)].parse::<u64>().unwrap()).sum()
    };
    assert!(2 * 8_388_608 <= sum("written_bytes", Some("checkpoint")), "{timeline}");
    let read_bytes = summary["bytes"]["logical"].as_u64().unwrap()
        + summary["evaluation"]["bytes"]["logical"].as_u64().unwrap();
    assert_eq!(sum("read_bytes", None), read_bytes);
    assert!(sum("operations", None) > 0);
    let phases = read(&test, &summary, "phases.csv");
    assert_eq!(phases.lines().count(), 1 + summary["phases"].as_array().unwrap().len());
}

#[test]
fn a_timeline_ends_after_the_last_checkpoint_in_the_background() {
    let test = Test::with_workload(TINY);
    let summary = test.run_json(&[
        "workflow.checkpoint=true",
        "model.model_size=134217728",
        "train.epochs=1",
        "checkpoint.asynchronous=true",
    ]);
    let checkpoint = phases_named(&summary, "checkpoint")[0];
    // Bytes of a timeline sample at the edge of the phase may count in the next phase.
    assert!(50_000_000 <= checkpoint["written_bytes"].as_u64().unwrap(), "{checkpoint}");
    let end_s = |row: &str| row.split(',').nth(1).unwrap().parse::<f64>().unwrap();
    let sampled_s = end_s(read(&test, &summary, "timeline.csv").lines().last().unwrap());
    let written_s = ["start_s", "duration_s"].map(|key| checkpoint[key].as_f64().unwrap());
    assert!(written_s.iter().sum::<f64>() <= sampled_s, "{checkpoint} {sampled_s}");
}

#[test]
fn details_list_phases_if_there_are_more_than_epochs() {
    let test = Test::with_workload(TINY);
    let plain = test.feedrate(&["run", "workload.yaml", "--quiet", "--details"]).stdout;
    assert!(plain.contains("AU windowed") && !plain.contains("Phase"), "{plain}");
    let arguments = [&["run", "workload.yaml", "--quiet", "--details"], &CHECKPOINTS[..]].concat();
    let shown = test.feedrate(&arguments).stdout;
    for word in ["Phase", "before checkpoint", "Written"] {
        assert!(shown.contains(word), "no `{word}` in: {shown}");
    }
}

#[test]
fn a_timeline_can_be_switched_off() {
    let test = Test::with_workload(TINY);
    let summary = test.run_json(&["output.timeline=False"]);
    let record: Value = serde_json::from_str(&read(&test, &summary, "record.json")).unwrap();
    assert!(record.get("timeline").is_none());
    let folder = test.path(summary["run_dir"].as_str().unwrap());
    assert!(!folder.join("timeline.csv").exists() && folder.join("phases.csv").exists());
    assert!(summary["phases"][0]["written_bytes"].is_null());
    assert!(summary["phases"][0]["delivered_bytes_per_second"].is_number());
}

#[test]
fn gpus_are_sampled_if_nvidias_library_is_installed() {
    let test = Test::with_workload(TINY);
    let library = test.path("libnvidia-ml.so.1");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/nvml_stub.c");
    let compiled =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
    assert!(compiled.unwrap().success(), "install a C compiler");
    // Long enough for loading the library and taking samples.
    let arguments = ["run", "workload.yaml", "--json", "train.computation_time=0.3"];
    let mut command = test.command(&arguments);
    command.env("LD_LIBRARY_PATH", library.parent().unwrap());
    let answer = Answer::from_output(&command.output().unwrap());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let mut system = test.command(&["system"]);
    system.env("LD_LIBRARY_PATH", library.parent().unwrap());
    let shown = Answer::from_output(&system.output().unwrap()).stdout;
    assert!(shown.contains("1 × Stub 100, 120 GB; 1 × Stub 1, unknown memory"), "{shown}");
    let summary: Value = serde_json::from_str(&answer.stdout).unwrap();
    let gpus = &phases_named(&summary, "epoch")[1]["gpus"];
    assert_eq!(gpus[0]["utilisation_percent"], 42.0);
    assert_eq!(
        (&gpus[0]["memory_bytes"], &gpus[0]["power_w"]),
        (&8589934592.0.into(), &350.5.into())
    );
    assert!(gpus[1]["utilisation_percent"].is_null());
    let record: Value = serde_json::from_str(&read(&test, &summary, "record.json")).unwrap();
    assert_eq!(record["timeline"]["gpus"][1]["name"], "Stub 1");
    assert!(read(&test, &summary, "timeline.csv").contains(",gpu1_power_w\n"));
}
