//! Whole epochs in virtual time, compared with figures computed by hand.

mod broken;
mod causes;
mod client;
mod even;
mod requests;
mod settings;
mod sustained;

use crate::job::ReadJob;
use crate::loader;
use crate::simulated::{SimulatedDriver, SimulatedStorage};
use feedrate_measure::example;
use feedrate_measure::record::AcceleratorEpoch;
use feedrate_spec::plan::Plan;
use feedrate_spec::workload::TimeSpec;

const SAMPLE_BYTES: u64 = 1_000_000;

#[derive(Clone, Copy)]
struct Case {
    loader: &'static str,
    accelerators: u32,
    workers: u32,
    steps: u64,
    compute_s: f64,
}

/// Returns a plan with samples of a million bytes, each read in one operation, so that one read is one batch.
fn plan(case: Case) -> Plan {
    let mut plan = example::plan(case.accelerators, case.steps);
    plan.dataset.format = "null".into();
    plan.storage.kind = "null".into();
    plan.storage.engine = None;
    plan.loader.kind = case.loader.into();
    plan.loader.workers = case.workers;
    let in_flight = loader::find(case.loader).unwrap().entry().batches_in_flight;
    plan.loader.batches_in_flight = in_flight(case.workers, 2, 1);
    plan.loader.piece_bytes = 4 << 20;
    plan.train.compute = TimeSpec::Constant { mean: case.compute_s };
    plan
}

fn job(plan: &Plan) -> ReadJob {
    ReadJob::without_files(plan).unwrap()
}

fn constant(ns: u64) -> TimeSpec {
    TimeSpec::Constant { mean: ns as f64 / 1e9 }
}

fn simulate(plan: &Plan, model: SimulatedStorage) -> Vec<AcceleratorEpoch> {
    let mut driver = SimulatedDriver::new(job(plan), model);
    driver.run_epoch(plan.train.steps_per_epoch).unwrap()
}

fn rate(bytes_per_second: f64) -> SimulatedStorage {
    SimulatedStorage { bytes_per_second: Some(bytes_per_second), ..SimulatedStorage::default() }
}

/// Returns the length of the epoch of each accelerator in milliseconds.
fn lengths_ms(epochs: &[AcceleratorEpoch]) -> Vec<f64> {
    epochs.iter().map(|e| (e.blocks[0].end_ns - e.blocks[0].start_ns) as f64 / 1e6).collect()
}

/// The storage needs 10 ms for a batch and serves one read after another. Each step needs its batch and the end of the previous step. So the
/// epoch takes max(first read + all compute, all reads + last compute), with any number of workers.
#[test]
fn one_accelerator_takes_the_expected_time() {
    for workers in [1, 4, 16, 64] {
        for steps in [6, 50, 500, 2000] {
            for compute_ms in [1.0, 5.0, 9.0, 11.0, 20.0] {
                let case = Case {
                    loader: "pytorch",
                    accelerators: 1,
                    workers,
                    steps,
                    compute_s: compute_ms / 1e3,
                };
                let epochs = simulate(&plan(case), rate(1e8));
                let n = steps as f64;
                let expected = (10.0 + n * compute_ms).max(n * 10.0 + compute_ms);
                let length = lengths_ms(&epochs)[0];
                assert!(
                    (length - expected).abs() < 1e-3,
                    "{workers} workers, {steps} steps, {compute_ms} ms: {length} {expected}"
                );
                let computed_ns: u64 = epochs[0].blocks[0].compute_ns.iter().sum();
                assert_eq!(computed_ns, (n * compute_ms * 1e6).round() as u64);
            }
        }
    }
}

