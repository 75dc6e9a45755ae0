//! Metrics of hand-made step times, and properties of metrics.

mod rows;

use super::*;
use crate::example::{accelerator, block, epoch, plan, record, simple};
use crate::record::{Block, EpochRecord};
use proptest::prelude::*;

fn run_value(metric: &Metric, record: &Record) -> Option<f64> {
    metric.run_value(record)
}

/// Three steps with loads of 10, 2 and 3 s, compute of 1 s and barriers of 0.5 s: a block of 19.5 s.
fn three_steps() -> Record {
    simple(&[(10_000, 1000, 500, 4), (2000, 1000, 500, 2), (3000, 1000, 500, 0)])
}

#[test]
fn one_block_matches_values_computed_by_hand() {
    let record = three_steps();
    // 100 · (1 + 1) / (19.5 − 10 − 1). As in DLIO, the barrier of step 1 is not excluded.
    assert_eq!(run_value(&AU_WINDOWED, &record), Some(2.0 / 8.5 * 100.0));
    assert_eq!(run_value(&AU_ALL_STEPS, &record), Some(3.0 / 19.5 * 100.0));
    // Weighted by the block's three steps, as DLIO does.
    let windowed = 2.0 / 8.5 * 3.0 / 3.0;
    assert_eq!(run_value(&SAMPLES_WINDOWED, &record), Some(windowed));
    assert_eq!(run_value(&SAMPLES_WHOLE, &record), Some(3.0 / 19.5));
    assert_eq!(run_value(&NOMINAL_WINDOWED, &record), Some(windowed * 1e6));
    // Two bytes between 11.5 s and 19.5 s, six in total.
    assert_eq!(run_value(&DELIVERED_WINDOWED, &record), Some(2.0 / 8.0));
    assert_eq!(run_value(&DELIVERED_WHOLE, &record), Some(6.0 / 19.5));
    assert_eq!(
        (
            run_value(&LOAD_S, &record),
            run_value(&COMPUTE_S, &record),
            run_value(&BARRIER_S, &record)
        ),
        (Some(15.0), Some(3.0), Some(1.5))
    );
    assert_eq!(
        (run_value(&LOGICAL_BYTES, &record), run_value(&DEVICE_BYTES, &record)),
        (Some(6.0), None)
    );
}

/// DLIO divides (steps − 2) by the time of the window, so with one excluded step it counts one step too few.
#[test]
fn throughput_counts_the_steps_in_the_window() {
    let record = simple(&vec![(0, 1000, 0, 1); 11]);
    let dlio = (11.0 - 2.0) / 10.0;
    assert_eq!(run_value(&SAMPLES_WINDOWED, &record), Some(1.0));
    assert_eq!(dlio, 0.9);
}

/// The utilisation of an epoch as in DLIO's `statscounter.py`: seconds as floats, lists per block.
fn dlio_au_epoch(blocks: &[Block], first: usize, last: usize) -> f64 {
    let mut weighted = 0.0;
    let mut total = 0.0;
    for block in blocks {
        let in_seconds =
            |times: &[u64]| times.iter().map(|&ns| ns as f64 / 1e9).collect::<Vec<f64>>();
        let load = in_seconds(&block.load_ns);
        let compute = in_seconds(&block.compute_ns);
        let proc: Vec<f64> =
            load.iter().zip(&compute).map(|(load, compute)| load + compute).collect();
        let n = proc.len();
        let end = n.min(last + 1);
        let total_compute_time: f64 = compute[first.min(end)..end].iter().sum();
        let total_time = (block.end_ns - block.start_ns) as f64 / 1e9
            - proc[..first.min(n)].iter().sum::<f64>()
            - proc[end..].iter().sum::<f64>();
        weighted += total_compute_time / total_time * 100.0 * n as f64;
        total += n as f64;
    }
    weighted / total
}

