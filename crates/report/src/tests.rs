//! Tests of whole reports: experiments, findings, doubts and methods from records.
//!
//! Long because all tests use the same records.

use crate::experiment::experiments;
use crate::gather::results_report;
use crate::opening::{group_answers, opening};
use crate::output;
use crate::report::*;
use feedrate_analysis::finding::{EffectUnit, FindingKind};
use feedrate_measure::doubt::{Bias, Doubt, Severity};
use feedrate_measure::example::{block, checkpoint, epoch, plan, record, simple};
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::{AU_ALL_STEPS, AU_WINDOWED, DELIVERED_WHOLE, Provenance, Value};
use feedrate_measure::record::file;
use feedrate_measure::record::{Record, StudyRun};
use feedrate_results::conclusion::{Conclusion, ConclusionLine};
use feedrate_results::import::RunOrigin;
use feedrate_results::import::fake::Fake;
use feedrate_results::index::{LeftOut, RunsError};
use feedrate_results::replan::NO_CHANGES;
use feedrate_results::run::{Reason, Run};
use feedrate_spec::workload::{Shuffle, TimeSpec};
use std::path::Path;

fn run(value: &str, au: f64) -> ReportedRun {
    let known = |number| Value { number, provenance: Provenance::Measured };
    let run = Run {
        workload: "w".into(),
        parameter: "batch_size".into(),
        value: value.into(),
        accelerators: Some(4),
        values: [(AU_ALL_STEPS.id, known(au)), (DELIVERED_WHOLE.id, known(au * 1e6))].into(),
        ..Run::default()
    };
    ReportedRun { run, ..ReportedRun::default() }
}

/// A report with pictures of all results below a folder.
fn report_on(folder: &Path) -> Report {
    results_report(&[folder.into()], None, 1, NO_CHANGES, FigureUse::Pictures).unwrap()
}

/// A line of the opening; empty if there is none.
fn line(report: &Report, name: &str) -> String {
    let report = Report { answers: group_answers(report, &[]), ..report.clone() };
    let lines = opening(&report, &[], Vec::new()).into_iter();
    lines.filter(|line| line.name == name).map(|line| line.value).collect()
}

/// Runs of DLIO have no number in an order, but start one after another.
#[test]
fn records_without_an_order_show_a_drift() {
    let folder = tempfile::tempdir().unwrap();
    for index in 0..8 {
        let time = 1000 + 40 * index + 3 * (index % 3);
        // Names are in another order than starts.
        save_steps(
            folder.path(),
            &format!("{}", 9 - index),
            &[(time, 1000, 0, 1_000_000); 20],
            |record| {
                record.started = format!("2026-11-21T10:0{index}:00.000000");
            },
        );
    }
    let mut report = report_on(folder.path());
    let expected = "from the first repeated run to the last [−";
    let drift = report.findings.iter().find(|finding| finding.kind == FindingKind::Drift);
    let says = drift.map(|drift| drift.says.as_str()).unwrap_or_default();
    assert!(says.contains(expected), "{:?}", report.findings);
    let main_finding = |report: &Report| line(report, "Main finding");
    assert!(main_finding(&report).contains(expected), "{}", main_finding(&report));
    // A difference too small to matter is not the main finding, even if it is certain.
    for number in report.findings.iter_mut().flat_map(|finding| &mut finding.numbers) {
        let is_ratio = number.effect.unit == EffectUnit::Ratio;
        number.effect.estimate = if is_ratio { 1.00006 } else { 0.006 };
    }
    assert!(!main_finding(&report).contains(expected), "{}", main_finding(&report));
}

