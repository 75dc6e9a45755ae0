//! How alike two access patterns are, of a run or of a log of a real job: a distance of each of their aspects. A quantity that is
//! unknown on one side is compared with nothing.

use feedrate_measure::metric::{CONSECUTIVE, OVERLAP, SEQUENTIAL, UNIQUE_BYTES};
use feedrate_measure::metric::{Metric, counters_of_run};
use feedrate_measure::record::access::{Access, BINS};
use feedrate_measure::record::{IoCounters, Record};
use feedrate_measure::stats::{WeightedValue, earth_movers};
use feedrate_measure::window::Scope;
use feedrate_spec::names;
use serde::Serialize;

names! {
    /// A side of an access pattern.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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

names! {
    /// Likeness in words.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Likeness {
        /// Within 5 points, or a factor of 1.1.
        Alike = "alike",
        /// Within 20 points, or a factor of 1.5.
        Near = "near",
        /// Further apart.
        Unlike = "unlike",
    }
}

names! {
    /// Kind of a distance.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum DistanceUnit {
        /// A share of the reads, 0 to 1.
        Share = "share",
        /// A logarithm to base 2 of a factor.
        Octaves = "octaves",
    }
}

impl DistanceUnit {
    /// A distance in words.
    pub fn judge(self, distance: f64) -> Likeness {
        let bounds = match self {
            DistanceUnit::Share => [0.05, 0.2],
            DistanceUnit::Octaves => [1.1_f64.log2(), 1.5_f64.log2()],
        };
        // Shares of whole counts may lie a rounding beside a bound.
        match bounds.map(|bound| distance <= bound + 1e-9) {
            [true, _] => Likeness::Alike,
            [false, true] => Likeness::Near,
            [false, false] => Likeness::Unlike,
        }
    }
}

/// Two patterns side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PatternComparison {
    /// By aspect.
    pub aspects: Vec<ComparedAspect>,
}

/// An aspect of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedAspect {
    /// Its name.
    pub aspect: PatternAspect,
    /// Figures of A; `None` where unknown.
    pub a: Option<AspectFigures>,
    /// The same of B.
    pub b: Option<AspectFigures>,
    /// From A to B; `None` where one is unknown.
    pub distance: Option<f64>,
    /// Its kind.
    pub unit: DistanceUnit,
    /// The distance in words.
    pub likeness: Option<Likeness>,
}

/// The figures that an aspect is told by.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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

/// Compare the reads of two records, a log's among them.
pub fn compare_patterns(a: &Record, b: &Record) -> PatternComparison {
    let sides = [Pattern::new(a), Pattern::new(b)];
    let aspects = PatternAspect::ALL.map(|aspect| {
        let [a, b] = [0, 1].map(|at| sides[at].figures(aspect));
        let unit = match aspect {
            PatternAspect::Order | PatternAspect::Overlap => DistanceUnit::Share,
            _ => DistanceUnit::Octaves,
        };
        let distance = match (aspect, a.zip(b)) {
            (PatternAspect::Sizes, Some(_)) => size_distance(&sides[0].io, &sides[1].io),
            (_, pair) => pair.and_then(|pair| apart(pair.0, pair.1, unit)),
        };
        let likeness = distance.map(|distance| unit.judge(distance));
        ComparedAspect { aspect, a, b, distance, unit, likeness }
    });
    PatternComparison { aspects: aspects.into() }
}

/// The reads of one record.
struct Pattern<'a> {
    record: &'a Record,
    io: IoCounters,
    /// From the first call on a file to the end of the last, as a log has it; of old records the time of all epochs.
    seconds: f64,
}

impl<'a> Pattern<'a> {
    fn new(record: &'a Record) -> Self {
        let io = counters_of_run(record);
        let seconds = match io.span_ns {
            Some([start_ns, end_ns]) => end_ns.saturating_sub(start_ns) as f64 / 1e9,
            None => Scope::all(record).filter_map(Scope::wall_s).sum(),
        };
        Pattern { record, io, seconds }
    }

    /// Nothing is known of a record that counted no reads.
    fn figures(&self, aspect: PatternAspect) -> Option<AspectFigures> {
        let io = &self.io;
        let metric = |of: &Metric| of.of_run(self.record);
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
            PatternAspect::Concurrency => ratio(io.read_ns as f64 / 1e9, self.seconds),
            PatternAspect::ByteRate => ratio(io.read_bytes as f64, self.seconds),
            PatternAspect::ReadRate => ratio(io.reads as f64, self.seconds),
        };
        number.map(AspectFigures::Number)
    }
}

