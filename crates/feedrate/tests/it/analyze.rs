//! `feedrate analyze` on records of feedrate, on the DLIO result files of the same runs, and on folders without runs.

use crate::harness::Test;
use serde_json::Value;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

/// Three epochs of eight steps on three accelerators, in blocks of three steps. Sample sizes are random.
const BLOCKS: &str = "\
model:
  name: blocks
framework: pytorch
workflow:
  checkpoint: True
dataset:
  data_folder: data
  format: npz
  num_files_train: 48
  record_length_bytes: 40960
  record_length_bytes_stdev: 20000
reader:
  data_loader: pytorch
  batch_size: 2
  read_threads: 2
train:
  epochs: 3
  computation_time: 0.01
checkpoint:
  checkpoint_folder: checkpoints
  steps_between_checkpoints: 3
";

impl Test {
    fn analyze(&self, sources: &[&str]) -> Value {
        let answer = self.feedrate(&[&["analyze", "--json"], sources].concat());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        serde_json::from_str(&answer.stdout).unwrap()
    }
}

fn doubt_names(run: &Value) -> Vec<&str> {
    let doubts = run["doubts"].as_array().unwrap();
    doubts.iter().map(|doubt| doubt["name"].as_str().unwrap()).collect()
}

#[test]
fn dlios_result_files_have_the_same_numbers_as_the_record() {
    let test = Test::with_workload(BLOCKS);
    test.run_json(&["-n", "3", "--results", "ours"]);
    let record = test.files_below("ours", "record.json").remove(0);
    let of_record = test.analyze(&["ours"]);
    assert_eq!(of_record["runs"][0]["kind"], "record");
    fs::remove_file(record).unwrap();
    let of_files = test.analyze(&["ours"]);
    let (a, b) = (&of_record["runs"][0], &of_files["runs"][0]);
    assert_eq!(b["kind"], "dlio");
    for (section, keys) in [
        ("au", vec!["reported_percent", "windowed_percent", "all_steps_percent"]),
        (
            "throughput",
            vec![
                "reported_samples_per_second",
                "reported_mib_per_second",
                "windowed_samples_per_second",
                "windowed_mib_per_second",
                "whole_samples_per_second",
                "whole_mib_per_second",
            ],
        ),
        ("stall", vec!["load_s_per_step", "excluded_percent"]),
    ] {
        for key in keys {
            let value = |run: &Value| run[section][key].as_f64().unwrap();
            // Times in DLIO's files are in microseconds.
            let near = (value(a) - value(b)).abs() <= 0.005 * value(a).abs();
            assert!(
                near,
                "{section}.{key}: {} from the record, {} from the files",
                value(a),
                value(b)
            );
        }
    }
    for key in ["accelerators", "parameter", "value", "steps", "epochs", "batch_size", "format"] {
        assert_eq!(a[key], b[key], "{key}");
    }
    assert!(b["au"]["sustained_percent"].is_null(), "the files have no times of reads");
    let wrong = ["wrong_step_count", "config_disagrees", "au_misreported", "time_runs_backwards"];
    assert!(!doubt_names(b).iter().any(|name| wrong.contains(name)), "{:?}", doubt_names(b));
}

#[test]
fn without_files_of_steps_the_utilisation_is_the_same_and_compared_with_the_bar() {
    let test = Test::with_workload(BLOCKS);
    let settings = ["workflow.checkpoint=False", "train.computation_time=0.05"];
    test.run_json(&[&["-n", "3", "--results", "ours"], &settings[..]].concat());
    fs::remove_file(test.files_below("ours", "record.json").remove(0)).unwrap();
    let of_steps = test.analyze(&["ours"]);
    for rank in 0..3 {
        let name = format!("{rank}_output.json");
        fs::remove_file(test.files_below("ours", &name).remove(0)).unwrap();
    }
    let of_totals = test.analyze(&["ours", "--bar", "100"]);
    let (a, b) = (&of_steps["runs"][0], &of_totals["runs"][0]);
    let percent = |run: &Value| run["au"]["all_steps_percent"].as_f64().unwrap();
    // Only the files of steps contain the compute time of the first step. Without it, it would be an eighth less.
    assert!(
        (percent(a) - percent(b)).abs() <= 8.0,
        "{} from steps, {} from totals",
        percent(a),
        percent(b)
    );
    assert_eq!(b["au"]["all_steps_provenance"], "recomputed");
    assert!(
        doubt_names(b).contains(&"no_step_files") && !doubt_names(b).contains(&"missing_ranks"),
        "{b}"
    );
    let group = &of_totals["groups"][0];
    assert_eq!(group["bar_percent"], 100.0);
    // With steps of a few milliseconds, the totals are by chance above or below 100 %.
    let is_below = group["all_steps_percent"].as_f64().unwrap() < 100.0;
    assert_eq!(group["passes_all_steps"]["no"], u64::from(is_below), "{group}");
    let answer = test.feedrate(&["analyze", "ours", "--bar", "900"]);
    assert_eq!(
        (answer.code, answer.stderr.contains("between 0 and 100")),
        (2, true),
        "{}",
        answer.stderr
    );
    let shown = test.feedrate(&["analyze", "ours", "--bar", "100"]).stdout;
    let reached = if is_below { "0 of 1" } else { "1 of 1" };
    assert!(shown.contains("Reach target") && shown.contains(reached), "{shown}");
}