#[test]
fn a_run_that_passes_only_as_reported_is_named_first() {
    let mut first = run("2", 68.6);
    first.run.bar_percent = Some(70.0);
    let windowed = Value { number: 70.3, provenance: Provenance::Measured };
    first.run.values.insert(AU_WINDOWED.id, windowed);
    let mut report = Report { runs: vec![first, run("4", 90.0)], ..Report::default() };
    let artefacts = |report: &Report| line(report, "Artefacts");
    let says = artefacts(&report);
    let expected = "1 of 1 run reaches the target of 70 % AU only as reported: `";
    assert!(says.starts_with(expected), "{says}");
    let mut close = report.clone();
    let almost = Value { number: 69.96, provenance: Provenance::Measured };
    close.runs[0].run.values.insert(AU_ALL_STEPS.id, almost);
    let says = artefacts(&close);
    assert!(says.contains("reports 70.3 %, but has 69.9 % over all steps"), "{says}");
    report.runs[0].run.bar_percent = Some(68.0);
    assert_eq!(artefacts(&report), "");
    let reported = Value { number: 45.0, provenance: Provenance::Measured };
    report.runs[0].run.values.insert(AU_WINDOWED.id, reported);
    assert!(artefacts(&report).contains("at worst 45.0 % instead of 68.6 %"));
    report.runs[0].run.doubts = vec![Doubt {
        name: "au_misreported".into(),
        severity: Severity::Warning,
        bias: Bias::Either,
        evidence: String::new(),
        advice: String::new(),
        facts: Facts::new(),
    }];
    assert_eq!(artefacts(&report), "", "a contradiction is not explained");
    report.runs[0].run.doubts.clear();
    // Runs of feedrate have answers; for DLIO's runs the line counts those that reach the target.
    assert_eq!(line(&report, "Answer"), "");
    report.runs.iter_mut().for_each(|run| run.run.origin = RunOrigin::Dlio);
    let expected = "1 of 2 runs reaches the target over all steps, unknown for 1; 69 % to 90 % AU";
    assert_eq!(line(&report, "Answer"), expected);
    report.runs[1].run.unusable = Some(Reason::NoSteps);
    assert_eq!(line(&report, "Answer"), "69 % AU over all steps, target 68 %");
    let unusable = line(&report, "Do not use");
    assert!(unusable.ends_with("; 1 more without known steps"), "{unusable}");
    report.runs[0].run.unusable = Some(Reason::NoSteps);
    assert_eq!(line(&report, "Do not use"), "no run has known steps");
}

#[test]
fn rows_of_a_table_are_not_counted_as_folders() {
    let left_out = ["r/4", "r/t.csv", "r/t.csv"].map(|path| LeftOut::new(path, "line 2: none"));
    let report =
        Report { runs: vec![run("2", 80.0)], left_out: left_out.to_vec(), ..Report::default() };
    let says = line(&report, "Do not use");
    assert!(says.ends_with("; 1 folder left out; no run matches 2 rows of a CSV"), "{says}");
    let summary = report.document(FigureUse::Nothing).summary;
    assert!(summary.ends_with(", 1 left out, 2 rows of a CSV without a run."), "{summary}");
}

#[test]
fn replicates_make_one_experiment_in_the_order_of_values() {
    let mut unused = run("2", 1.0);
    unused.run.unusable = Some(Reason::NoSteps);
    let report = Report {
        runs: vec![run("10", 50.0), run("2", 80.0), unused, run("2", 90.0)],
        ..Report::default()
    };
    let found = experiments(&report);
    let named: Vec<(&str, &[usize])> = found
        .iter()
        .map(|experiment| (experiment.value.as_str(), experiment.runs.as_slice()))
        .collect();
    assert_eq!(named, [("2", &[1, 3][..]), ("10", &[0][..])]);
    let middle = found[0].au_all_steps_percent;
    assert_eq!(middle.estimate, Some(85.0));
    // t of one degree of freedom is 12.706, the standard error 5; of the logit, ln(85 ÷ 15), 5 ÷ (100 · 0.85 · 0.15).
    let (low, high) = middle.interval.unwrap();
    assert!((low - 3.74).abs() < 0.01 && (high - 99.88).abs() < 0.01, "{low} {high}");
    let rate = found[0].bytes_per_second.estimate.unwrap();
    assert!((rate - (80e6_f64 * 90e6).sqrt()).abs() < 1.0, "{rate}");
    assert_eq!(
        (found[1].au_all_steps_percent.interval, found[1].au_sustained_percent.estimate),
        (None, None)
    );
}

