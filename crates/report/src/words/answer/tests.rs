//! Tests of the lines of answers.

use super::*;
use feedrate_analysis::answer::AnsweredSummary;
use feedrate_measure::example::{
    block, checkpoint, checkpoint_only_record, epoch, plan, record, simple,
};
use feedrate_measure::record::{RankCheckpoint, Record};
use feedrate_spec::plan::{EvaluationPlan, PlanDoubt};
use feedrate_spec::transfers::TransferCounts;
use feedrate_spec::workload::TimeSpec;

#[track_caller]
fn check(record: &Record, expected: &[&str]) {
    let summary = AnsweredSummary::new(record);
    assert_eq!(lines(&summary.answer, &summary.summary.doubts), expected);
}

/// 40 steps of 200 ms, of which an accelerator computes half.
fn starved_run(accelerators: u32) -> Record {
    let blocks = vec![vec![block(0, &[(100, 100, 0, 2_000_000); 40])]; accelerators as usize];
    let mut plan = plan(accelerators, 40);
    plan.train.compute = TimeSpec::Constant { mean: 0.1 };
    record(plan, vec![epoch(1, blocks)])
}

#[test]
fn a_starved_run_names_its_bound() {
    check(
        &starved_run(2),
        &[
            "NO: 50 % AU, target 90 %, storage-bound",
            "Needs 40 MB/s, gets 20 MB/s (50 %); 100 % of the wait is reading",
        ],
    );
    check(
        &simple(&[(300, 100, 0, 4_000_000)]),
        &[
            "PROBABLY NO: 25 % AU over its one step, target 90 %, storage-bound",
            "Needs 40 MB/s, gets 10 MB/s (25 %); 100 % of the wait is reading",
        ],
    );
    check(
        &simple(&[(300, 100, 0, 4_000_000); 3]),
        &[
            "NO: 25 % AU over all 3 steps, target 90 %, storage-bound",
            "Needs 40 MB/s, gets 10 MB/s (25 %); 100 % of the wait is reading",
        ],
    );
}

#[test]
fn a_utilisation_over_all_steps_that_differs_is_named() {
    for (start_ns, says) in [
        (800, "YES: 100 % AU, target 90 %, compute-bound; 83 % over all steps"),
        (160, "YES: 100 % AU, target 90 %, compute-bound"),
    ] {
        let mut steps = [(0, 100, 0, 2_000_000); 40];
        steps[0].0 = start_ns;
        let mut plan = plan(1, 40);
        plan.train.compute = TimeSpec::Constant { mean: 0.1 };
        let record = record(plan, vec![epoch(1, vec![vec![block(0, &steps)]])]);
        let summary = AnsweredSummary::new(&record);
        assert_eq!(lines(&summary.answer, &summary.summary.doubts)[0], says);
    }
}

#[test]
fn a_fed_run_states_its_rates() {
    let mut fed = starved_run(1);
    fed.plan.metric.au_target_percent = 45.5;
    let rates = "Needs 20 MB/s, gets 10 MB/s (50 %); 50 % of the time is waiting";
    check(&fed, &["YES: 50 % AU, target 45.5 %, compute-bound", rates]);
}

#[test]
fn the_cost_of_retries_is_named() {
    let mut record = starved_run(1);
    record.epochs[0].transfers = Some(TransferCounts {
        requests: 40,
        attempts: 41,
        retried_timeout: 1,
        retry_lost_ns: 1_500_000_000,
        ..TransferCounts::default()
    });
    let rates = "Needs 20 MB/s, gets 10 MB/s (50 %); 100 % of the wait is reading; retries cost 1.5 s of 4 s in reads";
    check(&record, &["NO: 50 % AU, target 90 %, storage-bound", rates]);
}

/// Four seconds of training that is fed, then a checkpoint of eight seconds.
fn fed_with_checkpoint() -> Record {
    let mut record = simple(&[(10, 990, 0, 1_000_000); 4]);
    record.epochs[0].checkpoints.push(checkpoint(4000, 12_000, 1 << 30, 4));
    record.epochs[0].end_ns = 12_000_000_000;
    record
}

#[test]
fn each_large_part_of_the_run_is_named() {
    let rates = "Needs 1.01 MB/s, gets 1 MB/s (99 %); 1 % of the training is waiting";
    let mut record = fed_with_checkpoint();
    record.plan.train.compute = TimeSpec::Constant { mean: 0.99 };
    let first = "YES while training: 99 % AU over all 4 steps, target 90 %, compute-bound";
    check(&record, &[first, rates, "Checkpoints took 67 % of the run (8 s)"]);
    // An evaluation of one step, a fifth of which is computing.
    record.plan.evaluation = Some(EvaluationPlan {
        after_epoch: 1,
        epochs_between: 1,
        loader: record.plan.loader.clone(),
        train: record.plan.train.clone(),
    });
    let steps = vec![vec![block(12_000, &[(800, 200, 0, 1000)])]];
    record.evaluations.push(epoch(1, steps));
    let outside = "Checkpoints took 62 % of the run (8 s), evaluation 8 % (1 s, at 20 % AU)";
    check(&record, &[first, rates, outside]);
    record.epochs[0].checkpoints.clear();
    let outside =
        "Work outside of steps took 62 % of the run (8 s), evaluation 8 % (1 s, at 20 % AU)";
    check(&record, &[first, rates, outside]);
}