#[test]
fn several_sources_are_listed_with_their_doubts() {
    let test = Test::with_workload(BLOCKS);
    test.run_json(&["--results", "before"]);
    test.run_json(&["--results", "after", "reader.batch_size=4"]);
    let copy = test.files_below("before", "record.json").remove(0);
    fs::create_dir_all(test.path("after/copy")).unwrap();
    fs::copy(copy, test.path("after/copy/record.json")).unwrap();
    let answer = test.feedrate(&["analyze", "before", "after"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let opening: Vec<&str> = answer.stdout.lines().take_while(|line| !line.is_empty()).collect();
    for head in ["Answer", "Do not use", "To do"] {
        assert!(opening.iter().any(|line| line.starts_with(head)), "{head}: {}", answer.stdout);
    }
    let unusable = opening.iter().find(|line| line.starts_with("Do not use")).unwrap();
    assert!(unusable.ends_with("1 of 3 runs: `after/copy` (duplicate_results)"), "{unusable}");
    // Evidence and advice are printed on request.
    assert!(!answer.stdout.contains("advice: "), "{}", answer.stdout);
    let answer = test.feedrate(&["analyze", "before", "after", "--all"]);
    for words in
        ["Source", "`duplicate_results` (invalid), seen in 1 run", "3 runs from", "advice: "]
    {
        assert!(answer.stdout.contains(words), "{words}: {}", answer.stdout);
    }
    let report = test.analyze(&["before", "after"]);
    let sources: Vec<&str> = report["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["source"].as_str().unwrap())
        .collect();
    assert_eq!(sources, ["before", "after", "after"]);
    for key in
        ["path", "workload", "accelerators", "parameter", "value", "au", "throughput", "doubts"]
    {
        assert!(!report["runs"][0][key].is_null(), "{key}");
    }
    let doubt = &report["runs"][0]["doubts"][0];
    assert!(["name", "severity", "evidence", "advice"].iter().all(|key| doubt[*key].is_string()));
}

#[test]
fn folders_without_runs_are_refused_and_damaged_runs_are_doubted() {
    let test = Test::new();
    fs::create_dir(test.path("empty")).unwrap();
    test.feedrate(&["analyze", "empty"]).refuses(2, &["`empty` holds no result of a run", "hint:"]);
    test.feedrate(&["analyze", "gone"]).refuses(2, &["cannot read `gone`"]);
    // A run that was only started counts as a run, but nothing is known about it.
    fs::create_dir_all(test.path("begun/.hydra")).unwrap();
    test.write("begun/.hydra/config.yaml", "workload: {train: {epochs: 2}}\n");
    let report = test.analyze(&["begun"]);
    assert!(doubt_names(&report["runs"][0]).contains(&"incomplete_run"), "{report}");
    // A name that is not UTF-8, and a pipe without a writer.
    let odd = test.path("begun").join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    fs::create_dir(&odd).unwrap();
    fs::rename(test.path("begun/.hydra"), odd.join(".hydra")).unwrap();
    assert!(Command::new("mkfifo").arg(odd.join("summary.json")).status().unwrap().success());
    let report = test.analyze(&["begun"]);
    assert!(report["runs"][0]["path"].as_str().unwrap().contains("odd"), "{report}");
    assert!(doubt_names(&report["runs"][0]).contains(&"unreadable_files"), "{report}");
    let shown = test.feedrate(&["list", "stale_data"]);
    assert!(
        shown.stdout.contains("files that were generated with other settings"),
        "{}",
        shown.stdout
    );
}