fn save(folder: &Path, name: &str, change: impl Fn(&mut Record)) {
    save_steps(folder, name, &[(1000, 1000, 0, 1_000_000); 20], change);
}

fn save_steps(
    folder: &Path,
    name: &str,
    steps: &[(u64, u64, u64, u64)],
    change: impl Fn(&mut Record),
) {
    let mut record = simple(steps);
    // Runs of one setting, however long their steps were.
    record.plan.train.compute = TimeSpec::Constant { mean: 1.0 };
    change(&mut record);
    std::fs::create_dir_all(folder.join(name)).unwrap();
    file::write(&folder.join(name), &record).unwrap();
}

#[test]
fn records_become_runs_doubts_and_methods() {
    let folder = tempfile::tempdir().unwrap();
    let study = |batch: u32, replicate: u32| {
        move |record: &mut Record| {
            record.started = format!("2026-11-21T10:0{replicate}:0{batch}.000000");
            record.plan.loader.batch_size = u64::from(batch);
            record.plan.dataset.files_train = 100;
            record.plan.loader.file_shuffle = Shuffle::Off;
            record.plan.loader.sample_shuffle = Shuffle::Off;
            record.plan.loader.shuffles_in_buffer = false;
            record.study = Some(Box::new(StudyRun {
                study: "my.csv".into(),
                overrides: vec![format!("++workload.reader.batch_size={batch}")],
                replicate: Some(3 - replicate),
                ..StudyRun::default()
            }));
        }
    };
    for (batch, replicate) in [(2, 1), (4, 1), (4, 2), (2, 2)] {
        // Runs of the same times are copies of one.
        let time = u64::from(1000 + 10 * batch + replicate);
        let steps = vec![(time, time, 0, 1_000_000); 20];
        let name = format!("{batch} {replicate}");
        save_steps(folder.path(), &name, &steps, study(batch, replicate));
    }
    save(folder.path(), "broken", |record| record.complete = false);
    let report = results_report(
        &[folder.path().into()],
        Some(folder.path()),
        2,
        NO_CHANGES,
        FigureUse::Pictures,
    )
    .unwrap();
    let unused: Vec<&str> = report.runs.iter().filter_map(|run| run.unused()).collect();
    assert_eq!((report.runs.len(), unused), (5, vec!["incomplete_run"]));
    let first = &report.runs[0];
    assert_eq!((first.run.parameter.as_str(), first.run.value.as_str()), ("batch_size", "2"));
    // Rows of a study run in another order than they are numbered.
    assert_eq!(first.run.replicate, Some(2));
    assert_eq!(first.link.as_deref(), Some("2%201/record.json"));
    assert_eq!(first.run.metric(&AU_ALL_STEPS), Some(50.0));
    let metrics = first.metrics();
    let au = metrics.iter().find(|metric| metric.name == "au_all_steps").unwrap();
    assert_eq!((au.unit, au.value.unwrap().number), ("percent", 50.0));
    let object = serde_json::to_value(&report).unwrap();
    assert_eq!(object["runs"][0]["au"]["all_steps_percent"], 50.0);
    assert_eq!(object["runs"][0]["factors"]["batch_size"], "2");
    let method_text = |name: &str| {
        let method = report.methods.iter().find(|method| method.name == name);
        method.map(|method| method.says.as_str()).unwrap_or_default()
    };
    assert!(method_text("Runs").starts_with("4 runs of 2 experiments"), "{}", method_text("Runs"));
    let interrupted = " 1 further run was interrupted and not used.";
    assert!(method_text("Runs").ends_with(interrupted), "{}", method_text("Runs"));
    assert_eq!(method_text("Seeds"), "Samples were read in file order (no shuffle).");
    assert!(
        method_text("Varied").contains("`loader.batch_size`: `2`, `4`"),
        "{}",
        method_text("Varied")
    );
    assert!(
        method_text("Design").contains("Experiments were run 1 to 2 times"),
        "{}",
        method_text("Design")
    );
    assert!(
        method_text("Order").contains("no repeated run followed a run of the same experiment"),
        "{}",
        method_text("Order")
    );
    let rows = &report.configuration.rows;
    assert!(rows.contains(&vec!["Batch size".into(), "2, 4".into()]), "{rows:?}");
    let doubted: Vec<&str> = report.doubts.iter().map(|doubt| doubt.name.as_str()).collect();
    assert!(report.runs.iter().flat_map(ReportedRun::doubts).all(|name| doubted.contains(&name)));
}