/// All times are multiples of an eighth of a second, which are exact in binary, so the order of additions does not matter.
#[test]
fn au_windowed_equals_dlios_exactly() {
    let first = [(8000, 500, 0, 9), (125, 500, 250, 1), (0, 625, 125, 1), (2500, 500, 0, 1)];
    let second = [(1000, 500, 0, 1), (375, 500, 0, 1), (250, 875, 125, 1)];
    for (exclude, blocks) in [
        ((1, 0), vec![block(0, &first)]),
        ((1, 0), vec![block(0, &first), block(30_000, &second)]),
        ((2, 0), vec![block(0, &first), block(30_000, &second)]),
        ((1, 4), vec![block(0, &first), block(30_000, &second)]),
        ((0, 5), vec![block(0, &first), block(30_000, &second)]),
    ] {
        let steps: u64 = blocks.iter().map(|b| b.steps() as u64).sum();
        let mut plan = plan(1, steps);
        (plan.metric.exclude_start_steps, plan.metric.exclude_end_steps) = exclude;
        let expected = dlio_au_epoch(&blocks, exclude.0 as usize, (steps - 1 - exclude.1) as usize);
        let record = record(plan, vec![epoch(1, vec![blocks])]);
        assert_eq!(run_value(&AU_WINDOWED, &record), Some(expected), "{exclude:?}");
    }
}

#[test]
fn values_are_averaged_over_accelerators_and_epochs() {
    let fast = block(0, &[(0, 1000, 1000, 1), (0, 1000, 1000, 1)]);
    let slow = block(0, &[(1000, 1000, 0, 1), (1000, 1000, 0, 1)]);
    let later = |block: &Block| Block {
        start_ns: block.start_ns + 9,
        end_ns: block.end_ns + 9,
        ..block.clone()
    };
    let without_waits = block(4000, &[(0, 2000, 0, 1), (0, 2000, 0, 1)]);
    let record = record(
        plan(2, 2),
        vec![
            epoch(1, vec![vec![fast.clone()], vec![slow]]),
            epoch(2, vec![vec![later(&without_waits)], vec![later(&without_waits)]]),
        ],
    );
    // Fast: 1/(4 − 1), slow: 1/(4 − 2).
    let first = (1.0 / 3.0 * 100.0 + 50.0) / 2.0;
    assert_eq!(AU_WINDOWED.epoch_values(&record), [Some(first), Some(100.0)]);
    assert_eq!(run_value(&AU_WINDOWED, &record), Some(f64::midpoint(first, 100.0)));
    let deviation = AU_WINDOWED.stdev_over_epochs(&record).unwrap();
    assert!((deviation - (100.0 - first) / 2.0).abs() < 1e-12);
    assert_eq!(run_value(&AU_ALL_STEPS, &record), Some(75.0));
    assert_eq!(AU_ALL_STEPS.epoch_values(&record), [Some(50.0), Some(100.0)]);
    // The two accelerators process 1/3 + 1/2 and 2 · 1/2 samples per second in the windows, and 4 samples in 4 s in each epoch.
    assert_eq!(SAMPLES_WINDOWED.epoch_values(&record), [Some(1.0 / 3.0 + 0.5), Some(1.0)]);
    assert_eq!(run_value(&SAMPLES_WHOLE, &record), Some(1.0));
    assert_eq!(
        (run_value(&LOAD_S, &record), run_value(&BARRIER_S, &record)),
        (Some(1.0), Some(1.0))
    );
}

/// A long epoch counts more than a short one: 2 s of compute in 4 s, and 2 s in 12 s.
#[test]
fn utilisation_of_a_run_is_a_quotient_of_totals() {
    let short = block(0, &[(1000, 1000, 0, 1); 2]);
    let long = block(4000, &[(5000, 1000, 0, 1); 2]);
    let run = record(plan(1, 2), vec![epoch(1, vec![vec![short]]), epoch(2, vec![vec![long]])]);
    assert_eq!(run_value(&AU_ALL_STEPS, &run), Some(25.0));
}

#[test]
fn a_missing_value_is_missing() {
    let no_steps = simple(&[]);
    let one_step = simple(&[(1000, 1000, 0, 7)]);
    let no_epochs = record(plan(1, 5), vec![]);
    for metric in
        [&AU_WINDOWED, &SAMPLES_WINDOWED, &NOMINAL_WINDOWED, &DELIVERED_WINDOWED, &AU_SUSTAINED]
    {
        for record in [&no_steps, &one_step, &no_epochs] {
            assert_eq!(run_value(metric, record), None, "{}", metric.id.name());
        }
    }
    assert_eq!(run_value(&AU_ALL_STEPS, &one_step), Some(50.0));
    assert_eq!(run_value(&SAMPLES_WHOLE, &one_step), Some(0.5));
    assert_eq!(
        (run_value(&AU_ALL_STEPS, &no_steps), run_value(&AU_ALL_STEPS, &no_epochs)),
        (None, None)
    );
    assert_eq!(AU_WINDOWED.stdev_over_epochs(&no_epochs), None);
}

