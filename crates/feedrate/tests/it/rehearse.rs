//! `feedrate run --rehearse`: the runs of a submission to MLPerf Storage, judged by its rules.

use crate::harness::{Answer, TINY, Test, send_signal, wait_until};
use crate::schema::assert_matches_schema;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Two steps of an accelerator an epoch, if scaled.
const SCALED: [&str; 7] = [
    "run",
    "retinanet_b200",
    "dataset.num_files_train=24000",
    "--scale",
    "0.002",
    "--rehearse",
    "--json",
];
/// The same dataset without a scale, and a setting that the rules fix.
const CHANGED: [&str; 6] = [
    "run",
    "retinanet_b200",
    "dataset.num_files_train=48",
    "train.epochs=1",
    "--rehearse",
    "--json",
];

/// The rule with this name.
#[track_caller]
fn rule<'a>(page: &'a Value, name: &str) -> &'a Value {
    let rules = page["rules"].as_array().unwrap();
    rules.iter().find(|rule| rule["name"] == name).unwrap_or_else(|| panic!("no {name}: {page}"))
}

/// Folders of the runs, without the folder of the rehearsal.
fn runs(page: &Value) -> Vec<PathBuf> {
    let runs = page["runs"].as_array().unwrap();
    runs.iter().map(|run| run["run_dir"].as_str().unwrap().into()).collect()
}

/// Checks that the runs have the folders and files of a submission.
#[track_caller]
fn check_folders(runs: &[PathBuf], results: &Path) {
    for run in runs {
        let parts: Vec<_> = run.strip_prefix(results).unwrap().iter().skip(1).collect();
        assert_eq!(parts[..3], ["training", "retinanet", "run"], "{run:?}");
        let stamp = parts[3].to_str().unwrap();
        assert_eq!((stamp.len(), &stamp[8..9]), (15, "_"), "{stamp}");
        for file in ["record.json", "summary.json", "dlio.log", "dlio_config/config.yaml"] {
            assert!(run.join(file).exists(), "{run:?} has no {file}");
        }
    }
}

#[test]
fn a_scaled_rehearsal_is_judged_and_never_keeps_the_rules() {
    let test = Test::new();
    let answer = test.feedrate(&SCALED);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    for word in ["a warm-up and 5 runs", "scaled: not a submission", "48 files", "GB free"] {
        assert!(answer.stderr.contains(word), "no `{word}` in: {}", answer.stderr);
    }
    let page = answer.json();
    assert_matches_schema("rehearsal", &page);
    assert_eq!((&page["keeps"], &page["scale"]), (&false.into(), &0.002.into()), "{page}");
    let is_warm_up = page["runs"].as_array().unwrap().iter().map(|run| &run["is_warm_up"]);
    assert_eq!(is_warm_up.collect::<Vec<_>>(), [true, false, false, false, false, false]);
    let changed = rule(&page, "changed settings");
    assert_eq!((&changed["keeps"], &changed["value"]), (&false.into(), &"`--scale`".into()));
    let steps = rule(&page, "steps per epoch");
    assert_eq!((&steps["keeps"], &steps["value"]), (&false.into(), &"2".into()), "{steps}");
    let full_size = &steps["full_size"];
    assert_eq!((&full_size["keeps"], &full_size["value"]), (&true.into(), &"1,000".into()));
    // Two steps an epoch prove nothing.
    assert_ne!(rule(&page, "windowed AU")["keeps"], true, "{page}");
    assert!(page["answer"].as_str().is_some_and(|says| says.contains(" 5 runs")), "{page}");
    assert_eq!(rule(&page, "runs")["keeps"], true, "{page}");
    // On a busy machine, the gap may be too long for scaled runs.
    let gap = rule(&page, "gap between starts");
    assert_eq!(gap["is_broken_by_scale"], gap["keeps"] == false, "{gap}");
    assert_eq!(gap["requires"], "less than 2 ×");
    assert_eq!(gap["full_size"], Value::Null);

    let folder = page["results"].as_str().unwrap();
    check_folders(&runs(&page), &test.path(folder).join("closed/scaled-rehearsal/results"));

    let judged = test.feedrate(&["analyze", folder, "--json"]).json();
    let [workload] = &judged["mlperf"].as_array().unwrap()[..] else { panic!("{judged}") };
    assert_eq!((&workload["kept"], &workload["not_kept"]), (&0.into(), &5.into()), "{workload}");
    assert_eq!(judged["runs"][0]["submission"]["submitter"], "scaled-rehearsal");
    assert_eq!(judged["runs"][0]["mlperf_class"]["differs"][0], "--scale");
    assert_eq!(test.feedrate(&["report", folder, "-o", "report.md"]).code, 0);
    let report = fs::read_to_string(test.path("report.md")).unwrap();
    for page in [report, test.feedrate(&["analyze", folder]).stdout] {
        assert!(page.contains("changed settings `--scale`"), "{page}");
    }
    assert_eq!(test.feedrate(&["show", folder, "--json"]).json()["rules"], page["rules"]);
    let run = runs(&page).remove(1).display().to_string();
    let shown = test.feedrate(&["show", &run]).stdout;
    assert!(shown.contains("changed settings `--scale`"), "{shown}");

    check_copies(&test, folder);
    let again = test.feedrate(&SCALED);
    assert!(again.stderr.contains("no run was made now"), "{}", again.stderr);
    assert_eq!(again.json()["runs"], page["runs"]);
    check_extra_run(&test, &page);
}

