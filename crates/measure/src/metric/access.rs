//! How files were read: the shares of reads in order, what was read beside the payload, files.

use super::{Basis, Better, METRIC, Metric, MetricId, Shown, Unit, each_accelerator};
use crate::record::{AcceleratorEpoch, IoCounters, Record};
use crate::window::Scope;

/// In ascending order.
pub static SEQUENTIAL: Metric = Metric {
    id: MetricId("sequential_share"),
    title: "sequential reads",
    unit: Unit::Share,
    better: Better::Higher,
    definition: "Of the reads that follow another in the same open file, those at or after its end, over accelerators and epochs",
    source: "POSIX_SEQ_READS of Darshan; feedrate counts for each worker",
    path: "access.sequential_share",
    basis: &[Basis::Reads],
    shown: Shown::Composed,
    of_accelerator: |_, accelerator| sequential(&accelerator.io),
    of_epoch: |scope| sequential(&of_epoch(scope)?),
    of_run: |record| sequential(&of_run(record)),
    ..METRIC
};

/// One right after the other.
pub static CONSECUTIVE: Metric = Metric {
    id: MetricId("consecutive_share"),
    title: "consecutive reads",
    unit: Unit::Share,
    better: Better::Higher,
    definition: "Of the reads that follow another in the same open file, those right at its end, over accelerators and epochs",
    source: "POSIX_CONSEC_READS of Darshan; feedrate counts for each worker",
    path: "access.consecutive_share",
    basis: &[Basis::Reads],
    shown: Shown::Composed,
    of_accelerator: |_, accelerator| consecutive(&accelerator.io),
    of_epoch: |scope| consecutive(&of_epoch(scope)?),
    of_run: |record| consecutive(&of_run(record)),
    ..METRIC
};

/// Bytes read for a byte that was wanted.
pub static AMPLIFICATION: Metric = Metric {
    id: MetricId("read_amplification"),
    title: "read amplification",
    unit: Unit::Ratio,
    better: Better::Lower,
    definition: "Bytes that read calls returned, to a byte of payload of the samples that were read",
    path: "access.read_amplification",
    basis: &[Basis::Reads],
    shown: Shown::Composed,
    of_accelerator: |_, accelerator| amplification(&accelerator.io),
    of_epoch: |scope| amplification(&of_epoch(scope)?),
    of_run: |record| amplification(&of_run(record)),
    ..METRIC
};

/// Files of a rank.
pub static FILES: Metric = Metric {
    id: MetricId("files_read"),
    title: "files an accelerator read",
    unit: Unit::Files,
    better: Better::Lower,
    definition: "Files that samples were read of, each once: the most of one accelerator in one epoch",
    path: "access.files",
    basis: &[Basis::Reads],
    shown: Shown::Composed,
    of_accelerator: files,
    of_epoch: |scope| most(&each_accelerator(scope, files)?),
    of_run: |record| most(&Scope::all(record).map(FILES.of_epoch).collect::<Option<Vec<_>>>()?),
    ..METRIC
};

/// Counters of all accelerators over the run.
pub(crate) fn of_run(record: &Record) -> IoCounters {
    sum(Scope::all(record).flat_map(|scope| &scope.epoch.accelerators))
}

fn most(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}

fn of_epoch(scope: Scope) -> Option<IoCounters> {
    scope.is_whole().then(|| sum(&scope.epoch.accelerators))
}

fn sum<'a>(accelerators: impl IntoIterator<Item = &'a AcceleratorEpoch>) -> IoCounters {
    let mut sum = IoCounters::default();
    accelerators.into_iter().for_each(|accelerator| sum.add(&accelerator.io));
    sum
}

fn sequential(io: &IoCounters) -> Option<f64> {
    share(io.access.sequential, io.access.following)
}

fn consecutive(io: &IoCounters) -> Option<f64> {
    share(io.access.consecutive, io.access.following)
}

fn amplification(io: &IoCounters) -> Option<f64> {
    if io.reads == 0 || io.access.payload_samples != io.access.samples_read {
        return None;
    }
    share(io.read_bytes, io.access.payload_bytes)
}

fn files(_: Scope, accelerator: &AcceleratorEpoch) -> Option<f64> {
    accelerator.io.access.files.map(|files| files as f64)
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{accelerator, block, simple};
    use crate::record::access::Follows;

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
        assert_eq!((SEQUENTIAL.of_run)(&record), Some(2.0 / 3.0));
        assert_eq!((CONSECUTIVE.of_run)(&record), Some(1.0 / 3.0));
        assert_eq!((AMPLIFICATION.of_run)(&record), Some(2.0));
        assert_eq!((FILES.of_run)(&record), Some(5.0));
        record.epochs[0].accelerators[1].io.access.sample(None);
        record.epochs[0].accelerators[1].io.access.files = None;
        assert_eq!((AMPLIFICATION.of_run)(&record), None, "of one sample the payload is not known");
        assert_eq!((FILES.of_run)(&record), None);
    }

    #[test]
    fn a_record_that_did_not_count_has_none() {
        let record = simple(&[(1, 1, 1, 300)]);
        for metric in [&SEQUENTIAL, &CONSECUTIVE, &AMPLIFICATION, &FILES] {
            assert_eq!((metric.of_run)(&record), None, "{}", metric.id.name());
        }
    }
}
