//! Whole requests in virtual time: what is read when, and how many requests are outstanding.

use super::{Case, constant, lengths_ms, plan, rate, simulate};
use crate::job::ReadJob;
use crate::simulated::{SimulatedDriver, SimulatedStorage};
use feedrate_measure::metric::REQUESTS_IN_FLIGHT;
use feedrate_measure::record::AcceleratorEpoch;
use feedrate_spec::plan::{Plan, ReadAhead, RequestPlan, RequestUnit, WorkerSplit};
use feedrate_spec::shape::Encoding;
use std::path::Path;

/// Each read takes 10 ms, any number at the same time.
fn latency() -> SimulatedStorage {
    SimulatedStorage { latency: constant(10_000_000), ..SimulatedStorage::default() }
}

fn with_requests(case: Case, in_flight: u32, unit: RequestUnit, ahead: ReadAhead) -> Plan {
    let mut plan = plan(case);
    plan.loader.requests = Some(RequestPlan { in_flight, unit, ahead });
    plan
}

/// Files of one sample each, one in a batch, for one worker.
fn files(steps: u64, compute_ms: f64, in_flight: u32, window: u32) -> Plan {
    let case =
        Case { loader: "pytorch", accelerators: 1, workers: 1, steps, compute_s: compute_ms / 1e3 };
    with_requests(case, in_flight, RequestUnit::File, ReadAhead::Windows(window))
}

/// Four files of 8 samples for one worker, in row groups of `group_samples` and batches of 4.
fn row_groups(group_samples: u64, in_flight: u32) -> Plan {
    let case = Case { loader: "pytorch", accelerators: 1, workers: 1, steps: 8, compute_s: 0.0 };
    let ahead = ReadAhead::Sliding(in_flight);
    let mut plan = with_requests(case, in_flight, RequestUnit::RowGroup, ahead);
    plan.loader.batch_size = 4;
    plan.loader.split = WorkerSplit::Shards;
    plan.dataset.files_train = 4;
    plan.dataset.samples_per_file = 8;
    plan.dataset.encoding =
        Encoding { row_group_samples: group_samples, ..plan.dataset.encoding.clone() };
    plan
}

/// Returns the wait of each step in milliseconds.
fn waits_ms(epochs: &[AcceleratorEpoch]) -> Vec<f64> {
    epochs[0].blocks[0].load_ns.iter().map(|ns| *ns as f64 / 1e6).collect()
}

/// Returns the mean number of requests that a worker has in flight.
fn mean_in_flight(plan: &Plan, epochs: Vec<AcceleratorEpoch>) -> f64 {
    let mut record = feedrate_measure::example::simple(&[(1, 1, 1, 1)]);
    record.plan = plan.clone();
    let block = &epochs[0].blocks[0];
    (record.epochs[0].start_ns, record.epochs[0].end_ns) = (block.start_ns, block.end_ns);
    record.epochs[0].accelerators = epochs;
    REQUESTS_IN_FLIGHT.run_value(&record).unwrap()
}

#[test]
fn a_window_is_delivered_when_it_is_complete() {
    let plan = files(8, 0.0, 2, 4);
    let epochs = simulate(&plan, latency());
    assert_eq!(waits_ms(&epochs), [20.0, 0.0, 0.0, 0.0, 20.0, 0.0, 0.0, 0.0]);
    assert!((mean_in_flight(&plan, epochs) - 2.0).abs() < 1e-9);
}

/// The last window has two files, so its batches do not wait for four. Batches of the first window are delivered while both requests are
/// outstanding.
#[test]
fn the_next_window_is_read_while_one_is_delivered() {
    for (steps, compute_ms, expected_ms) in
        [(8, 10.0, 20.0 + 80.0), (6, 10.0, 20.0 + 60.0), (6, 1.0, 20.0 + 10.0 + 2.0)]
    {
        let plan = files(steps, compute_ms, 2, 4);
        assert_eq!(lengths_ms(&simulate(&plan, latency())), [expected_ms], "{steps} steps");
    }
}

/// Two batches are open beside the one that is computed: batch 4, of the second window, is requested when the third batch is taken.
#[test]
fn only_one_window_is_read_behind() {
    let epochs = simulate(&files(12, 100.0, 4, 4), latency());
    assert_eq!(epochs[0].last_read_start_ns, Some(210_000_000));
    assert_eq!(lengths_ms(&epochs), [10.0 + 1200.0]);
}