/// Without the right number of runs, the scale is no excuse for rules on several runs.
fn check_extra_run(test: &Test, page: &Value) {
    let csv = test.files_below(page["results"].as_str().unwrap(), "study.csv").remove(0);
    let rows = fs::read_to_string(&csv).unwrap();
    let last = rows.lines().last().unwrap();
    let extra = last.replace(",Y,6,", ",N,7,");
    fs::write(&csv, format!("{rows}{extra}\n")).unwrap();
    assert_eq!(test.feedrate(&["study", "run", &csv.display().to_string()]).code, 0);
    let answer = test.feedrate(&SCALED);
    let page = answer.json();
    assert_eq!(runs(&page).len(), 7, "{}", answer.stderr);
    assert_eq!(rule(&page, "runs")["keeps"], false, "{page}");
    for name in ["runs", "gap between starts"] {
        let rule = rule(&page, name);
        assert_eq!(rule["is_broken_by_scale"], false, "{rule}");
    }
    let shown = test.feedrate(&["show", page["results"].as_str().unwrap()]).stdout;
    let verdict = shown.lines().next().unwrap();
    let (_, broken) = verdict.split_once("apart from the scale it breaks ").unwrap();
    assert!(broken.contains("2.1.17 runs"), "{shown}");
}

/// The rules of the first run below `folder`, and the settings that differ from its class.
fn judged_first(test: &Test, folder: &str) -> (Vec<Value>, Value) {
    let run = test.feedrate(&["analyze", folder, "--json"]).json()["runs"][0].take();
    let rules = run["mlperf"]["rules"].as_array().unwrap().clone();
    (rules, run["mlperf_class"]["differs"].clone())
}

/// A copy is judged like the original, and an edited copy keeps no rule.
fn check_copies(test: &Test, folder: &str) {
    assert!(test.program("cp", &["-r", folder, "copy"]).status().unwrap().success());
    assert_eq!(
        test.feedrate(&["analyze", "copy", "--json"]).json()["mlperf"],
        test.feedrate(&["analyze", folder, "--json"]).json()["mlperf"]
    );
    let edit = |file: &Path, from: &str, to: &str| {
        let text = fs::read_to_string(file).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(file, text.replace(from, to)).unwrap();
    };
    for config in test.files_below("copy", "config.yaml") {
        edit(&config, "batch_size: 24", "batch_size: 12");
    }
    let (rules, differs) = judged_first(test, "copy/closed");
    assert!(rules.iter().all(|rule| rule["keeps"] != true), "{rules:?}");
    assert_eq!(differs, serde_json::json!(["--scale", "reader.batch_size"]));
    let run = test.files_below("copy", "record.json").remove(1);
    let shown = test.feedrate(&["show", run.parent().unwrap().to_str().unwrap()]).stdout;
    assert!(shown.contains("`12` in `config.yaml`"), "{shown}");
    for config in test.files_below("copy", "config.yaml") {
        edit(&config, "batch_size: 12", "batch_size: 24");
    }
    // Without its record, a scaled run has the config of the whole dataset, but fewer files and the folder of a scaled rehearsal.
    test.files_below("copy", "record.json")
        .iter()
        .for_each(|record| fs::remove_file(record).unwrap());
    let (rules, differs) = judged_first(test, "copy/closed");
    assert!(rules.iter().all(|rule| rule["keeps"] != true), "{rules:?}");
    assert_eq!(differs, serde_json::json!(["--scale"]));
}

#[test]
fn a_broken_rule_is_named() {
    let test = Test::new();
    let answer = test.feedrate(&CHANGED);
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    let page = answer.json();
    assert_eq!((&page["keeps"], &page["scale"]), (&false.into(), &1.0.into()));
    assert_eq!(rule(&page, "changed settings")["value"], "`train.epochs`");
    assert_eq!(rule(&page, "changed settings")["full_size"], Value::Null);
    let folder = page["results"].as_str().unwrap();
    let shown = test.feedrate(&["show", folder]).stdout;
    let verdict = shown.lines().next().unwrap();
    for name in ["BROKEN RULES", "3.1.2 dataset ÷ memory", "3.6.2 changed settings"] {
        assert!(verdict.contains(name), "{verdict}");
    }
    // Repeated runs replace the earlier ones, which are kept.
    let earlier = runs(&page);
    let repeated = test.feedrate(&[&CHANGED[..], &["--again"]].concat());
    assert!(repeated.stderr.contains("run 1 of 5: marked to run again"), "{}", repeated.stderr);
    let repeated = runs(&repeated.json());
    assert_eq!(repeated.len(), 6);
    for run in earlier {
        assert!(!repeated.contains(&run), "{run:?}");
        let aside = run.parent().unwrap().join("superseded").join(run.file_name().unwrap());
        assert!(aside.join("record.json").exists(), "{aside:?}");
    }
}

