//! Causes of waits: which accelerator was last in each step, and why.

use super::{Case, constant, job, plan, rate};
use crate::job::ReadJob;
use crate::loader::LOADERS;
use crate::simulated::{SimulatedDriver, SimulatedStorage};
use feedrate_measure::example;
use feedrate_measure::record::{
    AcceleratorEpoch, EpochRecord, HostEpoch, IoCounters, Stall, StepCauses,
};
use feedrate_measure::summary::Summary;
use feedrate_measure::verdict::Bound;
use feedrate_spec::plan::{Barrier, Plan};
use feedrate_spec::workload::TimeSpec;

fn simulate_plan(plan: &Plan, model: SimulatedStorage) -> (Vec<AcceleratorEpoch>, StepCauses) {
    simulate(SimulatedDriver::new(job(plan), model), plan.train.steps_per_epoch)
}

fn simulate(mut driver: SimulatedDriver, steps: u64) -> (Vec<AcceleratorEpoch>, StepCauses) {
    let epochs = driver.run_epoch(steps).unwrap();
    let causes = driver.take_causes();
    let waited = causes.total_stall();
    let skew_ns = causes.total_skew_ns();
    let blocks = epochs.iter().flat_map(|epoch| &epoch.blocks);
    let waits_ns = blocks.flat_map(|block| block.load_ns.iter().chain(&block.barrier_ns));
    assert_eq!(waited.total_ns() + skew_ns, waits_ns.sum::<u64>(), "every wait is charged");
    assert!(causes.is_rectangular());
    (epochs, causes)
}

fn barrier_ns(epochs: &[AcceleratorEpoch]) -> u64 {
    epochs.iter().flat_map(|epoch| &epoch.blocks[0].barrier_ns).sum()
}

/// Eight accelerators with equal compute share a storage. They wait for each other much longer than for their own batches. All of this wait
/// is attributed to the reads of the last accelerator.
#[test]
fn on_slow_storage_the_barrier_waits_for_reads() {
    for loader in LOADERS.iter().map(|loader| loader.entry().member.name) {
        let case = Case { loader, accelerators: 8, workers: 1, steps: 40, compute_s: 0.075 };
        let (epochs, causes) = simulate_plan(&plan(case), rate(1e8));
        let waited = causes.total_stall();
        let skew_ns = causes.total_skew_ns();
        let load_ns: u64 = epochs.iter().flat_map(|epoch| &epoch.blocks[0].load_ns).sum();
        assert!(load_ns < barrier_ns(&epochs), "{loader}");
        assert_eq!((waited.open_ns, waited.decode_ns, skew_ns), (0, 0, 0), "{loader}");
        assert!(waited.queue_ns * 50 < waited.read_ns, "{loader}: {waited:?}");
        assert_eq!(causes.steps(), 40);
    }
}

/// With fast reads, the accelerator that computes longest is last, and the others wait for its compute.
#[test]
fn the_barrier_waits_for_the_longest_compute() {
    let case = Case { loader: "native", accelerators: 3, workers: 1, steps: 20, compute_s: 0.0 };
    let mut plan = plan(case);
    plan.train.compute = TimeSpec::Uniform { min: 0.05, max: 0.2 };
    let (epochs, causes) = simulate_plan(&plan, SimulatedStorage::default());
    assert_eq!(
        (causes.total_stall(), causes.total_skew_ns()),
        (Stall::default(), barrier_ns(&epochs))
    );
    for (step, last) in causes.last.iter().enumerate() {
        assert_eq!(epochs[*last as usize].blocks[0].barrier_ns[step], 0);
    }
}

#[test]
fn the_others_wait_for_a_slow_accelerator() {
    let case = Case { loader: "native", accelerators: 4, workers: 2, steps: 30, compute_s: 0.04 };
    let mut plan = plan(case);
    plan.train.slow_accelerators = vec![(2, 1.5)];
    let (_, causes) = simulate_plan(&plan, SimulatedStorage::default());
    assert_eq!(causes.last, [2; 30]);
    // Three others wait 20 ms in each step.
    assert_eq!(
        (causes.total_stall(), causes.total_skew_ns()),
        (Stall::default(), 3 * 30 * 20_000_000)
    );
}

