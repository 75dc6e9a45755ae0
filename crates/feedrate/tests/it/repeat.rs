//! `feedrate run --repeat`: several runs in a folder, and the answer by their means.

use crate::harness::{TINY, Test};
use crate::schema::assert_matches_schema;
use serde_json::Value;

/// Runs without a device, whose target is reached on a busy machine too.
const MEMORY: [&str; 4] = [
    "storage.storage_type=memory",
    "train.computation_time=0.02",
    "train.epochs=1",
    "metric.au=0.001",
];

fn repeat(test: &Test, more: &[&str]) -> crate::harness::Answer {
    test.feedrate(&[&["run", "workload.yaml"], &MEMORY[..], more].concat())
}

fn numbers(values: &Value) -> Vec<f64> {
    values.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

#[test]
fn the_mean_of_the_runs_decides_and_warm_ups_do_not_count() {
    let test = Test::with_workload(TINY);
    let answer =
        repeat(&test, &["--repeat", "3", "--warmup", "1", "--fail-below-au", "1.5", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let page = answer.json();
    assert_matches_schema("repeat", &page);
    assert_eq!((&page["warm_ups"], &page["answer"]["runs"]), (&1.into(), &3.into()));
    let runs = page["runs"].as_array().unwrap();
    let values = page["answer"]["values"].as_array().unwrap();
    let find = |name: &str| values.iter().find(|value| value["metric"] == name).unwrap();
    let au = find(page["answer"]["decides"].as_str().unwrap());
    let au_percents: Vec<f64> =
        runs.iter().map(|run| run["au_percent"].as_f64().unwrap()).collect();
    assert_eq!(numbers(&au["values"]), au_percents);
    for (au, number) in au_percents.iter().zip(1..) {
        let line = format!("run {number} of 3: AU {au:.1} %, ");
        assert!(answer.stderr.contains(&line), "{line} in {}", answer.stderr);
    }
    let mean = au_percents.iter().sum::<f64>() / 3.0;
    assert!((au["mean"].as_f64().unwrap() - mean).abs() < 1e-9, "{au}");
    let [low, high] = ["low", "high"].map(|end| au[end].as_f64().unwrap());
    assert!(low <= mean && mean <= high, "{au}");
    let gate = &page["gates"][0];
    assert_eq!((&gate["is_met"], &gate["measured"]), (&true.into(), &au["mean"]));

    let folder = page["results"].as_str().unwrap();
    assert_eq!(test.files_below(folder, "record.json").len(), 4);
    let analyzed = test.feedrate(&["analyze", folder, "--json"]).json();
    let put_aside = analyzed["runs"].as_array().unwrap().iter().map(|run| &run["put_aside"]);
    assert_eq!(put_aside.filter(|aside| **aside == "warm-up").count(), 1, "{analyzed}");
    assert_eq!(test.feedrate(&["show", folder, "--json"]).json()["answer"], page["answer"]);
    test.feedrate(&["show", folder, "--fail-below-au", "1.5"])
        .refuses(2, &["`--fail-on` need", "the result of several runs"]);
    test.feedrate(&["show", "results", "--fail-on", "warning"])
        .refuses(2, &["`results` is a folder with 4 runs", "hint: give the folder of one"]);
    assert_eq!(test.feedrate(&["report", folder, "-o", "report.md"]).code, 0);
    // Another set of runs gets another folder, and is compared without the warm-up.
    let other = repeat(&test, &["--repeat", "2"]);
    assert_eq!(other.code, 0, "{}", other.stderr);
    let first = other.stdout.lines().next().unwrap();
    assert!(first.contains(" 2 runs: ") && first.contains(" ± "), "{}", other.stdout);
    let folders = test.files_below("results", "conclusion.json");
    let [a, b] = [0, 1].map(|index| folders[index].parent().unwrap().display().to_string());
    let compared = test.feedrate(&["compare", &a, &b, "--json"]).json();
    let counts = ["a", "b"].map(|side| compared["findings"][0][side]["runs"].as_u64().unwrap());
    assert_eq!(counts, [3, 2], "{compared}");
}

#[test]
fn gates_of_the_workload_judge_the_mean_and_not_each_run() {
    let test = Test::with_workload(&format!("{TINY}expect:\n  samples_per_second: 900000000\n"));
    let answer = repeat(&test, &["--repeat", "2", "--junit", "junit.xml", "--json"]);
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    assert_eq!(answer.stderr.matches("unmet: samples_per_second is ").count(), 1);
    assert_eq!(answer.json()["gates"][0]["is_met"], false);
    let junit = std::fs::read_to_string(test.path("junit.xml")).unwrap();
    assert!(junit.contains("tests=\"2\" failures=\"1\" errors=\"0\""), "{junit}");
    assert!(junit.contains("<testcase classname=\"workload\" name=\"run\" time=\""), "{junit}");
}

#[test]
fn what_cannot_be_repeated_is_refused() {
    let test = Test::with_workload(TINY);
    repeat(&test, &["--repeat", "0"]).refuses(2, &["smallest number is 1"]);
    repeat(&test, &["--warmup", "1"]).refuses(2, &["--repeat"]);
    let secret = "storage.storage_options.secret_access_key=hidden";
    repeat(&test, &["--repeat", "2", secret]).refuses(2, &["may be a secret", "environment"]);
    std::fs::create_dir(test.path("photos")).unwrap();
    test.feedrate(&["run", "--data", "photos", "--repeat", "2"])
        .refuses(2, &["`--repeat` needs a workload", "--write-yaml"]);
    let mut ranks = test.command(&["run", "workload.yaml", "--repeat", "2"]);
    ranks.env("OMPI_COMM_WORLD_SIZE", "2").env("OMPI_COMM_WORLD_RANK", "0");
    let answer = crate::harness::Answer::from_output(&ranks.output().unwrap());
    answer.refuses(2, &["several processes were started", "feedrate study run --launch mpirun"]);
}