#[test]
fn an_interrupted_rehearsal_is_continued() {
    let test = Test::new();
    let mut command = test.command(&SCALED);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_until("the first run is complete", || {
        let csv = test.files_below("results", "study.csv");
        csv.iter().any(|csv| fs::read_to_string(csv).unwrap_or_default().contains(",Y,1"))
    });
    send_signal("-INT", child.id());
    let interrupted = Answer::from_output(&child.wait_with_output().unwrap());
    interrupted.refuses(130, &["of 6 runs complete", "The same command"]);
    let foreign = test.files_below("results", "checked.json").remove(0).with_file_name("notes.txt");
    fs::write(&foreign, "mine").unwrap();
    let first = fs::read(foreign.with_file_name("record.json")).unwrap();

    let page = test.feedrate(&SCALED).json();
    let runs = runs(&page);
    assert_eq!(runs.len(), 6, "{page}");
    assert_eq!(runs[0], foreign.parent().unwrap());
    assert_eq!(fs::read(runs[0].join("record.json")).unwrap(), first);
    assert_eq!(fs::read_to_string(&foreign).unwrap(), "mine");
    assert_eq!(rule(&page, "runs")["keeps"], true, "{page}");
}

#[test]
fn checkpoints_are_written_and_read_in_one_run() {
    let test = Test::new();
    let scaled = ["checkpoint.time_between_checkpoints=0", "--scale", "0.0001"];
    let page =
        test.feedrate(&[&["run", "llama3_8b", "--rehearse", "--json"], &scaled[..]].concat());
    assert_eq!(page.code, 0, "{}", page.stderr);
    assert!(page.stderr.contains("checkpoints: 10 of "), "{}", page.stderr);
    let page = page.json();
    let [run] = &runs(&page)[..] else { panic!("{page}") };
    assert!(run.parent().unwrap().ends_with("checkpointing/llama3-8b"), "{run:?}");
    assert_eq!(rule(&page, "writes and reads")["value"], "10 and 10");
    assert_eq!(rule(&page, "writes and reads")["keeps"], true);
    let bytes = rule(&page, "bytes of a checkpoint");
    assert_eq!((&bytes["keeps"], &bytes["full_size"]["keeps"]), (&false.into(), &true.into()));
    assert_eq!(page["keeps"], false);
    let folder = page["results"].as_str().unwrap();
    let judged = test.feedrate(&["analyze", folder, "--json"]).json();
    assert_eq!(judged["mlperf"][0]["not_kept"], 1, "{judged}");
}

#[test]
fn what_cannot_be_rehearsed_is_refused_before_anything_is_written() {
    let test = Test::with_workload(TINY);
    let refuse = |arguments: &[&str], words: &[&str]| {
        test.feedrate(&[&["run", "--rehearse"], arguments].concat()).refuses(2, words);
        assert!(!test.path("results").exists() && !test.path("data").exists(), "{arguments:?}");
    };
    refuse(&["workload.yaml"], &["`workload` is not a workload of MLPerf Storage"]);
    let files = "dataset.num_files_train=30000000";
    refuse(&["retinanet_b200", files], &["the dataset needs ", " are free", "`--scale "]);
    refuse(&["llama3_1t"], &["10 checkpoints of ", "free", "`--scale`"]);
    let whatif = "status: whatif: MLPerf Storage v3.0 accepts no submissions of this workload";
    refuse(&["unet3d_h100", "--scale", "0.001"], &[whatif]);
    refuse(&["retinanet_b200", "--run-dir", "r"], &["--run-dir"]);
    let mut ranked = test.command(&["run", "retinanet_b200", "--rehearse"]);
    ranked.env("OMPI_COMM_WORLD_RANK", "0").env("OMPI_COMM_WORLD_SIZE", "2");
    Answer::from_output(&ranked.output().unwrap())
        .refuses(2, &["was itself started in several processes"]);
    let plan = test.feedrate(&["run", "retinanet_b200", "--rehearse", "--dry-run"]);
    plan.warns(&["a warm-up and 5 runs"]);
    assert!(plan.stdout.contains("500 for") || plan.stdout.contains("steps per epoch"), "{plan:?}");
    assert!(!test.path("results").exists());
}