#[test]
fn each_run_has_its_source() {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), "before/1", |_| {});
    save_steps(folder.path(), "after/1", &[(1100, 1000, 0, 1_000_000); 20], |record| {
        record.plan.storage.throttle_bytes_per_second = Some(16e6);
    });
    let paths = [folder.path().join("before"), folder.path().join("after")];
    let report = results_report(&paths, None, 1, NO_CHANGES, FigureUse::Pictures).unwrap();
    assert!(report.has_several_sources());
    assert_eq!(experiments(&report).len(), 2);
    let method = |name: &str| report.methods.iter().find(|method| method.name == name).unwrap();
    let throttled = "/after`: Storage was emulated: a throttle of 16 MB/s.";
    let emulated = &method("Emulated").says;
    assert!(emulated.contains(throttled) && !emulated.contains("/before`"), "{emulated}");
    assert!(method("Order").says.starts_with("Each experiment"), "the same of both is said once");
    assert_eq!(report.runs[0].link, None);
}

/// A setting that always changes with the source does not cause a finding about invalid runs.
#[test]
fn settings_that_follow_the_source_are_compared_by_source() {
    let folder = tempfile::tempdir().unwrap();
    for (source, batch) in [("before", 2), ("after", 4)] {
        for time in [1000, 1010] {
            let steps = vec![(time + batch, 1000, 0, 1_000_000); 20];
            save_steps(folder.path(), &format!("{source}/{time}"), &steps, |record| {
                record.plan.loader.batch_size = batch;
            });
        }
    }
    let paths = ["before", "after"].map(|name| folder.path().join(name));
    let says: Vec<String> = results_report(&paths, None, 1, NO_CHANGES, FigureUse::Pictures)
        .unwrap()
        .findings
        .into_iter()
        .map(|finding| finding.says)
        .collect();
    assert!(
        says.iter().any(|says| says.contains("they may differ in storage or data")),
        "{says:#?}"
    );
    assert!(!says.iter().any(|says| says.contains("all of their runs are left out")), "{says:#?}");
}

#[test]
fn a_folder_without_results_has_no_report() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(
        results_report(&[folder.path().into()], None, 1, NO_CHANGES, FigureUse::Pictures),
        Err(RunsError::NoRuns(_))
    ));
}

#[test]
fn findings_are_also_data() {
    let folder = tempfile::tempdir().unwrap();
    for batch in [2_u64, 4] {
        for replicate in 0..3_u64 {
            let steps = vec![(1000 * batch + 10 * replicate, 1000, 0, 1_000_000); 20];
            save_steps(folder.path(), &format!("{batch} {replicate}"), &steps, |record| {
                record.started = format!("2026-11-21T10:0{replicate}:0{batch}.000000");
                record.plan.loader.batch_size = batch;
            });
        }
    }
    let report = report_on(folder.path());
    let object = serde_json::to_value(&report).unwrap();
    let findings = object["findings"].as_array().unwrap();
    let is_effect = |finding: &&serde_json::Value| finding["kind"] == "effect";
    let effect = findings.iter().find(is_effect).unwrap_or_else(|| panic!("{findings:?}"));
    assert_eq!(effect["factors"], serde_json::json!(["batch_size"]));
    let number = &effect["numbers"][0];
    let (value, low, high) =
        (number["value"].as_f64(), number["low"].as_f64(), number["high"].as_f64());
    assert!(low < value && value < high, "{number}");
    let named = ["of", "unit", "n", "confidence"].map(|key| number[key].clone());
    assert_eq!(named[0], "4 against 2");
    assert!(named[1] == "points" || named[1] == "ratio");
    assert_eq!((&named[2], &named[3]), (&3.into(), &0.95.into()));
}

