//! The client's work: lengths of epochs computed by hand, and the causes of waits.

use super::{Case, SAMPLE_BYTES, constant, lengths_ms, plan};
use crate::client::ClientRates;
use crate::job::ReadJob;
use crate::simulated::{SimulatedDriver, SimulatedStorage};
use crate::virtual_time::VirtualTime;
use feedrate_measure::record::{AcceleratorEpoch, StepCauses};
use feedrate_spec::plan::{ClientPlan, Plan};

const CASE: Case =
    Case { loader: "pytorch", accelerators: 1, workers: 2, steps: 60, compute_s: 0.005 };

/// Returns a client whose workers need 20 ms for a batch of one sample: 10 for the sample, 5 for its bytes, 3 for the batch and 2 for the
/// handover.
fn worker_client() -> ClientPlan {
    ClientPlan {
        per_sample_s: 0.010,
        per_byte_s: 0.005 / SAMPLE_BYTES as f64,
        per_batch_s: 0.003,
        handover_bytes_per_second: Some(SAMPLE_BYTES as f64 / 0.002),
        ..ClientPlan::default()
    }
}

/// Returns a client whose training process needs 3 ms to receive a batch and 10 ms to start each worker.
fn training_client() -> ClientPlan {
    ClientPlan {
        receive_per_batch_s: 0.002,
        receive_per_byte_s: 0.001 / SAMPLE_BYTES as f64,
        start_per_epoch_s: 0.010,
        ..ClientPlan::default()
    }
}

fn simulate(plan: &Plan, model: SimulatedStorage) -> (Vec<AcceleratorEpoch>, StepCauses) {
    let mut driver = SimulatedDriver::new(ReadJob::without_files(plan).unwrap(), model);
    let epochs = driver.run_epoch(plan.train.steps_per_epoch).unwrap();
    (epochs, driver.take_causes())
}

/// Checks the length of an epoch in which the client causes all waits.
#[track_caller]
fn check(case: Case, client: ClientPlan, model: SimulatedStorage, expected_ms: f64) {
    let mut plan = plan(case);
    plan.loader.client = Some(client);
    let (epochs, causes) = simulate(&plan, model);
    assert_eq!(lengths_ms(&epochs), [expected_ms]);
    let load_ns = epochs[0].blocks[0].load_ns.iter().sum::<u64>();
    assert_eq!((expected_ms * 1e6) as u64, load_ns + case.steps * 5_000_000);
    let decodes = model.decode_bytes_per_second.is_some();
    let stall = epochs[0].stall;
    assert_eq!((stall.client_ns + stall.decode_ns, stall.decode_ns > 0), (load_ns, decodes));
    assert_eq!(causes.total_stall(), stall);
    assert!(stall.client_ns <= epochs[0].io.client_ns + epochs[0].io.receive_ns);
}

#[test]
fn epoch_lengths_match_the_work_of_the_client() {
    let fast = SimulatedStorage::default();
    // Two workers make a batch in 20 ms each; the last two batches are computed one after the other.
    check(CASE, worker_client(), fast, 30.0 * 20.0 + 10.0);
    check(Case { loader: "native", workers: 1, ..CASE }, worker_client(), fast, 60.0 * 20.0 + 5.0);
    // Without workers the training thread reads, and there is no handover.
    let alone = ClientPlan { handover_bytes_per_second: None, ..worker_client() };
    check(Case { workers: 0, ..CASE }, alone, fast, 60.0 * 23.0);
    // With one core for both workers, batches are made one after another.
    let one_core = SimulatedStorage { cores: Some(1), ..fast };
    check(Case { loader: "native", ..CASE }, worker_client(), one_core, 60.0 * 20.0 + 5.0);
    // Batches are ready at once; the training process starts two workers and then needs 3 ms for each batch.
    check(CASE, training_client(), fast, 20.0 + 60.0 * 8.0);
    // The loader's own decoding is part of the client's 20 ms.
    let decodes = SimulatedStorage { decode_bytes_per_second: Some(1e8), ..fast };
    check(
        Case { loader: "native", workers: 1, ..CASE },
        worker_client(),
        decodes,
        60.0 * 20.0 + 5.0,
    );
}

