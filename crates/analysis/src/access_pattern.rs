//! Compares the access patterns of two records, of runs or of logs of real jobs, aspect by aspect.
//!
//! This module lists the figures of both records and does not judge their difference.

use feedrate_measure::metric::{CONSECUTIVE, OVERLAP, SEQUENTIAL, UNIQUE_BYTES};
use feedrate_measure::metric::{Metric, counters_of_run};
use feedrate_measure::record::Record;
use feedrate_measure::window::Scope;
use feedrate_spec::names;
use schemars::JsonSchema;
use serde::Serialize;

names! {
    /// One aspect of an access pattern.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[expect(missing_docs, reason = "the names are self-explanatory")]
    pub enum PatternAspect {
        Sizes = "sizes",
        Order = "order",
        Opens = "opens",
        Rereads = "rereads",
        Overlap = "overlap",
        Concurrency = "concurrency",
        ByteRate = "byte_rate",
        ReadRate = "read_rate",
    }
}

/// One aspect, with the figures of both patterns.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ComparedAspect {
    /// The aspect.
    pub aspect: PatternAspect,
    /// Figures of A; `None` if unknown.
    pub a: Option<AspectFigures>,
    /// Figures of B; `None` if unknown.
    pub b: Option<AspectFigures>,
}

/// The figures of an aspect.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum AspectFigures {
    /// One number. In the order of the aspects: mean bytes per read, reads per open, times each byte was read, share of the
    /// bytes that several accelerators read, reads in flight, bytes per second, reads per second.
    Number(f64),
    /// Positions of the reads that follow an earlier read of the same open file, as shares of these reads.
    Order {
        /// Share that begins exactly at the end of the earlier read.
        consecutive: f64,
        /// Share that begins after its end.
        ahead: f64,
        /// Share that begins before its end.
        back: f64,
    },
}

/// Compares the reads of two records aspect by aspect.
pub fn compare_patterns(a: &Record, b: &Record) -> Vec<ComparedAspect> {
    let figures = |record| PatternAspect::ALL.map(|aspect| figures(record, aspect));
    let pairs = figures(a).into_iter().zip(figures(b));
    let aspects = PatternAspect::ALL.into_iter().zip(pairs);
    aspects.map(|(aspect, (a, b))| ComparedAspect { aspect, a, b }).collect()
}

/// The figures of one aspect; `None` if unknown, for example because the record counted no reads.
fn figures(record: &Record, aspect: PatternAspect) -> Option<AspectFigures> {
    let io = counters_of_run(record);
    // As in logs, the time from the start of the first to the end of the last call on a file. Old records only have the time of epochs.
    let span_s = match io.span_ns {
        Some([start_ns, end_ns]) => end_ns.saturating_sub(start_ns) as f64 / 1e9,
        None => Scope::whole_epochs(record).filter_map(Scope::wall_s).sum(),
    };
    let metric = |metric: &Metric| metric.run_value(record);
    let number = match aspect {
        _ if io.reads == 0 => None,
        PatternAspect::Order => {
            let sequential = metric(&SEQUENTIAL)?;
            let consecutive = metric(&CONSECUTIVE)?;
            return Some(AspectFigures::Order {
                consecutive,
                ahead: sequential - consecutive,
                back: 1.0 - sequential,
            });
        }
        PatternAspect::Sizes => ratio(io.read_bytes as f64, io.reads as f64),
        PatternAspect::Opens => ratio(io.reads as f64, io.opens as f64),
        PatternAspect::Rereads => ratio(io.read_bytes as f64, metric(&UNIQUE_BYTES)?),
        PatternAspect::Overlap => metric(&OVERLAP),
        PatternAspect::Concurrency => ratio(io.read_ns as f64 / 1e9, span_s),
        PatternAspect::ByteRate => ratio(io.read_bytes as f64, span_s),
        PatternAspect::ReadRate => ratio(io.reads as f64, span_s),
    };
    number.map(AspectFigures::Number)
}

/// The ratio of two counts; `None` if one of them is zero because it was not counted.
fn ratio(numerator: f64, denominator: f64) -> Option<f64> {
    (numerator > 0.0 && denominator > 0.0).then(|| numerator / denominator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example::{block, epoch, plan, record};
    use feedrate_measure::record::IoCounters;
    use feedrate_measure::record::access::{FilesRead, ReadPosition};

    /// Four reads of 100 ms in one second. Each byte is read twice.
    fn four_reads() -> Record {
        let mut record =
            record(plan(1, 1), vec![epoch(1, vec![vec![block(0, &[(1000, 0, 0, 1)])]])]);
        let epoch = &mut record.epochs[0];
        let io = &mut epoch.accelerators[0].io;
        *io = IoCounters { opens: 2, reads: 4, ..IoCounters::default() };
        for (bytes, follows) in [
            (65536, ReadPosition::Consecutive),
            (65536, ReadPosition::Consecutive),
            (16384, ReadPosition::Consecutive),
            (16384, ReadPosition::Backward),
        ] {
            io.access.count_read(bytes, follows);
            io.read_bytes += bytes;
            io.read_ns += 100_000_000;
        }
        let unique_bytes = io.read_bytes / 2;
        epoch.files_read =
            Some(FilesRead { unique_bytes, overlap_bytes: 0, ..FilesRead::default() });
        record
    }

    #[test]
    fn every_aspect_has_figures_of_both_records() {
        let record = four_reads();
        let compared = compare_patterns(&record, &record);
        let number = |number| Some(AspectFigures::Number(number));
        let order = AspectFigures::Order { consecutive: 0.75, ahead: 0.0, back: 0.25 };
        let expected = [
            number(40_960.0),
            Some(order),
            number(2.0),
            number(2.0),
            number(0.0),
            number(0.4),
            number(163_840.0),
            number(4.0),
        ];
        for ((found, aspect), figures) in compared.iter().zip(PatternAspect::ALL).zip(expected) {
            assert_eq!((found.aspect, found.a, found.b), (aspect, figures, figures));
        }
    }

    #[test]
    fn uncounted_figures_are_unknown() {
        let known = four_reads();
        let mut record = known.clone();
        record.epochs[0].files_read = None;
        let io = &mut record.epochs[0].accelerators[0].io;
        (io.read_ns, io.access.following) = (0, 0);
        let compared = compare_patterns(&known, &record);
        let unknown = compared.iter().filter(|found| found.a.is_some() && found.b.is_none());
        assert_eq!(
            unknown.map(|found| found.aspect).collect::<Vec<_>>(),
            [
                PatternAspect::Order,
                PatternAspect::Rereads,
                PatternAspect::Overlap,
                PatternAspect::Concurrency
            ]
        );
        record.epochs[0].accelerators[0].io = IoCounters::default();
        assert!(compare_patterns(&known, &record).iter().all(|found| found.b.is_none()));
    }
}