#[test]
fn an_evaluation_has_one_wait_at_its_end() {
    let case = Case { loader: "native", accelerators: 3, workers: 1, steps: 20, compute_s: 0.02 };
    let mut plan = plan(case);
    plan.train.barrier = Barrier::AtEnd;
    let (epochs, causes) = simulate_plan(&plan, rate(1e8));
    assert_eq!(causes.steps(), 1);
    let last = &epochs[causes.last[0] as usize];
    assert_eq!(last.blocks[0].barrier_ns.iter().sum::<u64>(), 0);
    assert!(causes.read_ns[0] > 0 && causes.skew_ns[0] == 0, "{causes:?}");
}

/// Checks the verdict for one, two and eight accelerators with steps of 40 ms and 1 MB. The storage has the share `needed_share` of the rate
/// that the accelerators need.
fn check_verdict(expected: Bound, needed_share: f64, change: fn(&mut Plan, u32)) {
    let storage = |accelerators| rate(needed_share * f64::from(accelerators) * 25e6);
    check_verdict_with(expected, storage, HostEpoch::default(), change);
}

fn check_verdict_with(
    expected: Bound,
    storage: impl Fn(u32) -> SimulatedStorage,
    host: HostEpoch,
    change: fn(&mut Plan, u32),
) {
    for accelerators in [1, 2, 8] {
        let case = Case { loader: "native", accelerators, workers: 2, steps: 60, compute_s: 0.04 };
        let mut plan = plan(case);
        change(&mut plan, accelerators);
        let job = match plan.storage.kind.as_str() {
            "null" => job(&plan),
            _ => ReadJob::in_memory(&plan).unwrap(),
        };
        let driver = SimulatedDriver::new(job, storage(accelerators));
        let (accelerator_epochs, causes) = simulate(driver, plan.train.steps_per_epoch);
        let epoch = EpochRecord {
            number: 1,
            end_ns: accelerator_epochs[0].blocks[0].end_ns,
            accelerators: accelerator_epochs,
            causes: Some(causes),
            host: host.clone(),
            ..EpochRecord::default()
        };
        let verdict = Summary::new(&example::record(plan, vec![epoch])).verdict;
        let alone_is_fed = accelerators == 1 && expected == Bound::BarrierBound;
        let expected = if alone_is_fed { Bound::ComputeBound } else { expected };
        assert_eq!(verdict.name, expected, "{accelerators}: {}", verdict.evidence);
    }
}

#[test]
fn the_verdict_names_the_emulated_bottleneck() {
    check_verdict(Bound::ComputeBound, 4.0, |_, _| {});
    check_verdict(Bound::ComputeBound, 2.0, |_, _| {});
    check_verdict(Bound::StorageBound, 0.7, |_, _| {});
    check_verdict(Bound::StorageBound, 0.4, |_, _| {});
    check_verdict(Bound::DecodeBound, 4.0, |plan, _| {
        plan.loader.preprocess = TimeSpec::Constant { mean: 0.12 };
    });
    check_verdict(Bound::DecodeBound, 4.0, |plan, _| {
        plan.loader.preprocess = TimeSpec::Constant { mean: 0.3 };
    });
    check_verdict(Bound::BarrierBound, 4.0, |plan, n| {
        plan.train.slow_accelerators = vec![(n - 1, 1.5)];
    });
    check_verdict(Bound::BarrierBound, 4.0, |plan, n| {
        plan.train.slow_accelerators = vec![(n - 1, 3.0)];
    });
}

/// Stores each sample in a separate file.
fn store_in_files(plan: &mut Plan, _: u32) {
    plan.dataset.format = "raw".into();
    plan.storage.kind = "memory".into();
    plan.dataset.record_dims = vec![100, 100];
}

