//! How files were read: the shares of reads in order, what was read beside the payload, time in calls, files and their bytes.

use super::{Basis, Better, COMPOSED, Figure, Fold, Metric, MetricId, Unit};
use crate::record::{AcceleratorEpoch, IoCounters};
use crate::window::share;

/// In ascending order.
pub static SEQUENTIAL: Metric = Metric {
    id: MetricId("sequential_share"),
    title: "sequential reads",
    unit: Unit::Share,
    definition: "Of the reads that follow another in the same open file, those at or after its end, over accelerators and epochs",
    source: "POSIX_SEQ_READS of Darshan; feedrate counts for each worker",
    path: "access.sequential_share",
    figure: Figure::OfCounters(|io| share(io.access.sequential, io.access.following)),
    ..ACCESS
};

/// One right after the other.
pub static CONSECUTIVE: Metric = Metric {
    id: MetricId("consecutive_share"),
    title: "consecutive reads",
    unit: Unit::Share,
    definition: "Of the reads that follow another in the same open file, those right at its end, over accelerators and epochs",
    source: "POSIX_CONSEC_READS of Darshan; feedrate counts for each worker",
    path: "access.consecutive_share",
    figure: Figure::OfCounters(|io| share(io.access.consecutive, io.access.following)),
    ..ACCESS
};

/// Bytes read for a byte that was wanted.
pub static AMPLIFICATION: Metric = Metric {
    id: MetricId("read_amplification"),
    title: "read amplification",
    better: Better::Lower,
    definition: "Bytes that read calls returned, to a byte of payload of the samples that were read",
    path: "access.read_amplification",
    figure: Figure::OfCounters(|io| {
        let is_known = io.reads > 0 && io.access.payload_samples == io.access.samples_read;
        if is_known { share(io.read_bytes, io.access.payload_bytes) } else { None }
    }),
    ..ACCESS
};

/// Files of a rank.
pub static FILES: Metric = Metric {
    id: MetricId("files_read"),
    title: "files an accelerator read",
    unit: Unit::Files,
    better: Better::Lower,
    definition: "Files that samples were read of, each once: the most of one accelerator in one epoch",
    path: "access.files",
    figure: Figure::OfAccelerators(
        |_, accelerator| accelerator.io.access.files.map(|files| files as f64),
        Fold::Most,
        Fold::Most,
    ),
    ..ACCESS
};

/// Time in calls.
pub static IO_TIME_PERCENT: Metric = Metric {
    id: MetricId("io_time_percent"),
    title: "time in I/O calls",
    unit: Unit::Percent,
    better: Better::Lower,
    definition: "Time in open, length, read and close calls to the time of the epochs, mean over all workers",
    source: "I/O cost of PyDarshan, of read and metadata; Darshan counts for each process, feedrate for each worker",
    path: "access.io_time_percent",
    figure: Figure::PerSecond(|scope, accelerator| {
        let plan = scope.plan;
        let workers = f64::from(plan.accelerators) * f64::from(plan.loader.workers.max(1));
        100.0 * (own_s(accelerator, |io| io.open_ns + io.read_ns)) / workers
    }),
    ..ACCESS
};

/// Reads at a time.
pub static IN_FLIGHT: Metric = Metric {
    id: MetricId("mean_in_flight"),
    title: "reads in flight",
    definition: "Read calls that were under way at a time, all accelerators together, mean over the time of the epochs",
    source: "Little's law on the F_READ_TIME of Darshan",
    path: "access.mean_in_flight",
    figure: Figure::PerSecond(|_, accelerator| own_s(accelerator, |io| io.read_ns)),
    ..ACCESS
};

/// Bytes of files, each once.
pub static UNIQUE_BYTES: Metric = Metric {
    id: MetricId("unique_bytes"),
    title: "unique bytes read",
    unit: Unit::Bytes,
    better: Better::Lower,
    definition: "Bytes of the files that were read, each counted once over accelerators and epochs",
    source: "feedrate, from the extents of all reads; Darshan has the highest offset of each file instead, POSIX_MAX_BYTE_READ",
    path: "access.unique_bytes",
    figure: Figure::OfEpochs(
        |scope| Some(scope.epoch.files_read.as_ref()?.unique_bytes as f64),
        Fold::Last,
    ),
    ..ACCESS
};

/// Bytes of files that several read.
pub static OVERLAP: Metric = Metric {
    id: MetricId("overlap_share"),
    title: "bytes read by several accelerators",
    unit: Unit::Share,
    better: Better::Lower,
    definition: "Of the bytes of the files that were read, those that more than one accelerator read, over all epochs",
    path: "access.overlap_share",
    figure: Figure::OfEpochs(
        |scope| {
            let files = scope.epoch.files_read.as_ref()?;
            share(files.overlap_bytes, files.unique_bytes)
        },
        Fold::Last,
    ),
    ..ACCESS
};