/// DLIO's loader for PyTorch always reads files in the order of their names.
#[test]
fn settings_that_dlio_ignores_have_no_effect() {
    let folder = tempfile::tempdir().unwrap();
    for replicate in 0..3_u32 {
        for (index, name) in ["4", "4_file_shuffle_off", "4_read_threads_8"].into_iter().enumerate()
        {
            let overrides = match index {
                0 => vec![],
                1 => vec!["reader.file_shuffle=off"],
                _ => vec!["reader.read_threads=8"],
            };
            let run = Fake {
                threads: if index == 2 { 8 } else { 4 },
                slower: [1.0, 1.003, 0.5][index] + 0.01 * f64::from(replicate),
                start_s: 36_000.0 + 1000.0 * f64::from(3 * replicate + index as u32),
                overrides,
                ..Fake::default()
            }
            .write(folder.path(), &format!("fake/{name}/{replicate}"));
            // Hydra writes what was overridden into the configuration too.
            let config = run.join(".hydra/config.yaml");
            let level = if index == 1 { "'off'" } else { "seed" };
            let text = std::fs::read_to_string(&config).unwrap();
            let text = text.replace("reader: {", &format!("reader: {{file_shuffle: {level}, "));
            std::fs::write(config, text).unwrap();
        }
    }
    let report = report_on(folder.path());
    let is_on_shuffle =
        |finding: &&FindingText| finding.factors.contains(&"file_shuffle".to_string());
    let about: Vec<&FindingText> = report.findings.iter().filter(is_on_shuffle).collect();
    assert_eq!(about.len(), 1, "{:#?}", report.findings);
    assert_eq!(about[0].support, Support::CannotBeTold);
    let said = &about[0].says;
    assert!(said.contains("DLIO ignores it: the effect of `file_shuffle` (off and seed"), "{said}");
    let is_effect = |finding: &&FindingText| {
        finding.kind == FindingKind::Effect && finding.factors == ["read_threads"]
    };
    let effect = report.findings.iter().find(is_effect).unwrap();
    assert_eq!(effect.numbers[0].effect.n, 3, "{}", effect.says);
    let on_response = |name: &str| {
        let mut all = report.findings.iter();
        all.find(|finding| finding.response == Some(name) && !finding.numbers.is_empty()).unwrap()
    };
    let on_au = on_response("au_all_steps_percent");
    assert!(!on_au.says.contains("estimated"), "{}", on_au.says);
    assert!(on_au.figures[0].value.contains(", recomputed, n = "), "{:?}", on_au.figures);
}

#[test]
fn findings_name_their_workload_if_there_are_several() {
    let folder = tempfile::tempdir().unwrap();
    for (index, workload) in ["a", "a", "b", "b"].into_iter().enumerate() {
        save(folder.path(), &index.to_string(), |record| {
            record.started = format!("2026-11-21T10:0{index}:00.000000");
            record.plan.workload = workload.into();
            record.plan.loader.batch_size = 1 + index as u64 % 2;
            record.plan.loader.workers = 1 + index as u32 / 2;
        });
    }
    let report = report_on(folder.path());
    let says: Vec<&str> = report.findings.iter().map(|finding| finding.says.as_str()).collect();
    assert!(
        says.iter().all(|says| ["a: ", "b: ", "a, b: "].iter().any(|name| says.starts_with(name))),
        "{says:#?}"
    );
    assert!(says.iter().any(|says| says.starts_with("b: ")), "{says:#?}");
}