/// With two workers and steps of 40 ms, the storage is too slow if an open takes more than 80 ms.
#[test]
fn runs_with_slow_opens_are_metadata_bound() {
    for open_ns in [120_000_000, 200_000_000, 300_000_000] {
        let slow = |_| SimulatedStorage { open: constant(open_ns), ..SimulatedStorage::default() };
        check_verdict_with(Bound::MetadataBound, slow, HostEpoch::default(), store_in_files);
    }
}

/// If no bytes come from the device, a run is fed by the cache, even if memory is slow.
#[test]
fn runs_from_memory_are_cache_fed() {
    let host = HostEpoch {
        process_device_read_bytes: Some(0),
        resident_before_bytes: Some(0),
        ..HostEpoch::default()
    };
    for needed_share in [0.4, 0.7, 4.0] {
        let storage = |accelerators| rate(needed_share * f64::from(accelerators) * 25e6);
        check_verdict_with(Bound::CacheFed, storage, host.clone(), |_, _| {});
    }
}

/// Checks that no component of the stalls exceeds the time that workers spent on it.
fn check_components(epochs: &[AcceleratorEpoch], causes: &StepCauses, case: &str) {
    let check_stall = |stall: &Stall, io: &IoCounters, accelerators: u64| {
        let components_ns = [stall.open_ns, stall.read_ns, stall.decode_ns];
        let counted_ns = [io.open_ns, io.read_ns, io.decode_ns];
        let is_bounded = components_ns
            .iter()
            .zip(counted_ns)
            .all(|(component, total)| *component <= total * accelerators);
        assert!(is_bounded, "{case}: {components_ns:?} of {counted_ns:?}");
    };
    let mut all = IoCounters::default();
    for epoch in epochs {
        check_stall(&epoch.stall, &epoch.io, 1);
        all.add(&epoch.io);
    }
    check_stall(&causes.total_stall(), &all, epochs.len() as u64);
}

#[test]
fn no_component_of_a_wait_exceeds_the_time_spent_on_it() {
    let slow = SimulatedStorage {
        open: constant(300_000),
        latency: constant(1_000_000),
        decode_bytes_per_second: Some(1e9),
        ..rate(1e9)
    };
    for loader in LOADERS.iter().map(|loader| loader.entry().member.name) {
        for (accelerators, workers) in [(1, 1), (1, 4), (4, 3)] {
            for (held, steps, compute_s) in
                [(0, 40, 0.0), (0, 40, 0.003), (7, 40, 0.001), (39, 40, 0.01)]
            {
                let mut plan = plan(Case { loader, accelerators, workers, steps, compute_s });
                plan.loader.held_at_start = held;
                plan.loader.held_batches = held;
                plan.loader.batches_in_flight += held;
                let (epochs, causes) = simulate_plan(&plan, slow);
                let case =
                    format!("{loader}, {accelerators} × {workers}, {held} held, {compute_s} s");
                check_components(&epochs, &causes, &case);
            }
        }
    }
}

/// One worker reads everything before the first step. The wait is divided by its activity for all batches, not only for the first batch,
/// which opened the file.
#[test]
fn a_wait_for_many_batches_counts_the_activity_for_all_of_them() {
    let case = Case { loader: "pytorch", accelerators: 1, workers: 1, steps: 30, compute_s: 0.001 };
    let mut plan = plan(case);
    plan.dataset.format = "raw".into();
    plan.dataset.files_train = 1;
    plan.dataset.samples_per_file = 30;
    plan.dataset.record_dims = vec![100, 100];
    plan.storage.kind = "memory".into();
    plan.loader.held_at_start = 29;
    plan.loader.batches_in_flight = 30;
    let job = ReadJob::in_memory(&plan).unwrap();
    let model = SimulatedStorage { open: constant(5_000_000), ..rate(1e7) };
    let (epochs, causes) = simulate(SimulatedDriver::new(job, model), 30);
    let (stall, io) = (&epochs[0].stall, &epochs[0].io);
    let components_ns = [stall.open_ns, stall.read_ns, stall.decode_ns, stall.queue_ns];
    assert_eq!((components_ns, io.read_ns), ([5_000_000, 30_000_000, 0, 0], 30_000_000));
    assert_eq!((causes.total_stall(), causes.total_skew_ns()), (*stall, 0));
}
