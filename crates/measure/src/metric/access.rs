//! Metrics of file accesses: order of reads, amplification, time in calls, and numbers of files and bytes.

use super::{Basis, Better, COMPOSED, Fold, Formula, Metric, MetricId, Unit};
use crate::record::{AcceleratorEpoch, IoCounters};
use crate::window::share;

/// Share of reads in ascending order.
pub static SEQUENTIAL: Metric = Metric {
    id: MetricId("sequential_share"),
    title: "sequential reads",
    unit: Unit::Share,
    definition: "Share of reads that start at or after the end of the previous read, among reads that have a previous one in the same open file, over accelerators and epochs",
    source: "POSIX_SEQ_READS of Darshan; feedrate counts for each worker",
    path: "access.sequential_share",
    formula: Formula::FromCounters(|io| share(io.access.sequential, io.access.following)),
    ..ACCESS
};

/// Share of reads without a gap.
pub static CONSECUTIVE: Metric = Metric {
    id: MetricId("consecutive_share"),
    title: "consecutive reads",
    unit: Unit::Share,
    definition: "Share of reads that start exactly at the end of the previous read, among reads that have a previous one in the same open file, over accelerators and epochs",
    source: "POSIX_CONSEC_READS of Darshan; feedrate counts for each worker",
    path: "access.consecutive_share",
    formula: Formula::FromCounters(|io| share(io.access.consecutive, io.access.following)),
    ..ACCESS
};

/// Bytes read per byte of payload.
pub static AMPLIFICATION: Metric = Metric {
    id: MetricId("read_amplification"),
    title: "read amplification",
    better: Better::Lower,
    definition: "Bytes that read calls returned ÷ payload bytes of the samples that were read",
    path: "access.read_amplification",
    formula: Formula::FromCounters(|io| {
        let is_known = io.reads > 0 && io.access.payload_samples == io.access.samples_read;
        if is_known { share(io.read_bytes, io.access.payload_bytes) } else { None }
    }),
    ..ACCESS
};

/// Files that an accelerator read.
pub static FILES: Metric = Metric {
    id: MetricId("files_read"),
    title: "files an accelerator read",
    unit: Unit::Files,
    better: Better::Lower,
    definition: "Number of different files that samples were read from, of the accelerator and epoch with the most",
    path: "access.files",
    formula: Formula::PerAccelerator(
        |_, accelerator| accelerator.io.access.files.map(|files| files as f64),
        Fold::Max,
        Fold::Max,
    ),
    ..ACCESS
};

/// Share of time in I/O calls.
pub static IO_TIME_PERCENT: Metric = Metric {
    id: MetricId("io_time_percent"),
    title: "time in I/O calls",
    unit: Unit::Percent,
    better: Better::Lower,
    definition: "Time in open, length, read and close calls ÷ length of the epochs, mean over all workers and the requests that each keeps in flight",
    source: "I/O cost of PyDarshan (read and metadata); Darshan counts for each process, feedrate for each worker",
    path: "access.io_time_percent",
    formula: Formula::PerSecond(|scope, accelerator| {
        let plan = scope.plan;
        let workers = f64::from(plan.accelerators) * f64::from(plan.loader.streams());
        100.0 * (call_s(accelerator, |io| io.open_ns + io.read_ns)) / workers
    }),
    ..ACCESS
};

/// Concurrent reads.
pub static IN_FLIGHT: Metric = Metric {
    id: MetricId("mean_in_flight"),
    title: "reads in flight",
    definition: "Number of concurrent read calls of all accelerators together, mean over the time of the epochs",
    source: "Little's law, applied to F_READ_TIME of Darshan",
    path: "access.mean_in_flight",
    formula: Formula::PerSecond(|_, accelerator| call_s(accelerator, |io| io.read_ns)),
    ..ACCESS
};

/// Requests that a worker keeps outstanding.
pub static REQUESTS_IN_FLIGHT: Metric = Metric {
    id: MetricId("requests_in_flight"),
    title: "requests in flight per worker",
    definition: "Number of requests that a worker has outstanding, from before the open to after the close of the file, mean over the workers and the time of the epochs",
    source: "feedrate, as the integral of the outstanding requests over time ÷ time; `reader.in_flight` is its upper limit",
    path: "access.requests_in_flight",
    formula: Formula::PerSecond(|scope, accelerator| {
        let plan = scope.plan;
        let workers = f64::from(plan.accelerators) * f64::from(plan.loader.workers.max(1));
        call_s(accelerator, |io| io.open_ns + io.read_ns) / workers
    }),
    ..ACCESS
};

/// Distinct bytes of files that were read.
pub static UNIQUE_BYTES: Metric = Metric {
    id: MetricId("unique_bytes"),
    title: "unique bytes read",
    unit: Unit::Bytes,
    better: Better::Lower,
    definition: "Bytes of files that were read, each counted once over accelerators and epochs",
    source: "feedrate, from the extents of all reads; Darshan has the highest offset of each file instead, POSIX_MAX_BYTE_READ",
    path: "access.unique_bytes",
    formula: Formula::PerEpoch(
        |scope| Some(scope.epoch.files_read.as_ref()?.unique_bytes as f64),
        Fold::Last,
    ),
    ..ACCESS
};

