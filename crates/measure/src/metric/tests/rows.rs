//! Tests of the rows of the table, and of values of runs from different sources.

use crate::example::{block, epoch, plan, record, simple};
use crate::metric::{
    AU_ALL_STEPS, Basis, DURATION_S, METRICS, Metric, NOMINAL_WINDOWED, Provenance, STALL_PERCENT,
    Unit, Value, measured_values, recomputed_values, reported_values,
};
use std::collections::HashSet;

#[test]
fn every_row_is_complete() {
    let names: HashSet<_> = METRICS.iter().map(|metric| metric.id).collect();
    let labels: HashSet<_> = METRICS.iter().map(|metric| metric.label()).collect();
    assert_eq!((names.len(), labels.len()), (METRICS.len(), METRICS.len()));
    for metric in METRICS {
        let name = metric.id.name();
        for name in [name, metric.label()] {
            let is_snake = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(!name.is_empty() && name.chars().all(is_snake), "{name}");
            assert!(Metric::find(name).is_ok_and(|found| std::ptr::eq(found, *metric)), "{name}");
        }
        let text = metric.definition;
        assert!(!text.is_empty() && !text.ends_with('.') && !text.contains("  "), "{name}");
        assert!(!metric.title.is_empty() && !metric.basis.is_empty(), "{name}");
        let sources = ["feedrate", "DLIO", "proc(5)", "Darshan"];
        let source = metric.source;
        let is_known = sources.iter().any(|known| source.contains(known));
        assert!(is_known, "{name}: one of {sources:?}");
    }
}

/// Every row appears in the JSON of a run and of each epoch without further code.
#[test]
fn every_metric_is_in_the_summary() {
    let record = simple(&[(1000, 1000, 0, 1_000_000); 40]);
    let json = serde_json::to_value(crate::summary::Summary::new(&record)).unwrap();
    for metric in METRICS {
        let path = format!("/{}", metric.path.replace('.', "/"));
        let value = json.pointer(&path).unwrap_or_else(|| panic!("{path} is missing"));
        assert_eq!(value.as_f64(), metric.run_value(&record), "{path}");
        if !path.starts_with("/access") {
            assert!(json["per_epoch"][0].pointer(&path).is_some(), "{path}");
        }
    }
}

#[test]
fn a_metric_is_found_by_its_name() {
    for (name, expected) in [
        ("au_sustained_percent", Some("au_sustained_percent")),
        ("au_sustained", Some("au_sustained_percent")),
        ("samples_per_second", Some("samples_per_second")),
        ("duration_s", Some("duration_s")),
        ("stall", Some("stall_percent")),
        ("au", None),
    ] {
        assert_eq!(Metric::find(name).ok().map(|found| found.id.name()), expected, "{name}");
    }
    assert!(Metric::find("au").err().unwrap().hint().contains("au_all_steps_percent, "));
}

#[test]
fn an_accelerator_without_reads_has_the_windowed_rate_0() {
    let steps = |bytes| vec![block(0, &[(1000, 0, 0, bytes); 40])];
    let rates = |bytes: [u64; 2]| {
        let run = record(plan(2, 40), vec![epoch(1, bytes.map(steps).into())]);
        let metric = Metric::find("delivered_bytes_per_second_windowed").ok().unwrap();
        let scope = crate::window::Scope::all_epochs(&run).next().unwrap();
        let accelerators = &run.epochs[0].accelerators;
        let each = accelerators.iter().map(|one| metric.accelerator_value(scope, one)).collect();
        (metric.run_value(&run), each)
    };
    let known: Vec<Option<f64>> = vec![Some(1_000_000.0), Some(0.0)];
    assert_eq!(rates([1_000_000, 0]), (Some(1_000_000.0), known));
    assert_eq!(rates([0, 0]), (None, vec![None, None]));
}

/// Two epochs of two steps: load 1 s, compute 3 s, one sample of 1 MB each.
#[test]
fn a_run_of_two_epochs_has_one_value() {
    let blocks = |at_ms| vec![vec![block(at_ms, &[(1000, 3000, 0, 1_000_000); 2])]];
    let run = record(plan(1, 2), vec![epoch(1, blocks(0)), epoch(2, blocks(8000))]);
    let values = measured_values(&run);
    for (name, expected) in [
        ("au_all_steps", Some(75.0)),
        ("au_sustained", None),
        ("samples_per_second", Some(0.25)),
        ("delivered_bytes_per_second", Some(250_000.0)),
        ("stall", Some(25.0)),
        ("duration_s", Some(16.0)),
    ] {
        let value = values.get(&Metric::find(name).unwrap().id);
        assert_eq!(value.map(|value| value.number), expected, "{name}");
    }
}

