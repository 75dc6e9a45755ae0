//! What settings of a loader do to an epoch: held batches, samples side by side, preprocessing, samples kept in memory.

use super::{
    Case, Driver, RealDriver, SAMPLE_BYTES, SimulatedDriver, SimulatedStorage, job, lengths_ms,
    plan, rate, whole,
};
use crate::clock::Clock;
use crate::comm::Solo;
use crate::drive::Signals;
use crate::engine::Training;
use feedrate_measure::record::AcceleratorEpoch;
use feedrate_spec::plan::{Barrier, FileAccess, LoaderPlan, Plan};
use feedrate_spec::workload::TimeSpec;
use std::sync::Arc;

const CASE: Case =
    Case { loader: "native", accelerators: 1, workers: 1, steps: 40, compute_s: 0.0 };

/// `case` with other settings of the loader.
fn with(case: Case, set: impl Fn(&mut LoaderPlan)) -> Plan {
    let mut plan = plan(case);
    set(&mut plan.loader);
    plan.dataset.files_train *= plan.loader.batch_size;
    plan.train.epochs = 2;
    let stock = crate::loader::find(case.loader).unwrap().entry().stock_batches;
    let loader = &mut plan.loader;
    loader.stock_batches =
        stock(case.workers, loader.prefetch_size, loader.batch_size) + loader.held_batches;
    plan
}

fn simulate(plan: &Plan, model: SimulatedStorage) -> Vec<AcceleratorEpoch> {
    let mut driver = SimulatedDriver::new(job(plan), model).unwrap();
    whole(driver.epoch(
        &mut Training::new(plan, 0..plan.accelerators),
        plan.train.steps_per_epoch,
        &mut |_| Ok(()),
    ))
}

/// Epochs 1 and 2 on threads.
fn two_real_epochs(plan: &Plan) -> [Vec<AcceleratorEpoch>; 2] {
    let mut driver =
        RealDriver::new(job(plan), Clock::new(), Arc::new(Solo), Signals::default(), false)
            .unwrap();
    let mut training = Training::new(plan, 0..plan.accelerators);
    [1, 2].map(|_| whole(driver.epoch(&mut training, plan.train.steps_per_epoch, &mut |_| Ok(()))))
}

/// With `h` batches held back, step `i` starts once `i + h + 1` batches of 10 ms each are read, or all are.
#[test]
fn a_buffer_is_full_before_the_first_batch_leaves_it() {
    for loader in ["pytorch", "tensorflow", "dali", "native"] {
        for held_batches in [0, 1, 7, 39] {
            for compute_ms in [2.0, 30.0] {
                let case = Case { loader, compute_s: compute_ms / 1e3, ..CASE };
                let plan = with(case, |loader| {
                    loader.held_batches = held_batches;
                    loader.held_at_start = held_batches;
                });
                let (n, held) = (40.0_f64, f64::from(held_batches));
                let expected = (0..40)
                    .map(f64::from)
                    .map(|i| (i + held + 1.0).min(n) * 10.0 + (n - i) * compute_ms)
                    .fold(0.0, f64::max);
                assert_eq!(
                    lengths_ms(&simulate(&plan, rate(1e8))),
                    [expected],
                    "{loader}, {held_batches} held, {compute_ms} ms"
                );
            }
        }
    }
}

/// Reads of 10 ms, as many at once as there are workers, four samples in a batch: dali's workers share a batch and wait
/// for it to be whole, the others' go on with the next.
#[test]
fn workers_read_the_samples_of_a_batch_side_by_side() {
    for (loader, workers, expected_ms) in [
        ("dali", 1, 1600.0),
        ("dali", 3, 800.0),
        ("dali", 4, 400.0),
        ("dali", 8, 400.0),
        ("tensorflow", 3, 540.0),
        ("native", 4, 400.0),
    ] {
        let case = Case { loader, workers, ..CASE };
        let plan = with(case, |loader| loader.batch_size = 4);
        let model = SimulatedStorage { latency_ns: 10_000_000, ..SimulatedStorage::default() };
        assert_eq!(lengths_ms(&simulate(&plan, model)), [expected_ms], "{loader} × {workers}");
    }
}

#[test]
fn preprocessing_takes_a_worker_its_time() {
    for (workers, expected_ms) in [(1, 400.0), (4, 100.0)] {
        let plan = with(Case { workers, ..CASE }, |loader| {
            loader.preprocess = TimeSpec::Constant { mean: 0.01 };
        });
        let epochs = simulate(&plan, SimulatedStorage::default());
        assert_eq!(lengths_ms(&epochs), [expected_ms], "{workers}");
        assert_eq!(epochs[0].stall.decode_ns, (expected_ms * 1e6) as u64);
    }
}

#[test]
fn samples_in_memory_are_read_once() {
    for loader in ["pytorch", "tensorflow", "dali", "native"] {
        let plan = with(Case { loader, accelerators: 2, ..CASE }, |loader| loader.in_memory = true);
        let [first, second] = two_real_epochs(&plan);
        for (first, second) in first.iter().zip(second) {
            assert_eq!(first.io.read_bytes, 40 * SAMPLE_BYTES);
            assert_eq!(first.io.memory_bytes, 0);
            assert_eq!(second.io.read_bytes, 0, "{loader}");
            assert_eq!((second.io.reads, second.io.opens), (0, 0), "{loader}");
            assert_eq!(second.io.memory_bytes, 40 * SAMPLE_BYTES);
            assert_eq!(second.io.samples, 40);
            assert_eq!(second.blocks[0].read_bytes.last(), Some(&0));
        }
    }
}

/// The first accelerator of each group reads for all of it; what it read for another counts as that one's.
#[test]
fn one_of_a_group_reads_for_all() {
    for loader in ["pytorch", "tensorflow", "dali", "native"] {
        for group_accelerators in [2_u32, 3, 5] {
            let plan = with(Case { loader, accelerators: 5, ..CASE }, |loader| {
                loader.file_access = FileAccess::Shared;
                loader.group_accelerators = group_accelerators;
            });
            assert_eq!(
                job(&plan).places(),
                5_usize.div_ceil(group_accelerators as usize),
                "one worker for each group"
            );
            for epoch in two_real_epochs(&plan).concat() {
                assert_eq!((epoch.io.samples, epoch.io.read_bytes), (40, 40 * SAMPLE_BYTES));
            }
        }
    }
}

/// Two accelerators whose steps differ in length: nobody waits before the end.
#[test]
fn without_a_barrier_each_accelerator_goes_its_own_way() {
    let case = Case { loader: "native", accelerators: 2, workers: 1, steps: 6, compute_s: 0.005 };
    let mut plan = plan(case);
    plan.train.barrier = Barrier::AtEnd;
    plan.train.compute = TimeSpec::Uniform { min: 0.001, max: 0.02 };
    let own = |epochs: Vec<AcceleratorEpoch>| {
        epochs.into_iter().map(|epoch| {
            let block = &epoch.blocks[0];
            assert_eq!(block.steps(), 6);
            let (last, others) = block.barrier_ns.split_last().unwrap();
            assert!(others.iter().all(|&ns| ns == 0), "{others:?}");
            (*last, block.end_ns)
        })
    };
    let simulated: Vec<_> = own(simulate(&plan, SimulatedStorage::default())).collect();
    // Who is first waits for the other, and both end together.
    assert!(simulated.iter().any(|&(last, _)| last > 0), "{simulated:?}");
    assert_eq!(simulated[0].1, simulated[1].1);
    plan.train.epochs = 2;
    for epoch in two_real_epochs(&plan) {
        assert_eq!(own(epoch).count(), 2);
    }
}