/// The most common question of a page about several workloads: which of them does the storage feed?
#[test]
fn each_workload_and_sample_size_has_its_answer() {
    let folder = tempfile::tempdir().unwrap();
    let save_run = |name: &str, workload: &str, load_ms: u64, record_bytes: f64| {
        let steps = vec![(load_ms, 1000, 0, 1_000_000); 20];
        save_steps(folder.path(), name, &steps, |record| {
            record.plan.workload = workload.into();
            // Workloads that differ in nothing but their name count as one.
            record.plan.loader.workers = u32::from(workload.as_bytes()[0] - b'a' + 1);
            record.plan.dataset.record_bytes = record_bytes;
        });
    };
    save_run("1", "a", 1, 1e6);
    save_run("2", "a", 2, 1e6);
    save_run("3", "a", 3, 1e6);
    save_run("4", "b", 1000, 1e6);
    save_run("5", "b", 1001, 1e6);
    save_run("6", "b", 3000, 4e6);
    let report = report_on(folder.path());
    let answers: Vec<String> = report
        .opening
        .iter()
        .filter(|line| line.name == "Answer")
        .map(|line| line.value.split("; needs").next().unwrap().to_string())
        .collect();
    assert_eq!(
        answers,
        [
            "`a`, samples of 1 MB decoded: YES for all 3 runs; 100 % AU (sustained), target 90 %",
            "`b`, samples of 1 MB decoded: NO for all 2 runs (storage-bound); 50 % AU (sustained), target 90 %",
            "`b`, samples of 4 MB decoded: NO for 1 run (storage-bound); 25 % AU (sustained), target 90 %",
        ]
    );
    let runs: Vec<usize> = report.answers.iter().map(|answer| answer.runs.len()).collect();
    assert_eq!(runs, [3, 2, 1]);
    // More answers than lines are counted, without a range.
    save_run("7", "c", 500, 1e6);
    let counted = &report_on(folder.path()).opening[0];
    let expected = "NO for 4 of 7 runs (storage-bound), YES for 3, in 4 groups (one source, workload and sample size each); see Experiments";
    assert_eq!(counted.value, expected);
}

#[test]
fn each_search_has_its_answer() {
    let folder = tempfile::tempdir().unwrap();
    for (index, search) in ["one", "two"].into_iter().enumerate() {
        let path = folder.path().join(search);
        for load_ms in [100, 101] {
            let steps = vec![(load_ms + index as u64, 1000, 0, 1_000_000); 20];
            save_steps(&path, &format!("results/{load_ms}"), &steps, |record| {
                record.plan.loader.batch_size = 1 + index as u64;
            });
        }
        let line = |name: &str, value: String| ConclusionLine { name: name.into(), value };
        let lines = vec![
            line("Answer", format!("{} accelerators at ≥ 90 % AU", 4 + index)),
            line("Dataset", "1 file".into()),
        ];
        Conclusion { lines, ..Conclusion::default() }.write(&path).unwrap();
    }
    let lines = |path: &Path| -> Vec<String> {
        let opening = report_on(path).opening.into_iter();
        opening.take(2).map(|line| format!("{}: {}", line.name, line.value)).collect()
    };
    let names = ["one", "two"].map(|name| folder.path().join(name).display().to_string());
    assert_eq!(
        lines(folder.path()),
        [
            format!("Answer: `{}`: 4 accelerators at ≥ 90 % AU", names[0]),
            format!("Answer: `{}`: 5 accelerators at ≥ 90 % AU", names[1]),
        ]
    );
    let alone = lines(&folder.path().join("one"));
    assert_eq!(alone, ["Answer: 4 accelerators at ≥ 90 % AU", "Dataset: 1 file"]);
}

