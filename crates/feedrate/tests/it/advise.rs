//! What would help a run: from its record, or from a run of the workload.

use crate::harness::{TINY, Test};
use serde_json::{Value, json};

/// Reads that wait 20 ms each, one thread, a sample a file.
const LATENCY: [&str; 4] = [
    "storage.delay.read_seconds=0.02",
    "train.computation_time=0.01",
    "reader.read_threads=1",
    "train.epochs=1",
];

fn json_of(stdout: &str) -> Value {
    serde_json::from_str(stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

#[test]
fn a_run_is_advised_from_its_record_and_a_workload_is_run_first() {
    let test = Test::with(TINY);
    let run =
        test.feedrate(&[&["run", "workload.yaml", "--json", "--quiet"], &LATENCY[..]].concat());
    let dir = json_of(&run.stdout)["run_dir"].as_str().unwrap().to_string();
    let told = json_of(&test.feedrate(&["advise", &dir, "--json"]).stdout);
    assert_eq!((&told["schema"], &told["run_dir"]), (&json!("advise/2"), &json!(dir)));
    let of_run: Vec<&Value> = told["advice"].as_array().unwrap().iter().collect();
    assert!((1..=5).contains(&of_run.len()), "{told}");
    assert_eq!(of_run[0]["name"], "read_threads", "{told}");
    // The run itself said the same.
    let helps = json_of(&run.stdout)["answer"]["helps"].clone();
    let names = |all: &[&Value]| all.iter().map(|one| one["name"].clone()).collect::<Vec<_>>();
    assert_eq!(names(&helps.as_array().unwrap().iter().collect::<Vec<_>>()), names(&of_run));
    for one in &of_run {
        assert_eq!((&one["tried"], &one["outcome"]), (&Value::Null, &json!("not_tried")));
        let is_change = one["overrides"].as_array().is_some_and(|all| !all.is_empty());
        assert_eq!(is_change, one["command"].is_string(), "{one}");
    }
    let text = test.feedrate(&["advise", &dir]).stdout;
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with("workload: ") && first.contains("storage-bound: one request of"),
        "{text}"
    );
    assert!(text.contains(of_run[0]["command"].as_str().unwrap()), "{text}");
    assert_eq!(test.feedrate(&["advise", "results"]).stdout, text, "the newest run below it");
    test.feedrate(&["plan", "results"]).refuses(2, &["contains runs, but is not a run", &dir]);
    let own = [&["advise", "workload.yaml", "--json", "--quiet"], &LATENCY[..]].concat();
    let own = json_of(&test.feedrate(&own).stdout);
    assert_eq!(own["advice"][0]["name"], "read_threads", "{own}");
    assert!(test.path(own["run_dir"].as_str().unwrap()).join("record.json").exists());
}

/// Each command is one that `plan` takes, too.
#[test]
fn what_is_advised_can_be_run() {
    let test = Test::with(TINY);
    let run =
        test.feedrate(&[&["run", "workload.yaml", "--json", "--quiet"], &LATENCY[..]].concat());
    let dir = json_of(&run.stdout)["run_dir"].as_str().unwrap().to_string();
    let told = json_of(&test.feedrate(&["advise", &dir, "--json"]).stdout);
    let command = told["advice"][0]["command"].as_str().unwrap();
    let words: Vec<&str> = command.split(' ').skip(1).chain(["--json", "--quiet"]).collect();
    let better = test.feedrate(&words);
    assert_eq!(better.code, 0, "{command}: {}", better.stderr);
    let au = |stdout: &str| json_of(stdout)["au"]["all_steps_percent"].as_f64().unwrap();
    let [before, after] = [&run.stdout, &better.stdout].map(|stdout| au(stdout));
    assert!(before < after, "{command}: {before} %, then {after} %");
}

#[test]
fn a_fed_run_is_advised_nothing() {
    let test = Test::with(TINY);
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
fn a_run_that_is_over_takes_no_changes() {
    let test = Test::with(TINY);
    let run = test.run_json(&[]);
    let dir = run["run_dir"].as_str().unwrap();
    test.feedrate(&["advise", dir, "reader.read_threads=4"]).refuses(2, &["finished run", "--set"]);
}
