//! Tests of answers from made-up records.

use super::*;
use crate::repeat::RepeatedAnswer;
use feedrate_measure::example::{
    block, checkpoint_only_record, epoch, plan, record, set_stall, simple,
};
use feedrate_measure::facts::Facts;
use feedrate_measure::record::{FileMembers, Mount, NamedMember, Stall};
use feedrate_measure::waits::WaitCause;
use feedrate_spec::plan::PlanDoubt;
use feedrate_spec::workload::TimeSpec;
use std::path::Path;

fn answer(record: &Record) -> Answer {
    let answer = AnsweredSummary::new(record).answer;
    let run = Run::from_record(Path::new(""), record);
    assert_eq!(Answer::from_run(&run).as_ref(), Some(&answer));
    answer
}

/// Checks the answer for one accelerator with 20 steps of one second and 1 MB each.
fn check(change: impl Fn(&mut Record), kind: AnswerKind, because: Option<UnknownBecause>) {
    let mut record = simple(&[(500, 500, 0, 1_000_000); 20]);
    change(&mut record);
    let answer = answer(&record);
    assert_eq!((answer.kind, answer.unknown_because), (kind, because), "{answer:?}");
    assert_eq!(answer.fed.is_some(), matches!(kind, AnswerKind::Yes | AnswerKind::No));
}

#[test]
fn the_kind_follows_from_the_record() {
    check(|_| {}, AnswerKind::No, None);
    check(|r| r.plan.metric.au_target_percent = 50.0, AnswerKind::Yes, None);
    check(|r| r.plan.metric.au_target_percent = 50.1, AnswerKind::No, None);
    let without_compute = |r: &mut Record| r.epochs[0].accelerators[0].blocks[0].compute_ns.fill(0);
    check(without_compute, AnswerKind::Rate, None);
    let cached = |r: &mut Record| {
        r.epochs[0].host.process_device_read_bytes = Some(0);
        r.epochs[0].host.resident_before_bytes = Some(20_000_000);
    };
    check(cached, AnswerKind::Unknown, Some(UnknownBecause::CacheFed));
    let resident = |r: &mut Record| {
        r.plan.metric.au_target_percent = 50.0;
        r.epochs[0].host.resident_before_bytes = Some(20_000_000);
    };
    check(resident, AnswerKind::Unknown, Some(UnknownBecause::CacheFed));
    // The page cache was cold, but the program behind FUSE may have cached the files.
    let hidden = |au_target_percent: f64| {
        move |r: &mut Record| {
            r.plan.metric.au_target_percent = au_target_percent;
            r.epochs[0].host.resident_before_bytes = Some(0);
            let file_system = "fuse.sshfs".to_string();
            r.system.data_mount = Some(Mount { file_system, ..Mount::default() });
        }
    };
    check(hidden(50.0), AnswerKind::Unknown, Some(UnknownBecause::CacheFed));
    check(hidden(90.0), AnswerKind::No, None);
    check(
        |r| {
            cached(r);
            without_compute(r);
        },
        AnswerKind::Rate,
        None,
    );
    let busy = |r: &mut Record| r.epochs[0].host.cpu_busy_share = Some(0.97);
    check(busy, AnswerKind::Unknown, Some(UnknownBecause::CpuSaturated));
    check(
        |r| {
            busy(r);
            without_compute(r);
        },
        AnswerKind::Rate,
        None,
    );
    let linked = |au_target_percent: f64| {
        move |r: &mut Record| {
            r.plan.metric.au_target_percent = au_target_percent;
            let name = "images".to_string();
            let link = NamedMember { name, bytes: 0, is_read: false, is_elsewhere: true };
            r.members = Some(FileMembers { members: vec![link], ..FileMembers::default() });
        }
    };
    check(linked(50.0), AnswerKind::Unknown, Some(UnknownBecause::DataUnread));
    check(linked(90.0), AnswerKind::No, None);
    check(|r| r.epochs.clear(), AnswerKind::Unknown, Some(UnknownBecause::Invalid));
    let stopped = |why: Option<&'static str>| {
        move |r: &mut Record| {
            (r.complete, r.stopped_because) = (false, why.map(str::to_string));
        }
    };
    let unknown = AnswerKind::Unknown;
    check(stopped(Some("interrupted")), unknown, Some(UnknownBecause::Interrupted));
    check(stopped(Some("cannot read")), unknown, Some(UnknownBecause::Incomplete));
    check(stopped(None), unknown, Some(UnknownBecause::Incomplete));
}

