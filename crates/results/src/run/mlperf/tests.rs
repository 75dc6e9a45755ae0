//! Tests that each fact of a training run decides its rule.

use super::*;
use crate::doubt::DOUBTS;
use crate::run::Submission;
use feedrate_measure::facts::Facts;
use feedrate_measure::record::Contradiction;

/// Returns a run that complies with the rules: 4200 files on a host with 100 GB of memory.
fn run() -> Run {
    let settings = [("train.compute.mean", "0.323")];
    Run {
        origin: RunOrigin::MlperfStorage,
        activity: Activity::Training,
        workload: "unet3d_h100".into(),
        record_length_bytes: Some(146_600_628.0),
        files: Some(4200),
        samples_per_file: Some(1),
        batch_size: Some(7),
        steps: 600,
        format: Some("npz".into()),
        memory_bytes: Some(100_000_000_000),
        reported: [("train_au_mean_percentage".into(), 91.0)].into(),
        settings: settings.map(|(key, value)| (key.into(), value.into())).into(),
        overrides: vec!["++workload.reader.read_threads=8".into()],
        ..Run::default()
    }
}

#[track_caller]
fn check(change: impl Fn(&mut Run), keeps: Option<bool>, changed: &[&str]) {
    let mut run = run();
    change(&mut run);
    let found = run.mlperf().unwrap();
    let names = found.rules.iter().flat_map(|rule| &rule.names);
    let names: Vec<&str> = names.map(|name| name.trim_matches('`')).collect();
    assert_eq!((found.keeps, names), (keeps, changed.to_vec()));
}

#[test]
fn each_rule_is_checked_and_unknown_values_are_not_violations() {
    check(|_| {}, Some(true), &[]);
    check(|run| run.steps = 499, Some(false), &[]);
    let memory_of = |times: f64| Some((146_600_628.0 * 4200.0 / times) as u64);
    check(|run| run.memory_bytes = memory_of(4.95), Some(true), &[]);
    check(|run| run.memory_bytes = memory_of(4.94), Some(false), &[]);
    let profiler = |run: &mut Run, name| {
        run.overrides.push(format!("++workload.profiling.profiler={name}"));
    };
    check(|run| profiler(run, "none"), Some(true), &[]);
    check(|run| profiler(run, "iostat"), Some(false), &["profiling.profiler"]);
    let smallest_resnet50 = |run: &mut Run, steps| {
        run.workload = "resnet50_h100".into();
        run.format = Some("tfrecord".into());
        run.record_length_bytes = Some(114_660.07);
        run.samples_per_file = Some(1251);
        run.batch_size = Some(400);
        run.accelerators = Some(36);
        run.steps = steps;
        drop(run.settings.insert("train.compute.mean".into(), "0.224".into()));
    };
    check(|run| smallest_resnet50(run, 499), Some(true), &[]);
    check(|run| smallest_resnet50(run, 498), Some(false), &[]);
    check(|run| run.memory_bytes = Some(200_000_000_000), Some(false), &[]);
    check(|run| run.memory_bytes = None, None, &[]);
    check(
        |run| run.reported = [("train_au_mean_percentage".into(), 89.9)].into(),
        Some(false),
        &[],
    );
    check(|run| run.reported.clear(), None, &[]);
    check(|run| run.format = None, None, &[]);
    check(|run| run.batch_size = Some(8), Some(false), &["reader.batch_size"]);
    // No class is published for this accelerator.
    let scaled = |run: &mut Run| {
        run.workload = "unet3d_mi355".into();
        drop(run.settings.insert("train.compute.mean".into(), "0.162".into()));
        let mut config = CoreConfig::default();
        config.add_option("--scale", Some(0.01));
        run.core_config = Some(config);
    };
    check(scaled, Some(false), &["--scale"]);
    let slow = |run: &mut Run| drop(run.settings.insert("train.compute.mean".into(), "0.4".into()));
    check(slow, Some(false), &["train.computation_time"]);
    let png = |run: &mut Run| {
        run.format = Some("png".into());
        run.overrides = vec!["++workload.dataset.format=png".into()];
    };
    check(png, Some(false), &["dataset.format` (open only)"]);
    let submission = Submission {
        round: None,
        division: "open".into(),
        submitter: "X".into(),
        system: "fast-1".into(),
    };
    let open = |run: &mut Run| run.submission = Some(submission.clone());
    let open_png = |run: &mut Run| {
        png(run);
        open(run);
    };
    check(open_png, Some(true), &["dataset.format` (open only)"]);
    let open_batch = |run: &mut Run| {
        open(run);
        run.batch_size = Some(8);
    };
    check(open_batch, Some(false), &["reader.batch_size"]);
    let short = |run: &mut Run| {
        let kind = feedrate_measure::doubt::find(SHORT_WINDOW).unwrap();
        run.doubts.push(kind.with_facts(Facts::new()));
    };
    check(short, None, &[]);
    let short_and_low = |run: &mut Run| {
        short(run);
        run.reported = [("train_au_mean_percentage".into(), 89.9)].into();
    };
    check(short_and_low, Some(false), &[]);
    let misreported = |run: &mut Run| {
        let row = DOUBTS.iter().find(|row| row.kind.name == "au_misreported").unwrap();
        run.doubts.push(row.kind.with_facts(Facts::new()));
    };
    check(misreported, None, &[]);
    let misreported_and_small = |run: &mut Run| {
        misreported(run);
        run.steps = 499;
    };
    check(misreported_and_small, Some(false), &[]);
    // The doubt alone leaves everything unknown; a contradicted key that the rules fix counts as changed.
    let contradicted = |run: &mut Run| {
        let kind = feedrate_measure::doubt::find(CONFIG_DISAGREES).unwrap();
        run.doubts.push(kind.with_facts(Facts::new()));
    };
    check(contradicted, None, &[]);
    let edited = |run: &mut Run| {
        contradicted(run);
        run.contradictions = ["reader.read_threads", "train.epochs"]
            .map(|key| Contradiction { key: Some(key.into()), text: String::new() })
            .into();
    };
    check(edited, Some(false), &["train.epochs"]);
    let recorded = |run: &mut Run| run.origin = RunOrigin::Feedrate;
    check(recorded, None, &[]);
    let without_device = |run: &mut Run| {
        recorded(run);
        run.has_no_device = true;
    };
    check(without_device, Some(false), &["storage.kind"]);
    let slowed = |run: &mut Run| {
        recorded(run);
        drop(run.settings.insert("storage.throttle_bytes_per_second".into(), "4e8".into()));
    };
    check(slowed, Some(false), &["storage.throttle_bytes_per_second"]);
    assert_eq!(run().mlperf().unwrap().rules[0].value.as_deref(), Some("6.16"));
    assert_eq!(Run { workload: "mine".into(), ..run() }.mlperf(), None);
}