/// Two workers make a batch in 20 ms each, together one in 10 ms.
#[test]
fn workers_do_not_exceed_the_rate_that_they_share() {
    let fast = SimulatedStorage::default();
    let sharing = |batch_s: f64| ClientPlan {
        per_batch_s: 0.020,
        shared_bytes_per_second: Some(SAMPLE_BYTES as f64 / batch_s),
        ..ClientPlan::default()
    };
    // The second batch ends together with the first one, or 15 ms after it.
    check(CASE, sharing(0.008), fast, 20.0 + 8.0 + 58.0 / 2.0 * 20.0 + 5.0);
    check(CASE, sharing(0.015), fast, 20.0 + 59.0 * 15.0 + 5.0);
    // One worker does not wait, also if the rate is reserved after each sample and each batch.
    let alone = Case { workers: 1, ..CASE };
    check(alone, sharing(0.020), fast, 60.0 * 20.0 + 5.0);
    let parts = ClientPlan { per_byte_s: 0.060 / SAMPLE_BYTES as f64, ..sharing(0.080) };
    check(alone, parts, fast, 60.0 * 80.0 + 5.0);
    let mut plan = plan(CASE);
    plan.loader.client = Some(sharing(0.015));
    let step_s = |accelerators| {
        let times = plan.loader.client_times(SAMPLE_BYTES as f64, accelerators).unwrap();
        times.step_s(0.005, 2, f64::INFINITY)
    };
    assert_eq!([1, 3].map(step_s), [0.015, 0.045]);
}

/// Two processes with an accelerator each together do not exceed the rate that one process with both does not exceed.
#[test]
fn processes_divide_the_rate_that_workers_share() {
    let mut plan = plan(Case { accelerators: 2, ..CASE });
    let shared_bytes_per_second = Some(1e9);
    plan.loader.client = Some(ClientPlan { shared_bytes_per_second, ..ClientPlan::default() });
    let mut job = ReadJob::without_files(&plan).unwrap();
    assert_eq!(ClientRates::new(&job).shared_until_ns(0, 1000.0), 1000);
    job.local = 1..2;
    assert_eq!(ClientRates::new(&job).shared_until_ns(0, 1000.0), 2000);
}

/// A wait for the shared rate delays other work on the same core.
#[test]
fn waiting_for_the_shared_rate_occupies_a_core() {
    let job = ReadJob::without_files(&plan(CASE)).unwrap();
    let mut time = VirtualTime::new(&job, Some(1));
    assert_eq!(time.hold_core_until(5, 15), 15);
    assert_eq!(time.work_on_core(0, 5), 20);
    // The core is free too late to wait.
    assert_eq!(time.hold_core_until(0, 10), 20);
    assert_eq!(time.work_on_core(0, 5), 25);
}

/// Two workers complete a batch each after 20 ms. One thread pins a batch in 12 ms, the second one after the first. A worker begins another
/// batch when its last one is pinned and taken.
#[test]
fn batches_are_pinned_one_after_another() {
    let fast = SimulatedStorage::default();
    let pinning = |client: ClientPlan| ClientPlan {
        pin_bytes_per_second: Some(SAMPLE_BYTES as f64 / 0.012),
        ..client
    };
    check(CASE, pinning(worker_client()), fast, 30.0 * 32.0 + 12.0 + 5.0);
    // Pinning overlaps with steps and with the receiving of the batch before; receiving follows it.
    let slow_steps = Case { compute_s: 0.030, ..CASE };
    let mut plan = plan(slow_steps);
    plan.loader.client = Some(pinning(training_client()));
    let (epochs, _) = simulate(&plan, fast);
    assert_eq!(lengths_ms(&epochs), [20.0 + 12.0 + 60.0 * 33.0]);
}

/// A third of the 3 ms for receiving a batch is a wait for busy workers. It does not occupy a core.
#[test]
fn waiting_for_a_batch_takes_no_core() {
    let waiting = ClientPlan { receive_wait_share: 1.0 / 3.0, ..training_client() };
    // The second batch is being made while the first is received; all later ones are ready.
    check(CASE, waiting.clone(), SimulatedStorage::default(), 20.0 + 60.0 * 7.0 + 1.0);
    let one_core = SimulatedStorage { cores: Some(1), ..SimulatedStorage::default() };
    let length_ms = |client: ClientPlan| {
        let mut plan = plan(Case { compute_s: 0.0, ..CASE });
        plan.loader.client = Some(ClientPlan { per_batch_s: 0.010, ..client });
        lengths_ms(&simulate(&plan, one_core).0)[0]
    };
    // Worker and training process alternate on the core: 10 + 2 ms for each batch, not 10 + 3.
    let [waits, works] = [waiting, training_client()].map(length_ms);
    assert_eq!(waits, 20.0 + 60.0 * 12.0);
    assert_eq!(works, 20.0 + 60.0 * 13.0);
}

