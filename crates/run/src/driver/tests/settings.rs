//! Settings that only the real driver supports: samples kept in memory, and groups with one reader.

use super::{Case, SAMPLE_BYTES, check_unfailed, driver, plan};
use crate::driver::placement::Placement;
use feedrate_engine::loader;
use feedrate_measure::record::AcceleratorEpoch;
use feedrate_spec::plan::{Barrier, ClientPlan, FileAccess, LoaderPlan, Plan};
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

/// Runs two epochs.
fn two_epochs(plan: &Plan) -> [Vec<AcceleratorEpoch>; 2] {
    let mut driver = driver(plan);
    [1, 2].map(|_| check_unfailed(driver.run_epoch(plan.train.steps_per_epoch, &mut |_| Ok(()))))
}

#[test]
fn samples_in_memory_are_read_once() {
    for loader in loader::LOADERS.iter().map(|loader| loader.entry().member.name) {
        let plan =
            plan_with(Case { loader, accelerators: 2, ..CASE }, |loader| loader.in_memory = true);
        let [first, second] = two_epochs(&plan);
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

/// A read of the first accelerator for another one counts for the other accelerator.
#[test]
fn the_first_accelerator_of_a_group_reads_for_all() {
    for loader in loader::LOADERS.iter().map(|loader| loader.entry().member.name) {
        for group_accelerators in [2_u32, 3, 5] {
            let plan = plan_with(Case { loader, accelerators: 5, ..CASE }, |loader| {
                loader.file_access = FileAccess::Shared;
                loader.group_accelerators = group_accelerators;
            });
            assert_eq!(
                Placement::new(&super::job(&plan)).worker_threads(),
                5_usize.div_ceil(group_accelerators as usize),
                "one worker for each group"
            );
            for epoch in two_epochs(&plan).concat() {
                assert_eq!((epoch.io.samples, epoch.io.read_bytes), (40, 40 * SAMPLE_BYTES));
            }
        }
    }
}

/// Returns a plan for two accelerators with steps of different lengths.
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

#[test]
fn without_a_barrier_accelerators_wait_only_at_the_end() {
    let mut plan = without_barrier();
    plan.train.epochs = 2;
    for epoch in two_epochs(&plan).concat() {
        last_wait_and_end(&epoch);
    }
}

/// The first accelerator of each group reads the common data. The others get it from memory.
#[test]
fn a_group_that_shares_data_reads_it_once() {
    for loader in loader::LOADERS.iter().map(|loader| loader.entry().member.name) {
        let mut plan = plan_with(Case { loader, accelerators: 5, workers: 2, ..CASE }, |loader| {
            loader.file_access = FileAccess::Same;
            loader.group_accelerators = 3;
        });
        plan.dataset.files_train = 40;
        for epochs in two_epochs(&plan) {
            for (accelerator, epoch) in epochs.iter().enumerate() {
                let read_bytes = if accelerator % 3 == 0 { 40 * SAMPLE_BYTES } else { 0 };
                let io = &epoch.io;
                assert_eq!((io.samples, io.read_bytes), (40, read_bytes), "{loader} {accelerator}");
                assert_eq!(io.read_bytes + io.memory_bytes, 40 * SAMPLE_BYTES);
                assert_eq!(io.opens > 0, read_bytes > 0, "{loader} {accelerator}");
            }
        }
    }
}

#[test]
fn processor_time_is_burnt_for_the_client() {
    for (loader, workers) in [("pytorch", 0), ("pytorch", 2), ("tensorflow", 3), ("dali", 1)] {
        let case = Case { loader, workers, ..CASE };
        let has_workers = workers > 0;
        let plan = plan_with(case, |loader| {
            loader.batch_size = 2;
            loader.client = Some(ClientPlan {
                per_sample_s: 2e-4,
                per_byte_s: 1e-4 / SAMPLE_BYTES as f64,
                per_batch_s: 1e-4,
                handover_bytes_per_second: has_workers.then_some(SAMPLE_BYTES as f64 / 1e-4),
                receive_per_batch_s: if has_workers { 1e-4 } else { 0.0 },
                receive_wait_share: 0.5,
                start_per_epoch_s: if has_workers { 1e-3 } else { 0.0 },
                ..ClientPlan::default()
            });
        });
        let epochs = check_unfailed(driver(&plan).run_epoch(40, &mut |_| Ok(())));
        let io = &epochs[0].io;
        let stall = &epochs[0].stall;
        let batch_ns = 2 * 300_000 + 100_000 + if has_workers { 200_000 } else { 0 };
        // The parts of a batch are rounded down.
        let configured_ns = 40 * batch_ns - 1000;
        assert!(configured_ns <= io.client_burnt_ns + io.client_own_ns, "{loader}: {io:?}");
        assert!(io.client_burnt_ns <= io.client_ns, "{loader}: {io:?}");
        let receive_ns_min =
            if has_workers { 40 * 100_000 + u64::from(workers) * 1_000_000 } else { 0 };
        assert!(receive_ns_min <= io.receive_ns, "{loader}: {io:?}");
        assert!(stall.client_ns > 0 && stall.client_ns <= io.client_ns + io.receive_ns);
    }
}

/// The rate lets a batch pass in 2 ms. On a busy machine, several may have been prepared before the first step.
#[test]
fn batches_of_a_client_are_limited_by_its_rates() {
    let rate = Some(2.0 * SAMPLE_BYTES as f64 / 2e-3);
    let shared = ClientPlan { shared_bytes_per_second: rate, ..ClientPlan::default() };
    let pinned = ClientPlan { pin_bytes_per_second: rate, ..ClientPlan::default() };
    let received = ClientPlan { receive_per_batch_s: 1e-4, ..pinned.clone() };
    for client in [shared, pinned, received] {
        let plan = plan_with(Case { loader: "pytorch", workers: 2, ..CASE }, |loader| {
            loader.batch_size = 2;
            loader.client = Some(client.clone());
        });
        let epochs = check_unfailed(driver(&plan).run_epoch(40, &mut |_| Ok(())));
        let (block, io) = (&epochs[0].blocks[0], &epochs[0].io);
        assert!(block.end_ns - block.start_ns >= 60_000_000, "{client:?}: {block:?}");
        // Waiting for the thread that pins batches counts as receiving.
        assert_eq!(io.receive_ns > 0, client.pin_bytes_per_second.is_some(), "{io:?}");
        assert!(epochs[0].stall.client_ns > 0);
    }
}

/// The client works 2 ms for the bytes of each sample. Bytes are read only in the first epoch.
#[test]
fn samples_in_memory_need_no_client_work_for_bytes() {
    let plan = plan_with(CASE, |loader| {
        loader.in_memory = true;
        loader.client =
            Some(ClientPlan { per_byte_s: 2e-3 / SAMPLE_BYTES as f64, ..ClientPlan::default() });
    });
    let burnt_ns = two_epochs(&plan)
        .map(|epochs| epochs.iter().map(|epoch| epoch.io.client_burnt_ns).sum::<u64>());
    assert!(100 * burnt_ns[1] < burnt_ns[0], "{burnt_ns:?}");
}
