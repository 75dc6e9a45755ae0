//! Runs the cases of every doubt in the table, and checks the table itself.

use super::*;
use crate::example::{block, epoch, plan, record, simple};
use crate::record::{FileMembers, HostEpoch, Mount, NamedMember, Record};
use feedrate_spec::transfers::TransferCounts;
use feedrate_spec::workload::TimeSpec;

/// A record that causes no doubts: three epochs of two accelerators with 40 steps; each step has half a second of load and of compute.
fn record_without_doubts() -> Record {
    let steps = vec![(500, 500, 0, 1_000_000); 40];
    let accelerators = |start| vec![vec![block(start, &steps)], vec![block(start, &steps)]];
    let mut record = record(
        plan(2, 40),
        (0..3).map(|i| epoch(i + 1, accelerators(u64::from(i) * 100_000))).collect(),
    );
    for epoch in &mut record.epochs {
        epoch.host = HostEpoch {
            process_device_read_bytes: Some(80_000_000),
            device_read_bytes: Some(80_000_000),
            device_write_bytes: Some(0),
            resident_before_bytes: Some(0),
            resident_sampled_share: 1.0,
            cpu_busy_share: Some(0.2),
            clock_step_ns: Some(0),
            ..HostEpoch::default()
        };
    }
    let mount = |device: &str| Some(Mount { device: device.into(), ..Mount::default() });
    record.system.data_mount = mount("8:1");
    record.system.results_mount = mount("8:2");
    record
}

fn doubt_names(record: &Record) -> Vec<String> {
    doubts(&Derived::new(record)).into_iter().map(|doubt| doubt.name).collect()
}

/// A change of [`record_without_doubts`] with the expected doubt.
pub(super) struct Case {
    /// Part of the evidence of the expected doubt; `None` if no doubt is expected.
    evidence: Option<&'static str>,
    change: fn(&mut Record),
}

/// Expects the doubt of the row after `change`, with evidence that contains `evidence`.
pub(super) const fn fires(evidence: &'static str, change: fn(&mut Record)) -> Case {
    Case { evidence: Some(evidence), change }
}

/// Expects no doubt at all after `change`.
pub(super) const fn silent(change: fn(&mut Record)) -> Case {
    Case { evidence: None, change }
}

pub(super) fn nothing_from_device(record: &mut Record) {
    for epoch in &mut record.epochs {
        epoch.host.process_device_read_bytes = Some(0);
        epoch.host.device_read_bytes = Some(0);
    }
}

pub(super) fn set_device_bytes_unknown(record: &mut Record) {
    record.epochs.iter_mut().for_each(|epoch| epoch.host.process_device_read_bytes = None);
}

/// Adds 1,000 requests to an object store, whose retries cost 2 s of 120 s in reads if there are any.
pub(super) fn set_transfers(record: &mut Record, change: fn(&mut TransferCounts)) {
    let mut counts = TransferCounts {
        requests: 1000,
        retry_lost_ns: 2_000_000_000,
        ..TransferCounts::default()
    };
    change(&mut counts);
    let none = TransferCounts::default();
    record.epochs.iter_mut().for_each(|epoch| epoch.transfers = Some(none.clone()));
    record.epochs[1].transfers = Some(counts);
}

/// Members of files of 1,000 bytes, of which `images` with `read_bytes` is read.
pub(super) fn members(read_bytes: u64) -> Option<FileMembers> {
    let is_elsewhere = false;
    let member = |name: &str, bytes, is_read| NamedMember {
        name: name.into(),
        bytes,
        is_read,
        is_elsewhere,
    };
    Some(FileMembers {
        members: vec![
            member("images", read_bytes, true),
            member("masks", 90, false),
            member("labels", 10, false),
        ],
        file_bytes: 1000,
        ..FileMembers::default()
    })
}

/// Checks that the doubt fires after `change`, with evidence that contains `evidence` and repeats no word.
fn check_fires(kind: &DoubtKind, evidence: &str, change: impl Fn(&mut Record)) {
    let mut record = record_without_doubts();
    change(&mut record);
    let found = doubts(&Derived::new(&record));
    let Some(doubt) = found.iter().find(|doubt| doubt.name == kind.name) else {
        panic!("`{}` did not fire, only {:?}", kind.name, doubt_names(&record))
    };
    assert!(doubt.evidence.contains(evidence), "{}", doubt.evidence);
    assert!(!doubt.advice.is_empty() && doubt.severity == kind.severity);
    let words: Vec<&str> = doubt.evidence.split(' ').collect();
    assert!(words.windows(2).all(|pair| pair[0] != pair[1]), "{}", doubt.evidence);
}

