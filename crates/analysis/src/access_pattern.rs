//! The access patterns of two records side by side, of runs or of logs of real jobs. Judges nothing.

use feedrate_measure::metric::{CONSECUTIVE, OVERLAP, SEQUENTIAL, UNIQUE_BYTES};
use feedrate_measure::metric::{Metric, counters_of_run};
use feedrate_measure::record::Record;
use feedrate_measure::window::Scope;
use feedrate_spec::names;
use schemars::JsonSchema;
use serde::Serialize;

names! {
    /// A side of an access pattern.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[expect(missing_docs, reason = "the names say it")]
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

/// An aspect of both patterns.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ComparedAspect {
    /// Its name.
    pub aspect: PatternAspect,
    /// Figures of A; `None` where unknown.
    pub a: Option<AspectFigures>,
    /// The same of B.
    pub b: Option<AspectFigures>,
}

/// The figures of an aspect.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum AspectFigures {
    /// One number: mean bytes of a read, reads of an open, times a byte was read, share of bytes that several read, reads in flight,
    /// bytes and reads a second.
    Number(f64),
    /// Shares of the reads that follow another in an open file.
    Order {
        /// Right at its end.
        consecutive: f64,
        /// Further on.
        ahead: f64,
        /// Further back.
        back: f64,
    },
}

/// The reads of two records, aspect by aspect.
pub fn compare_patterns(a: &Record, b: &Record) -> Vec<ComparedAspect> {
    let figures = |record| PatternAspect::ALL.map(|aspect| figures(record, aspect));
    let sides = figures(a).into_iter().zip(figures(b));
    let aspects = PatternAspect::ALL.into_iter().zip(sides);
    aspects.map(|(aspect, (a, b))| ComparedAspect { aspect, a, b }).collect()
}

/// `None` where unknown, as of a record that counted no reads.
fn figures(record: &Record, aspect: PatternAspect) -> Option<AspectFigures> {
    let io = counters_of_run(record);
    // From the first call on a file to the end of the last, as a log has it; of old records the time of all epochs.
    let seconds = match io.span_ns {
        Some([start_ns, end_ns]) => end_ns.saturating_sub(start_ns) as f64 / 1e9,
        None => Scope::all(record).filter_map(Scope::wall_s).sum(),
    };
    let metric = |metric: &Metric| metric.of_run(record);
    let number = match aspect {
        _ if io.reads == 0 => None,
        PatternAspect::Order => {
            let (sequential, consecutive) = (metric(&SEQUENTIAL)?, metric(&CONSECUTIVE)?);
            let (ahead, back) = (sequential - consecutive, 1.0 - sequential);
            return Some(AspectFigures::Order { consecutive, ahead, back });
        }
        PatternAspect::Sizes => ratio(io.read_bytes as f64, io.reads as f64),
        PatternAspect::Opens => ratio(io.reads as f64, io.opens as f64),
        PatternAspect::Rereads => ratio(io.read_bytes as f64, metric(&UNIQUE_BYTES)?),
        PatternAspect::Overlap => metric(&OVERLAP),
        PatternAspect::Concurrency => ratio(io.read_ns as f64 / 1e9, seconds),
        PatternAspect::ByteRate => ratio(io.read_bytes as f64, seconds),
        PatternAspect::ReadRate => ratio(io.reads as f64, seconds),
    };
    number.map(AspectFigures::Number)
}

/// `None` where either is zero: it was not counted.
fn ratio(part: f64, whole: f64) -> Option<f64> {
    (part > 0.0 && whole > 0.0).then(|| part / whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example::{block, epoch, plan, record};
    use feedrate_measure::record::IoCounters;
    use feedrate_measure::record::access::{FilesRead, Follows};

    /// Four reads in a second, each of 100 ms, of twice as many bytes as there are.
    fn four_reads() -> Record {
        let mut record =
            record(plan(1, 1), vec![epoch(1, vec![vec![block(0, &[(1000, 0, 0, 1)])]])]);
        let own = &mut record.epochs[0];
        let io = &mut own.accelerators[0].io;
        *io = IoCounters { opens: 2, reads: 4, ..IoCounters::default() };
        for (bytes, follows) in [
            (65536, Follows::Next),
            (65536, Follows::Next),
            (16384, Follows::Next),
            (16384, Follows::Back),
        ] {
            io.access.read(bytes, follows);
            io.read_bytes += bytes;
            io.read_ns += 100_000_000;
        }
        let unique_bytes = io.read_bytes / 2;
        own.files_read = Some(FilesRead { unique_bytes, overlap_bytes: 0, ..FilesRead::default() });
        record
    }

    #[test]
    fn each_aspect_has_figures_of_both() {
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
        for ((one, aspect), figures) in compared.iter().zip(PatternAspect::ALL).zip(expected) {
            assert_eq!((one.aspect, one.a, one.b), (aspect, figures, figures));
        }
    }

    #[test]
    fn what_was_not_counted_is_unknown() {
        let known = four_reads();
        let mut record = known.clone();
        record.epochs[0].files_read = None;
        let io = &mut record.epochs[0].accelerators[0].io;
        (io.read_ns, io.access.following) = (0, 0);
        let compared = compare_patterns(&known, &record);
        let unknown = compared.iter().filter(|one| one.a.is_some() && one.b.is_none());
        assert_eq!(
            unknown.map(|one| one.aspect).collect::<Vec<_>>(),
            [
                PatternAspect::Order,
                PatternAspect::Rereads,
                PatternAspect::Overlap,
                PatternAspect::Concurrency
            ]
        );
        record.epochs[0].accelerators[0].io = IoCounters::default();
        assert!(compare_patterns(&known, &record).iter().all(|one| one.b.is_none()));
    }
}