/// The last epoch has only one step, so its window is empty.
#[test]
fn an_epoch_with_an_empty_window_does_not_count() {
    let mut plan = plan(1, 3);
    plan.train.total_steps = Some(4);
    let whole =
        epoch(1, vec![vec![block(0, &[(0, 500, 0, 1), (500, 500, 0, 1), (500, 500, 0, 1)])]]);
    let one_step = epoch(2, vec![vec![block(9000, &[(500, 500, 0, 1)])]]);
    let record = record(plan, vec![whole, one_step]);
    assert_eq!(AU_WINDOWED.epoch_values(&record), [Some(50.0), None]);
    assert_eq!(run_value(&AU_WINDOWED, &record), Some(50.0));
}

/// Simulates a run of one accelerator with one worker. Reading a batch takes `read_ms`. A read starts as soon as the previous read is done
/// and fewer than `stock` batches are waiting.
fn pipeline(steps: usize, read_ms: u64, compute_ms: u64, stock: usize) -> Record {
    let mut read_end: Vec<u64> = Vec::new();
    let mut taken: Vec<u64> = Vec::new();
    let mut now = 0;
    let mut rows = Vec::new();
    let mut starts = Vec::new();
    for step in 0..steps {
        while read_end.len() < steps && read_end.len() <= step + stock {
            let slot_free_at = read_end.len().checked_sub(stock + 1).map_or(0, |i| taken[i]);
            let start = slot_free_at.max(read_end.last().copied().unwrap_or(0));
            starts.push(start);
            read_end.push(start + read_ms);
        }
        let load = read_end[step].saturating_sub(now);
        now += load;
        taken.push(now);
        now += compute_ms;
        rows.push((load, compute_ms, now));
    }
    let read_by = |ms: u64| read_end.iter().filter(|&&end| end <= ms).count() as u64 * 1_000_000;
    let mut bytes_before = 0;
    let steps_of_block: Vec<_> = rows
        .into_iter()
        .map(|(load, compute, end)| {
            let bytes = read_by(end) - bytes_before;
            bytes_before += bytes;
            (load, compute, 0, bytes)
        })
        .collect();
    let mut plan = plan(1, steps as u64);
    plan.loader.batches_in_flight = stock as u32;
    let mut epoch = epoch(1, vec![vec![block(0, &steps_of_block)]]);
    let last = starts.last().copied().unwrap_or(0);
    epoch.accelerators[0].last_read_start_ns = Some(last * 1_000_000);
    epoch.accelerators[0].last_read_start_bytes = read_by(last);
    record(plan, vec![epoch])
}

/// Checks that the value is within one point of min(1, compute time ÷ read time), or unknown if there are too few steps.
#[test]
fn au_sustained_is_the_ratio_of_compute_to_read_time() {
    for stock in [2, 8, 32, 128] {
        for steps in [6, 50, 500, 2000] {
            for (read_ms, compute_ms) in
                [(100, 10), (100, 50), (100, 90), (100, 99), (100, 101), (100, 200), (10, 1000)]
            {
                let record = pipeline(steps, read_ms, compute_ms, stock);
                let found = run_value(&AU_SUSTAINED, &record);
                let expected = (compute_ms as f64 / read_ms as f64).min(1.0) * 100.0;
                if steps < 4 * stock {
                    assert_eq!(found, None);
                    let scope = Scope::new(&record, &record.epochs[0]);
                    assert_eq!(sustained_percent(scope), Err(NotMeasurable::TooFewSteps));
                } else {
                    let found = found.unwrap();
                    assert!(
                        (found - expected).abs() < 1.0,
                        "{steps} × {stock}, {read_ms} {compute_ms}: {found} {expected}"
                    );
                }
            }
        }
    }
}

/// Six steps with up to eight batches in flight have a utilisation of 99 % in the window, but less than 26 % over all steps.
#[test]
fn a_short_window_uses_batches_loaded_in_advance() {
    let record = simple(&[
        (1700, 100, 0, 6),
        (1, 99, 0, 0),
        (1, 99, 0, 0),
        (1, 99, 0, 0),
        (1, 99, 0, 0),
        (1, 99, 0, 0),
    ]);
    assert!(run_value(&AU_WINDOWED, &record).unwrap() > 98.9);
    assert!(run_value(&AU_ALL_STEPS, &record).unwrap() < 26.0);
    let mut record = record;
    record.plan.loader.batches_in_flight = 8;
    assert_eq!(run_value(&AU_SUSTAINED, &record), None);
    assert_eq!(sustained_needs_steps(&record.plan), 32);
}

