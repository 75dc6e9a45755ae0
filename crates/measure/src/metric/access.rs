//! How files were read: the shares of reads in order, what was read beside the payload, files.

use super::{Basis, Better, COMPOSED, Figure, Fold, Metric, MetricId, Unit};

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

const ACCESS: Metric = Metric { basis: &[Basis::Reads], ..COMPOSED };

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
        for metric in [&SEQUENTIAL, &CONSECUTIVE, &AMPLIFICATION, &FILES] {
            assert_eq!(metric.of_run(&record), None, "{}", metric.id.name());
        }
    }
}