#[test]
fn runs_with_different_settings_are_not_replicates() {
    let folder = tempfile::tempdir().unwrap();
    for (i, format) in ["npz", "npz", "png", "png"].into_iter().enumerate() {
        // Runs of the same times are copies of one.
        let time = 1000 + i as u64;
        let steps = vec![(time, time, 0, 1_000_000); 20];
        save_steps(folder.path(), &i.to_string(), &steps, |record| {
            record.plan.dataset.format = format.into();
        });
    }
    let report = report_on(folder.path());
    let levels: Vec<&str> = report.runs.iter().map(|run| run.factors["format"].as_str()).collect();
    assert_eq!(levels, ["npz", "npz", "png", "png"]);
    let experiments = experiments(&report);
    let names: Vec<_> = experiments.iter().map(|row| (&*row.parameter, &*row.value)).collect();
    assert_eq!(names, [("format", "npz"), ("format", "png")]);
    let names: Vec<&str> = report.opening.iter().map(|line| line.name.as_str()).collect();
    let expected = ["Answer", "Applies to", "Best", "To do", "Main finding", "Do not use"];
    assert_eq!(names, expected);
    assert!(report.opening[2].value.starts_with("most throughput: "), "{:?}", report.opening);
    let figure = report.figures.iter().find(|figure| figure.name == "factor_levels").unwrap();
    let columns = figure.values.columns.iter().map(|column| column.name.as_str());
    assert_eq!(columns.collect::<Vec<_>>(), ["Panel", "format", "y", "95 % interval", "n"]);
    let x: Vec<&str> = figure.values.rows.iter().map(|row| row[1].text.as_str()).collect();
    assert_eq!(x, ["npz", "png", "npz", "png"]);
    let page = (output::find("html").unwrap().write)(&report);
    let part = |start: &str| page.split_once(start).unwrap().1.split_once("</figure>").unwrap().0;
    assert!(
        part("id=\"figure-factor-levels\"").contains("<th scope=\"col\"><span>format</span></th>")
    );
    let not_drawn: Vec<&str> = report.not_drawn.iter().map(|figure| figure.name.as_str()).collect();
    assert!(not_drawn.contains(&"scaling") && not_drawn.contains(&"timeline"), "{not_drawn:?}");
    assert!(page.contains("Not drawn") && page.contains("several numbers of processes"));
}

#[test]
fn free_disk_space_does_not_distinguish_machines() {
    let folder = tempfile::tempdir().unwrap();
    for (index, free) in ["71.4 GB free of 270.6 GB", "70.1 GB free of 270.6 GB"].iter().enumerate()
    {
        let time = 1000 + index as u64;
        let steps = vec![(time, time, 0, 1_000_000); 20];
        save_steps(folder.path(), &index.to_string(), &steps, |record| {
            let disk = format!("ext4 on /dev/vda, {free}");
            record.system.components = vec![("Storage".into(), disk)];
        });
    }
    let report = report_on(folder.path());
    let [setup] = &report.setups[..] else { panic!("{:?}", report.setups) };
    assert_eq!(setup.rows[0][1].text, "ext4 on /dev/vda, 270.6 GB");
}

#[test]
fn two_sources_are_compared_first() {
    let folder = tempfile::tempdir().unwrap();
    let sources = ["before", "after"].map(|name| folder.path().join(name));
    for (source, load_ms) in sources.iter().zip([3000, 1000]) {
        for (run, batch) in [(0, 1), (1, 1), (0, 2), (1, 2)] {
            let steps = vec![(load_ms + 10 * run, 1000, 0, 1_000_000); 20];
            save_steps(source, &format!("{batch} {run}"), &steps, |record| {
                record.plan.loader.batch_size = batch;
                record.started = format!("2026-11-21T10:0{run}:0{batch}.{load_ms}00");
            });
        }
    }
    let report = results_report(&sources, None, 1, NO_CHANGES, FigureUse::Pictures).unwrap();
    let first = &report.opening[0];
    let says = first.value.split_once("): ").unwrap().1;
    assert_eq!((first.name.as_str(), says), ("Compared", "better in 4 of 4"), "{first:?}");
    let table = &report.comparison.as_ref().unwrap().table;
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["Experiment", "Metric", "A", "B", "B ÷ A", "Verdict"]);
    // Names leave out the parts that all share.
    let experiments: Vec<&str> = table.rows.iter().map(|row| row[0].text.as_str()).collect();
    let expected = [1, 1, 2, 2].map(|batch| format!("loader.batch_size={batch}"));
    assert_eq!(experiments, expected);
    let alone = results_report(&sources[..1], None, 1, NO_CHANGES, FigureUse::Pictures).unwrap();
    assert!(alone.comparison.is_none() && alone.opening[0].name == "Answer");
}