#[test]
fn a_doubt_is_relevant_only_if_it_could_change_the_answer() {
    let [fed, not_fed] = [50.0, 90.0].map(|target_percent| {
        let mut record = simple(&[(500, 500, 0, 1_000_000); 20]);
        record.plan.metric.au_target_percent = target_percent;
        answer(&record)
    });
    let rate = Answer { kind: AnswerKind::Rate, ..fed.clone() };
    let unknown = |because| {
        let unknown_because = Some(because);
        Answer { kind: AnswerKind::Unknown, unknown_because, ..fed.clone() }
    };
    let cached = unknown(UnknownBecause::CacheFed);
    let saturated = unknown(UnknownBecause::CpuSaturated);
    let verdict = Bound::CheckpointsOnly;
    let checkpoints = Answer { kind: AnswerKind::Checkpoints, verdict, ..fed.clone() };
    let answers = [&fed, &not_fed, &rate, &cached, &saturated, &checkpoints];
    let check = |severity, bias, expected: [bool; 6]| {
        let doubt = Doubt {
            name: "d".into(),
            severity,
            bias,
            evidence: String::new(),
            advice: String::new(),
            facts: Facts::new(),
        };
        let found = answers.map(|answer| answer.could_be_changed_by(&doubt));
        assert_eq!(found, expected, "{severity:?} {bias:?}");
    };
    check(Severity::Warning, Bias::Raised, [true, false, true, true, false, true]);
    check(Severity::Warning, Bias::Lowered, [false, true, true, false, true, true]);
    check(Severity::Warning, Bias::Either, [true; 6]);
    let only_checkpoints = [false, false, false, false, false, true];
    check(Severity::Warning, Bias::Checkpoints, only_checkpoints);
    check(Severity::Warning, Bias::Unaffected, [false; 6]);
    check(Severity::Note, Bias::Either, [false; 6]);
    check(Severity::Invalid, Bias::Unaffected, [true; 6]);
}

/// Records of typical sound runs: many doubts, but at most two could change the answer.
#[test]
fn a_typical_sound_run_has_at_most_two_relevant_doubts() {
    let typical = |load_ms: u64, change: &dyn Fn(&mut Record)| {
        let mut record = simple(&[(load_ms, 500, 0, 1_000_000); 40]);
        let host = &mut record.epochs[0].host;
        host.cpu_busy_share = Some(0.6);
        host.process_device_read_bytes = Some(40_000_000);
        host.resident_before_bytes = Some(0);
        for name in ["emulated", "dataset_fits_page_cache", "scaled"] {
            record.doubts.push(PlanDoubt {
                name: name.into(),
                evidence: "e".into(),
                advice: "a".into(),
            });
        }
        change(&mut record);
        let answered = AnsweredSummary::new(&record);
        let doubts = &answered.summary.doubts;
        let names = |doubts: &[&Doubt]| -> Vec<String> {
            doubts.iter().map(|doubt| doubt.name.clone()).collect()
        };
        let shown = relevant_doubts(Some(&answered.answer), doubts);
        assert!(shown.len() <= 2, "{:?}", names(&shown));
        assert!(2 < doubts.len(), "{:?}", names(&doubts.iter().collect::<Vec<_>>()));
    };
    let in_memory = |record: &mut Record| {
        record.epochs[0].host.resident_before_bytes = None;
        record.epochs[0].host.process_device_read_bytes = Some(0);
    };
    let emulated = |record: &mut Record| record.plan.storage.throttle_bytes_per_second = Some(2e6);
    let mpi = |record: &mut Record| {
        let accelerator = record.epochs[0].accelerators[0].clone();
        record.epochs[0].accelerators.push(accelerator);
        record.plan.accelerators = 2;
    };
    let other_programs = |record: &mut Record| {
        record.epochs[0].host.device_read_bytes = Some(400_000_000);
        record.epochs[0].host.cpu_busy_share = Some(0.97);
    };
    let partly_cached = |record: &mut Record| {
        record.epochs[0].host.process_device_read_bytes = Some(38_000_000);
    };
    // A long start makes the window differ from the rest.
    let slow_start = |record: &mut Record| {
        record.epochs[0].accelerators[0].blocks[0].load_ns[0] = 20_000_000_000;
    };
    for load_ms in [0, 10, 800] {
        typical(load_ms, &|_| {});
        typical(load_ms, &in_memory);
        typical(load_ms, &emulated);
        typical(load_ms, &mpi);
        typical(load_ms, &other_programs);
        typical(load_ms, &partly_cached);
        typical(load_ms, &slow_start);
    }
}