#[test]
fn the_number_of_requests_in_flight_is_kept() {
    for (in_flight, expected_ms) in [(1, 160.0), (3, 60.0), (4, 40.0), (16, 10.0), (64, 10.0)] {
        let plan = files(16, 0.0, in_flight, 16);
        let epochs = simulate(&plan, latency());
        assert_eq!(lengths_ms(&epochs), [expected_ms], "{in_flight} in flight");
        let expected = 160.0 / expected_ms;
        assert!((mean_in_flight(&plan, epochs) - expected).abs() < 1e-9, "{in_flight} in flight");
    }
}

/// Without reading ahead, a worker reads one file at a time, as without requests.
#[test]
fn one_request_at_a_time_takes_as_long_as_single_samples() {
    for (workers, compute_ms) in [(1, 0.0), (2, 0.0), (3, 7.0), (4, 30.0)] {
        let case = Case {
            loader: "pytorch",
            accelerators: 2,
            workers,
            steps: 20,
            compute_s: compute_ms / 1e3,
        };
        let samples = plan(case);
        let requests = with_requests(case, 1, RequestUnit::File, ReadAhead::None);
        let expected = lengths_ms(&simulate(&samples, rate(1e8)));
        assert_eq!(lengths_ms(&simulate(&requests, rate(1e8))), expected, "{workers} workers");
    }
}

/// Row groups are used one after another: two requests at a time beside the one that is waited for.
#[test]
fn row_groups_are_read_once_and_ahead() {
    for (group_samples, in_flight, reads, expected_ms) in
        [(8, 1, 4, 40.0), (8, 2, 4, 20.0), (2, 4, 16, 40.0), (4, 64, 8, 10.0), (3, 64, 12, 10.0)]
    {
        let plan = row_groups(group_samples, in_flight);
        let epochs = simulate(&plan, latency());
        let io = &epochs[0].io;
        let name = format!("{group_samples} samples, {in_flight} in flight");
        assert_eq!((io.reads, io.opens, io.samples), (reads, reads, 32), "{name}");
        assert_eq!(io.access.samples_read, 32, "{name}");
        assert_eq!(io.read_bytes, 32 * super::SAMPLE_BYTES, "{name}");
        assert_eq!(lengths_ms(&epochs), [expected_ms], "{name}");
    }
}

/// A worker has one request more than in flight outstanding or ready: as one is used, the next one begins.
#[test]
fn row_groups_are_not_read_further_ahead_than_allowed() {
    let mut plan = row_groups(4, 2);
    plan.train.compute = super::TimeSpec::Constant { mean: 0.1 };
    let epochs = simulate(&plan, latency());
    // Request 7 begins when batch 5 is opened, as batch 3 is taken.
    assert_eq!(epochs[0].last_read_start_ns, Some(310_000_000));
}

/// Batches continue into the next epoch, and windows begin anew.
#[test]
fn each_epoch_begins_with_its_own_requests() {
    let mut plan = files(6, 0.0, 4, 4);
    plan.train.epochs = 2;
    let mut driver = SimulatedDriver::new(ReadJob::without_files(&plan).unwrap(), latency());
    for _ in 0..2 {
        let epochs = driver.run_epoch(6).unwrap();
        assert_eq!(waits_ms(&epochs), [10.0, 0.0, 0.0, 0.0, 10.0, 0.0]);
        assert_eq!((epochs[0].io.reads, epochs[0].io.samples), (6, 6));
    }
}

/// Real files of parquet in memory: all footers are read first, then each row group in one request.
#[test]
fn row_groups_are_found_in_footers() {
    let mut plan = row_groups(4, 64);
    plan.dataset.format = "parquet".into();
    plan.dataset.extension = "parquet".into();
    plan.dataset.record_bytes = 1000.0;
    plan.dataset.record_stdev_bytes = 0.0;
    plan.dataset.record_dims = vec![1000];
    plan.loader.batch_size = 4;
    let job = ReadJob::in_memory(&plan).unwrap();
    let mut path = String::new();
    job.layout.write_path(0, &mut path);
    assert_eq!(Path::new(&path).extension().unwrap(), "parquet");
    let mut driver = SimulatedDriver::new(job, latency());
    let epochs = driver.run_epoch(8).unwrap();
    let io = &epochs[0].io;
    // A file has a footer and two row groups; a row group has two columns and page headers besides its samples.
    assert_eq!((io.opens, io.reads, io.samples), (4 + 8, 4 + 8, 32));
    assert!(io.access.payload_bytes == 32_000 && io.read_bytes > 32_000, "{io:?}");
    // The footers take 40 ms one after another, then all row groups are read at once.
    assert_eq!(lengths_ms(&epochs), [50.0]);
}
