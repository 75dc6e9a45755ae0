//! Settings of a loader and their effect on an epoch: held batches, samples read in parallel, preprocessing.

use super::{Case, constant, lengths_ms, plan, rate, simulate};
use crate::loader;
use crate::simulated::SimulatedStorage;
use feedrate_measure::record::AcceleratorEpoch;
use feedrate_spec::plan::{Barrier, LoaderPlan, Plan};
use feedrate_spec::workload::TimeSpec;

const CASE: Case =
    Case { loader: "native", accelerators: 1, workers: 1, steps: 40, compute_s: 0.0 };

/// Returns the plan of `case` with the loader's settings changed by `set`.
fn plan_with(case: Case, set: impl Fn(&mut LoaderPlan)) -> Plan {
    let mut plan = plan(case);
    set(&mut plan.loader);
    plan.dataset.files_train *= plan.loader.batch_size;
    plan.train.epochs = 2;
    let in_flight = loader::find(case.loader).unwrap().entry().batches_in_flight;
    let loader = &mut plan.loader;
    loader.batches_in_flight =
        in_flight(case.workers, loader.prefetch_size, loader.batch_size) + loader.held_batches;
    plan
}

/// With `h` held batches, step `i` starts when `i + h + 1` batches of 10 ms each are read, or when all batches are read.
#[test]
fn a_shuffle_buffer_is_full_before_the_first_batch_is_delivered() {
    for loader in loader::LOADERS.iter().map(|loader| loader.entry().member.name) {
        for held_batches in [0, 1, 7, 39] {
            for compute_ms in [2.0, 30.0] {
                let case = Case { loader, compute_s: compute_ms / 1e3, ..CASE };
                let plan = plan_with(case, |loader| {
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

/// Reads of 10 ms and four samples in a batch. The workers of `dali` share a batch and wait until it is complete; the workers of
/// the other loaders continue with the next batch.
#[test]
fn workers_read_the_samples_of_a_batch_in_parallel() {
    for (loader, workers, expected_ms) in [
        ("dali", 1, 1600.0),
        ("dali", 3, 800.0),
        ("dali", 4, 400.0),
        ("dali", 8, 400.0),
        ("tensorflow", 3, 540.0),
        ("native", 4, 400.0),
    ] {
        let case = Case { loader, workers, ..CASE };
        let plan = plan_with(case, |loader| loader.batch_size = 4);
        let model =
            SimulatedStorage { latency: constant(10_000_000), ..SimulatedStorage::default() };
        assert_eq!(lengths_ms(&simulate(&plan, model)), [expected_ms], "{loader} × {workers}");
    }
}

#[test]
fn preprocessing_occupies_a_worker() {
    for (workers, expected_ms) in [(1, 400.0), (4, 100.0)] {
        let plan = plan_with(Case { workers, ..CASE }, |loader| {
            loader.preprocess = TimeSpec::Constant { mean: 0.01 };
        });
        let epochs = simulate(&plan, SimulatedStorage::default());
        assert_eq!(lengths_ms(&epochs), [expected_ms], "{workers}");
        assert_eq!(epochs[0].stall.decode_ns, (expected_ms * 1e6) as u64);
    }
}

/// Two accelerators whose steps differ in length.
fn without_barrier() -> Plan {
    let case = Case { loader: "native", accelerators: 2, workers: 1, steps: 6, compute_s: 0.005 };
    let mut plan = plan(case);
    plan.train.barrier = Barrier::AtEnd;
    plan.train.compute = TimeSpec::Uniform { min: 0.001, max: 0.02 };
    plan
}

/// Returns the last barrier wait of an accelerator and the end of its block. Earlier waits must be 0.
fn last_wait_and_end(epoch: &AcceleratorEpoch) -> (u64, u64) {
    let block = &epoch.blocks[0];
    assert_eq!(block.steps(), 6);
    let (last, others) = block.barrier_ns.split_last().unwrap();
    assert!(others.iter().all(|&ns| ns == 0), "{others:?}");
    (*last, block.end_ns)
}

/// The faster accelerator waits for the other, and both end together.
#[test]
fn without_a_barrier_accelerators_wait_only_at_the_end() {
    let epochs = simulate(&without_barrier(), SimulatedStorage::default());
    let [first, second] = [0, 1].map(|accelerator| last_wait_and_end(&epochs[accelerator]));
    assert!(first.0 > 0 || second.0 > 0, "{first:?} {second:?}");
    assert_eq!(first.1, second.1);
}