/// Share of bytes that several accelerators read.
pub static OVERLAP: Metric = Metric {
    id: MetricId("overlap_share"),
    title: "bytes read by several accelerators",
    unit: Unit::Share,
    better: Better::Lower,
    definition: "Share of bytes that more than one accelerator read, among the distinct bytes that were read, over all epochs",
    path: "access.overlap_share",
    formula: Formula::PerEpoch(
        |scope| {
            let files = scope.epoch.files_read.as_ref()?;
            share(files.overlap_bytes, files.unique_bytes)
        },
        Fold::Last,
    ),
    ..ACCESS
};

/// Seconds that an accelerator spent in calls. 0 for accelerators that receive their data from another accelerator, as they only wait.
fn call_s(accelerator: &AcceleratorEpoch, ns: fn(&IoCounters) -> u64) -> f64 {
    let io = &accelerator.io;
    if io.opens + io.reads > 0 { ns(io) as f64 / 1e9 } else { 0.0 }
}

const ACCESS: Metric = Metric { basis: &[Basis::Reads], ..COMPOSED };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{accelerator, block, epoch, plan, record, simple};
    use crate::record::access::{FilesRead, ReadPosition};

    #[test]
    fn shares_cover_all_accelerators() {
        let mut record = simple(&[(1, 1, 1, 300)]);
        let mut second = accelerator(vec![block(0, &[(1, 1, 1, 100)])]);
        for position in [
            ReadPosition::First,
            ReadPosition::Backward,
            ReadPosition::Forward,
            ReadPosition::Consecutive,
        ] {
            second.io.access.count_read(100, position);
        }
        second.io.access.count_sample(Some(200));
        (second.io.access.files, record.epochs[0].accelerators[0].io.access.files) =
            (Some(3), Some(5));
        record.epochs[0].accelerators.push(second);
        assert_eq!(SEQUENTIAL.run_value(&record), Some(2.0 / 3.0));
        assert_eq!(CONSECUTIVE.run_value(&record), Some(1.0 / 3.0));
        assert_eq!(AMPLIFICATION.run_value(&record), Some(2.0));
        assert_eq!(FILES.run_value(&record), Some(5.0));
        record.epochs[0].accelerators[1].io.access.count_sample(None);
        record.epochs[0].accelerators[1].io.access.files = None;
        assert_eq!(AMPLIFICATION.run_value(&record), None, "the payload of one sample is unknown");
        assert_eq!(FILES.run_value(&record), None);
    }

    #[test]
    fn records_without_counters_have_no_values() {
        let record = simple(&[(1, 1, 1, 300)]);
        for metric in [&SEQUENTIAL, &CONSECUTIVE, &AMPLIFICATION, &FILES, &UNIQUE_BYTES, &OVERLAP] {
            assert_eq!(metric.run_value(&record), None, "{}", metric.id.name());
        }
    }

    /// Two accelerators with two workers each; one epoch lasts 500 ms, the other 125 ms.
    #[test]
    fn time_in_calls_is_a_mean_over_all_workers() {
        let blocks = |at_ms, ms| vec![vec![block(at_ms, &[(ms, 0, 0, 100)])]; 2];
        let mut record =
            record(plan(2, 1), vec![epoch(1, blocks(0, 500)), epoch(2, blocks(500, 125))]);
        record.plan.loader.workers = 2;
        for (i, open_ns, read_ns) in [(0, 125_000_000, 250_000_000), (1, 0, 250_000_000)] {
            let io = &mut record.epochs[0].accelerators[i].io;
            (io.opens, io.reads, io.open_ns, io.read_ns) = (1, 1, open_ns, read_ns);
            // An accelerator that receives data from another accelerator waits; this is no I/O.
            let io = &mut record.epochs[1].accelerators[i].io;
            (io.opens, io.reads, io.open_ns, io.read_ns) = (0, 0, 0, 50_000_000);
        }
        assert_eq!(IO_TIME_PERCENT.epoch_values(&record), [Some(31.25), Some(0.0)]);
        assert_eq!(IO_TIME_PERCENT.run_value(&record), Some(25.0));
        assert_eq!(IN_FLIGHT.epoch_values(&record), [Some(1.0), Some(0.0)]);
        assert_eq!(IN_FLIGHT.run_value(&record), Some(0.8));
    }

    #[test]
    fn unique_bytes_of_a_run_are_counted_up_to_its_last_epoch() {
        let epochs = vec![
            epoch(1, vec![vec![block(0, &[(1, 1, 1, 300)])]]),
            epoch(2, vec![vec![block(3, &[(1, 1, 1, 300)])]]),
        ];
        let mut record = record(plan(1, 1), epochs);
        let files_read = |unique_bytes, overlap_bytes| {
            Some(FilesRead { unique_bytes, overlap_bytes, files_by_ranks: Vec::new() })
        };
        (record.epochs[0].files_read, record.epochs[1].files_read) =
            (files_read(300, 300), files_read(400, 100));
        assert_eq!(
            (UNIQUE_BYTES.run_value(&record), OVERLAP.run_value(&record)),
            (Some(400.0), Some(0.25))
        );
        record.epochs[1].files_read = None;
        assert_eq!((UNIQUE_BYTES.run_value(&record), OVERLAP.run_value(&record)), (None, None));
    }
}
