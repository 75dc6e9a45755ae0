//! What a report says: experiments, and what own records come to.

use super::*;
use crate::runs::RunsError;
use feedrate_measure::example::simple;
use feedrate_measure::record::file;
use feedrate_measure::record::{Record, StudyRun};
use std::path::Path;

fn run(value: &str, au: f64) -> Run {
    Run {
        workload: "w".into(),
        parameter: "batch_size".into(),
        value: value.into(),
        accelerators: Some(4),
        au: Au { all_steps_percent: Some(au), ..Au::default() },
        throughput: Throughput { bytes_per_second: Some(au * 1e6), ..Throughput::default() },
        ..Run::default()
    }
}

#[test]
fn replicates_make_one_experiment_in_the_order_of_values() {
    let unused = Run { unused: Some("stale data".into()), ..run("2", 1.0) };
    let report = Report {
        runs: vec![run("10", 50.0), run("2", 80.0), unused, run("2", 90.0)],
        ..Report::default()
    };
    let found = experiments(&report);
    let named: Vec<(&str, &[usize])> =
        found.iter().map(|of| (of.value.as_str(), of.runs.as_slice())).collect();
    assert_eq!(named, [("2", &[1, 3][..]), ("10", &[0][..])]);
    let middle = found[0].au_all_steps_percent;
    assert_eq!(middle.estimate, Some(85.0));
    // t of one degree of freedom is 12.706, the standard error 5.
    let (low, high) = middle.interval.unwrap();
    assert!((low - 21.47).abs() < 0.01 && (high - 148.53).abs() < 0.01, "{low} {high}");
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
    change(&mut record);
    std::fs::create_dir_all(folder.join(name)).unwrap();
    file::write(&folder.join(name), &record).unwrap();
}

#[test]
fn own_records_come_to_runs_doubts_and_methods() {
    let folder = tempfile::tempdir().unwrap();
    let study = |batch: u32, replicate: u32| {
        move |record: &mut Record| {
            record.started = format!("2026-11-21T10:0{replicate}:0{batch}.000000");
            record.plan.loader.batch_size = u64::from(batch);
            record.plan.dataset.files_train = 100;
            record.study = Some(Box::new(StudyRun {
                study: "my.csv".into(),
                overrides: vec![format!("++workload.reader.batch_size={batch}")],
                replicate: Some(replicate),
                ..StudyRun::default()
            }));
        }
    };
    for (batch, replicate) in [(2, 1), (4, 1), (4, 2), (2, 2)] {
        // Runs of the same times are copies of one.
        let steps = vec![(1000, 1000, 0, 1_000_000); (10 * batch + replicate) as usize];
        let name = format!("{batch} {replicate}");
        save_steps(folder.path(), &name, &steps, study(batch, replicate));
    }
    save(folder.path(), "broken", |record| record.complete = false);
    let report = of_results(&[folder.path().into()], Some(folder.path()), 2).unwrap();
    let unused: Vec<&str> = report.runs.iter().filter_map(|run| run.unused.as_deref()).collect();
    assert_eq!((report.runs.len(), unused), (5, vec!["incomplete_run"]));
    let first = &report.runs[0];
    assert_eq!((first.parameter.as_str(), first.value.as_str()), ("batch_size", "2"));
    assert_eq!(first.link.as_deref(), Some("2%201/record.json"));
    assert_eq!(first.au.all_steps_percent, Some(50.0));
    let au = first.metrics.iter().find(|metric| metric.name == "au_all_steps").unwrap();
    assert_eq!((au.unit.as_str(), au.value), ("percent", Some(50.0)));
    let said = |name: &str| {
        let method = report.methods.iter().find(|method| method.name == name);
        method.map(|method| method.says.as_str()).unwrap_or_default()
    };
    assert!(said("Runs").starts_with("4 runs of 2 experiments"), "{}", said("Runs"));
    assert!(said("Varied").contains("`loader.batch_size`: `2`, `4`"), "{}", said("Varied"));
    assert!(said("Design").contains("Each experiment was run 2 times"), "{}", said("Design"));
    assert!(said("Order").contains("0 of 2 repeated runs followed"), "{}", said("Order"));
    let rows = &report.configuration.rows;
    assert!(rows.contains(&vec!["Batch size".into(), "2, 4".into()]), "{rows:?}");
    let doubted: Vec<&str> = report.doubts.iter().map(|doubt| doubt.name.as_str()).collect();
    assert!(
        report.runs.iter().flat_map(|run| &run.doubts).all(|name| doubted.contains(&name.as_str()))
    );
}

#[test]
fn of_several_sources_each_run_has_its_own() {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), "before/1", |_| {});
    save_steps(folder.path(), "after/1", &[(1100, 1000, 0, 1_000_000); 20], |_| {});
    let paths = [folder.path().join("before"), folder.path().join("after")];
    let report = of_results(&paths, None, 1).unwrap();
    assert!(report.has_several_sources());
    assert_eq!(experiments(&report).len(), 2);
    assert_eq!(report.runs[0].link, None);
}

#[test]
fn there_is_no_report_on_nothing() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(of_results(&[folder.path().into()], None, 1), Err(RunsError::Nothing(_))));
}

#[test]
fn a_findings_figures_are_numbers_too() {
    let folder = tempfile::tempdir().unwrap();
    for (at, load_ms) in [1000, 1010, 1020, 3000, 3010, 3020].into_iter().enumerate() {
        let steps = vec![(load_ms, 1000, 0, 1_000_000); 20];
        save_steps(folder.path(), &load_ms.to_string(), &steps, |record| {
            record.started = format!("2026-11-21T10:0{at}:00.000000");
            record.plan.loader.batch_size = if load_ms < 2000 { 2 } else { 4 };
        });
    }
    let report = of_results(&[folder.path().into()], None, 1).unwrap();
    let numbers = report.findings.iter().find_map(|finding| finding.numbers).unwrap();
    assert!(numbers.low.unwrap() < numbers.estimate && numbers.estimate < numbers.high.unwrap());
    assert_eq!(numbers.n, 3);
}