/// `None` where there is none, or nothing that could be compared as a factor.
fn ratio(part: f64, whole: f64) -> Option<f64> {
    (part > 0.0 && whole > 0.0).then(|| part / whole)
}

fn apart(a: AspectFigures, b: AspectFigures, unit: DistanceUnit) -> Option<f64> {
    match (a, b) {
        (AspectFigures::Number(a), AspectFigures::Number(b)) => Some(match unit {
            DistanceUnit::Share => (a - b).abs(),
            DistanceUnit::Octaves => (a / b).log2().abs(),
        }),
        // Total variation: the share of reads that would have to follow otherwise.
        (
            AspectFigures::Order { consecutive: a, ahead: a_ahead, back: a_back },
            AspectFigures::Order { consecutive: b, ahead: b_ahead, back: b_back },
        ) => Some(((a - b).abs() + (a_ahead - b_ahead).abs() + (a_back - b_back).abs()) / 2.0),
        _ => None,
    }
}

/// Earth mover's distance of the logarithms of the sizes: those of each read where both know them, else means of Darshan's bins, else
/// the bins alone. A read of nothing, as at the end of a file, has no size.
fn size_distance(a: &IoCounters, b: &IoCounters) -> Option<f64> {
    let between = |points: fn(&Access) -> Option<Vec<WeightedValue>>| {
        earth_movers(&points(&a.access)?, &points(&b.access)?)
    };
    between(exact_sizes).or_else(|| between(means_of_bins)).or_else(|| between(bins_alone))
}

/// Where no size was forgotten.
fn exact_sizes(access: &Access) -> Option<Vec<WeightedValue>> {
    let sizes = access.common.commonest(usize::MAX)?;
    let counted: u64 = sizes.iter().map(|size| size.count).sum();
    let some = sizes.iter().filter(|size| size.bytes > 0);
    let points = some.map(|size| point(size.bytes as f64, size.count));
    (counted == access.reads()).then(|| points.collect())
}

fn means_of_bins(access: &Access) -> Option<Vec<WeightedValue>> {
    let is_known = access.size_bytes.iter().any(|&bytes| bytes > 0);
    is_known
        .then(|| of_bins(access, |bin| access.size_bytes[bin] as f64 / access.sizes[bin] as f64))
}

/// Each bin as its middle on the scale of logarithms: Darshan's bins are about a factor of ten.
fn bins_alone(access: &Access) -> Option<Vec<WeightedValue>> {
    Some(of_bins(access, |bin| 30.0 * 10_f64.powi(bin as i32)))
}

fn of_bins(access: &Access, bytes: impl Fn(usize) -> f64) -> Vec<WeightedValue> {
    let used = (0..BINS).filter(|&bin| access.sizes[bin] > 0 && bytes(bin) >= 1.0);
    used.map(|bin| point(bytes(bin), access.sizes[bin])).collect()
}

