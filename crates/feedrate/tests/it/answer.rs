//! The answer of a run: as a few lines, as JSON and in a report, and the conditions on it that scripts test by exit code.

use crate::harness::{TINY, Test};
use serde_json::{Value, json};

/// Emulated storage with a fixed rate, so that the storage of the test machine does not matter.
const THROTTLED: [&str; 2] =
    ["storage.throttle.bytes_per_second=200kB/s", "train.computation_time=0.01"];

fn throttled(test: &Test, more: &[&str]) -> crate::harness::Answer {
    test.feedrate(&[&["run", "workload.yaml", "--quiet"], &THROTTLED[..], more].concat())
}

/// First word of each line. Other load on the machine decides whether a doubt is shown.
fn heads(stdout: &str) -> Vec<&str> {
    let head = |line| match str::split(line, [':', ' ']).next().unwrap() {
        "Doubt" => "Doubts",
        head => head,
    };
    let mut heads: Vec<&str> = stdout.lines().map(head).collect();
    heads.dedup();
    heads
}

#[test]
fn the_answer_takes_six_lines_at_most() {
    let test = Test::with_workload(TINY);
    let run = throttled(&test, &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(
        heads(&run.stdout),
        ["NO", "Needs", "Would", "Client", "Doubts", "Results"],
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("% AU over all 4 steps, target 90 %, storage-bound\n"));
    let fed = throttled(&test, &["metric.au=0.001"]).stdout;
    // An interval from four steps may contain any target on a busy machine.
    let fed = fed.strip_prefix("PROBABLY ").unwrap_or(&fed);
    assert_eq!(heads(fed), ["YES", "Needs", "Client", "Doubts", "Results"], "{fed}");
    let rate = throttled(&test, &["train.computation_time=0"]).stdout;
    assert_eq!(heads(&rate)[0], "RATE", "{rate}");
    assert!(heads(&rate).len() <= 6, "{rate}");
}

#[test]
fn details_are_the_output_of_show() {
    let test = Test::with_workload(TINY);
    let run = throttled(&test, &["--details"]).stdout;
    let dir = run.lines().last().unwrap().strip_prefix("Results: ").unwrap();
    assert_eq!(run, test.feedrate(&["show", dir, "--details"]).stdout);
    let shown = test.feedrate(&["show", dir]).stdout;
    assert!(shown.lines().count() < run.lines().count(), "{shown}");
    assert!(shown.contains("\nNotes: ") && !shown.contains("(note)"), "{shown}");
    assert!(run.contains("(note)") && !run.contains("\nNotes: "), "{run}");
    assert!(run.starts_with("NO: "), "{run}");
    for words in ["AU windowed", "Verdict       storage-bound", "Stall", "Doubts\n  `"] {
        assert!(run.contains(words), "no `{words}` in: {run}");
    }
}

#[test]
fn the_answer_is_in_the_json() {
    let test = Test::with_workload(TINY);
    let run: Value = serde_json::from_str(&throttled(&test, &["--json"]).stdout).unwrap();
    let answer = &run["answer"];
    assert_eq!(answer["fed"], false);
    assert_eq!((&answer["kind"], &answer["verdict"]), (&json!("no"), &json!("storage-bound")));
    assert_eq!(answer["au_kind"], "au_all_steps_percent");
    assert_eq!(answer["au_percent"], run["au"]["all_steps_percent"]);
    assert_eq!(answer["asked_percent"], 90.0);
    assert_eq!(answer["window"]["epochs"], 2);
    assert_eq!(answer["window"]["steps"], 4);
    let number = |key: &str| answer[key].as_f64().unwrap_or_else(|| panic!("{key}: {answer}"));
    let (needed, delivered) =
        (number("needed_bytes_per_second"), number("delivered_bytes_per_second"));
    let share = 100.0 * delivered / needed;
    // On busy cores compute takes longer than configured, which raises the utilisation but not the rate.
    let configured_s = 0.01 * answer["window"]["steps"].as_f64().unwrap();
    let overshoot = run["time"]["compute_s"].as_f64().unwrap() / configured_s;
    assert!((share * overshoot - number("au_percent")).abs() < 0.5, "{answer}");
    let helps = answer["helps"].as_array().unwrap();
    let storage = helps.iter().find(|help| help["name"] == "storage").unwrap();
    let lacks = storage["evidence"]["lacks_bytes_per_second"].as_f64();
    assert_eq!(lacks, Some(needed - delivered), "{storage}");
    let rate = throttled(&test, &["--json", "train.computation_time=0"]).stdout;
    let rate: Value = serde_json::from_str(&rate).unwrap();
    for key in ["fed", "au_percent", "au_kind", "needed_bytes_per_second"] {
        assert!(rate["answer"][key].is_null(), "{key}: {}", rate["answer"]);
    }
}

#[test]
fn checkpoints_without_training_have_their_own_answer() {
    let test = Test::new();
    let run = test.feedrate(&[
        "run",
        "llama3_8b",
        "--quiet",
        "--scale",
        "0.0001",
        "checkpoint.num_checkpoints_write=1",
        "checkpoint.num_checkpoints_read=0",
    ]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.starts_with("CHECKPOINTS: written at "), "{}", run.stdout);
}

#[test]
fn colours_follow_the_environment() {
    let test = Test::with_workload(TINY);
    let run = |key: &str| {
        let arguments = [&["run", "workload.yaml", "--quiet"], &THROTTLED[..]].concat();
        let mut command = test.command(&arguments);
        let output = command.env_remove("NO_COLOR").env(key, "1").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(run("NO_COLOR").starts_with("NO: "));
    assert!(run("CLICOLOR_FORCE").starts_with("\u{1b}[1m\u{1b}[31mNO:\u{1b}[0m "));
}

#[test]
fn a_report_of_one_run_opens_with_its_answer() {
    let test = Test::with_workload(TINY);
    let run = throttled(&test, &[]).stdout;
    let first = run.lines().next().unwrap();
    let markdown = test.feedrate(&["report", "results"]).stdout;
    assert_eq!(markdown.lines().nth(2), Some(first), "{markdown}");
    let object: Value =
        serde_json::from_str(&test.feedrate(&["report", "results", "--json"]).stdout).unwrap();
    assert_eq!(
        (&object["answer"]["fed"], &object["answer"]["says"][0]),
        (&json!(false), &json!(first))
    );
    assert_eq!(test.feedrate(&["report", "results", "-o", "page.html"]).code, 0);
    let page = std::fs::read_to_string(test.path("page.html")).unwrap();
    let [answer, rest] = ["id=\"answer\"", "class=\"facts\""].map(|mark| page.find(mark).unwrap());
    assert!(answer < rest && page[answer..rest].contains(first), "{page}");
}

#[test]
fn gates_exit_with_3() {
    let test = Test::with_workload(TINY);
    for (gate, words) in [
        (["--fail-below-au", "99"], "`--fail-below-au` requires 99 %"),
        (["--fail-on", "cache-fed,storage-bound"], "the verdict is storage-bound"),
        (["--fail-on", "note"], "[note] "),
    ] {
        throttled(&test, &gate).refuses(3, &["unmet: ", words]);
    }
    let run = throttled(&test, &["--fail-below-au", "1.1", "--fail-on", "cache-fed,invalid"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    let dir = run.stdout.lines().last().unwrap().strip_prefix("Results: ").unwrap();
    test.feedrate(&["show", dir, "--fail-on", "storage-bound"]).refuses(3, &["unmet: "]);
}

#[test]
fn impossible_conditions_are_refused_before_anything_runs() {
    let test = Test::with_workload(TINY);
    for (gate, words) in [
        (["--fail-below-au", "900"], ["'900' for '--fail-below-au <AU>'", "between 0 and 100"]),
        (["--fail-below-au", "0.9"], ["'0.9' for '--fail-below-au <AU>'", "write `90`"]),
        (["--fail-below-au", "-1"], ["'-1' for '--fail-below-au <AU>'", "between 0 and 100"]),
        (["--fail-on", "page_cach"], ["'page_cach' for '--fail-on", "did you mean `page_cache`?"]),
    ] {
        throttled(&test, &gate).refuses(2, &words);
    }
    assert!(!test.path("results").exists() && !test.path("data").exists());
}
