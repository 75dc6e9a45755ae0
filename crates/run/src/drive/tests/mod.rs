//! Whole epochs under the simulated driver, against figures worked out by hand, and the real driver against the same laws.

mod even;
mod settings;
mod sustained;

use super::{Driver, Epoch, Job, RealDriver, Signals, SimulatedDriver, SimulatedStorage};
use crate::clock::Clock;
use crate::comm::{Comm, Solo, Threads};
use crate::engine::Training;
use feedrate_data::storage;
use feedrate_measure::record::AcceleratorEpoch;
use feedrate_spec::plan::{
    Barrier, Cache, DatasetPlan, FileAccess, LoaderPlan, MetricPlan, Plan, ShufflePlan,
    StoragePlan, TrainPlan,
};
use feedrate_spec::shape::{Element, Encoding, Redundancy};
use feedrate_spec::workload::TimeSpec;
use std::path::Path;
use std::sync::Arc;

const SAMPLE_BYTES: u64 = 1_000_000;

#[derive(Clone, Copy)]
struct Case {
    loader: &'static str,
    accelerators: u32,
    workers: u32,
    steps: u64,
    compute_s: f64,
}

fn loader(case: &Case) -> LoaderPlan {
    let stock = crate::loader::find(case.loader).unwrap().entry().stock_batches;
    LoaderPlan {
        kind: case.loader.into(),
        batch_size: 1,
        workers: case.workers,
        prefetch_size: 2,
        stock_batches: stock(case.workers, 2, 1),
        file_access: FileAccess::Multi,
        group_accelerators: 1,
        interleaved_files: 1,
        held_batches: 0,
        held_at_start: 0,
        decode_threads: None,
        in_memory: false,
        preprocess: TimeSpec::None,
        preprocess_seed: 123,
        shuffles_in_buffer: false,
        file_shuffle: ShufflePlan::Off,
        sample_shuffle: ShufflePlan::Off,
        order_seed: 123,
        seed_change_epoch: true,
        // One operation for each sample, so that service times are whole batches.
        piece_bytes: 4 << 20,
        materialize: false,
        verify: false,
        check_crc: true,
    }
}

fn plan(case: Case) -> Plan {
    Plan {
        workload: "case".into(),
        model: "case".into(),
        framework: "pytorch".into(),
        accelerators: case.accelerators,
        dataset: DatasetPlan {
            format: "null".into(),
            extension: "null".into(),
            files_train: case.steps * u64::from(case.accelerators),
            files_eval: 0,
            samples_per_file: 1,
            subfolders_train: 0,
            subfolders_eval: 0,
            prefix: "img".into(),
            record_bytes: SAMPLE_BYTES as f64,
            record_stdev_bytes: 0.0,
            record_dims: vec![1000, 1000],
            element: Element::Uint8,
            encoding: Encoding::default(),
            content_seed: 10,
            redundancy: Redundancy::default(),
        },
        storage: StoragePlan {
            kind: "null".into(),
            engine: None,
            throttle_bytes_per_second: None,
            throttle_latency_s: 0.0,
            delay_s: 0.0,
        },
        loader: loader(&case),
        train: TrainPlan {
            epochs: 1,
            steps_per_epoch: case.steps,
            total_steps: None,
            compute: if case.compute_s > 0.0 {
                TimeSpec::Constant { mean: case.compute_s }
            } else {
                TimeSpec::None
            },
            compute_seed: 123,
            on_devices: None,
            cache: Cache::AsIs,
            barrier: Barrier::EachStep,
        },
        checkpoint: None,
        evaluation: None,
        metric: MetricPlan {
            au_target_percent: 90.0,
            exclude_start_steps: 1,
            exclude_end_steps: 0,
        },
        timeline: false,
        doubts: vec![],
    }
}

fn job(plan: &Plan) -> Job {
    let storage = storage::open("null", Path::new("/")).unwrap();
    Job::new(plan, 0..plan.accelerators, Arc::from(storage), true).unwrap()
}

fn simulate(case: Case, model: SimulatedStorage) -> Vec<AcceleratorEpoch> {
    let plan = plan(case);
    let mut driver = SimulatedDriver::new(job(&plan), model).unwrap();
    whole(driver.epoch(
        &mut Training::new(&plan, 0..plan.accelerators),
        case.steps,
        &mut |_| Ok(()),
    ))
}

fn whole(epoch: Epoch) -> Vec<AcceleratorEpoch> {
    assert!(epoch.failure.is_none(), "{:?}", epoch.failure);
    epoch.accelerators
}

fn rate(bytes_per_second: f64) -> SimulatedStorage {
    SimulatedStorage { bytes_per_second: Some(bytes_per_second), ..SimulatedStorage::default() }
}

/// Length of the epoch of each accelerator in milliseconds.
fn lengths_ms(epochs: &[AcceleratorEpoch]) -> Vec<f64> {
    epochs.iter().map(|e| (e.blocks[0].end_ns - e.blocks[0].start_ns) as f64 / 1e6).collect()
}