/// Two replicates of two epochs, the first with a checkpoint between its blocks of four steps.
#[test]
fn experiments_have_tables_of_epochs_and_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    for (name, load_ms) in [("a", 30), ("b", 70)] {
        let steps = |at_ms, load_ms| block(at_ms, &[(load_ms, 10, 0, 1000); 4]);
        let saved_ms = 4 * (load_ms + 10);
        let after_ms = saved_ms + 20;
        let mut first = epoch(1, vec![vec![steps(0, load_ms), steps(after_ms, 90)]]);
        first.checkpoints = vec![checkpoint(saved_ms, after_ms, 1000, 4)];
        let second = epoch(2, vec![vec![steps(after_ms + 400, 10), steps(after_ms + 480, 10)]]);
        std::fs::create_dir_all(folder.path().join(name)).unwrap();
        file::write(&folder.path().join(name), &record(plan(1, 8), vec![first, second])).unwrap();
    }
    let report = report_on(folder.path());
    let object: serde_json::Value =
        serde_json::from_str(&(output::find("json").unwrap().write)(&report)).unwrap();
    let experiment = &object["experiments"][0];
    let check = |value: &serde_json::Value, expected: f64| {
        let value = value["estimate"].as_f64().unwrap();
        assert!((value - expected).abs() < 1e-6 * expected, "{value} {expected}");
    };
    let au = |ms: f64| 100.0 * 80.0 / ms;
    check(&experiment["epochs"][0]["au_all_steps_percent"], (au(560.0) + au(720.0)) / 2.0);
    check(&experiment["epochs"][1]["au_all_steps_percent"], 50.0);
    let batch = plan(1, 8).loader.batch_size as f64;
    check(&experiment["epochs"][1]["samples_per_second"], 50.0 * batch);
    let saves = &experiment["saves"];
    assert_eq!(saves["count"], 1);
    check(&saves["duration_s"], 0.02);
    // Rates have their geometric mean.
    check(&saves["before"]["samples_per_second"], (25.0_f64 * 12.5).sqrt() * batch);
    check(&saves["after"]["au_percent"], 10.0);
    assert_eq!(saves["during"]["au_percent"]["estimate"], serde_json::Value::Null);
    for name in ["html", "markdown", "latex"] {
        let text = (output::find(name).unwrap().write)(&report);
        for expected in ["Epoch 2", "AU before", "AU over all steps"] {
            assert!(text.contains(expected), "{name}: {expected}");
        }
    }
    let kinds: Vec<FindingKind> = report.findings.iter().map(|finding| finding.kind).collect();
    assert!(kinds.contains(&FindingKind::Epochs) && kinds.contains(&FindingKind::Checkpoints));
    let over_time = report.opening.iter().find(|line| line.name == "Over time").unwrap();
    let parts = ["first epoch", "a checkpoint takes 20 ms"];
    assert!(parts.iter().all(|part| over_time.value.contains(part)), "{over_time:?}");
}

#[test]
fn an_impossible_process_count_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), "a", |_| {});
    let broken = folder.path().join("broken");
    std::fs::create_dir(&broken).unwrap();
    std::fs::write(broken.join("4294967294_output.json"), "{}").unwrap();
    std::fs::write(broken.join("summary.json"), "{").unwrap();
    let report = report_on(folder.path());
    assert_eq!(report.runs.len(), 2);
    let text = (output::find("csv").unwrap().write)(&report);
    assert!(!text.contains("429496"), "{text}");
    let broken = text.lines().find(|line| line.contains("unreadable_files")).unwrap();
    assert!(!broken.ends_with(','), "the reason why it is not used is missing: {broken}");
}