/// Several accelerators share the storage. If they are starved, an epoch takes all reads and one compute. If they are fed, the first
/// batch of the last accelerator comes after the first batches of all workers of the others.
#[test]
fn several_accelerators_take_the_expected_time() {
    for accelerators in [2u32, 4, 8] {
        for workers in [1, 4, 16] {
            for steps in [6u64, 50, 500] {
                let n = f64::from(accelerators);
                let s = steps as f64;
                let ahead = f64::from(workers).min(s);
                for (compute_ms, expected) in [
                    (8.0, n * s * 10.0 + 8.0),
                    (100.0 * n, ((n - 1.0) * ahead + 1.0) * 10.0 + s * 100.0 * n),
                ] {
                    let case = Case {
                        loader: "pytorch",
                        accelerators,
                        workers,
                        steps,
                        compute_s: compute_ms / 1e3,
                    };
                    for length in lengths_ms(&simulate(&plan(case), rate(1e8))) {
                        assert!(
                            (length - expected).abs() < 1e-3,
                            "{accelerators} × {workers} × {steps}, {compute_ms} ms: {length} {expected}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn without_workers_reading_and_computing_take_turns() {
    let case = Case { loader: "pytorch", accelerators: 1, workers: 0, steps: 50, compute_s: 0.005 };
    assert_eq!(lengths_ms(&simulate(&plan(case), rate(1e8))), [50.0 * 15.0]);
}

/// With a latency of 10 ms and no limit of the rate, each worker has one read at a time.
#[test]
fn workers_hide_latency() {
    for (loader, workers, expected_ms) in
        [("pytorch", 1, 600.0), ("pytorch", 4, 150.0), ("native", 4, 150.0)]
    {
        let case = Case { loader, accelerators: 1, workers, steps: 60, compute_s: 0.0 };
        let model =
            SimulatedStorage { latency: constant(10_000_000), ..SimulatedStorage::default() };
        assert_eq!(
            lengths_ms(&simulate(&plan(case), model)),
            [expected_ms],
            "{loader} × {workers}"
        );
    }
}

/// Four workers read sixty samples of 10 ms. Storage, cores or decoding admit two workers at a time.
#[test]
fn limited_resources_are_shared_in_turn() {
    let case = Case { loader: "native", accelerators: 1, workers: 4, steps: 60, compute_s: 0.0 };
    let decodes =
        SimulatedStorage { decode_bytes_per_second: Some(1e8), ..SimulatedStorage::default() };
    let waits = SimulatedStorage { latency: constant(10_000_000), ..SimulatedStorage::default() };
    let served = SimulatedStorage { concurrency: Some(2), ..waits };
    let mut threads = plan(case);
    threads.loader.decode_threads = Some(2);
    for (plan, model, expected_ms) in [
        (&plan(case), waits, 150.0),
        (&plan(case), served, 300.0),
        (&plan(case), SimulatedStorage { concurrency: Some(64), ..waits }, 150.0),
        (&plan(case), decodes, 150.0),
        (&plan(case), SimulatedStorage { cores: Some(2), ..decodes }, 300.0),
        (&threads, decodes, 300.0),
    ] {
        let epochs = simulate(plan, model);
        assert_eq!(lengths_ms(&epochs), [expected_ms], "{model:?}");
        let io = &epochs[0].io;
        let reads = model.latency.mean_s() > 0.0;
        let waited_ns = if reads { io.read_ns } else { io.decode_ns };
        // Waits for the storage or for a core count, waits for a permit to decode do not.
        let in_turn = plan.loader.decode_threads.is_some();
        let each_ms = if expected_ms == 300.0 && !in_turn { 20.0 } else { 10.0 };
        let expected_ns = 60.0 * each_ms * 1e6;
        assert!((waited_ns as f64 / expected_ns - 1.0).abs() < 0.05, "{waited_ns} {model:?}");
    }
}

/// Drawn latencies differ between reads, are the same in each run, and have the configured mean.
#[test]
fn latencies_are_drawn() {
    let case = Case { loader: "native", accelerators: 1, workers: 1, steps: 2000, compute_s: 0.0 };
    let latency = TimeSpec::Gamma { shape: 4.0, scale: 0.0025 };
    let model = SimulatedStorage { latency, open: latency, ..SimulatedStorage::default() };
    let mut plan = plan(case);
    plan.dataset.record_dims = vec![10];
    let epochs = simulate(&plan, model);
    let io = &epochs[0].io;
    for (ns, count, latencies) in
        [(io.read_ns, io.reads, &io.read_latency), (io.open_ns, io.opens, &io.open_latency)]
    {
        assert!((ns as f64 / count as f64 / 10e6 - 1.0).abs() < 0.05, "{ns} {count}");
        assert!(latencies.quantile(0.1) < latencies.quantile(0.9).map(|ns| ns / 2));
    }
    assert_eq!(epochs, simulate(&plan, model));
}

#[test]
fn the_times_of_an_epoch_add_up() {
    let case = Case { loader: "native", accelerators: 3, workers: 2, steps: 40, compute_s: 0.012 };
    let model = SimulatedStorage {
        open: constant(300_000),
        latency: constant(1_000_000),
        decode_bytes_per_second: Some(1e9),
        ..rate(1e8)
    };
    for epoch in simulate(&plan(case), model) {
        let block = &epoch.blocks[0];
        let sum = |times: &[u64]| times.iter().sum::<u64>();
        let load = sum(&block.load_ns);
        assert_eq!(
            load + sum(&block.compute_ns) + sum(&block.barrier_ns),
            block.end_ns - block.start_ns
        );
        let stall = epoch.stall;
        assert_eq!(stall.open_ns + stall.read_ns + stall.decode_ns + stall.queue_ns, load);
        assert!(stall.read_ns > 0 && stall.decode_ns > 0);
        assert_eq!(epoch.io.samples, 40);
        assert_eq!(epoch.io.read_bytes, 40 * SAMPLE_BYTES);
        assert_eq!(block.read_bytes.last(), Some(&(40 * SAMPLE_BYTES)));
    }
}