/// A checkpoint of 7 s between two blocks does not change the value.
#[test]
fn pauses_between_blocks_are_excluded() {
    let steps = vec![(500, 500, 0, 1_000_000); 10];
    let whole = simple(&[&steps[..], &steps[..]].concat());
    let blocks = vec![block(0, &steps), block(17_000, &steps)];
    let two_blocks = record(plan(1, 20), vec![epoch(1, vec![blocks])]);
    assert_eq!(run_value(&AU_SUSTAINED, &two_blocks), Some(50.0));
    assert_eq!(run_value(&AU_SUSTAINED, &whole), Some(50.0));
    assert_eq!(run_value(&AU_ALL_STEPS, &two_blocks), Some(50.0));
}

#[test]
fn sustained_returns_the_reason_why_it_is_unknown() {
    let result = |change: fn(&mut Record)| {
        let mut record = simple(&vec![(500, 500, 0, 1_000_000); 20]);
        change(&mut record);
        let scope = Scope::new(&record, &record.epochs[0]);
        sustained_percent(scope).map(f64::round)
    };
    assert_eq!(result(|_| {}), Ok(50.0));
    assert_eq!(
        result(|r| r.epochs[0].accelerators[0].io.read_bytes = 0),
        Err(NotMeasurable::NothingRead)
    );
    assert_eq!(
        result(|r| r.epochs[0].accelerators[0].last_read_start_ns = Some(5)),
        Err(NotMeasurable::NoWindow)
    );
    assert_eq!(
        result(|r| r.epochs[0].accelerators[0].last_read_start_ns = None),
        Err(NotMeasurable::NoWindow)
    );
    assert_eq!(result(|r| r.plan.loader.batches_in_flight = 6), Err(NotMeasurable::TooFewSteps));
    assert_eq!(result(|r| r.epochs[0].accelerators.clear()), Err(NotMeasurable::TooFewSteps));
}

/// A fast loader compensates for a slow one.
#[test]
fn sustained_is_a_mean_over_accelerators() {
    let steps = |bytes| vec![(500, 500, 0, bytes); 20];
    let mut epoch =
        epoch(1, vec![vec![block(0, &steps(1_000_000))], vec![block(0, &steps(1_000_000))]]);
    // The second accelerator has read all of its 20 batches at the end of its tenth step.
    let second = &mut epoch.accelerators[1];
    for (i, bytes) in second.blocks[0].read_bytes.iter_mut().enumerate() {
        *bytes = 20_000_000.min(2_000_000 * (i as u64 + 1));
    }
    second.last_read_start_ns = Some(10_000_000_000);
    let record = record(plan(2, 20), vec![epoch]);
    assert_eq!(run_value(&AU_SUSTAINED, &record), Some(75.0));
}

#[test]
fn latencies_cover_all_accelerators() {
    let mut record = simple(&[(1, 1, 1, 1)]);
    let mut second = accelerator(vec![block(0, &[(1, 1, 1, 1)])]);
    (1..=99).for_each(|_| second.io.open_latency.record(1000));
    record.epochs[0].accelerators[0].io.open_latency.record(5_000_000);
    record.epochs[0].accelerators.push(second);
    let quantiles = Quantiles::new(&counters_of_run(&record).open_latency);
    assert_eq!((quantiles.count, quantiles.max_s), (100, Some(0.005)));
    assert!((quantiles.p99_s.unwrap() / 1e-6 - 1.0).abs() < 1.0 / 16.0);
    assert_eq!(OPEN_LATENCY.run_value(&record), quantiles.p99_s);
    assert_eq!(READ_LATENCY.run_value(&record), None);
}

/// Records with 0 to 3 epochs, 1 to 3 accelerators, 0 to 2 blocks, and steps of 0 to 5 s.
fn any_record() -> impl Strategy<Value = Record> {
    let step = (0..5000u64, 0..5000u64, 0..500u64, 0..2_000_000u64);
    let steps = prop::collection::vec(step, 0..20);
    let blocks = prop::collection::vec(steps, 0..3);
    let accelerators = prop::collection::vec(blocks, 1..4);
    let epochs = prop::collection::vec(accelerators, 0..4);
    (epochs, 0..3u64, 0..3u64).prop_map(|(epochs, first, last)| {
        let mut plan = plan(1, 20);
        (plan.metric.exclude_start_steps, plan.metric.exclude_end_steps) = (first, last);
        record(
            plan,
            epochs.into_iter().enumerate().map(|(i, e)| epoch_of_steps(i as u32 + 1, e)).collect(),
        )
    })
}