/// A batch takes 10 ms of the storage. One accelerator: reads come one after another, each step needs its batch and
/// the step before. So the epoch takes max(first read + all compute, all reads + last compute), for any workers.
#[test]
fn one_accelerator_takes_as_long_as_worked_out() {
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
                let epochs = simulate(case, rate(1e8));
                let n = steps as f64;
                let expected = (10.0 + n * compute_ms).max(n * 10.0 + compute_ms);
                let length = lengths_ms(&epochs)[0];
                assert!(
                    (length - expected).abs() < 1e-3,
                    "{workers} workers, {steps} steps, {compute_ms} ms: {length} {expected}"
                );
                let computed: u64 = epochs[0].blocks[0].compute_ns.iter().sum();
                assert_eq!(computed, (n * compute_ms * 1e6).round() as u64);
            }
        }
    }
}

/// Several accelerators share the storage. Starved: all reads, then one compute. Fed: the last accelerator's first
/// batch comes after the first batches of all workers of the others.
#[test]
fn several_accelerators_take_as_long_as_worked_out() {
    for accelerators in [2u32, 4, 8] {
        for workers in [1, 4, 16] {
            for steps in [6u64, 50, 500] {
                let (n, s) = (f64::from(accelerators), steps as f64);
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
                    for length in lengths_ms(&simulate(case, rate(1e8))) {
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
    assert_eq!(lengths_ms(&simulate(case, rate(1e8))), [50.0 * 15.0]);
}

/// A latency of 10 ms, and no limit of rate: as many reads at once as there are workers.
#[test]
fn workers_hide_latency() {
    for (loader, workers, expected_ms) in
        [("pytorch", 1, 600.0), ("pytorch", 4, 150.0), ("native", 4, 150.0)]
    {
        let case = Case { loader, accelerators: 1, workers, steps: 60, compute_s: 0.0 };
        let model = SimulatedStorage { latency_ns: 10_000_000, ..SimulatedStorage::default() };
        assert_eq!(lengths_ms(&simulate(case, model)), [expected_ms], "{loader} × {workers}");
    }
}

#[test]
fn the_sum_of_the_parts_is_the_whole() {
    let case = Case { loader: "native", accelerators: 3, workers: 2, steps: 40, compute_s: 0.012 };
    let model = SimulatedStorage {
        open_ns: 300_000,
        latency_ns: 1_000_000,
        decode_bytes_per_second: Some(1e9),
        ..rate(1e8)
    };
    for epoch in simulate(case, model) {
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

fn really(case: Case) -> Vec<AcceleratorEpoch> {
    let plan = plan(case);
    let mut driver =
        RealDriver::new(job(&plan), Clock::new(), Arc::new(Solo), Signals::default(), false)
            .unwrap();
    whole(driver.epoch(
        &mut Training::new(&plan, 0..plan.accelerators),
        case.steps,
        &mut |_| Ok(()),
    ))
}

#[test]
fn threads_read_what_the_simulation_reads() {
    for (loader, workers) in [("pytorch", 0), ("pytorch", 1), ("pytorch", 4), ("native", 3)] {
        let case = Case { loader, accelerators: 3, workers, steps: 200, compute_s: 0.0 };
        for (real, simulated) in
            really(case).iter().zip(simulate(case, SimulatedStorage::default()))
        {
            assert_eq!(real.io.samples, simulated.io.samples);
            assert_eq!(real.io.read_bytes, simulated.io.read_bytes);
            assert_eq!(real.io.opens, simulated.io.opens);
            assert_eq!(real.blocks[0].load_ns.len(), 200);
            assert!(real.last_read_start_ns.is_some());
        }
    }
}

/// A barrier opens when the slowest process has arrived: the quick one cannot be done before.
#[test]
fn processes_wait_for_each_other_at_every_step() {
    let case =
        |compute_s| Case { loader: "native", accelerators: 2, workers: 1, steps: 20, compute_s };
    let ranks = Threads::group(2);
    let lengths: Vec<f64> = std::thread::scope(|scope| {
        let runs: Vec<_> = ranks
            .into_iter()
            .map(|rank| {
                scope.spawn(move || {
                    let plan = plan(case(if rank.rank() == 0 { 0.0 } else { 0.002 }));
                    let comm: Arc<dyn Comm> = Arc::new(rank);
                    let mut driver =
                        RealDriver::new(job(&plan), Clock::new(), comm, Signals::default(), false)
                            .unwrap();
                    lengths_ms(&whole(driver.epoch(
                        &mut Training::new(&plan, 0..plan.accelerators),
                        20,
                        &mut |_| Ok(()),
                    )))[0]
                })
            })
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    // The quick process leaves its first barrier after the slow one's first step, so 19 slow steps lie inside.
    assert!(lengths[0] >= 19.0 * 2.0, "{lengths:?}");
}
