//! Tests of the table of rules: each rule breaks alone.

use super::*;

/// Returns the ids of broken and of unknown rules.
fn ids(judged: &[Judgement], keeps: Option<bool>) -> Vec<&'static str> {
    let found = judged.iter().filter(|judged| judged.outcome.keeps == keeps);
    found.map(|judged| judged.rule.id.split(' ').next().unwrap()).collect()
}

fn training() -> TrainingFacts {
    TrainingFacts {
        dataset_bytes: Some(5.1e9),
        memory_bytes: Some(1_000_000_000),
        memory_max_bytes: None,
        memory_source: MemorySource::Known,
        steps_per_epoch: Some(500),
        steps_min: 500,
        au_percent: Some(92.0),
        au_min_percent: 90.0,
        has_short_window: false,
        changed: Some(Vec::new()),
        is_open: false,
        accelerators: Some(8),
        hosts: Some(2),
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
    check_training(|facts| facts.dataset_bytes = Some(4.949e9), &["3.1.2"], &[]);
    check_training(|facts| facts.dataset_bytes = Some(4.951e9), &[], &[]);
    check_training(|facts| facts.steps_per_epoch = Some(499), &["3.1.2"], &[]);
    check_training(|facts| (facts.steps_per_epoch, facts.steps_min) = (Some(499), 499), &[], &[]);
    check_training(|facts| facts.au_percent = Some(89.99), &["3.3.2"], &[]);
    check_training(|facts| facts.memory_bytes = None, &[], &["3.1.2"]);
    check_training(|facts| facts.hosts = Some(3), &["3.3.6"], &[]);
    check_training(|facts| facts.hosts = None, &[], &[]);
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
        assert_eq!(ratio_text(value, 5.0), expected);
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
    // 64 processes on 7 hosts: 9 or 10 on each.
    check(|facts| facts.hosts = Some(7), &[], &[]);
    check(|facts| facts.hosts = Some(32), &["4.6.2"], &[]);
    check(|facts| facts.hosts = Some(16), &[], &["4.6.2"]);
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
    let text = |value| ratio_text(value, 5.0);
    assert_eq!([0.6459, 4.997, 5.1, 6.157].map(text), ["0.65", "4.99", "5.1", "6.16"]);
}

#[test]
fn editions_are_found_by_name() {
    assert_eq!(Edition::from_name("v1.0"), Some(V1_0));
    assert_eq!(Edition::from_name("v4.0"), None);
    assert_eq!(Edition::in_folder_name("storage_results_v1.0"), Some(V1_0));
    assert_eq!(Edition::last_accepting("mi355"), Some(V3_0));
}

#[test]
fn four_processes_per_host_are_disputed() {
    let outcome = |processes, is_open| {
        let facts = CheckpointFacts {
            processes: Some(processes),
            hosts: Some(2),
            is_open,
            ..checkpoints()
        };
        processes_per_host(&facts)
    };
    let requires = |processes, is_open| {
        let found = outcome(processes, is_open);
        (found.keeps, found.requires)
    };
    let disputed = "more than 4; exactly 4 is disputed: the official checker rejects it, a table of the rules allows it";
    assert_eq!(requires(8, false), (None, disputed.into()));
    // One of the hosts has 4.
    assert_eq!(requires(9, false), (None, disputed.into()));
    assert_eq!(requires(10, false), (Some(true), "more than 4".into()));
    assert_eq!(requires(6, false), (Some(false), "more than 4".into()));
    assert_eq!(requires(8, true), (Some(true), "at least 4".into()));
}

#[test]
fn memory_of_a_summary_may_be_limited() {
    let check = |dataset_bytes, memory_bytes, memory_source, keeps, requires: &str| {
        let facts = TrainingFacts { dataset_bytes, memory_bytes, memory_source, ..training() };
        let found = dataset_to_memory(&facts);
        assert_eq!((found.keeps, &*found.requires), (keeps, requires), "{facts:?}");
        found.judged
    };
    let gib = |count: u64| count << 30;
    let small = Some(gib(478) as f64);
    let shown =
        "at least 5; the memory is that in `summary.json`, which shows no limit of a cgroup";
    let judged = check(small, Some(gib(248)), MemorySource::Summary, Some(false), shown);
    let Some(Judged::Number { text, terms, .. }) = judged else { panic!("{judged:?}") };
    assert_eq!((&*text, terms.as_deref()), ("1.93", Some("478 GiB ÷ 248 GiB")));
    let limited =
        "at least 5; `systems/` mentions a cgroup, which may limit the memory in `summary.json`";
    check(small, Some(gib(248)), MemorySource::SummaryDespiteLimit, None, limited);
    check(small, Some(gib(32)), MemorySource::SummaryDespiteLimit, Some(true), "at least 5");
    let missing = "at least 5; the results do not state the memory of all hosts";
    check(small, None, MemorySource::Summary, None, missing);
    check(small, Some(gib(248)), MemorySource::Known, Some(false), "at least 5");
}

#[test]
fn the_most_memory_may_suffice_to_keep_the_rule() {
    let check = |memory_max_bytes, keeps, shown: Option<&str>| {
        let facts = TrainingFacts { memory_bytes: None, memory_max_bytes, ..training() };
        let found = dataset_to_memory(&facts);
        let text = found.judged.as_ref().map(|judged| match judged {
            Judged::Number { text, .. } => text.as_str(),
            Judged::Names(names) => panic!("{names:?}"),
        });
        assert_eq!((found.keeps, text), (keeps, shown));
    };
    check(Some(750_000_000), Some(true), Some("at least 6.8"));
    check(Some(2_000_000_000), None, None);
    check(None, None, None);
}