#[test]
fn the_base_record_has_no_doubts() {
    assert_eq!(doubt_names(&record_without_doubts()), Vec::<String>::new());
}

#[test]
fn each_doubt_fires_and_stays_silent_in_its_cases() {
    for row in DOUBTS {
        let name = row.kind.name;
        let silent: Vec<&Case> = row.cases.iter().filter(|case| case.evidence.is_none()).collect();
        let has_check = row.check.is_some();
        assert_eq!(has_check, !silent.is_empty(), "`{name}` needs a silent case");
        assert_eq!(has_check, silent.len() < row.cases.len(), "`{name}` needs a case that fires");
        for case in row.cases.iter().filter(|case| case.evidence.is_some()) {
            check_fires(&row.kind, case.evidence.unwrap(), case.change);
        }
        for case in silent {
            let mut record = record_without_doubts();
            (case.change)(&mut record);
            assert_eq!(doubt_names(&record), Vec::<String>::new(), "`{name}`");
        }
    }
}

#[test]
fn doubts_have_facts_and_text() {
    let mut record = record_without_doubts();
    record.plan.loader.batches_in_flight = 38;
    let found = doubts(&Derived::new(&record));
    assert_eq!(doubt_names(&record), ["too_few_steps"]);
    let json = serde_json::to_string(&found[0].facts).unwrap();
    assert_eq!(json, r#"{"epoch_steps":40,"steps_needed":152}"#);
}

#[test]
fn advice_on_overshoot_depends_on_the_device() {
    let mut on_devices = record_without_doubts();
    on_devices.plan.train.compute = TimeSpec::Constant { mean: 0.49 };
    on_devices.plan.train.on_devices = Some("cuda".into());
    let found = doubts(&Derived::new(&on_devices));
    assert!(found[0].advice.contains("copy of its batch"), "{found:?}");
}

#[test]
fn reported_doubts_appear_once() {
    let reported = |name: &str| PlanDoubt {
        name: name.into(),
        evidence: format!("{name} was found"),
        advice: "do".into(),
    };
    for name in [
        "records_shrunk",
        "not_cold",
        "scaled",
        "dataset_fits_page_cache",
        "checkpoint_not_reached",
        "evaluation_not_reached",
        "samples_in_memory",
        "staged",
        "emulated",
        "client_of_others",
        "raw_checkpoint",
        "checkpoints_exceed_disk",
        "no_replicates",
    ] {
        check_fires(find(name).unwrap(), "was found", |r| r.plan.doubts = vec![reported(name)]);
        check_fires(find(name).unwrap(), "was found", |r| {
            r.doubts = vec![reported(name), reported(name)]
        });
    }
    let mut record = record_without_doubts();
    record.plan.doubts =
        vec![reported("scaled"), reported("of_the_future"), reported("no_replicates")];
    record.doubts = vec![reported("scaled"), reported("not_cold")];
    record.epochs.truncate(1);
    record.complete = false;
    let found = doubts(&Derived::new(&record));
    let expected = [
        ("incomplete_run", Severity::Invalid),
        ("not_cold", Severity::Warning),
        ("of_the_future", Severity::Warning),
        ("scaled", Severity::Note),
        ("no_replicates", Severity::Note),
    ];
    assert_eq!(found.iter().map(|d| (d.name.as_str(), d.severity)).collect::<Vec<_>>(), expected);
}

#[test]
fn a_record_without_epochs_is_only_incomplete() {
    let mut empty = record(plan(1, 5), vec![]);
    empty.complete = false;
    assert_eq!(doubt_names(&empty), ["incomplete_run"]);
    assert!(!doubt_names(&simple(&[])).contains(&"window_shorter_than_stock".to_string()));
}

#[test]
fn every_row_is_complete_and_unique() {
    let names: std::collections::HashSet<_> = DOUBTS.iter().map(|row| row.kind.name).collect();
    assert_eq!(names.len(), DOUBTS.len());
    for doubt in DOUBTS.iter().map(|row| &row.kind) {
        assert!(doubt.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", doubt.name);
        assert!(doubt.meaning.ends_with('.') && !doubt.meaning.contains("  "), "{}", doubt.name);
        assert!(find(doubt.name).is_some_and(|found| std::ptr::eq(found, doubt)));
    }
    assert_eq!(serde_json::to_string(&Severity::Warning).unwrap(), "\"warning\"");
}
