//! Folders of DLIO runs, whole and broken: none stops the reading, and what is wrong is told.

use super::fake::Fake;
use super::*;
use feedrate_measure::metric::{AU_ALL_STEPS, AU_WINDOWED, SAMPLES_WHOLE};
use std::fs;

fn near(found: Option<f64>, expected: f64) {
    assert!((found.unwrap() - expected).abs() < 1e-3 * expected, "{found:?}, not {expected}");
}

#[test]
fn the_numbers_follow_from_the_steps() {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake::default().write(folder.path(), "4/2025");
    let imported = load_dlio(&run);
    assert!(imported.unreadable.is_empty() && imported.missing.is_empty(), "{imported:?}");
    let record = &imported.record;
    // Six steps of 0.3 s; the slowest rank waits 4.3 s and five times 0.01 s.
    let epoch_s = 6.0 * 0.3 + 4.3 + 0.05;
    near((AU_ALL_STEPS.of_run)(record), 180.0 / epoch_s);
    let windowed: f64 = (0..4).map(|rank| 150.0 / (epoch_s - 4.3 - 0.1 * f64::from(rank))).sum();
    near((AU_WINDOWED.of_run)(record), windowed / 4.0);
    near((SAMPLES_WHOLE.of_run)(record), 168.0 / epoch_s);
    assert_eq!(imported.ranks_expected, Some(4));
    assert_eq!(record.plan.loader.stock_batches, 4);
    assert_eq!(imported.log.folder.as_deref(), Some("/scratch/job/hydra_log/fake/2025"));
}

#[test]
fn older_files_are_read_too() {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake { ranks: 1, files: 42, ..Fake::default() }.write(folder.path(), "old");
    let output = run.join("0_output.json");
    let text = fs::read_to_string(&output).unwrap().replace("\"compute\"", "\"other\"");
    fs::write(&output, text).unwrap();
    fs::rename(run.join("0_per_epoch_stats.json"), run.join("per_epoch_stats.json")).unwrap();
    near((AU_ALL_STEPS.of_run)(&load_dlio(&run).record), 180.0 / (1.8 + 4.05));
}

#[test]
fn without_a_config_the_rates_tell_batch_and_record_length() {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake::default().write(folder.path(), "4/2025");
    fs::remove_dir_all(run.join(".hydra")).unwrap();
    let record = load_dlio(&run).record;
    assert_eq!(record.plan.loader.batch_size, 7);
    near(Some(record.plan.dataset.record_bytes), 1e8);
    near((SAMPLES_WHOLE.of_run)(&record), 168.0 / 6.15);
}

/// A run whose folder was changed, and what is told of it.
fn check(change: impl Fn(&Path), told: &str) {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake::default().write(folder.path(), "4/2025");
    change(&run);
    let imported = load_dlio(&run);
    let all = [&imported.unreadable, &imported.missing, &imported.backwards];
    let all: Vec<&String> = all.into_iter().flatten().collect();
    assert!(all.iter().any(|text| text.contains(told)), "no {told} in {all:?}");
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

#[test]
fn what_is_broken_is_told() {
    let batch =
        |run: &Path| replace(&run.join(".hydra/config.yaml"), "batch_size: 7", "batch_size: 99");
    check(batch, "no step was run");
    check(|run| fs::write(run.join("1_output.json"), "").unwrap(), "`1_output.json`: it is empty");
    check(
        |run| {
            let path = run.join("2_output.json");
            let text = fs::read_to_string(&path).unwrap();
            fs::write(path, &text[..text.len() / 2]).unwrap();
        },
        "`2_output.json`: it is cut short",
    );
    check(|run| fs::remove_file(run.join("summary.json")).unwrap(), "there is no `summary.json`");
    check(
        |run| fs::write(run.join("summary.json"), "[]").unwrap(),
        "`summary.json`: it is no JSON",
    );
    check(
        |run| fs::remove_file(run.join("0_per_epoch_stats.json")).unwrap(),
        "it is not known when it began and ended",
    );
    check(|run| replace(&run.join("0_output.json"), "4.0,", "NaN,"), "`NaN` is no time of a step");
    check(|run| replace(&run.join("0_output.json"), "4.0,", "-4.0,"), "`-4` is no time of a step");
    check(|run| replace(&run.join("0_output.json"), "4.0,", ""), "5 times of loading and 6");
    check(
        |run| {
            replace(
                &run.join("0_per_epoch_stats.json"),
                "\"end\": \"2025-11-30T10",
                "\"end\": \"2025-11-30T09",
            )
        },
        "before it began",
    );
    check(
        |run| fs::write(run.join(".hydra/config.yaml"), "a: [").unwrap(),
        "`config.yaml`: it is no YAML",
    );
    check(
        |run| fs::write(run.join(".hydra/overrides.yaml"), [0xff]).unwrap(),
        "`overrides.yaml`: it is no text",
    );
}

#[test]
fn values_that_cannot_be_are_kept_out_of_the_arithmetic() {
    let folder = tempfile::tempdir().unwrap();
    let run = Fake::default().write(folder.path(), "4/2025");
    for (from, to) in [
        ("num_files_train: 168", "num_files_train: 999999999999999999999"),
        ("record_length_bytes_stdev: 0", "record_length_bytes_stdev: .inf"),
        ("read_threads: 4", "read_threads: 4294967295"),
        ("epochs: 2", "epochs: -3"),
    ] {
        replace(&run.join(".hydra/config.yaml"), from, to);
    }
    replace(
        &run.join("summary.json"),
        "\"num_accelerators\": 4",
        "\"num_accelerators\": 4294967295",
    );
    let imported = load_dlio(&run);
    assert_eq!(imported.ranks_missing().len(), 65_532);
    assert_eq!(imported.record.plan.train.epochs, 2);
}

#[test]
fn runs_are_found_in_any_layout_and_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    Fake::default().write(root, "unet/4/2025");
    Fake::default().write(root, "unet/4/incomplete/2024");
    Fake::default().write(root, "a/b/c/d");
    let mlperf = Fake::default().write(root, "training/unet3d/run/20250613_101010");
    fs::rename(mlperf.join(".hydra"), mlperf.join("dlio_config")).unwrap();
    fs::create_dir_all(root.join("ours")).unwrap();
    fs::write(root.join("ours/record.json"), "{}").unwrap();
    fs::write(root.join("ours/summary.json"), "{}").unwrap();
    fs::create_dir_all(root.join("begun/.hydra")).unwrap();
    fs::write(root.join("begun/.hydra/config.yaml"), "workload: {}\n").unwrap();
    fs::create_dir_all(root.join("notes/.hydra")).unwrap();
    fs::write(root.join("notes/output.json"), "{}").unwrap();
    std::os::unix::fs::symlink(root, root.join("notes/again")).unwrap();
    let (found, closed) = find(root).unwrap();
    let found: Vec<(String, Kind)> = found
        .into_iter()
        .map(|one| (one.path.strip_prefix(root).unwrap().display().to_string(), one.kind))
        .collect();
    let expected = [
        ("a/b/c/d", Kind::Dlio),
        ("begun", Kind::Dlio),
        ("ours", Kind::Record),
        ("training/unet3d/run/20250613_101010", Kind::MlperfStorage),
        ("unet/4/2025", Kind::Dlio),
        ("unet/4/incomplete/2024", Kind::Dlio),
    ];
    let expected: Vec<(String, Kind)> =
        expected.map(|(path, kind)| (path.to_string(), kind)).into();
    assert_eq!((found, closed), (expected, vec![]));
    assert!(find(&root.join("gone")).is_err());
}