/// At most two of three workers delay the handover: the third made the batch and is idle afterwards.
#[test]
fn receiving_a_batch_takes_longer_with_more_active_workers() {
    let mut plan = plan(Case { workers: 3, ..CASE });
    plan.loader.client = Some(ClientPlan { receive_wait_share: 0.5, ..training_client() });
    let waits_ms = [0, 1, 2, 3].map(|active_workers| {
        let [cpu_s, wait_s] = plan.loader.receive_s(SAMPLE_BYTES as f64, active_workers);
        assert_eq!(cpu_s, 0.0015);
        wait_s * 1e3
    });
    assert_eq!(waits_ms, [0.0, 0.75, 1.5, 1.5]);
}

#[test]
fn the_client_limits_utilisation() {
    let mut plan = plan(Case { compute_s: 0.010, steps: 1000, ..CASE });
    plan.loader.client = Some(ClientPlan { per_sample_s: 0.040, ..ClientPlan::default() });
    let (epochs, _) = simulate(&plan, SimulatedStorage::default());
    // Two batches in 40 ms with 10 ms of compute each: a utilisation of 50 %, except for the last two batches.
    let length_ms = lengths_ms(&epochs)[0];
    assert_eq!(length_ms, 500.0 * 40.0 + 20.0);
    assert!((100.0 * 1000.0 * 10.0 / length_ms - 50.0).abs() < 0.06);
}

#[test]
fn the_client_works_as_much_with_every_loader() {
    for loader in ["pytorch", "tensorflow", "dali", "native"] {
        let mut plan = plan(Case { loader, accelerators: 2, workers: 3, ..CASE });
        plan.loader.batch_size = 4;
        plan.dataset.files_train *= 4;
        plan.loader.client = Some(worker_client());
        for epoch in simulate(&plan, SimulatedStorage::default()).0 {
            let expected_ns = 60 * (4 * 17_000_000 + 3_000_000);
            let error_ns = epoch.io.client_burnt_ns.abs_diff(expected_ns);
            // Shares of a batch are rounded to a nanosecond.
            assert!(error_ns <= 60 * 12, "{loader}: {error_ns}");
        }
    }
}

/// Reads after the start of the workers are not attributed to the start.
#[test]
fn reading_after_the_start_of_workers_counts_as_reading() {
    let mut plan = plan(Case { workers: 1, steps: 4, ..CASE });
    plan.loader.client = Some(training_client());
    let latency = constant(100_000_000);
    let (epochs, _) = simulate(&plan, SimulatedStorage { latency, ..SimulatedStorage::default() });
    let (stall, load_ns) = (epochs[0].stall, epochs[0].blocks[0].load_ns[0]);
    // 10 ms of starting, 100 of reading, 3 of receiving.
    assert_eq!((load_ns, stall.queue_ns), (113_000_000, 0));
    assert_eq!((stall.client_ns, stall.open_ns), (22_000_000, 0));
}

/// One of two workers may decode at a time, but both may assemble batches, as in the real driver.
#[test]
fn assembling_a_batch_needs_no_permit_to_decode() {
    let mut plan = plan(CASE);
    plan.loader.decode_threads = Some(1);
    let lengths_with = |client: ClientPlan, plan: &mut Plan| {
        plan.loader.client = Some(client);
        lengths_ms(&simulate(plan, SimulatedStorage::default()).0)
    };
    let batch_client = ClientPlan { per_batch_s: 0.020, ..ClientPlan::default() };
    assert_eq!(lengths_with(batch_client, &mut plan), [30.0 * 20.0 + 10.0]);
    let sample_client = ClientPlan { per_sample_s: 0.020, ..ClientPlan::default() };
    assert_eq!(lengths_with(sample_client, &mut plan), [60.0 * 20.0 + 5.0]);
}