type Steps = Vec<(u64, u64, u64, u64)>;

fn epoch_of_steps(number: u32, accelerators: Vec<Vec<Steps>>) -> EpochRecord {
    let start_ms = u64::from(number) * 1_000_000;
    let blocks = |steps: Vec<Steps>| {
        let mut block_start_ms = start_ms;
        steps
            .into_iter()
            .map(|steps| {
                let block = block(block_start_ms, &steps);
                block_start_ms = block.end_ns / 1_000_000 + 3000;
                block
            })
            .collect()
    };
    epoch(number, accelerators.into_iter().map(blocks).collect())
}

fn shift_times(record: &Record, ns: u64) -> Record {
    let mut record = record.clone();
    for epoch in &mut record.epochs {
        epoch.start_ns += ns;
        epoch.end_ns += ns;
        for accelerator in &mut epoch.accelerators {
            accelerator.last_read_start_ns =
                accelerator.last_read_start_ns.map(|start_ns| start_ns + ns);
            for block in &mut accelerator.blocks {
                block.start_ns += ns;
                block.end_ns += ns;
            }
        }
    }
    record
}

proptest! {
    #[test]
    fn every_value_is_finite_and_not_negative(record in any_record()) {
        for metric in METRICS {
            let epochs = Scope::whole_epochs(&record).flat_map(|scope| {
                let per_accelerator = scope.epoch.accelerators.iter().map(move |a| metric.accelerator_value(scope, a));
                per_accelerator.chain([metric.epoch_value(scope)])
            });
            for value in epochs.chain([metric.run_value(&record)]).flatten() {
                prop_assert!(value.is_finite() && 0.0 <= value, "{}: {}", metric.id.name(), value);
            }
        }
    }

    #[test]
    fn utilisation_is_at_most_100_percent(record in any_record()) {
        for metric in [&AU_ALL_STEPS, &AU_WINDOWED, &AU_SUSTAINED] {
            prop_assert!(metric.run_value(&record).is_none_or(|au| au <= 100.0 + 1e-9), "{}", metric.id.name());
        }
    }

    #[test]
    fn the_start_time_does_not_matter(record in any_record(), ns in 0..u64::MAX / 4) {
        let later = shift_times(&record, ns);
        for metric in METRICS {
            prop_assert_eq!(metric.run_value(&record), metric.run_value(&later), "{}", metric.id.name());
        }
    }
}

/// After an interrupt, the last epoch has only the accelerator of rank 0.
#[test]
fn an_epoch_without_all_accelerators_does_not_count() {
    let steps = [(10, 10, 0, 100); 5];
    let epoch_with = |accelerators| {
        let blocks = vec![vec![block(0, &steps)]; accelerators];
        epoch(1, blocks)
    };
    let whole = record(plan(2, 5), vec![epoch_with(2), epoch_with(2)]);
    let mut interrupted = whole.clone();
    interrupted.epochs.push(EpochRecord { number: 3, ..epoch_with(1) });
    interrupted.epochs[2].host.process_device_read_bytes = Some(7);
    let last = Scope::new(&interrupted, &interrupted.epochs[2]);
    for metric in METRICS {
        assert_eq!(metric.epoch_value(last), None, "{}", metric.id.name());
        assert_eq!(
            metric.run_value(&interrupted),
            metric.run_value(&whole),
            "{}",
            metric.id.name()
        );
        assert_eq!(metric.epoch_values(&interrupted).len(), 2, "{}", metric.id.name());
    }
    interrupted.plan.train.epochs = 3;
    interrupted.complete = false;
    let summary = crate::summary::Summary::new(&interrupted);
    assert_eq!((summary.epochs, summary.per_epoch.len()), (2, 3));
    assert_eq!(summary.per_epoch[2].figures.value(&LOGICAL_BYTES), None);
    assert!(summary.doubts[0].evidence.starts_with("2 of 3 epochs"), "{:?}", summary.doubts);
    assert_eq!(summary.phases[2].delivered_bytes_per_second, None);
    interrupted.epochs.drain(..2);
    assert_eq!(
        crate::summary::Summary::new(&interrupted).figures.value(&LOGICAL_BYTES),
        None,
        "no epoch is whole"
    );
}