/// Seconds of an accelerator's calls, none of one that is told what another reads.
fn own_s(accelerator: &AcceleratorEpoch, ns: fn(&IoCounters) -> u64) -> f64 {
    let io = &accelerator.io;
    if io.opens + io.reads > 0 { ns(io) as f64 / 1e9 } else { 0.0 }
}

const ACCESS: Metric = Metric { basis: &[Basis::Reads], ..COMPOSED };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{accelerator, block, epoch, plan, record, simple};
    use crate::record::access::{FilesRead, Follows};

    #[test]
    fn shares_are_of_all_accelerators() {
        let mut record = simple(&[(1, 1, 1, 300)]);
        let mut second = accelerator(vec![block(0, &[(1, 1, 1, 100)])]);
        for follows in [Follows::Nothing, Follows::Back, Follows::Ahead, Follows::Next] {
            second.io.access.read(100, follows);
        }
        second.io.access.sample(Some(200));
        (second.io.access.files, record.epochs[0].accelerators[0].io.access.files) =
            (Some(3), Some(5));
        record.epochs[0].accelerators.push(second);
        assert_eq!(SEQUENTIAL.of_run(&record), Some(2.0 / 3.0));
        assert_eq!(CONSECUTIVE.of_run(&record), Some(1.0 / 3.0));
        assert_eq!(AMPLIFICATION.of_run(&record), Some(2.0));
        assert_eq!(FILES.of_run(&record), Some(5.0));
        record.epochs[0].accelerators[1].io.access.sample(None);
        record.epochs[0].accelerators[1].io.access.files = None;
        assert_eq!(AMPLIFICATION.of_run(&record), None, "of one sample the payload is not known");
        assert_eq!(FILES.of_run(&record), None);
    }

    #[test]
    fn a_record_that_did_not_count_has_none() {
        let record = simple(&[(1, 1, 1, 300)]);
        for metric in [&SEQUENTIAL, &CONSECUTIVE, &AMPLIFICATION, &FILES, &UNIQUE_BYTES, &OVERLAP] {
            assert_eq!(metric.of_run(&record), None, "{}", metric.id.name());
        }
    }

    /// Two accelerators of two workers, an epoch of 500 ms and one of 125 ms.
    #[test]
    fn time_in_calls_is_of_all_workers() {
        let blocks = |at_ms, ms| vec![vec![block(at_ms, &[(ms, 0, 0, 100)])]; 2];
        let mut record =
            record(plan(2, 1), vec![epoch(1, blocks(0, 500)), epoch(2, blocks(500, 125))]);
        record.plan.loader.workers = 2;
        for (at, open_ns, read_ns) in [(0, 125_000_000, 250_000_000), (1, 0, 250_000_000)] {
            let io = &mut record.epochs[0].accelerators[at].io;
            (io.opens, io.reads, io.open_ns, io.read_ns) = (1, 1, open_ns, read_ns);
            // One that is told what another reads waits for that, which is no I/O.
            let told = &mut record.epochs[1].accelerators[at].io;
            (told.opens, told.reads, told.open_ns, told.read_ns) = (0, 0, 0, 50_000_000);
        }
        assert_eq!(IO_TIME_PERCENT.of_epochs(&record), [Some(31.25), Some(0.0)]);
        assert_eq!(IO_TIME_PERCENT.of_run(&record), Some(25.0));
        assert_eq!(IN_FLIGHT.of_epochs(&record), [Some(1.0), Some(0.0)]);
        assert_eq!(IN_FLIGHT.of_run(&record), Some(0.8));
    }

    #[test]
    fn unique_bytes_are_those_of_the_run_so_far() {
        let epochs = vec![
            epoch(1, vec![vec![block(0, &[(1, 1, 1, 300)])]]),
            epoch(2, vec![vec![block(3, &[(1, 1, 1, 300)])]]),
        ];
        let mut record = record(plan(1, 1), epochs);
        let read = |unique_bytes, overlap_bytes| {
            Some(FilesRead { unique_bytes, overlap_bytes, files_by_ranks: Vec::new() })
        };
        (record.epochs[0].files_read, record.epochs[1].files_read) =
            (read(300, 300), read(400, 100));
        assert_eq!(
            (UNIQUE_BYTES.of_run(&record), OVERLAP.of_run(&record)),
            (Some(400.0), Some(0.25))
        );
        record.epochs[1].files_read = None;
        assert_eq!((UNIQUE_BYTES.of_run(&record), OVERLAP.of_run(&record)), (None, None));
    }
}
