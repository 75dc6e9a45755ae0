//! `--junit` and `--openmetrics`, read by the parsers of junitparser and prometheus-client.

use crate::harness::{Answer, TINY, Test, send_signal, venv_python, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;

/// Runs without a device, whose target is reached on a busy machine too.
const MEMORY: [&str; 3] =
    ["storage.storage_type=memory", "train.computation_time=0.05", "metric.au=0.001"];
const FILES: [&str; 4] = ["--junit", "junit.xml", "--openmetrics", "metrics.txt"];

/// The test cases and metrics in the two files, as their parsers read them.
#[track_caller]
fn read(test: &Test) -> Value {
    let python = venv_python();
    let read = test.python(&python, "export.py", ["junit.xml", "metrics.txt"]);
    serde_json::from_slice(&read).unwrap()
}

/// Names and results of the cases.
fn cases(read: &Value) -> Vec<(String, Option<String>)> {
    let cases = read["cases"].as_array().unwrap().iter();
    cases
        .map(|case| {
            let result = case["results"][0][0].as_str().map(String::from);
            (case["name"].as_str().unwrap().to_string(), result)
        })
        .collect()
}

/// The value of the only sample with this name and these labels.
#[track_caller]
fn sample(read: &Value, name: &str, labels: &[(&str, &str)]) -> f64 {
    let has_labels =
        |sample: &&Value| labels.iter().all(|(label, value)| sample["labels"][label] == *value);
    let samples = read["samples"].as_array().unwrap().iter();
    let found: Vec<&Value> =
        samples.filter(|sample| sample["name"] == name).filter(has_labels).collect();
    assert_eq!(found.len(), 1, "{name} {labels:?} in {read}");
    found[0]["value"].as_f64().unwrap()
}

#[test]
fn gates_are_test_cases_and_metrics_have_units_and_labels() {
    let test = Test::with_workload(TINY);
    // Earlier results are replaced, and other files are not.
    test.write("junit.xml", "<?xml version=\"1.0\"?>");
    for option in ["--junit", "--openmetrics"] {
        test.feedrate(&["run", "workload.yaml", option, "workload.yaml"])
            .refuses(2, &[option, "exists with other content"]);
    }
    let gates = [
        "expect.au=1.5",
        "expect.bytes_per_second=900TB/s",
        "expect.samples_per_second=0.001",
        "--fail-on",
        "invalid",
        "--json",
    ];
    let answer = test.feedrate(&[&["run", "workload.yaml"], &MEMORY[..], &gates, &FILES].concat());
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    assert!(
        answer.stderr.contains("`expect.bytes_per_second` requires at least 900"),
        "{}",
        answer.stderr
    );
    let page = answer.json();
    let read = read(&test);
    let passed = |name: &str| (name.to_string(), None);
    let expected = [
        passed("run"),
        passed("au"),
        ("bytes_per_second".to_string(), Some("Failure".to_string())),
        passed("samples_per_second"),
        passed("invalid"),
    ];
    assert_eq!(cases(&read), expected, "{read}");
    let is_met: Vec<&Value> =
        page["gates"].as_array().unwrap().iter().map(|gate| &gate["is_met"]).collect();
    assert_eq!(is_met, [true, false, true, true]);

    let labels = [("workload", "workload"), ("accelerators", "1")];
    let au = sample(&read, "feedrate_au_all_steps_percent", &labels);
    assert_eq!(au, page["au"]["all_steps_percent"].as_f64().unwrap());
    let rate = sample(&read, "feedrate_delivered_bytes_per_second", &labels);
    assert_eq!(rate, page["throughput"]["delivered_bytes_per_second"]["whole"].as_f64().unwrap());
    let p99 = sample(&read, "feedrate_read_latency_seconds", &[("quantile", "0.99")]);
    assert_eq!(p99, page["latency"]["read"]["p99_s"].as_f64().unwrap());
    sample(&read, "feedrate_stall_percent", &labels);
    let unmet = [("gate", "bytes_per_second"), ("feedrate_gate", "unmet")];
    assert_eq!(sample(&read, "feedrate_gate", &unmet), 1.0);
    let host = read["samples"][0]["labels"]["host"].as_str().unwrap();
    assert!(!host.is_empty());
    let family = |name: &str| &read["families"][name];
    let latency = family("feedrate_read_latency_seconds");
    assert_eq!((&latency["type"], &latency["unit"]), (&json!("summary"), &json!("seconds")));
    assert_eq!(family("feedrate_delivered_bytes_per_second")["unit"], "bytes_per_second");
    let families = read["families"].as_object().unwrap();
    assert!(families.values().all(|family| family["help"] != ""), "{families:?}");
}

#[test]
fn a_gate_without_evidence_is_an_error() {
    let test = Test::with_workload(TINY);
    // Without compute time there is no utilisation.
    let answer = test.feedrate(&[&["run", "workload.yaml", "expect.au=90"], &FILES[..]].concat());
    assert_eq!(answer.code, 4, "{}", answer.stderr);
    let read = read(&test);
    let error = ("au".to_string(), Some("Error".to_string()));
    assert_eq!(cases(&read), [("run".to_string(), None), error]);
    let undecided = [("gate", "au"), ("feedrate_gate", "undecided")];
    assert_eq!(sample(&read, "feedrate_gate", &undecided), 1.0);
    let samples = read["samples"].as_array().unwrap();
    assert!(samples.iter().all(|sample| sample["name"] != "feedrate_au_sustained_percent"));
}

#[test]
fn a_failed_command_leaves_no_earlier_result() {
    let test = Test::with_workload(TINY);
    let passing = [&["run", "workload.yaml", "expect.au=1.5"], &MEMORY[..], &FILES].concat();
    let check = |words: &[&str], code: i32, suite: &str, kind: &str| {
        let passed = test.feedrate(&passing);
        assert_eq!(passed.code, 0, "{}", passed.stderr);
        assert!(passed.stderr.contains("gates: 1 met"), "{}", passed.stderr);
        let answer = test.feedrate(&[words, &FILES].concat());
        assert_eq!(answer.code, code, "{words:?}: {}", answer.stderr);
        let read = read(&test);
        let [(_, Some(result))] = &cases(&read)[..] else { panic!("{words:?}: {read}") };
        assert_eq!((result.as_str(), &read["samples"]), ("Error", &json!([])), "{words:?}");
        let junit = fs::read_to_string(test.path("junit.xml")).unwrap();
        assert!(junit.contains(&format!("<testsuite name=\"{suite}\"")), "{junit}");
        assert!(junit.contains(&format!("type=\"{kind}\"")), "{junit}");
        assert!(!junit.contains("message=\"error: ") && !junit.contains("\\n"), "{junit}");
    };
    let run = ["run", "workload.yaml"];
    let suite = "feedrate run workload";
    check(&[&run[..], &["expect.au=0.9"]].concat(), 2, suite, "usage");
    check(&[&run[..], &["--data", "nowhere"]].concat(), 2, suite, "usage");
    check(&["run", "nothing.yaml"], 2, "feedrate run nothing", "usage");
    check(&["scale", "workload.yaml", "expect.au=0.9"], 2, "feedrate scale workload", "usage");
    check(&["compare", "results", "nowhere"], 2, "feedrate compare", "usage");
    check(&["study", "run", "nothing.csv"], 2, "feedrate study run", "usage");
    check(&[&run[..], &["--acelerators", "2"]].concat(), 2, "feedrate run", "usage");
    check(&[&run[..], &["--fail-below-au", "900"]].concat(), 2, "feedrate run", "usage");
}

#[test]
fn one_file_for_two_texts_is_refused() {
    let test = Test::with_workload(TINY);
    for (junit, openmetrics) in [("same", "same"), ("same", "./same")] {
        let words = ["run", "workload.yaml", "--junit", junit, "--openmetrics", openmetrics];
        test.feedrate(&words).refuses(2, &["are both `", "hint: give different files"]);
    }
    assert!(!test.path("same").exists() && !test.path("results").exists());
}

#[test]
fn an_unfinished_command_has_an_error_until_its_end() {
    let test = Test::with_workload(TINY);
    let long = ["train.epochs=1000", "--repeat", "2", "--quiet"];
    let words = [&["run", "workload.yaml"], &MEMORY[..], &long, &FILES].concat();
    test.write("junit.xml", "<?xml version=\"1.0\"?>");
    let child = test.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.unwrap();
    let junit = || fs::read_to_string(test.path("junit.xml")).unwrap_or_default();
    wait_until("a running repetition", || !test.files_below("results", "record.json").is_empty());
    assert!(junit().contains("type=\"unfinished\""), "{}", junit());
    send_signal("-TERM", child.id());
    let answer = Answer::from_output(&child.wait_with_output().unwrap());
    answer.refuses(130, &["are in `results/repeat-workload-"]);
    assert!(junit().contains("type=\"interrupted\""), "{}", junit());
    assert_eq!(read(&test)["samples"], json!([]));
}

#[test]
fn files_that_cannot_be_written_are_refused_before_the_work() {
    let test = Test::with_workload(TINY);
    for file in ["no/junit.xml", "/proc/junit.xml"] {
        test.feedrate(&["run", "workload.yaml", "--junit", file])
            .refuses(2, &[file, "existing folders"]);
    }
    assert!(!test.path("results").exists() && !test.path("no").exists());
    // A pipe gets only the result.
    let words = ["run", "workload.yaml", "--quiet", "--junit", "/dev/stderr"];
    let answer = test.feedrate(&[&words[..], &MEMORY].concat());
    assert_eq!(answer.stderr.matches("<?xml").count(), 1, "{}", answer.stderr);
}

#[test]
fn a_study_has_cases_for_rows_and_gates_of_its_experiments() {
    let test = Test::with_workload(&format!("{TINY}expect:\n  samples_per_second: 900000000\n"));
    let overrides = MEMORY.join(" ");
    test.write(
        "study.csv",
        format!(
            "model,epochs,processes,overrides,run,replicate\nworkload.yaml,1,1,{overrides},N,1\n\
             workload.yaml,1,1,{overrides},N,2\nworkload.yaml,1,2,{overrides},N,1\n"
        ),
    );
    let run = |more: &[&str]| {
        test.feedrate(&[&["study", "run", "study.csv", "--json"], more, &FILES].concat())
    };
    let answer = run(&["--limit", "2"]);
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    let read_first = read(&test);
    let gate = ("samples_per_second".to_string(), Some("Failure".to_string()));
    let run_case = |result: Option<&str>| ("run".to_string(), result.map(String::from));
    let expected = [run_case(None), run_case(None), run_case(Some("Skipped")), gate.clone()];
    assert_eq!(cases(&read_first), expected, "{read_first}");
    assert_eq!(sample(&read_first, "feedrate_runs", &[("accelerators", "1")]), 2.0);
    let answer = run(&[]);
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    let gates = &answer.json()["gates"];
    assert_eq!((gates.as_array().unwrap().len(), &gates[1]["is_met"]), (2, &json!(false)));
    let read_all = read(&test);
    assert_eq!(cases(&read_all)[3..], [gate.clone(), gate]);
    sample(&read_all, "feedrate_samples_per_second", &[("accelerators", "2")]);
}

#[test]
fn a_comparison_has_a_case_for_each_response() {
    let test = Test::with_workload(TINY);
    for folder in ["a", "b"] {
        test.run_json(&[&MEMORY[..], &["--results", folder]].concat());
    }
    // One run of each decides nothing.
    let answer = test.feedrate(&[&["compare", "a", "b"], &FILES[..]].concat());
    assert_eq!(answer.code, 4, "{}", answer.stderr);
    let read = read(&test);
    let error = |name: &str| (name.to_string(), Some("Error".to_string()));
    assert_eq!(cases(&read), [error("au_all_steps_percent"), error("samples_per_second")]);
    for side in ["a", "b"] {
        sample(&read, "feedrate_samples_per_second", &[("side", side)]);
    }
}

#[test]
fn a_search_has_a_case_for_its_target() {
    let test = Test::with_workload(TINY);
    let search = ["scale", "workload.yaml", "--max", "1", "--max-runs", "2", "--au", "2"];
    let more = ["--response", "au_all_steps", "train.computation_time=0.02"];
    let memory = ["storage.storage_type=memory"];
    let answer = test.feedrate(&[&search[..], &more, &memory, &FILES].concat());
    let read = read(&test);
    let expected = match answer.code {
        0 => None,
        // On a busy machine.
        4 => Some("Error".to_string()),
        code => panic!("{code}: {}", answer.stderr),
    };
    assert_eq!(cases(&read), [("au_all_steps_percent".to_string(), expected)]);
    sample(&read, "feedrate_au_all_steps_percent", &[("number", "1"), ("accelerators", "1")]);
}
