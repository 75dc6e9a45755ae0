//! Tests of the table of rules: each rule breaks alone.

use super::*;

/// Returns the ids of broken and of unknown rules.
fn ids(judged: &[Judgement], keeps: Option<bool>) -> Vec<&'static str> {
    let found = judged.iter().filter(|judged| judged.outcome.keeps == keeps);
    found.map(|judged| judged.rule.id.split(' ').next().unwrap()).collect()
}

fn training() -> TrainingFacts {
    TrainingFacts {
        dataset_to_memory: Some(5.1),
        steps_per_epoch: Some(500),
        steps_min: 500,
        au_percent: Some(92.0),
        au_min_percent: 90.0,
        has_short_window: false,
        changed: Some(Vec::new()),
        is_open: false,
    }
}

#[track_caller]
fn check_training(change: impl Fn(&mut TrainingFacts), broken: &[&str], unknown: &[&str]) {
    let mut facts = training();
    change(&mut facts);
    let judged = judge_training(&facts, V3_0);
    assert_eq!((&*ids(&judged, Some(false)), &*ids(&judged, None)), (broken, unknown));
}

#[test]
fn each_rule_of_training_breaks_alone() {
    check_training(|_| {}, &[], &[]);
    check_training(|facts| facts.dataset_to_memory = Some(4.949), &["3.1.2"], &[]);
    check_training(|facts| facts.dataset_to_memory = Some(4.951), &[], &[]);
    check_training(|facts| facts.steps_per_epoch = Some(499), &["3.1.2"], &[]);
    check_training(|facts| (facts.steps_per_epoch, facts.steps_min) = (Some(499), 499), &[], &[]);
    check_training(|facts| facts.au_percent = Some(89.99), &["3.3.2"], &[]);
    check_training(|facts| facts.dataset_to_memory = None, &[], &["3.1.2"]);
    let changed = |is_open| vec![FixedSetting { key: "dataset.format".into(), is_open }];
    check_training(|facts| facts.changed = Some(changed(true)), &["3.6.2"], &[]);
    let open = |facts: &mut TrainingFacts| {
        facts.changed = Some(changed(true));
        facts.is_open = true;
    };
    check_training(open, &[], &[]);
}

#[test]
fn a_submission_has_five_scored_runs() {
    for (edition, runs, keeps) in [
        (V1_0, 5, Some(true)),
        (V1_0, 6, Some(false)),
        (V3_0, 6, Some(true)),
        (V3_0, 5, Some(false)),
        (V2_0, 5, None),
    ] {
        let facts = SubmissionFacts { runs, ..SubmissionFacts::default() };
        assert_eq!(judge_submission(facts, edition)[0].outcome.keeps, keeps, "{edition:?} {runs}");
    }
}

#[test]
fn runs_of_a_submission_follow_each_other() {
    for (start_gap_ratio, keeps, shown) in [
        (Some(1.01), Some(true), Some("1.01 × the shortest run")),
        (Some(1.999), Some(true), Some("1.99 × the shortest run")),
        (Some(2.0), Some(false), Some("2 × the shortest run")),
        (None, None, None),
    ] {
        let facts = SubmissionFacts { runs: 6, start_gap_ratio };
        let [_, gap] = &judge_submission(facts, V3_0)[..] else { panic!("two rules") };
        assert_eq!(gap.outcome.keeps, keeps);
        let text = gap.outcome.judged.as_ref().map(|judged| match judged {
            Judged::Number { text, .. } => text.as_str(),
            Judged::Names(names) => panic!("{names:?}"),
        });
        assert_eq!(text, shown);
        assert_eq!(gap.outcome.requires, "less than 2 ×");
        assert_eq!(judge_submission(facts, V1_0).len(), 1, "1.0 has no limit");
    }
}

#[test]
fn small_ratios_are_not_rounded_to_zero() {
    for (value, expected) in [(0.002_49, "0.0025"), (0.0104, "0.01"), (4.998, "4.99"), (5.2, "5.2")]
    {
        let Some(Judged::Number { text, .. }) = ratio(value, 5.0) else { panic!() };
        assert_eq!(text, expected);
    }
}

fn checkpoints() -> CheckpointFacts {
    CheckpointFacts {
        model: CheckpointModel::find("llama3_70b").unwrap(),
        is_open: false,
        changed: Some(Vec::new()),
        fsync: Some(true),
        writes: Some(10),
        reads: Some(10),
        gap_s: None,
        invocations: 1,
        written_to_memory: Some(4.4),
        reads_storage: None,
        processes: Some(64),
        is_subset: Some(false),
        hosts: Some(8),
        bytes: Some(978.4e9),
    }
}