/// Steps of 500 instead of 440 ms raise 44 % to 50 %.
#[test]
fn a_yes_that_slow_compute_could_cause_is_only_probable() {
    for (target_percent, kind, is_only_probable) in [
        (43.0, AnswerKind::Yes, false),
        (48.0, AnswerKind::Yes, true),
        (51.0, AnswerKind::No, false),
    ] {
        let mut record = simple(&[(500, 500, 0, 1_000_000); 20]);
        record.plan.metric.au_target_percent = target_percent;
        record.plan.train.compute = TimeSpec::Constant { mean: 0.44 };
        let found = answer(&record);
        assert_eq!((found.kind, found.rests_on_few_steps()), (kind, false), "{found:?}");
        assert_eq!(found.is_only_probable(), is_only_probable, "{target_percent}");
        let runs = [AnsweredSummary::new(&record), AnsweredSummary::new(&record)];
        assert_eq!(RepeatedAnswer::new(&runs).is_open, is_only_probable, "{target_percent}");
    }
}

#[test]
fn a_wide_interval_or_busy_cores_are_noise() {
    let noise = |steps: &[(u64, u64, u64, u64)], change: &dyn Fn(&mut Record)| {
        let mut record = simple(steps);
        change(&mut record);
        answer(&record).noise
    };
    let wait = |ms: u64| (ms, 100, 0, 4_000_000);
    assert_eq!(noise(&[wait(200), wait(400)], &|_| {}), Some(Noise::WideInterval));
    // The interval is wide, but excludes the required utilisation.
    let low_target = |record: &mut Record| record.plan.metric.au_target_percent = 97.0;
    assert_eq!(noise(&[wait(200), wait(400)], &low_target), None);
    assert_eq!(noise(&[wait(300), wait(300)], &|_| {}), None);
    let busy = |record: &mut Record| record.epochs[0].host.cpu_busy_share = Some(0.97);
    assert_eq!(noise(&[wait(300); 40], &busy), Some(Noise::BusyCores));
}

#[test]
fn a_run_without_training_is_answered_as_checkpoints() {
    let mut record = checkpoint_only_record(3);
    record.complete = true;
    record.plan.checkpoint.as_mut().unwrap().fsync = true;
    record.epochs[0].checkpoints[2].process_device_read_bytes = Some(1 << 30);
    let complete = answer(&record);
    assert_eq!((complete.kind, complete.fed), (AnswerKind::Checkpoints, None));
    assert_eq!(complete.samples_per_second, None);
    assert!(complete.checkpoints.unwrap().are_rates_of_storage());
    record.epochs[0].checkpoints[2].process_device_read_bytes = Some(0);
    assert_eq!(answer(&record).unknown_because, Some(UnknownBecause::CacheFed));
    record.epochs[0].checkpoints.pop();
    assert_eq!(answer(&record).kind, AnswerKind::Checkpoints);
    record.plan.checkpoint.as_mut().unwrap().fsync = false;
    assert_eq!(answer(&record).unknown_because, Some(UnknownBecause::CacheFed));
    record.complete = false;
    assert_eq!(answer(&record).unknown_because, Some(UnknownBecause::Incomplete));
}

/// Storage is no faster than memory. If memory cannot feed the accelerators, storage cannot either.
#[test]
fn accelerators_that_memory_does_not_feed_are_not_fed() {
    let mut record = simple(&[(500, 500, 0, 1_000_000); 20]);
    set_stall(&mut record, Stall { decode_ns: 10_000_000_000, ..Stall::default() });
    assert!(!answer(&record).is_memory_served);
    record.epochs[0].host.process_device_read_bytes = Some(0);
    record.epochs[0].host.resident_before_bytes = Some(20_000_000);
    let cached = answer(&record);
    assert_eq!((cached.fed, cached.verdict), (Some(false), Bound::DecodeBound));
    assert!(cached.is_memory_served);
    assert_eq!(cached.missing_bytes_per_second(), None);
    record.plan.metric.au_target_percent = 50.0;
    assert_eq!(answer(&record).unknown_because, Some(UnknownBecause::CacheFed));
}