fn point(bytes: f64, reads: u64) -> WeightedValue {
    WeightedValue { value: bytes.log2(), weight: reads as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_measure::example::{block, epoch, plan, record};
    use feedrate_measure::record::access::{FilesRead, Follows};

    /// A second in which these reads were made, each of 100 ms, of twice as many bytes as there are.
    fn of(reads: &[(u64, Follows)]) -> Record {
        let mut record =
            record(plan(1, 1), vec![epoch(1, vec![vec![block(0, &[(1000, 0, 0, 1)])]])]);
        let own = &mut record.epochs[0];
        let io = &mut own.accelerators[0].io;
        *io = IoCounters { opens: 1, reads: reads.len() as u64, ..IoCounters::default() };
        for &(bytes, follows) in reads {
            io.access.read(bytes, follows);
            io.read_bytes += bytes;
            io.read_ns += 100_000_000;
        }
        let unique_bytes = io.read_bytes / 2;
        own.files_read = Some(FilesRead { unique_bytes, overlap_bytes: 0, ..FilesRead::default() });
        record
    }

    fn check(a: &Record, b: &Record, aspect: PatternAspect, expected: Option<(f64, Likeness)>) {
        let found = compare_patterns(a, b).aspects;
        let found = found.iter().find(|one| one.aspect == aspect).unwrap();
        let rounded = found.distance.map(|distance| (distance * 1e4).round() / 1e4);
        assert_eq!(rounded.zip(found.likeness), expected, "{found:?}");
    }

    const NEXT: Follows = Follows::Next;
    const BACK: Follows = Follows::Back;

    #[test]
    fn a_pattern_is_like_itself() {
        let one = of(&[(4096, Follows::Nothing), (100, NEXT), (7, BACK)]);
        for aspect in PatternAspect::ALL {
            check(&one, &one, aspect, Some((0.0, Likeness::Alike)));
        }
    }

    #[test]
    fn each_aspect_has_a_distance_of_its_own() {
        let a = of(&[(65536, NEXT), (65536, NEXT), (16384, NEXT), (16384, BACK)]);
        let same_mean = of(&[(40960, NEXT), (40960, NEXT), (40960, NEXT), (40960, NEXT)]);
        // Both in one bin of Darshan's, of the same mean: only each size tells them apart.
        let log = |bytes: f64| (bytes / 40960.0).log2().abs();
        let octaves = (log(65536.0) + log(16384.0)) / 2.0;
        let octaves = (octaves * 1e4).round() / 1e4;
        check(&a, &same_mean, PatternAspect::Sizes, Some((octaves, Likeness::Unlike)));
        check(&a, &same_mean, PatternAspect::Order, Some((0.25, Likeness::Unlike)));
        check(&a, &same_mean, PatternAspect::ByteRate, Some((0.0, Likeness::Alike)));
        let half = of(&[(65536, NEXT), (16384, BACK)]);
        check(&a, &half, PatternAspect::Sizes, Some((0.0, Likeness::Alike)));
        let to_end = of(&[(65536, NEXT), (16384, BACK), (0, NEXT)]);
        check(&a, &to_end, PatternAspect::Sizes, Some((0.0, Likeness::Alike)));
        for aspect in [PatternAspect::Concurrency, PatternAspect::ReadRate, PatternAspect::Opens] {
            check(&a, &half, aspect, Some((1.0, Likeness::Unlike)));
        }
    }

    #[test]
    fn what_is_unknown_is_compared_with_nothing() {
        let (a, mut b) =
            (of(&[(65536, NEXT), (65536, NEXT)]), of(&[(65536, NEXT), (131_072, NEXT)]));
        b.epochs[0].files_read = None;
        let io = &mut b.epochs[0].accelerators[0].io;
        (io.read_ns, io.access.following) = (0, 0);
        for aspect in [
            PatternAspect::Rereads,
            PatternAspect::Overlap,
            PatternAspect::Order,
            PatternAspect::Concurrency,
        ] {
            check(&a, &b, aspect, None);
        }
        // Of two sizes one is not known: means of bins are.
        b.epochs[0].accelerators[0].io.access.common = Default::default();
        check(&a, &b, PatternAspect::Sizes, Some((0.5, Likeness::Near)));
        // Nor bytes: both lie in bins, one of them in the same.
        b.epochs[0].accelerators[0].io.access.size_bytes = [0; BINS];
        let bins = (10_f64.log2() / 2.0 * 1e4).round() / 1e4;
        check(&a, &b, PatternAspect::Sizes, Some((bins, Likeness::Unlike)));
        let nothing = of(&[]);
        for aspect in PatternAspect::ALL {
            check(&a, &nothing, aspect, None);
        }
    }

    #[test]
    fn bounds_are_those_that_are_told() {
        for (unit, distance, expected) in [
            (DistanceUnit::Share, 0.05, Likeness::Alike),
            (DistanceUnit::Share, 0.051, Likeness::Near),
            (DistanceUnit::Share, 0.2, Likeness::Near),
            (DistanceUnit::Share, 0.21, Likeness::Unlike),
            (DistanceUnit::Octaves, 1.1_f64.log2(), Likeness::Alike),
            (DistanceUnit::Octaves, 1.5_f64.log2(), Likeness::Near),
            (DistanceUnit::Octaves, 1.51_f64.log2(), Likeness::Unlike),
        ] {
            assert_eq!(unit.judge(distance), expected, "{unit:?} {distance}");
        }
    }
}