#[test]
fn a_run_without_measurements_has_no_value() {
    let empty = record(plan(1, 2), vec![epoch(1, vec![vec![block(0, &[(0, 0, 0, 0)])]])]);
    assert_eq!((STALL_PERCENT.run_value(&empty), DURATION_S.run_value(&empty)), (None, None));
    assert_eq!(DURATION_S.run_value(&record(plan(1, 2), vec![])), None);
}

#[test]
fn rates_have_a_geometric_mean() {
    let average = |name: &str| Metric::find(name).unwrap().average_interval(&[50.0, 200.0], 0.95);
    assert_eq!(average("au_all_steps").unwrap().estimate, 125.0);
    assert!((average("samples_per_second").unwrap().estimate - 100.0).abs() < 1e-9);
    assert_eq!(Metric::find("duration_s").unwrap().average_interval(&[50.0], 0.95), None);
}

/// Values are missing if the source lacks their basis.
#[test]
fn values_have_a_provenance() {
    let record = simple(&[(1000, 1000, 0, 1_000_000); 4]);
    assert!(
        measured_values(&record).values().all(|value| value.provenance == Provenance::Measured)
    );
    let from_steps = recomputed_values(&record, &[Basis::Steps]);
    let names: Vec<&str> = from_steps.keys().map(|id| id.name()).collect();
    assert_eq!(names, ["au_all_steps_percent", "au_windowed_percent", "compute_s", "load_s"]);
    assert_eq!(from_steps[&AU_ALL_STEPS.id].provenance, Provenance::Recomputed);
    let all: Vec<Basis> = METRICS.iter().flat_map(|metric| metric.basis).copied().collect();
    let from_all = recomputed_values(&record, &all);
    assert_eq!(
        from_all.keys().collect::<Vec<_>>(),
        measured_values(&record).keys().collect::<Vec<_>>()
    );
    let reported = reported_values(|key| (key == "train_io_mean_MB_per_second").then_some(2.0));
    let expected = Value { number: 2.0 * 1_048_576.0, provenance: Provenance::Reported };
    assert_eq!(reported.into_iter().collect::<Vec<_>>(), [(NOMINAL_WINDOWED.id, expected)]);
}

#[test]
fn values_are_formatted_with_their_unit() {
    for (unit, value, text, is_count) in [
        (Unit::Percent, 99.96, "100.0 %", false),
        (Unit::SamplesPerSecond, 12.5, "12.5 samples/s", false),
        (Unit::BytesPerSecond, 706e6, "706 MB/s", false),
        (Unit::Seconds, 0.25, "250 ms", false),
        (Unit::Bytes, 2e9, "2 GB", true),
        (Unit::Files, 1.0, "1 file", true),
        (Unit::Share, 0.5, "50 %", false),
        (Unit::Ratio, 1.256, "1.26", false),
    ] {
        assert_eq!((unit.text(value).as_str(), unit.is_count()), (text, is_count), "{unit:?}");
        assert!(!unit.name().is_empty());
    }
}

/// Keys that feedrate adds are not among DLIO's, and appear in its file if the value is known.
#[test]
fn added_keys_are_in_dlios_summary() {
    let record = simple(&[(1000, 1000, 0, 1_000_000); 40]);
    let folder = tempfile::tempdir().unwrap();
    let invocation = crate::dlio::Invocation::default();
    let mut files = crate::record::file::NewFiles::new(folder.path());
    crate::dlio::write(&mut files, &record, &invocation).unwrap();
    files.publish().unwrap();
    let text = std::fs::read_to_string(folder.path().join("summary.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut added = 0;
    for metric in METRICS {
        assert!(metric.added_as.is_none() || metric.reported_as.is_none());
        if let Some((key, unit)) = metric.added_as {
            let expected = metric.run_value(&record).unwrap() / unit;
            assert_eq!(json["metric"][key], expected, "{key}");
            added += 1;
        }
    }
    assert_eq!(added, 3);
}

#[test]
fn the_average_of_runs_is_a_mean_of_percentages_and_a_geometric_mean_of_rates() {
    let percent = AU_ALL_STEPS.average_interval(&[40.0, 60.0], 0.95).unwrap();
    assert!((percent.estimate - 50.0).abs() < 1e-9);
    assert!(0.0 <= percent.low && percent.high <= 100.0, "{percent:?}");
    let duration = DURATION_S.average_interval(&[1.0, 4.0], 0.95).unwrap();
    assert!((duration.estimate - 2.0).abs() < 1e-9, "{duration:?}");
    assert_eq!(
        (AU_ALL_STEPS.average_interval(&[40.0], 0.95), DURATION_S.average_interval(&[], 0.95)),
        (None, None)
    );
}
