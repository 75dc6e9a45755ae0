//! Metrics on step lists made by hand, their laws, and the contract of every row.

mod rows;

use super::*;
use crate::example::{accelerator, block, epoch, plan, record, simple};
use crate::record::{Block, EpochRecord};
use proptest::prelude::*;

fn run(metric: &Metric, record: &Record) -> Option<f64> {
    metric.of_run(record)
}

/// Loads 10, 2, 3 s, compute 1 s each, barriers 0.5 s: a block of 19.5 s.
fn three_steps() -> Record {
    simple(&[(10_000, 1000, 500, 4), (2000, 1000, 500, 2), (3000, 1000, 500, 0)])
}

#[test]
fn one_block_by_hand() {
    let record = three_steps();
    // 100 · (1 + 1) / (19.5 − 10 − 1); the barrier of step 1 stays inside, as with DLIO.
    assert_eq!(run(&AU_WINDOWED, &record), Some(2.0 / 8.5 * 100.0));
    assert_eq!(run(&AU_ALL_STEPS, &record), Some(3.0 / 19.5 * 100.0));
    // Weighted by the block's three steps, as DLIO does.
    let windowed = 2.0 / 8.5 * 3.0 / 3.0;
    assert_eq!(run(&SAMPLES_WINDOWED, &record), Some(windowed));
    assert_eq!(run(&SAMPLES_WHOLE, &record), Some(3.0 / 19.5));
    assert_eq!(run(&NOMINAL_WINDOWED, &record), Some(windowed * 1e6));
    // Two bytes between 11.5 s and 19.5 s, six in all.
    assert_eq!(run(&DELIVERED_WINDOWED, &record), Some(2.0 / 8.0));
    assert_eq!(run(&DELIVERED_WHOLE, &record), Some(6.0 / 19.5));
    assert_eq!(
        (run(&LOAD_S, &record), run(&COMPUTE_S, &record), run(&BARRIER_S, &record)),
        (Some(15.0), Some(3.0), Some(1.5))
    );
    assert_eq!((run(&LOGICAL_BYTES, &record), run(&DEVICE_BYTES, &record)), (Some(6.0), None));
}

/// DLIO divides (steps − 2) by the time of the window: with one step left out one too few.
#[test]
fn throughput_counts_the_steps_in_the_window() {
    let record = simple(&vec![(0, 1000, 0, 1); 11]);
    let dlio = (11.0 - 2.0) / 10.0;
    assert_eq!(run(&SAMPLES_WINDOWED, &record), Some(1.0));
    assert_eq!(dlio, 0.9);
}

