//! `feedrate advise`: advice from the record of a run, or from a new run of a workload.

use crate::harness::{TINY, Test};
use serde_json::{Value, json};

/// Each read waits 20 ms. There is one thread, and each file holds one sample.
const LATENCY: [&str; 5] = [
    "reader.requests=large",
    "storage.delay.read_seconds=0.02",
    "train.computation_time=0.01",
    "reader.read_threads=1",
    "train.epochs=1",
];

fn parse_json(stdout: &str) -> Value {
    serde_json::from_str(stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

#[test]
fn a_run_is_advised_from_its_record_and_a_workload_is_run_first() {
    let test = Test::with_workload(TINY);
    let run =
        test.feedrate(&[&["run", "workload.yaml", "--json", "--quiet"], &LATENCY[..]].concat());
    let dir = parse_json(&run.stdout)["run_dir"].as_str().unwrap().to_string();
    let output = parse_json(&test.feedrate(&["advise", &dir, "--json"]).stdout);
    assert_eq!((&output["schema"], &output["run_dir"]), (&json!("advise/2"), &json!(dir)));
    let run_advice: Vec<&Value> = output["advice"].as_array().unwrap().iter().collect();
    assert!((1..=5).contains(&run_advice.len()), "{output}");
    assert_eq!(run_advice[0]["name"], "read_threads", "{output}");
    // The run printed the same advice.
    let helps = parse_json(&run.stdout)["answer"]["helps"].clone();
    let names =
        |all: &[&Value]| all.iter().map(|advice| advice["name"].clone()).collect::<Vec<_>>();
    assert_eq!(names(&helps.as_array().unwrap().iter().collect::<Vec<_>>()), names(&run_advice));
    for advice in &run_advice {
        assert_eq!((&advice["tried"], &advice["outcome"]), (&Value::Null, &json!("not_tried")));
        let is_change = advice["overrides"].as_array().is_some_and(|all| !all.is_empty());
        assert_eq!(is_change, advice["command"].is_string(), "{advice}");
    }
    let text = test.feedrate(&["advise", &dir]).stdout;
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with("workload: ") && first.contains("storage-bound: one request of"),
        "{text}"
    );
    assert!(text.contains(run_advice[0]["command"].as_str().unwrap()), "{text}");
    assert_eq!(test.feedrate(&["advise", "results"]).stdout, text, "the newest run in the folder");
    test.feedrate(&["plan", "results"]).refuses(2, &["contains runs, but is not a run", &dir]);
    let new_run = [&["advise", "workload.yaml", "--json", "--quiet"], &LATENCY[..]].concat();
    let new_run = parse_json(&test.feedrate(&new_run).stdout);
    assert_eq!(new_run["advice"][0]["name"], "read_threads", "{new_run}");
    assert!(test.path(new_run["run_dir"].as_str().unwrap()).join("record.json").exists());
}

#[test]
fn the_advised_command_runs_and_raises_utilisation() {
    let test = Test::with_workload(TINY);
    let run =
        test.feedrate(&[&["run", "workload.yaml", "--json", "--quiet"], &LATENCY[..]].concat());
    let dir = parse_json(&run.stdout)["run_dir"].as_str().unwrap().to_string();
    let output = parse_json(&test.feedrate(&["advise", &dir, "--json"]).stdout);
    let command = output["advice"][0]["command"].as_str().unwrap();
    let words: Vec<&str> = command.split(' ').skip(1).chain(["--json", "--quiet"]).collect();
    let better = test.feedrate(&words);
    assert_eq!(better.code, 0, "{command}: {}", better.stderr);
    let au = |stdout: &str| parse_json(stdout)["au"]["all_steps_percent"].as_f64().unwrap();
    let [before, after] = [&run.stdout, &better.stdout].map(|stdout| au(stdout));
    assert!(before < after, "{command}: {before} %, then {after} %");
}

#[test]
fn a_fed_run_gets_no_advice() {
    let test = Test::with_workload(TINY);
    let fed = [&["advise", "workload.yaml", "--quiet", "metric.au=0.001"], &LATENCY[..]].concat();
    let fed = test.feedrate(&fed);
    assert_eq!(fed.code, 0, "{}", fed.stderr);
    assert!(
        fed.stdout.contains("Nothing is advised: the accelerators were fed."),
        "{}",
        fed.stdout
    );
}

#[test]
fn settings_of_a_finished_run_cannot_be_changed() {
    let test = Test::with_workload(TINY);
    let run = test.run_json(&[]);
    let dir = run["run_dir"].as_str().unwrap();
    test.feedrate(&["advise", dir, "reader.read_threads=4"]).refuses(2, &["finished run", "--set"]);
}
