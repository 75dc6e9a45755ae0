//! Loops that `feedrate.watch` of the Python module watched: what it leaves of each, and what the commands say of it. Needs `.venv`, as wheel.rs.

use crate::harness::{Answer, TINY, Test, venv_python};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

fn script(test: &Test, arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = root.join("tests/it/watched.py");
    let mut command = test.program(std::path::absolute(venv_python()).unwrap(), &[]);
    command.arg(script).args(arguments).env("PYTHONPATH", root.join("../../python/src"));
    for name in ["RANK", "WORLD_SIZE", "PMI_RANK", "SLURM_STEP_ID"] {
        command.env_remove(name);
    }
    command.output().unwrap()
}

/// One that comes to its end.
#[track_caller]
fn watch(test: &Test, arguments: &[&str]) {
    let output = script(test, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The folder of the one record of a name.
fn folder(test: &Test, name: &str) -> String {
    let mut runs = std::fs::read_dir(test.path("results").join(name)).unwrap();
    let run = runs.next().unwrap().unwrap().path();
    assert!(runs.next().is_none());
    run.display().to_string()
}

fn show(test: &Test, name: &str) -> (Answer, Value) {
    let run = folder(test, name);
    let json = test.feedrate(&["show", &run, "--json"]);
    assert_eq!(json.code, 0, "{}", json.stderr);
    (test.feedrate(&["show", &run]), json.json())
}

#[test]
fn each_loop_leaves_its_steps() {
    let test = Test::new();
    for name in ["odd", "often", "gpu", "worker", "behind", "forked", "starved", "whole"] {
        watch(&test, &[name]);
    }
    for name in ["between", "within", "forked", "fork"] {
        assert_eq!(show(&test, name).1["complete"], true, "{name}");
    }
}

#[test]
fn what_watching_does_not_know_is_said_of_no_run() {
    let test = Test::new();
    watch(&test, &["starved"]);
    let (page, json) = show(&test, "starved");
    let told = &page.stdout;
    assert!(told.starts_with("NO: ") && told.contains("input-bound\n"), "{told}");
    assert!(told.contains("% of the time is waiting") && told.contains("`watched` ("), "{told}");
    let is_said = |claim: &&&str| told.contains(**claim);
    let claims = ["storage-bound", "Would help", "nothing was read", " 0 B read", "barrier 0 s"];
    assert_eq!(claims.iter().find(is_said), None, "{told}");
    assert_eq!(json["verdict"]["name"], "input-bound");
    assert_eq!(
        json["doubts"].as_array().unwrap().iter().filter(|of| of["name"] == "watched").count(),
        1
    );
    let au = json["au"]["all_steps_percent"].as_f64().unwrap();
    assert!((5.0..40.0).contains(&au), "{au}");
    let samples = json["throughput"]["samples_per_second"]["whole"].as_f64().unwrap();
    assert!(100.0 < samples && samples < 600.0, "{samples}");
    assert_eq!(json["checkpoint"]["save"]["count"], 2);
    for path in [
        "/au/sustained_percent",
        "/stall/read_s",
        "/stall/open_s",
        "/time/barrier_s",
        "/bytes/logical",
        "/latency/read",
        "/throughput/nominal_bytes_per_second/whole",
        "/answer/wait",
        "/phases/0/delivered_bytes_per_second",
        "/answer/needed_bytes_per_second",
    ] {
        assert_eq!(json.pointer(path), Some(&Value::Null), "{path}");
    }
    assert_eq!(json.get("access"), None);

    let run = folder(&test, "starved");
    let predicted = test.feedrate(&["advise", &run, "--table", "-n", "4"]);
    predicted.refuses(2, &["a loop was watched", "hint: run a similar workload"]);
    let advice = test.feedrate(&["advise", &run]);
    assert_eq!(advice.code, 0, "{}", advice.stderr);
    assert!(advice.stdout.contains("Nothing is advised: a loop was watched"), "{}", advice.stdout);
    let advice = test.feedrate(&["advise", &run, "--json"]).json();
    assert_eq!(advice["advice"], serde_json::json!([]));
}

#[test]
fn watched_runs_are_compared_analyzed_and_reported() {
    let test = Test::new();
    watch(&test, &["starved"]);
    watch(&test, &["fed"]);
    let (page, json) = show(&test, "fed");
    assert!(page.stdout.starts_with("YES: "), "{}", page.stdout);
    assert_eq!(json["verdict"]["name"], "compute-bound");
    assert_eq!(
        json["throughput"]["samples_per_second"]["whole"],
        Value::Null,
        "nothing tells a batch"
    );

    let analyzed = test.feedrate(&["analyze", "results", "--json"]).json();
    let runs = analyzed["runs"].as_array().unwrap();
    let run = runs.iter().find(|run| run["workload"] == "starved").unwrap();
    assert_eq!((&run["epochs"], &run["unusable"]), (&serde_json::json!(2), &Value::Null));
    let (a, b) = (folder(&test, "starved"), folder(&test, "fed"));
    let compared = test.feedrate(&["compare", &a, &b]);
    // They differ in more than one thing.
    assert_eq!(compared.code, 4, "{}", compared.stderr);
    let is_of_both = |text: &str| compared.stdout.contains(text);
    assert!(
        is_of_both("au_all_steps_percent") && !is_of_both("prefetch_size"),
        "{}",
        compared.stdout
    );
    // Settings that watching does not tell are not known to differ.
    test.write("tiny.yaml", TINY);
    let emulated = test.feedrate(&["run", "tiny.yaml", "--run-dir", "emulated", "--quiet"]);
    assert_eq!(emulated.code, 0, "{}", emulated.stderr);
    let compared = test.feedrate(&["compare", &a, "emulated"]).stdout;
    let compared = compared.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        compared.contains("Differs in model") && !compared.contains("Differs in dataset"),
        "{compared}"
    );
    let report = test.feedrate(&["report", "results", "-o", "out.html"]);
    assert_eq!(report.code, 0, "{}", report.stderr);
}

#[test]
fn what_was_broken_off_is_told_as_incomplete() {
    let test = Test::new();
    for (name, head, why) in [
        (
            "killed",
            "UNKNOWN: incomplete, steps of 1 epoch are recorded",
            "it was killed, or is still going on",
        ),
        ("interrupted", "UNKNOWN: interrupted, steps of 1 epoch are recorded", "interrupted"),
    ] {
        assert!(!script(&test, &[name]).status.success());
        let (page, json) = show(&test, name);
        assert!(page.stdout.starts_with(head), "{}", page.stdout);
        assert!(page.stdout.contains(why), "{}", page.stdout);
        assert_eq!(
            (&json["complete"], &json["verdict"]["name"]),
            (&Value::Bool(false), &"invalid".into())
        );
    }
}

#[test]
fn ranks_write_one_record() {
    let test = Test::new();
    watch(&test, &["ranks", "both"]);
    let (_, json) = show(&test, "both");
    assert_eq!(
        (&json["accelerators"], &json["epochs"], &json["complete"]),
        (&2.into(), &2.into(), &true.into())
    );
    let left =
        std::fs::read_dir(folder(&test, "both")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(
        left.into_iter().all(|name| !name.to_string_lossy().contains("rank")),
        "parts are put together"
    );
    watch(&test, &["ranks", "lost"]);
    let (page, json) = show(&test, "lost");
    assert_eq!(json["complete"], false);
    assert!(page.stdout.contains("rank 1 did not finish or is still running"), "{}", page.stdout);
}
