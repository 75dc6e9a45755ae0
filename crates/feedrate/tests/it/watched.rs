//! Records of loops that `feedrate.watch` of the Python module watched, and the output of commands on them. The tests need `.venv`, which
//! `cargo xtask setup` installs.

use crate::harness::{Answer, TINY, Test, venv_python};
use serde_json::Value;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Output;

fn script(test: &Test, arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = root.join("tests/it/watched.py");
    let mut command = test.program(std::path::absolute(venv_python()).unwrap(), &[]);
    let programs = Path::new(env!("CARGO_BIN_EXE_feedrate")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    command.arg(script).args(arguments).env("PATH", path);
    command.env("PYTHONPATH", root.join("../../python/src"));
    for name in ["RANK", "WORLD_SIZE", "PMI_RANK", "SLURM_STEP_ID"] {
        command.env_remove(name);
    }
    command.output().unwrap()
}

/// Runs a function of watched.py, which must succeed.
#[track_caller]
fn watch(test: &Test, arguments: &[&str]) {
    let output = script(test, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The folder of the only record with this name.
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
fn each_loop_leaves_a_record_of_its_steps() {
    let test = Test::new();
    for name in [
        "unusual_loops",
        "frequent_writes",
        "gpu",
        "worker",
        "late_checkpoints",
        "forked",
        "starved",
        "check_starved",
        "reopened",
    ] {
        watch(&test, &[name]);
    }
    for name in ["between", "within", "forked", "fork"] {
        assert_eq!(show(&test, name).1["complete"], true, "{name}");
    }
}

#[test]
fn values_that_watching_cannot_measure_are_null_and_not_claimed() {
    let test = Test::new();
    watch(&test, &["starved"]);
    let (page, json) = show(&test, "starved");
    let text = &page.stdout;
    assert!(text.lines().next().unwrap().contains("NO: "), "{text}");
    assert!(text.contains("input-bound\n"), "{text}");
    assert!(text.contains("I/O is "), "{text}");
    // A busy machine may cause further notes.
    let notes = text.lines().find(|line| line.starts_with("Notes: "));
    assert!(notes.is_some_and(|line| line.contains("watched")), "{text}");
    let is_claimed = |claim: &&&str| text.contains(**claim);
    let claims = ["storage-bound", "Would help", "nothing was read", " 0 B read", "barrier 0 s"];
    assert_eq!(claims.iter().find(is_claimed), None, "{text}");
    assert_eq!(json["verdict"]["name"], "input-bound");
    assert_eq!(
        json["doubts"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|doubt| doubt["name"] == "watched")
            .count(),
        1
    );
    let au = json["au"]["all_steps_percent"].as_f64().unwrap();
    assert!((5.0..60.0).contains(&au), "{au}");
    let samples = json["throughput"]["samples_per_second"]["whole"].as_f64().unwrap();
    assert!(10.0 < samples && samples < 600.0, "{samples}");
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

/// Whether I/O is the problem. Other programs may keep the cores and the device busy, so these only rule an answer out.
#[test]
fn a_loop_that_waits_for_no_device_is_not_held_up_by_it() {
    let test = Test::new();
    watch(&test, &["computing"]);
    watch(&test, &["starved"]);
    watch(&test, &["reading"]);
    for name in ["computing", "workers", "starved"] {
        let (page, json) = show(&test, name);
        let io = &json["answer"]["watched_io"];
        let kind = io["kind"].as_str().unwrap();
        assert!(["no", "unknown"].contains(&kind), "{name}: {io}");
        assert!(page.stdout.contains("I/O is "), "{name}: {}", page.stdout);
        let busy = &io["loader_busy_percent"];
        assert_eq!(busy.is_null(), name != "workers", "{name}: {io}");
    }
    let io = &show(&test, "reading").1["answer"]["watched_io"];
    assert!(io["waited_percent"].as_f64() > Some(50.0), "{io}");
    assert_ne!(io["reason"], "loader-busy", "{io}");
}

#[test]
fn watched_runs_are_compared_analyzed_and_reported() {
    let test = Test::new();
    watch(&test, &["starved"]);
    watch(&test, &["fed"]);
    let (page, json) = show(&test, "fed");
    assert!(page.stdout.lines().next().unwrap().contains("YES: "), "{}", page.stdout);
    assert_eq!(json["verdict"]["name"], "compute-bound");
    assert!(!page.stdout.contains("watch_not_closed"), "{}", page.stdout);
    assert_eq!(
        json["throughput"]["samples_per_second"]["whole"],
        Value::Null,
        "the batch size is unknown"
    );

    let analyzed = test.feedrate(&["analyze", "results", "--json"]).json();
    let runs = analyzed["runs"].as_array().unwrap();
    let run = runs.iter().find(|run| run["workload"] == "starved").unwrap();
    assert_eq!((&run["epochs"], &run["unusable"]), (&serde_json::json!(2), &Value::Null));
    let (a, b) = (folder(&test, "starved"), folder(&test, "fed"));
    let compared = test.feedrate(&["compare", &a, &b]);
    // The runs differ in more than one setting.
    assert_eq!(compared.code, 4, "{}", compared.stderr);
    let prints = |text: &str| compared.stdout.contains(text);
    assert!(prints("au_all_steps_percent") && !prints("prefetch_size"), "{}", compared.stdout);
    // Settings that are unknown for a watched loop are not listed as differences.
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

/// Between two epochs and after the last one, only the process knows whether the loop goes on, so a doubt remains if it is killed there.
#[test]
fn an_ended_loop_is_complete_while_its_process_is_alive() {
    let test = Test::new();
    let output = script(&test, &["ended"]);
    let killed_itself = output.status.signal() == Some(9);
    assert!(killed_itself, "{}", String::from_utf8_lossy(&output.stderr));
    let (page, json) = show(&test, "ended");
    assert_eq!((&json["complete"], &json["epochs"]), (&true.into(), &4.into()));
    // Each epoch computes for 16 of 540 ns outside of its checkpoints.
    let au = json["au"]["all_steps_percent"].as_f64().unwrap();
    assert!((au - 100.0 * 16.0 / 540.0).abs() < 1e-9, "{au}");
    assert!(page.stdout.starts_with("NO: "), "{}", page.stdout);
    let doubt = "the record ends after 4 epochs, and its process has not closed it: it was killed, or is still running";
    assert!(
        page.stdout.contains("`watch_not_closed` (warning)") && page.stdout.contains(doubt),
        "{}",
        page.stdout
    );
}

#[test]
fn pandas_reads_watched_loops() {
    let test = Test::new();
    watch(&test, &["starved"]);
    watch(&test, &["frames"]);
}

#[test]
fn killed_and_interrupted_loops_are_incomplete() {
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
fn several_ranks_write_one_record() {
    let test = Test::new();
    watch(&test, &["ranks", "both"]);
    let (_, json) = show(&test, "both");
    assert_eq!(
        (&json["accelerators"], &json["epochs"], &json["complete"]),
        (&2.into(), &2.into(), &true.into())
    );
    assert!(!json["doubts"].to_string().contains("watch_not_closed"), "{}", json["doubts"]);
    let entries =
        std::fs::read_dir(folder(&test, "both")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(
        entries.into_iter().all(|name| !name.to_string_lossy().contains("rank")),
        "the files of ranks are merged"
    );
    watch(&test, &["ranks", "alive"]);
    watch(&test, &["ranks", "lost"]);
    let (page, json) = show(&test, "lost");
    assert_eq!(json["complete"], false);
    assert!(page.stdout.contains("rank 1 did not finish or is still running"), "{}", page.stdout);
}