#[track_caller]
fn check(change: impl Fn(&mut CheckpointFacts), broken: &[&str], unknown: &[&str]) {
    let mut facts = checkpoints();
    change(&mut facts);
    let judged = judge_checkpoints(&facts, V3_0);
    assert_eq!((&*ids(&judged, Some(false)), &*ids(&judged, None)), (broken, unknown));
}

#[test]
fn each_rule_of_checkpoints_breaks_alone() {
    check(|_| {}, &[], &[]);
    let heads =
        FixedSetting { key: "model.transformer.num_attention_heads".into(), is_open: false };
    check(|facts| facts.changed = Some(vec![heads.clone()]), &["4.6.3"], &[]);
    check(|facts| facts.changed = None, &[], &["4.6.3"]);
    check(|facts| facts.fsync = Some(false), &["4.3.2"], &[]);
    check(|facts| facts.written_to_memory = Some(2.9), &[], &["4.3.1"]);
    let cached = |facts: &mut CheckpointFacts, reads_storage| {
        facts.written_to_memory = Some(2.9);
        facts.reads_storage = Some(reads_storage);
    };
    check(|facts| cached(facts, true), &[], &[]);
    check(|facts| cached(facts, false), &["4.3.1"], &[]);
    check(|facts| facts.bytes = Some(960e9), &["4.3.3"], &[]);
    check(|facts| facts.hosts = Some(7), &["4.6.2"], &[]);
    check(|facts| facts.hosts = Some(32), &["4.6.2"], &[]);
    check(|facts| facts.hosts = None, &[], &["4.6.2"]);
    check(|facts| facts.writes = Some(5), &["4.7.1"], &[]);
    // Ten writes alone are half of a submission; when the reads began is unknown.
    check(|facts| facts.reads = Some(0), &[], &["4.7.1", "4.7.1"]);
    let two = |facts: &mut CheckpointFacts, gap_s| {
        facts.invocations = 2;
        facts.gap_s = Some(gap_s);
    };
    check(|facts| two(facts, 29.0), &[], &[]);
    check(|facts| two(facts, 31.0), &["4.7.1"], &[]);
    let subset = |facts: &mut CheckpointFacts| {
        facts.is_subset = Some(true);
        facts.processes = Some(8);
        facts.hosts = Some(1);
    };
    check(subset, &["4.3.5", "4.6.1"], &["4.3.3"]);
    let of_8b = |facts: &mut CheckpointFacts| {
        subset(facts);
        facts.model = CheckpointModel::find("llama3-8b").unwrap();
        facts.bytes = Some(112.4e9);
    };
    check(of_8b, &[], &[]);
    let open = |facts: &mut CheckpointFacts| {
        facts.is_open = true;
        facts.processes = Some(128);
    };
    check(open, &[], &[]);
    check(|facts| facts.processes = Some(128), &["4.6.1"], &[]);
}

#[test]
fn rules_that_an_edition_does_not_state_are_unknown() {
    let facts = CheckpointFacts { is_subset: Some(true), ..checkpoints() };
    let judged = judge_checkpoints(&facts, V2_0);
    assert_eq!(ids(&judged, Some(false)), Vec::<&str>::new());
    assert_eq!(ids(&judged, None), ["4.3.1", "4.3.3", "4.3.5", "4.6.1", "4.7.1"]);
    let all = [None, Some(true)];
    assert_eq!(keeps_all(all.into_iter()), None);
    assert_eq!(keeps_all(all.into_iter().chain([Some(false)])), Some(false));
}

#[test]
fn a_ratio_is_not_rounded_up_to_its_limit() {
    let text = |value| match ratio(value, 5.0) {
        Some(Judged::Number { text, .. }) => text,
        judged => panic!("{judged:?}"),
    };
    assert_eq!([0.6459, 4.997, 5.1, 6.157].map(text), ["0.65", "4.99", "5.1", "6.16"]);
}

#[test]
fn editions_are_found_by_name() {
    assert_eq!(Edition::from_name("v1.0"), Some(V1_0));
    assert_eq!(Edition::from_name("v4.0"), None);
    assert_eq!(Edition::in_folder_name("storage_results_v1.0"), Some(V1_0));
    assert_eq!(Edition::last_accepting("mi355"), Some(V3_0));
}
