//! Malicious results, studies and workloads: control characters, huge numbers and huge files. The program must print no control characters
//! and no forged lines, and must not hang or panic.

use crate::harness::{Answer, TINY, Test};
use serde_json::Value;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;

/// Text that would clear the screen, start a new line, ring the bell and change the writing direction.
const HOSTILE: &str = "x\u{1b}[2J\r\nFORGED: all is well\u{7}\u{9b}1m\u{202e}\u{2066}y";

/// A run in `runs/good`, and a run in `runs/bad` whose files a test changes.
fn with_two_runs() -> Test {
    let test = Test::with_workload(TINY);
    test.run_json(&["--run-dir", "runs/good"]);
    test.run_json(&["--run-dir", "runs/bad"]);
    test
}

/// Checks that the output has no control characters and no forged lines.
#[track_caller]
fn check_harmless(answer: &Answer, context: &str) {
    for text in [&answer.stdout, &answer.stderr] {
        check_text(text, context);
    }
    assert!(!answer.stderr.contains("panicked"), "{context}: {}", answer.stderr);
}

#[track_caller]
fn check_text(text: &str, context: &str) {
    let is_control = |c: char| {
        c.is_control() && c != '\n'
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.contains(is_control), "{context}: {text:?}");
    let forged = text.lines().find(|line| line.trim_start().starts_with("FORGED"));
    assert_eq!(forged, None, "{context}: {text}");
}

/// Collects the JSON pointers of all strings in `value`. Only the first item of a list is searched.
fn collect_strings(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(path.to_string()),
        Value::Array(items) => {
            if let Some(first) = items.first() {
                collect_strings(first, &format!("{path}/0"), found);
            }
        }
        Value::Object(fields) => {
            fields
                .iter()
                .for_each(|(key, value)| collect_strings(value, &format!("{path}/{key}"), found));
        }
        _ => {}
    }
}

/// Replaces one string of a JSON file at a time by hostile text, and checks the output of `commands`. Returns the number of strings.
fn check_each_string(test: &Test, file: &str, commands: &[&[&str]]) -> usize {
    let whole = fs::read(test.path(file)).unwrap();
    let value: Value = serde_json::from_slice(&whole).unwrap();
    let mut pointers = Vec::new();
    collect_strings(&value, "", &mut pointers);
    for pointer in &pointers {
        let mut changed = value.clone();
        *changed.pointer_mut(pointer).unwrap() = HOSTILE.into();
        test.write(file, changed.to_string());
        for words in commands {
            check_harmless(&test.feedrate(words), &format!("{file}{pointer}: {words:?}"));
        }
    }
    test.write(file, whole);
    pointers.len()
}

#[test]
fn strings_in_records_are_printed_as_escapes() {
    let test = with_two_runs();
    let record: Value =
        serde_json::from_slice(&fs::read(test.path("runs/bad/record.json")).unwrap()).unwrap();
    // Keys that only some runs have.
    let mut full = record;
    full["stopped_because"] = "x".into();
    full["plan"]["doubts"] = serde_json::json!([{ "name": "n", "evidence": "e", "advice": "a" }]);
    full["doubts"] = serde_json::json!([{ "name": "n", "evidence": "e", "advice": "a" }]);
    test.write("runs/bad/record.json", full.to_string());
    let commands: &[&[&str]] = &[
        &["show", "runs/bad"],
        &["analyze", "runs", "--all"],
        &["analyze", "runs", "--json"],
        &["report", "runs"],
        &["compare", "runs/good", "runs/bad"],
    ];
    assert!(check_each_string(&test, "runs/bad/record.json", commands) > 40);
}

#[test]
fn strings_in_dlios_files_are_printed_as_escapes() {
    let test = with_two_runs();
    fs::remove_file(test.path("runs/bad/record.json")).unwrap();
    let config = "runs/bad/.hydra/config.yaml";
    let yaml = fs::read_to_string(test.path(config)).unwrap();
    let tree: Value = serde_json::from_str(&yaml_to_json(&test, config)).unwrap();
    // JSON is valid YAML.
    test.write(config, tree.to_string());
    let commands: &[&[&str]] = &[&["analyze", "runs/bad", "--all"], &["report", "runs/bad"]];
    let mut fields = check_each_string(&test, config, commands);
    test.write(config, yaml);
    for file in ["summary.json", "0_output.json", "0_per_epoch_stats.json"] {
        let file = format!("runs/bad/{file}");
        if test.path(&file).exists() {
            fields += check_each_string(&test, &file, commands);
        }
    }
    assert!(fields > 20, "{fields}");
    let log = fs::read_to_string(test.path("runs/bad/dlio.log")).unwrap();
    let hostile = HOSTILE.replace('\n', " ");
    test.write("runs/bad/dlio.log", format!("[WARNING] {hostile}\n{log}[WARNING] {hostile}\n"));
    for words in commands {
        check_harmless(&test.feedrate(words), "dlio.log");
    }
}