#[test]
fn time_between_epochs_does_not_limit_the_answer_to_training() {
    let mut record = simple(&[(10, 990, 0, 1_000_000); 4]);
    record.epochs[0].end_ns += 1_000_000_000;
    let rates = "Needs 1.01 MB/s, gets 1 MB/s (99 %); 1 % of the time is waiting";
    record.plan.train.compute = TimeSpec::Constant { mean: 0.99 };
    let first = "YES: 99 % AU over all 4 steps, target 90 %, compute-bound";
    let with_pause = format!("{rates}; work outside of steps took 20 % of the run (1 s)");
    check(&record, &[first, &with_pause]);
    record.epochs[0].end_ns = 4_040_000_000;
    check(&record, &[first, rates]);
}

/// The second accelerator computes for 60 ms, and the first one for 30 ms; 1 MB a step each.
#[test]
fn the_slow_accelerator_is_named_and_determines_the_needed_rate() {
    let fast = block(0, &[(1, 30, 30, 1_000_000); 40]);
    let slow = block(0, &[(1, 60, 0, 1_000_000); 40]);
    let mut plan = plan(2, 40);
    plan.train.compute = TimeSpec::Constant { mean: 0.03 };
    plan.train.slow_accelerators = vec![(1, 2.0)];
    let waits = "94 % of the wait is for accelerator 1 (60 ms of compute a step, the others 30 ms)";
    let rates = format!("Needs 33.3 MB/s, gets 32.8 MB/s (98 %); {waits}");
    let first = "NO: 74 % AU, target 90 %, barrier-bound";
    check(&record(plan, vec![epoch(1, vec![vec![fast], vec![slow]])]), &[first, &rates]);
}

#[test]
fn mlperfs_window_is_mentioned_if_it_decides_otherwise() {
    let mut steps = [(0, 100, 0, 1_000_000); 6];
    steps[0].0 = 600;
    let summary = AnsweredSummary::new(&simple(&steps));
    let first = &lines(&summary.answer, &summary.summary.doubts)[0];
    let says = "PROBABLY NO: 50 % AU [7, 93] over all 6 steps, target 90 %; MLPerf's windowed AU says yes: 100 %";
    assert_eq!(first, says);
}

#[test]
fn an_unknown_answer_states_its_cause() {
    let mut stopped = starved_run(1);
    (stopped.complete, stopped.plan.train.epochs) = (false, 3);
    stopped.stopped_because = Some("interrupted".into());
    let measured = "Needs 20 MB/s, gets 10 MB/s (50 %); measured 50 % AU, target 90 %";
    check(&stopped, &["UNKNOWN: interrupted, 1 of 3 epochs are complete", measured]);
    stopped.stopped_because = None;
    let why = "1 of 3 epochs are complete: it was killed, or is still going on";
    check(&stopped, &[&format!("UNKNOWN: incomplete, {why}"), measured]);
    let mut cached = starved_run(1);
    cached.epochs[0].host.process_device_read_bytes = Some(0);
    cached.epochs[0].host.resident_before_bytes = Some(80_000_000);
    let why = "UNKNOWN: cache-fed, 80 MB were read, 0 B of them from the device";
    check(&cached, &[why, measured]);
    cached.epochs[0].host.process_device_read_bytes = None;
    let why = "UNKNOWN: possibly cache-fed, 80 MB were read, and how many of them came from the device is unknown";
    check(&cached, &[why, measured]);
    let mut busy = starved_run(1);
    busy.epochs[0].host.cpu_busy_share = Some(0.97);
    let why = "UNKNOWN: cpu-saturated, the 8 cores of this machine were 97 % busy, and work may have waited for them";
    check(&busy, &[why, measured]);
    let mut nothing = starved_run(1);
    nothing.epochs.clear();
    check(&nothing, &["UNKNOWN: invalid, no step was finished"]);
}

#[test]
fn without_compute_there_is_a_rate() {
    let mut rate = starved_run(1);
    rate.epochs[0].accelerators[0].blocks[0].compute_ns.fill(0);
    let wait = "100 % of the wait is reading";
    check(&rate, &["RATE: 10 MB/s, 5 samples/s; without compute there is no AU", wait]);
}

