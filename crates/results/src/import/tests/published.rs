//! Tests of published results, which lack the files of steps: their values must be those that the steps would give.

use super::fake::Fake;
use crate::import::{Bound, CountedSteps, LeftOut, find};
use crate::index::{ReadOptions, RunIndex};
use crate::run::{Reason, Run};
use feedrate_measure::metric::{AU_ALL_STEPS, Metric, NOMINAL_WHOLE, Provenance, SAMPLES_WHOLE};
use std::fs;
use std::path::Path;

fn read(run: &Path) -> Run {
    RunIndex::read(&[run.into()], &ReadOptions::default()).unwrap().runs.remove(0)
}

fn remove(run: &Path, name: &str) {
    let path = run.join(name);
    if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
}

fn edit(run: &Path, name: &str, from: &str, to: &str) {
    let text = fs::read_to_string(run.join(name)).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(run.join(name), text.replace(from, to)).unwrap();
}

/// Reads a run with its steps, and its published form after `change`.
fn read_whole_and_published(fake: &Fake, change: impl Fn(&Path)) -> (Run, Run) {
    let folder = tempfile::tempdir().unwrap();
    let complete = read(&fake.write(folder.path(), "w/4/a"));
    let run = fake.publish(folder.path(), "closed/x/results/y/w/run_1/20240820_162920");
    change(&run);
    (complete, read(&run))
}

fn assert_close(found: Option<f64>, expected: Option<f64>, tolerance: f64) {
    let (found, expected) = (found.unwrap(), expected.unwrap());
    assert!((found - expected).abs() <= tolerance, "{found}, not {expected}");
}

fn doubt_names(run: &Run) -> Vec<&str> {
    run.doubts.iter().map(|doubt| doubt.name.as_str()).collect()
}

/// Checks that a published run gives the same values as the run with its steps, and that it may be used.
fn check(fake: &Fake, change: impl Fn(&Path)) -> Run {
    let (complete, run) = read_whole_and_published(fake, change);
    assert_close(run.metric(&AU_ALL_STEPS), complete.metric(&AU_ALL_STEPS), 0.01);
    let whole_s = complete.step_times.first_step_s;
    assert_close(run.step_times.first_step_s, whole_s, 0.01 * whole_s.unwrap());
    let same = |metric: &Metric| {
        let expected = complete.metric(metric).unwrap();
        assert_close(run.metric(metric), Some(expected), 1e-4 * expected);
    };
    [&SAMPLES_WHOLE, &NOMINAL_WHOLE].into_iter().for_each(same);
    assert_eq!((run.steps, run.epochs), (complete.steps, complete.epochs));
    let compute_s = run.step_times.compute_s_per_step;
    assert_close(compute_s, complete.step_times.compute_s_per_step, 1e-5);
    assert_eq!(run.series[&AU_ALL_STEPS.id].len() as u64, run.epochs);
    assert_eq!(run.provenance(&AU_ALL_STEPS), Some(Provenance::Recomputed));
    assert!(run.record.is_none() && run.unusable.is_none(), "{:?}", run.unusable);
    assert!(doubt_names(&run).contains(&"no_step_files"), "{:?}", run.doubts);
    run
}

/// Returns a run in which all ranks wait equally long for the first step.
fn with_equal_waits() -> Fake {
    Fake { load_s: |_, step| if step == 0 { 2.0 } else { 0.02 }, ..Fake::default() }
}

#[test]
fn values_are_the_same_without_steps() {
    for overshoot in [1.0, 1.0012, 1.01] {
        assert_eq!(check(&Fake { overshoot, ..with_equal_waits() }, |_| {}).bound, None);
        check(&Fake { overshoot, ..Fake::default() }, |_| {});
        check(&Fake { overshoot, files: 7 * 4 * 400, ..with_equal_waits() }, |_| {});
        // A single rank whose first step is like the others.
        let load_s = |_, _| 0.1;
        check(&Fake { overshoot, ranks: 1, files: 7 * 400, load_s, ..Fake::default() }, |_| {});
    }
    // Short steps, whose sleeps are too long by a tenth.
    let short =
        Fake { compute_s: 0.0035, overshoot: 1.1, batch: 1, files: 4000, ..with_equal_waits() };
    check(&short, |_| {});
}