/// `statscounter.py` in its own words: seconds as floats, lists per block.
fn dlio_au_epoch(blocks: &[Block], first: usize, last: usize) -> f64 {
    let (mut weighted, mut total) = (0.0, 0.0);
    for block in blocks {
        let s = |times: &[u64]| times.iter().map(|&ns| ns as f64 / 1e9).collect::<Vec<f64>>();
        let (load, compute) = (s(&block.load_ns), s(&block.compute_ns));
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

/// Times in eighths of a second, exact in binary, so that the order of sums cannot matter.
#[test]
fn au_windowed_is_dlios_to_the_last_digit() {
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
        assert_eq!(run(&AU_WINDOWED, &record), Some(expected), "{exclude:?}");
    }
}

#[test]
fn accelerators_are_averaged_and_epochs_too() {
    let fast = block(0, &[(0, 1000, 1000, 1), (0, 1000, 1000, 1)]);
    let slow = block(0, &[(1000, 1000, 0, 1), (1000, 1000, 0, 1)]);
    let later = |block: &Block| Block {
        start_ns: block.start_ns + 9,
        end_ns: block.end_ns + 9,
        ..block.clone()
    };
    let fed = block(4000, &[(0, 2000, 0, 1), (0, 2000, 0, 1)]);
    let record = record(
        plan(2, 2),
        vec![
            epoch(1, vec![vec![fast.clone()], vec![slow]]),
            epoch(2, vec![vec![later(&fed)], vec![later(&fed)]]),
        ],
    );
    // Fast: 1/(4 − 1), slow: 1/(4 − 2).
    let first = (1.0 / 3.0 * 100.0 + 50.0) / 2.0;
    assert_eq!(AU_WINDOWED.of_epochs(&record), [Some(first), Some(100.0)]);
    assert_eq!(run(&AU_WINDOWED, &record), Some(f64::midpoint(first, 100.0)));
    let deviation = AU_WINDOWED.stdev_over_epochs(&record).unwrap();
    assert!((deviation - (100.0 - first) / 2.0).abs() < 1e-12);
    assert_eq!(run(&AU_ALL_STEPS, &record), Some(75.0));
    assert_eq!(AU_ALL_STEPS.of_epochs(&record), [Some(50.0), Some(100.0)]);
    // Two accelerators: 1/3 + 1/2 and 2 · 1/2 samples a second in the windows; 4 samples in 4 s, twice.
    assert_eq!(SAMPLES_WINDOWED.of_epochs(&record), [Some(1.0 / 3.0 + 0.5), Some(1.0)]);
    assert_eq!(run(&SAMPLES_WHOLE, &record), Some(1.0));
    assert_eq!((run(&LOAD_S, &record), run(&BARRIER_S, &record)), (Some(1.0), Some(1.0)));
}

#[test]
fn a_missing_value_is_missing() {
    let no_steps = simple(&[]);
    let one_step = simple(&[(1000, 1000, 0, 7)]);
    let nothing = record(plan(1, 5), vec![]);
    for metric in
        [&AU_WINDOWED, &SAMPLES_WINDOWED, &NOMINAL_WINDOWED, &DELIVERED_WINDOWED, &AU_SUSTAINED]
    {
        for record in [&no_steps, &one_step, &nothing] {
            assert_eq!(run(metric, record), None, "{}", metric.id.name());
        }
    }
    assert_eq!(run(&AU_ALL_STEPS, &one_step), Some(50.0));
    assert_eq!(run(&SAMPLES_WHOLE, &one_step), Some(0.5));
    assert_eq!((run(&AU_ALL_STEPS, &no_steps), run(&AU_ALL_STEPS, &nothing)), (None, None));
    assert_eq!(AU_WINDOWED.stdev_over_epochs(&nothing), None);
}

/// The last epoch was cut to one step: it has no window, and no say.
#[test]
fn an_epoch_without_a_window_has_no_say() {
    let mut plan = plan(1, 3);
    plan.train.total_steps = Some(4);
    let whole =
        epoch(1, vec![vec![block(0, &[(0, 500, 0, 1), (500, 500, 0, 1), (500, 500, 0, 1)])]]);
    let cut = epoch(2, vec![vec![block(9000, &[(500, 500, 0, 1)])]]);
    let record = record(plan, vec![whole, cut]);
    assert_eq!(AU_WINDOWED.of_epochs(&record), [Some(50.0), None]);
    assert_eq!(run(&AU_WINDOWED, &record), Some(50.0));
}

/// One accelerator, one worker: a batch takes `read_ms`, and the first step waits for one. A read starts as soon as the one
/// before is done and fewer than `stock` wait.
fn pipeline(steps: usize, read_ms: u64, compute_ms: u64, stock: usize) -> Record {
    let (mut read_end, mut taken) = (Vec::<u64>::new(), Vec::<u64>::new());
    let (mut now, mut rows) = (0, Vec::new());
    let mut starts = Vec::new();
    for step in 0..steps {
        while read_end.len() < steps && read_end.len() <= step + stock {
            let place_free = read_end.len().checked_sub(stock + 1).map_or(0, |i| taken[i]);
            let start = place_free.max(read_end.last().copied().unwrap_or(0));
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
    let mut at = 0;
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(load, compute, end)| {
            let bytes = read_by(end) - at;
            at += bytes;
            (load, compute, 0, bytes)
        })
        .collect();
    let mut plan = plan(1, steps as u64);
    plan.loader.batches_in_flight = stock as u32;
    let mut epoch = epoch(1, vec![vec![block(0, &rows)]]);
    let last = starts.last().copied().unwrap_or(0);
    epoch.accelerators[0].last_read_start_ns = Some(last * 1_000_000);
    epoch.accelerators[0].last_read_start_bytes = read_by(last);
    record(plan, vec![epoch])
}

/// The law of the issue: within a point of min(1, R·C/B), or not measurable.
#[test]
fn au_sustained_is_rate_times_compute() {
    for stock in [2, 8, 32, 128] {
        for steps in [6, 50, 500, 2000] {
            for (read_ms, compute_ms) in
                [(100, 10), (100, 50), (100, 90), (100, 99), (100, 101), (100, 200), (10, 1000)]
            {
                let record = pipeline(steps, read_ms, compute_ms, stock);
                let found = run(&AU_SUSTAINED, &record);
                let expected = (compute_ms as f64 / read_ms as f64).min(1.0) * 100.0;
                if steps < 4 * stock {
                    assert_eq!(found, None);
                    let scope = Scope::new(&record, &record.epochs[0]);
                    assert_eq!(sustained(scope), Err(NotMeasurable::TooFewSteps));
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

/// Six steps with eight batches of stock read 99 % in the window, and 22 % over all steps.
#[test]
fn a_short_window_lives_off_the_stock() {
    let record = simple(&[
        (1700, 100, 0, 6),
        (1, 99, 0, 0),
        (1, 99, 0, 0),
        (1, 99, 0, 0),
        (1, 99, 0, 0),
        (1, 99, 0, 0),
    ]);
    assert!(run(&AU_WINDOWED, &record).unwrap() > 98.9);
    assert!(run(&AU_ALL_STEPS, &record).unwrap() < 26.0);
    let mut record = record;
    record.plan.loader.batches_in_flight = 8;
    assert_eq!(run(&AU_SUSTAINED, &record), None);
    assert_eq!(sustained_needs_steps(&record.plan), 32);
}

/// Two blocks with a checkpoint of 7 s between: the same as without.
#[test]
fn pauses_between_blocks_are_cut_out() {
    let steps = vec![(500, 500, 0, 1_000_000); 10];
    let whole = simple(&[&steps[..], &steps[..]].concat());
    let blocks = vec![block(0, &steps), block(17_000, &steps)];
    let parted = record(plan(1, 20), vec![epoch(1, vec![blocks])]);
    assert_eq!(run(&AU_SUSTAINED, &parted), Some(50.0));
    assert_eq!(run(&AU_SUSTAINED, &whole), Some(50.0));
    assert_eq!(run(&AU_ALL_STEPS, &parted), Some(50.0));
}

#[test]
fn sustained_says_why_not() {
    let why = |change: fn(&mut Record)| {
        let mut record = simple(&vec![(500, 500, 0, 1_000_000); 20]);
        change(&mut record);
        let scope = Scope::new(&record, &record.epochs[0]);
        sustained(scope).map(f64::round)
    };
    assert_eq!(why(|_| {}), Ok(50.0));
    assert_eq!(
        why(|r| r.epochs[0].accelerators[0].io.read_bytes = 0),
        Err(NotMeasurable::NothingRead)
    );
    assert_eq!(
        why(|r| r.epochs[0].accelerators[0].last_read_start_ns = Some(5)),
        Err(NotMeasurable::NoWindow)
    );
    assert_eq!(
        why(|r| r.epochs[0].accelerators[0].last_read_start_ns = None),
        Err(NotMeasurable::NoWindow)
    );
    assert_eq!(why(|r| r.plan.loader.batches_in_flight = 6), Err(NotMeasurable::TooFewSteps));
    assert_eq!(why(|r| r.epochs[0].accelerators.clear()), Err(NotMeasurable::TooFewSteps));
}

/// A loader that is ahead makes up for one behind, and the mean compute counts.
#[test]
fn sustained_sums_over_accelerators() {
    let steps = |bytes| vec![(500, 500, 0, bytes); 20];
    let mut epoch =
        epoch(1, vec![vec![block(0, &steps(1_000_000))], vec![block(0, &steps(1_000_000))]]);
    // The second has read all of its 20 batches when its tenth step ends.
    let second = &mut epoch.accelerators[1];
    for (i, bytes) in second.blocks[0].read_bytes.iter_mut().enumerate() {
        *bytes = 20_000_000.min(2_000_000 * (i as u64 + 1));
    }
    second.last_read_start_ns = Some(10_000_000_000);
    let record = record(plan(2, 20), vec![epoch]);
    assert_eq!(run(&AU_SUSTAINED, &record), Some(75.0));
}

#[test]
fn histograms_of_all_accelerators_count() {
    let mut record = simple(&[(1, 1, 1, 1)]);
    let mut second = accelerator(vec![block(0, &[(1, 1, 1, 1)])]);
    (1..=99).for_each(|_| second.io.open_latency.record(1000));
    record.epochs[0].accelerators[0].io.open_latency.record(5_000_000);
    record.epochs[0].accelerators.push(second);
    let quantiles = Quantiles::new(&counters_of_run(&record).open_latency);
    assert_eq!((quantiles.count, quantiles.max_s), (100, Some(0.005)));
    assert!((quantiles.p99_s.unwrap() / 1e-6 - 1.0).abs() < 1.0 / 16.0);
    assert_eq!(OPEN_LATENCY.of_run(&record), quantiles.p99_s);
    assert_eq!(READ_LATENCY.of_run(&record), None);
}

/// Records of 0 to 3 epochs, 1 to 3 accelerators, 0 to 2 blocks, steps of 0 to 5 s.
fn records() -> impl Strategy<Value = Record> {
    let step = (0..5000u64, 0..5000u64, 0..500u64, 0..2_000_000u64);
    let steps = prop::collection::vec(step, 0..20);
    let blocks = prop::collection::vec(steps, 0..3);
    let accelerators = prop::collection::vec(blocks, 1..4);
    let epochs = prop::collection::vec(accelerators, 0..4);
    (epochs, 0..3u64, 0..3u64).prop_map(|(epochs, first, last)| {
        let mut plan = plan(1, 20);
        (plan.metric.exclude_start_steps, plan.metric.exclude_end_steps) = (first, last);
        record(plan, epochs.into_iter().enumerate().map(|(i, e)| timed(i as u32 + 1, e)).collect())
    })
}

type Steps = Vec<(u64, u64, u64, u64)>;

fn timed(number: u32, accelerators: Vec<Vec<Steps>>) -> EpochRecord {
    let start_ms = u64::from(number) * 1_000_000;
    let blocks = |steps: Vec<Steps>| {
        let mut at = start_ms;
        steps
            .into_iter()
            .map(|steps| {
                let block = block(at, &steps);
                at = block.end_ns / 1_000_000 + 3000;
                block
            })
            .collect()
    };
    epoch(number, accelerators.into_iter().map(blocks).collect())
}

fn shifted(record: &Record, ns: u64) -> Record {
    let mut record = record.clone();
    for epoch in &mut record.epochs {
        epoch.start_ns += ns;
        epoch.end_ns += ns;
        for accelerator in &mut epoch.accelerators {
            accelerator.last_read_start_ns = accelerator.last_read_start_ns.map(|at| at + ns);
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
    fn every_value_is_finite_and_not_negative(record in records()) {
        for metric in METRICS {
            let epochs = Scope::all(&record).flat_map(|scope| {
                let each = scope.epoch.accelerators.iter().map(move |a| metric.of_accelerator(scope, a));
                each.chain([metric.of_epoch(scope)])
            });
            for value in epochs.chain([metric.of_run(&record)]).flatten() {
                prop_assert!(value.is_finite() && 0.0 <= value, "{}: {}", metric.id.name(), value);
            }
        }
    }

    #[test]
    fn utilisation_is_at_most_whole(record in records()) {
        for metric in [&AU_ALL_STEPS, &AU_WINDOWED, &AU_SUSTAINED] {
            prop_assert!(metric.of_run(&record).is_none_or(|au| au <= 100.0 + 1e-9), "{}", metric.id.name());
        }
    }

    #[test]
    fn the_time_of_day_does_not_matter(record in records(), ns in 0..u64::MAX / 4) {
        let later = shifted(&record, ns);
        for metric in METRICS {
            prop_assert_eq!(metric.of_run(&record), metric.of_run(&later), "{}", metric.id.name());
        }
    }
}

/// As an interrupt leaves it: rank 0 tells of its own accelerator only.
#[test]
fn an_epoch_of_which_not_all_told_counts_for_nothing() {
    let steps = [(10, 10, 0, 100); 5];
    let of = |accelerators| {
        let blocks = vec![vec![block(0, &steps)]; accelerators];
        epoch(1, blocks)
    };
    let both = record(plan(2, 5), vec![of(2), of(2)]);
    let mut broken = both.clone();
    broken.epochs.push(EpochRecord { number: 3, ..of(1) });
    broken.epochs[2].host.process_device_read_bytes = Some(7);
    let last = Scope::new(&broken, &broken.epochs[2]);
    for metric in METRICS {
        assert_eq!(metric.of_epoch(last), None, "{}", metric.id.name());
        assert_eq!(metric.of_run(&broken), metric.of_run(&both), "{}", metric.id.name());
        assert_eq!(metric.of_epochs(&broken).len(), 2, "{}", metric.id.name());
    }
    broken.plan.train.epochs = 3;
    broken.complete = false;
    let summary = crate::summary::Summary::new(&broken);
    assert_eq!((summary.epochs, summary.per_epoch.len()), (2, 3));
    assert_eq!(summary.per_epoch[2].figures.value(&LOGICAL_BYTES), None);
    assert!(summary.doubts[0].evidence.starts_with("2 of 3 epochs"), "{:?}", summary.doubts);
    assert_eq!(summary.phases[2].delivered_bytes_per_second, None);
    broken.epochs.drain(..2);
    assert_eq!(
        crate::summary::Summary::new(&broken).figures.value(&LOGICAL_BYTES),
        None,
        "none is whole"
    );
}