/// Converts a YAML file to JSON by Python.
fn yaml_to_json(test: &Test, file: &str) -> String {
    let script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let mut python = test.program(crate::harness::venv_python(), &["-c", script, file]);
    let answer = Answer::from_output(&python.output().unwrap());
    assert_eq!(answer.code, 0, "{}\n  hint: run `cargo xtask setup`", answer.stderr);
    answer.stdout
}

#[test]
fn written_reports_and_plots_hold_no_control_characters() {
    let test = with_two_runs();
    let file = test.path("runs/bad/record.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    for key in ["model", "workload"] {
        record["plan"][key] = HOSTILE.into();
    }
    record["stopped_because"] = HOSTILE.into();
    fs::write(&file, record.to_string()).unwrap();
    for name in ["r.html", "r.md", "r.csv", "r.tex", "r.json"] {
        let answer = test.feedrate(&["report", "runs", "-o", name]);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        check_text(&fs::read_to_string(test.path(name)).unwrap(), name);
    }
    let answer = test.feedrate(&["plot", "timeline", "runs/bad", "-o", "p.svg"]);
    check_harmless(&answer, "plot");
    if answer.code == 0 {
        check_text(&fs::read_to_string(test.path("p.svg")).unwrap(), "p.svg");
    }
}

#[test]
fn hostile_folder_names_are_escaped() {
    let test = with_two_runs();
    fs::rename(test.path("runs/bad"), test.path("runs").join(HOSTILE)).unwrap();
    for words in
        [&["analyze", "runs", "--all"][..], &["analyze", "runs", "--json"], &["report", "runs"]]
    {
        let answer = test.feedrate(words);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        check_harmless(&answer, "names");
        assert!(
            answer.stdout.contains("its name contains control characters"),
            "{}",
            answer.stdout
        );
    }
}

#[test]
fn hostile_workloads_studies_and_manifests_are_escaped() {
    let test = Test::with_workload(TINY);
    let text = serde_json::to_string(HOSTILE).unwrap();
    for yaml in [
        format!("{TINY}{text}: 1\n"),
        TINY.replace("tiny", &text),
        TINY.replace("npz", &text),
        TINY.replace("batch_size: 4", &format!("batch_size: {text}")),
        TINY.replace("data_folder: data", &format!("data_folder: {text}")),
    ] {
        test.write("bad.yaml", yaml);
        for words in
            [&["plan", "bad.yaml"][..], &["run", "bad.yaml", "-q"], &["plan", "bad.yaml", "--json"]]
        {
            check_harmless(&test.feedrate(words), "bad.yaml");
        }
    }
    let quoted = HOSTILE.replace('"', "");
    for csv in [
        format!("model,processes,run\n\"{quoted}\",1,N\n"),
        format!("model,processes,run\nworkload.yaml,\"{quoted}\",N\n"),
        format!(
            "model,processes,overrides,run\nworkload.yaml,1,\"reader.batch_size={quoted}\",N\n"
        ),
        format!("model,\"{quoted}\",run\nworkload.yaml,1,N\n"),
    ] {
        test.write("bad.csv", csv);
        for words in [
            &["study", "status", "bad.csv"][..],
            &["study", "run", "bad.csv", "--dry-run"],
            &["study", "run", "bad.csv"],
            &["analyze", "bad.csv"],
        ] {
            check_harmless(&test.feedrate(words), "bad.csv");
        }
    }
    test.feedrate(&["generate", "workload.yaml"]);
    let manifest = test.data_files("manifest.json").remove(0);
    let whole: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    let mut pointers = Vec::new();
    collect_strings(&whole, "", &mut pointers);
    for pointer in pointers {
        let mut changed = whole.clone();
        *changed.pointer_mut(&pointer).unwrap() = HOSTILE.into();
        fs::write(&manifest, changed.to_string()).unwrap();
        for words in
            [&["run", "workload.yaml", "-q"][..], &["generate", "--verify", "workload.yaml"]]
        {
            check_harmless(&test.feedrate(words), &pointer);
        }
    }
}