#[test]
fn rates_of_older_releases_count_all_steps_and_are_not_doubted() {
    for files in [168, 7 * 4 * 500] {
        let older = Fake { is_older: true, files, ..with_equal_waits() };
        let run = check(&older, |_| {});
        assert_eq!(run.bound, None);
        let doubt = run.doubts.iter().find(|doubt| doubt.name == "no_step_files").unwrap();
        assert!(doubt.evidence.contains("as DLIO of MLPerf Storage 1.0"), "{}", doubt.evidence);
        // The log contains the times of blocks too.
        assert_eq!(check(&older, |run| remove(run, "per_epoch_stats.json")).bound, None);
        // The number of steps also follows from the rate.
        assert_eq!(check(&older, |run| remove(run, "dlio.log")).bound, None);
        let doubted = ["wrong_step_count", "throughput_misreported", "config_disagrees"];
        assert!(!doubted.iter().any(|name| doubt_names(&run).contains(name)), "{:?}", run.doubts);
    }
}

#[test]
fn values_that_depend_on_the_config_are_bounds() {
    let run = check(&with_equal_waits(), |run| remove(run, "dlio.log"));
    assert_eq!(run.bound, Some(Bound::AtMost));
    let (from, to) = ("computation_time: 0.3", "computation_time: {mean: 0.3, stdev: 0.01}");
    let drawn = |run: &Path| edit(run, "configs/config.yaml", from, to);
    let run = check(&Fake { is_older: true, ..with_equal_waits() }, drawn);
    assert_eq!(run.bound, Some(Bound::AtLeast));
    // The rates of later releases determine the actual compute time.
    let drawn = |run: &Path| edit(run, "dlio_config/config.yaml", from, to);
    assert_eq!(check(&with_equal_waits(), drawn).bound, None);
}

#[test]
fn steps_of_rank_0_give_the_same_values() {
    let fake = with_equal_waits();
    let folder = tempfile::tempdir().unwrap();
    let complete = read(&fake.write(folder.path(), "w/4/a"));
    let run = fake.write(folder.path(), "closed/x/results/y/training/w/run/20240820_162920");
    for rank in 1..4 {
        remove(&run, &format!("{rank}_output.json"));
        remove(&run, &format!("{rank}_per_epoch_stats.json"));
    }
    let run = read(&run);
    for metric in [&AU_ALL_STEPS, &SAMPLES_WHOLE] {
        assert_close(run.metric(metric), complete.metric(metric), 0.01);
    }
    assert!(
        run.unusable.is_none() && doubt_names(&run).contains(&"no_step_files"),
        "{:?}",
        run.doubts
    );
}