#[test]
fn without_training_there_are_checkpoints() {
    let mut alone = checkpoint_only_record(3);
    alone.complete = true;
    let times = "2 checkpoints of 1.1 GB written in 3 s, 1 read in 500 ms";
    let written = "UNKNOWN: rates of memory, written at 716 MB/s into the page cache, not durable (no `fsync`)";
    let read = "read at 2.15 GB/s from the device or the page cache";
    check(&alone, &[&format!("{written}; {read}"), times]);
    alone.epochs[0].checkpoints[2].process_device_read_bytes = Some(1 << 20);
    let read = "read at 2.15 GB/s from the page cache (1 MB of 1.1 GB from the device)";
    check(&alone, &[&format!("{written}; {read}"), times]);
    alone.plan.checkpoint.as_mut().unwrap().fsync = true;
    alone.epochs[0].checkpoints[2].process_device_read_bytes = Some(1 << 30);
    let rank =
        |rank, end_ns| RankCheckpoint { rank, start_ns: 0, end_ns, bytes: 1 << 29, sync_ns: 0 };
    alone.epochs[0].checkpoints[0].ranks = vec![rank(0, 1_000_000_000), rank(1, 2_000_000_000)];
    let says =
        "CHECKPOINTS: written at 716 MB/s, durable (`fsync`); read at 2.15 GB/s from the device";
    let slowest = "; rank 1 is slowest in writing: 2 s a checkpoint, mean of all ranks 1.5 s";
    check(&alone, &[says, &format!("{times}{slowest}")]);
}

#[test]
fn answers_of_several_runs_are_counted_with_their_ranges() {
    let answer = |accelerators, target_percent| {
        let mut record = starved_run(accelerators);
        record.plan.metric.au_target_percent = target_percent;
        AnsweredSummary::new(&record).answer
    };
    let answers = [answer(1, 45.0), answer(1, 90.0), answer(2, 90.0)];
    let says = "NO for 2 of 3 runs (storage-bound), YES for 1; 50 % AU (sustained), target 45 to 90 %; \
        needs 20 MB/s to 40 MB/s, gets 10 MB/s to 20 MB/s";
    assert_eq!(summary(&answers.each_ref()).as_deref(), Some(says));
    let mut broken_off = starved_run(1);
    broken_off.complete = false;
    let undecided = AnsweredSummary::new(&broken_off).answer;
    let some = summary(&[&answers[1], &undecided]).unwrap();
    assert!(some.contains("; decided runs: 50 % AU (sustained), target 90 %"), "{some}");
    let mut rate = starved_run(1);
    rate.epochs[0].accelerators[0].blocks[0].compute_ns.fill(0);
    let rate = AnsweredSummary::new(&rate).answer;
    assert_eq!(summary(&[&rate, &rate]).as_deref(), Some("RATE for all 2 runs"));
    assert_eq!(summary(&[]), None);
}

#[test]
fn a_rounded_percentage_stays_on_its_side_of_the_target() {
    for (au, target, expected) in [
        (54.4, 90.0, "54"),
        (89.7, 90.0, "89.7"),
        (89.96, 90.0, "89.96"),
        (89.99999, 90.0, "89.99999"),
        (90.0, 90.0, "90"),
        (90.3, 90.0, "90"),
        (90.4, 90.2, "90.4"),
    ] {
        assert_eq!(percent_near_target(au, target), expected);
    }
}

#[test]
fn a_second_utilisation_is_named_by_its_kind() {
    let text = other_utilisation(
        "au_all_steps_percent",
        86.2,
        90.0,
        &AnsweredSummary::new(&starved_run(1)).answer,
    );
    assert_eq!(text, "all-steps AU 86 %, target 90 %; 100 % of the wait is reading");
}

#[test]
fn doubts_that_could_change_the_answer_are_shown_and_others_are_counted() {
    let check = |change: fn(&mut Record), expected: &[&str]| {
        let mut record = starved_run(1);
        change(&mut record);
        let answered = AnsweredSummary::new(&record);
        let lines = doubt_lines(&answered.answer, &answered.summary.doubts, "`feedrate show`");
        assert_eq!(lines, expected);
    };
    check(|_| {}, &["Doubts: none"]);
    let emulated = |record: &mut Record| {
        let (name, evidence, advice) = ("emulated".into(), "slow".into(), String::new());
        record.doubts.push(PlanDoubt { name, evidence, advice });
    };
    check(emulated, &["Doubts: none could change the answer; `feedrate show` lists 1"]);
    let not_warm = |record: &mut Record| {
        let (name, evidence, advice) = ("not_warm".into(), "2 GB were not".into(), String::new());
        record.doubts.push(PlanDoubt { name, evidence, advice });
    };
    check(not_warm, &["Doubt: 2 GB were not (not_warm)"]);
    // The answer is unknown because of it, and names it.
    check(|record| record.complete = false, &["Doubts: `feedrate show` lists 1"]);
    check(
        |record| {
            let doubt = |name: &str| PlanDoubt {
                name: name.into(),
                evidence: "e".into(),
                advice: String::new(),
            };
            record.doubts = ["not_warm", "emulated"].map(doubt).into();
        },
        &["Doubt: e (not_warm); `feedrate show` lists 1 more"],
    );
}

#[test]
fn no_bottleneck_is_named_where_the_interval_is_too_wide() {
    let record = simple(&[(200, 100, 0, 4_000_000), (400, 100, 0, 4_000_000)]);
    let answered = AnsweredSummary::new(&record);
    let lines = lines(&answered.answer, &answered.summary.doubts);
    assert_eq!(lines[0], "PROBABLY NO: 25 % AU [0, 96] over all 2 steps, target 90 %");
}