/// Two accelerators compute for 100 of the 200 ms of each step, so 20 MB/s are delivered but 40 MB/s are needed.
#[test]
fn rates_belong_to_the_utilisation_that_decides() {
    let steps = [(100, 100, 0, 2_000_000); 40];
    let blocks = vec![vec![block(0, &steps)], vec![block(0, &steps)]];
    let mut plan = plan(2, 40);
    plan.train.compute = TimeSpec::Constant { mean: 0.1 };
    let answer = answer(&record(plan, vec![epoch(1, blocks)]));
    assert_eq!(answer.au_kind, Some("au_sustained_percent"));
    assert_eq!(answer.au_percent, Some(50.0));
    assert_eq!(answer.needed_bytes_per_second, Some(40e6));
    assert_eq!(answer.delivered_bytes_per_second, Some(20e6));
    assert_eq!(answer.missing_bytes_per_second(), Some(16e6));
    // The window excludes the first step.
    let window = AnswerWindow { epochs: 1, steps: 39, seconds: 7.8 };
    assert_eq!(answer.window, Some(window));
    assert_eq!(answer.wait, Some(WaitPart { cause: WaitCause::Read, percent: 100.0 }));
}

/// Two steps wait 200 and 400 ms; six steps wait 600 ms in total; 18 steps are the six steps repeated.
#[test]
fn few_steps_are_certain_if_they_hardly_differ() {
    let certainty = |steps: &[(u64, u64, u64, u64)], required_percent: f64| {
        let mut record = simple(steps);
        record.plan.metric.au_target_percent = required_percent;
        let answer = answer(&record);
        let ends = answer.interval.map(|ends| ends.map(|end| end.round()));
        (answer.au_percent.map(f64::round), ends, answer.rests_on_few_steps())
    };
    let wait = |ms: u64| (ms, 100, 0, 4_000_000);
    assert_eq!(certainty(&[wait(300)], 90.0), (Some(25.0), None, true));
    assert_eq!(certainty(&[wait(300), wait(300)], 90.0), (Some(25.0), Some([25.0; 2]), false));
    // A standard error of 6.25 % of 25 %, or 1/3 of a logit, times t(1) = 12.7.
    assert_eq!(certainty(&[wait(200), wait(400)], 90.0), (Some(25.0), Some([0.0, 96.0]), true));
    assert!(!certainty(&[wait(200), wait(400)], 97.0).2);
    let first = [wait(600), wait(0), wait(0), wait(0), wait(0), wait(0)];
    assert!(certainty(&first, 90.0).2);
    let repeated: Vec<_> = first.iter().chain(&first).chain(&first).copied().collect();
    assert!(!certainty(&repeated, 90.0).2, "{:?}", certainty(&repeated, 90.0));
}

/// Two runs of one workload need the same rate, even if their timers fired late by different amounts.
#[test]
fn the_needed_rate_follows_from_the_configured_compute_time() {
    let needed = |compute: TimeSpec| {
        let mut record = simple(&[(300, 104, 0, 4_000_000); 3]);
        record.plan.train.compute = compute;
        answer(&record).needed_bytes_per_second.map(f64::round)
    };
    assert_eq!(needed(TimeSpec::Constant { mean: 0.1 }), Some(40e6));
    // For random compute times, the measured time is used.
    assert_eq!(needed(TimeSpec::Exponential { scale: 0.1 }), Some(38_461_538.0));
}

#[test]
fn short_epochs_are_judged_over_all_steps() {
    let answer = answer(&simple(&[(300, 100, 0, 4_000_000); 3]));
    assert_eq!(answer.au_kind, Some("au_all_steps_percent"));
    assert_eq!(answer.au_percent, Some(25.0));
    assert_eq!(answer.needed_bytes_per_second, Some(40e6));
    assert_eq!(answer.delivered_bytes_per_second, Some(10e6));
    assert_eq!(answer.window, Some(AnswerWindow { epochs: 1, steps: 3, seconds: 1.2 }));
}

/// The first step takes half of the time, and no later step waits.
#[test]
fn mlperfs_window_is_reported_if_it_decides_differently() {
    let mut steps = [(0, 100, 0, 1_000_000); 6];
    steps[0].0 = 600;
    let mut short = simple(&steps);
    let not_fed = answer(&short);
    assert_eq!((not_fed.fed, not_fed.au_percent), (Some(false), Some(50.0)));
    assert_eq!(not_fed.windowed_disagrees_percent, Some(100.0));
    short.plan.metric.au_target_percent = 50.0;
    assert_eq!(answer(&short).windowed_disagrees_percent, None);
}