/// Placeholders replace files that were too large to publish.
#[test]
fn a_placeholder_does_not_count_as_damaged() {
    let placeholders =
        ["PRUNED BY STAFF\n", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"];
    for text in placeholders {
        let put = |run: &Path, name: String| fs::write(run.join(name), text).unwrap();
        check(&with_equal_waits(), |run| {
            (0..4).for_each(|rank| put(run, format!("{rank}_output.json")))
        });
        check(&with_equal_waits(), |run| put(run, "dlio.log".into()));
        let folder = tempfile::tempdir().unwrap();
        let run = with_equal_waits()
            .write(folder.path(), "closed/x/results/y/training/w/run/20240820_162920");
        fs::rename(run.join(".hydra"), run.join("dlio_config")).unwrap();
        let complete = read(&run);
        put(&run, "1_output.json".into());
        let part = read(&run);
        assert!(
            part.unusable.is_none() && doubt_names(&part).contains(&"no_step_files"),
            "{part:?}"
        );
        assert_close(part.metric(&AU_ALL_STEPS), complete.metric(&AU_ALL_STEPS), 0.01);
    }
    let (_, damaged) = read_whole_and_published(&with_equal_waits(), |run| {
        fs::write(run.join("1_output.json"), "x").unwrap()
    });
    assert!(doubt_names(&damaged).contains(&"unreadable_files"), "{:?}", damaged.doubts);
}

#[test]
fn other_benchmarks_of_mlperf_are_not_training() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (place, metadata) in [
        ("kv_cache/llama3.1-8b/run/20260722_164611", "kv_cache_20260722_164611_metadata.json"),
        ("vector_database/run/20260723_195640", "vector_database_20260723_195640_metadata.json"),
    ] {
        let run = root.join("closed/x/results/y").join(place);
        fs::create_dir_all(&run).unwrap();
        fs::write(run.join(metadata), "{}").unwrap();
        fs::write(run.join("summary.json"), r#"{"options": {"1": {}}}"#).unwrap();
    }
    let (found, left_out) = find(root).unwrap();
    assert!(found.is_empty(), "{found:?}");
    assert_eq!(left_out.len(), 2);
    assert!(left_out.iter().all(|folder| folder.why.contains("no results of DLIO")));
}

#[test]
fn a_summary_and_a_config_are_a_result_as_reported() {
    let (complete, run) = read_whole_and_published(&with_equal_waits(), |run| {
        for name in ["dlio.log", "0_per_epoch_stats.json"] {
            remove(run, name);
        }
    });
    assert!(
        run.unusable.is_none() && doubt_names(&run).contains(&"no_step_files"),
        "{:?}",
        run.doubts
    );
    assert_eq!(run.reported_au_percent(), complete.reported_au_percent());
    assert_eq!((run.metric(&AU_ALL_STEPS), run.metric(&SAMPLES_WHOLE)), (None, None));
    assert_eq!((run.epochs, run.steps), (complete.epochs, complete.steps));
    let doubt = run.doubts.iter().find(|doubt| doubt.name == "no_step_files").unwrap();
    assert!(doubt.evidence.contains("AU over all steps is unknown"), "{}", doubt.evidence);
}

#[test]
fn the_metadata_of_mlpstorage_replaces_hydras_config() {
    let run = check(&with_equal_waits(), |run| {
        remove(run, "dlio_config/config.yaml");
        let parameters = r#"{"model": "fake", "parameters": {"model": {"name": "fake"}, "workflow": {"train": true}, "dataset": {"format": "npz", "num_files_train": "168", "record_length_bytes": 100000000}, "reader": {"data_loader": "pytorch", "batch_size": 7, "read_threads": "4"}, "train": {"epochs": 2, "computation_time": 0.3}}}"#;
        fs::write(run.join("training_20240820_162920_metadata.json"), parameters).unwrap();
    });
    assert_eq!((run.read_threads, run.batch_size), (Some(4), Some(7)));
}

#[test]
fn the_accelerator_model_follows_from_the_compute_time() {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake { compute_s: 0.224, ..with_equal_waits() };
    let run =
        fake.publish(folder.path(), "closed/x/results/y/training/resnet50/run/20250801_030000");
    remove(&run, "dlio_config");
    assert_eq!(read(&run).workload, "resnet50");
    let mut log = fs::read_to_string(run.join("dlio.log")).unwrap();
    for epoch in 1..=fake.epochs {
        log += &format!(
            "[OUTPUT] 2024-08-20T16:29:20.000000 Epoch {epoch} - Block 1 [Training] Computation time per step (second): 0.2240+/-0.0000\n"
        );
    }
    fs::write(run.join("dlio.log"), log).unwrap();
    assert_eq!(read(&run).workload, "resnet50_h100");
}

#[test]
fn values_in_no_file_stay_unknown() {
    let (_, run) = read_whole_and_published(&with_equal_waits(), |run| {
        remove(run, "dlio.log");
        remove(run, "dlio_config");
    });
    assert_eq!((run.metric(&AU_ALL_STEPS), run.metric(&SAMPLES_WHOLE)), (None, None));
    assert_eq!((run.steps, &run.unusable, run.bound), (0, &Some(Reason::NoSteps), None));
    assert_eq!(run.short_path(), "y/w/run_1/20240820_162920");
    assert!(run.reported_au_percent().is_some());
    let (_, run) = read_whole_and_published(&with_equal_waits(), |run| remove(run, "summary.json"));
    assert!(doubt_names(&run).contains(&"incomplete_run"), "{:?}", run.doubts);
}

#[test]
fn the_steps_that_each_release_counts_are_detected() {
    let folder = tempfile::tempdir().unwrap();
    let counted = |fake: Fake| crate::import::load_dlio(&fake.publish(folder.path(), "a")).totals;
    assert_eq!(counted(with_equal_waits()).unwrap().counted, Some(CountedSteps::AllButTwo));
    fs::remove_dir_all(folder.path().join("a")).unwrap();
    let older = Fake { is_older: true, ..with_equal_waits() };
    assert_eq!(counted(older).unwrap().counted, Some(CountedSteps::All));
}

#[test]
fn runs_in_the_code_of_a_submission_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    with_equal_waits().publish(root, "closed/x/results/y/unet3d/run_1/20240820_162920");
    with_equal_waits().write(root, "closed/x/code/tests/fixtures/run_1");
    with_equal_waits().write(root, "closed/x/v1.0.1_code/tests/test_data");
    with_equal_waits().write(root, "x/code-4a3ce79d/tests/run_1");
    with_equal_waits().write(root, "own/code/run_1");
    let (found, left_out) = find(root).unwrap();
    let found: Vec<_> = found.iter().map(|run| run.path.strip_prefix(root).unwrap()).collect();
    let expected = ["closed/x/results/y/unet3d/run_1/20240820_162920", "own/code/run_1"];
    assert_eq!(found, expected.map(Path::new));
    let is_code = |folder: &LeftOut| folder.why.contains("code of a submission");
    assert!(left_out.iter().all(is_code), "{left_out:?}");
    assert_eq!((left_out.len(), find(&root.join("closed/x/code")).unwrap().0.len()), (3, 1));
}