#[test]
fn huge_numbers_are_refused() {
    let test = Test::with_workload(TINY);
    test.run_json(&["--run-dir", "runs/a"]);
    let manifest = test.data_files("manifest.json").remove(0);
    let change = |file: &Path, pointer: &str, number: f64| {
        let mut value: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        value.pointer_mut(pointer).unwrap()["files_train"] = (number as u64).into();
        value.pointer_mut(pointer).unwrap()["record_stdev_bytes"] = 1.0.into();
        fs::write(file, value.to_string()).unwrap();
    };
    change(&manifest, "/settings", 1e15);
    test.feedrate(&["run", "workload.yaml"]).refuses(1, &["more than the limit of"]);
    change(&test.path("runs/a/record.json"), "/plan/dataset", 1e15);
    test.feedrate(&["show", "runs/a"]).refuses(1, &["is damaged", "more than the limit of"]);
}

/// Rates of 0 and negative costs, which no workload can have.
#[test]
fn impossible_costs_of_a_client_are_refused() {
    let test = Test::with_workload(TINY);
    test.run_json(&["--run-dir", "runs/a", "client.per_sample=0.001"]);
    let file = test.path("runs/a/record.json");
    let whole: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    for (key, cost) in [
        ("shared_bytes_per_second", 0.0),
        ("pin_bytes_per_second", -1.0),
        ("handover_bytes_per_second", 1e-300),
        ("per_sample_s", 1e300),
        ("receive_per_byte_s", -1e-9),
        ("receive_wait_share", 2.0),
    ] {
        let mut changed = whole.clone();
        changed["plan"]["loader"]["client"][key] = cost.into();
        fs::write(&file, changed.to_string()).unwrap();
        let name = key.trim_end_matches("_s");
        for command in ["show", "advise"] {
            test.feedrate(&[command, "runs/a"])
                .refuses(1, &["is damaged", &format!("`client.{name}`")]);
        }
        check_harmless(&test.feedrate(&["report", "runs/a"]), key);
    }
}

#[test]
fn files_that_are_too_long_are_not_read() {
    let test = with_two_runs();
    for (name, mib) in [("summary.json", 40), ("0_output.json", 300)] {
        let file = fs::File::options().write(true).open(test.path("runs/bad").join(name)).unwrap();
        file.set_len(mib << 20).unwrap();
    }
    fs::remove_file(test.path("runs/bad/record.json")).unwrap();
    let answer = test.feedrate(&["analyze", "runs/bad", "--all"]);
    assert!(answer.stdout.contains("it is larger than"), "{answer:?}");
    let file = fs::File::options().write(true).open(test.path("runs/good/record.json")).unwrap();
    file.set_len(5 << 30).unwrap();
    test.feedrate(&["show", "runs/good"]).refuses(1, &["it is larger than"]);
    test.write("long.yaml", "# text\n".repeat(100));
    fs::File::options().write(true).open(test.path("long.yaml")).unwrap().set_len(1 << 30).unwrap();
    test.feedrate(&["plan", "long.yaml"]).refuses(2, &["it is larger than"]);
}

/// A user without other processes: the limit counts all processes of a user, and does not apply to root.
const UNUSED_USER: u32 = 54_321;

#[test]
fn without_enough_threads_commands_work_or_fail_cleanly() {
    let test = with_two_runs();
    let mut all = vec![test.path("")];
    while let Some(path) = all.pop() {
        std::os::unix::fs::chown(&path, Some(UNUSED_USER), None).expect("run this test as root");
        all.extend(fs::read_dir(&path).into_iter().flatten().map(|entry| entry.unwrap().path()));
    }
    let program = test.path("feedrate");
    fs::copy(env!("CARGO_BIN_EXE_feedrate"), &program).unwrap();
    for threads in [1, 3, 4, 5, 6, 8] {
        for line in [
            "analyze runs",
            "report runs",
            "show runs/good",
            "run workload.yaml -q",
            "generate workload.yaml dataset.num_files_train=9",
        ] {
            let limited = format!("ulimit -u {threads}; exec ./feedrate {line}");
            let mut bash = test.program("bash", &["-c", &limited]);
            let answer = Answer::from_output(&bash.uid(UNUSED_USER).output().unwrap());
            check_harmless(&answer, line);
            assert!([0, 1].contains(&answer.code), "{threads}: {line}: {answer:?}");
        }
    }
}
