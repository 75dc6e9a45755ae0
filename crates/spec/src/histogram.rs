//! A histogram of durations with log-linear buckets, as in HdrHistogram: eight buckets per octave, so a value has a
//! relative error of at most one sixteenth. Recording allocates at most once. This module reads no clock.

use serde::{Deserialize, Serialize};

/// Logarithm of the number of buckets per octave: 2^3 = 8. Values of the first two octaves are exact.
const OCTAVE_BITS: u32 = 3;
/// Number of buckets. All values of `u64` need 496; with a power of two the compiler omits the bounds check.
const BUCKETS: usize = 512;

/// Counts of durations. The default is empty and owns no memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Sparse", into = "Sparse")]
pub struct Histogram {
    counts: Option<Box<[u64; BUCKETS]>>,
    /// Non-empty buckets with their counts, in order; used instead of the array after [`Histogram::compact`].
    compact: Vec<(u16, u64)>,
    max_ns: u64,
}

/// Durations from `low_ns` to `high_ns`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "explained by the type")]
pub struct DurationRange {
    pub low_ns: u64,
    pub high_ns: u64,
}

impl Histogram {
    /// An empty histogram with its memory (4 KiB) allocated, so [`Histogram::record`] does not allocate.
    pub fn new() -> Self {
        Histogram { counts: Some(no_counts()), compact: Vec::new(), max_ns: 0 }
    }

    /// Counts one duration.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_repeated(ns, 1);
    }

    /// Counts `count` equal durations.
    #[inline]
    pub fn record_repeated(&mut self, ns: u64, count: u64) {
        self.counts_mut()[bucket_index(ns) % BUCKETS] += count;
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        if other.non_empty_buckets().next().is_none() {
            return;
        }
        let counts = self.counts_mut();
        for (bucket, count) in other.non_empty_buckets() {
            counts[bucket] += count;
        }
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The durations counted since an earlier state of the same histogram. Its longest duration is exact only if it is the longest of all.
    #[must_use]
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let mut earlier = earlier.non_empty_buckets().peekable();
        let mut since = Histogram::default();
        for (bucket, count) in self.non_empty_buckets() {
            let before = earlier.next_if(|(earlier_bucket, _)| *earlier_bucket == bucket);
            let count = count.saturating_sub(before.map_or(0, |(_, count)| count));
            if count > 0 {
                since.compact.push((bucket as u16, count));
                since.max_ns = middle_ns(bucket).min(self.max_ns);
            }
        }
        if let Some(&(last, _)) = since.compact.last()
            && usize::from(last) == bucket_index(self.max_ns)
        {
            since.max_ns = self.max_ns;
        }
        since
    }

    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.non_empty_buckets().map(|(_, count)| count).sum()
    }

    /// The exact longest duration; `None` if empty.
    pub fn max(&self) -> Option<u64> {
        self.non_empty_buckets().next().map(|_| self.max_ns)
    }

    /// The duration that a share `q` (0 to 1) of all durations does not exceed, with an error of at most one sixteenth. `None` if empty or if `q` is out of
    /// range.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let count = self.count();
        if count == 0 || !(0.0..=1.0).contains(&q) {
            return None;
        }
        let rank = ((q * count as f64).ceil() as u64).clamp(1, count);
        if rank == count {
            return Some(self.max_ns);
        }
        let mut cumulated = 0;
        let (bucket, _) = self.non_empty_buckets().find(|(_, count)| {
            cumulated += count;
            rank <= cumulated
        })?;
        Some(middle_ns(bucket).min(self.max_ns))
    }

    /// The durations between which [`Histogram::quantile`] is: those of its bucket, up to the longest duration. `None` as for the quantile.
    pub fn quantile_range(&self, q: f64) -> Option<DurationRange> {
        let quantile_ns = self.quantile(q)?;
        let is_longest = self.count() as f64 <= (q * self.count() as f64).ceil();
        if is_longest {
            return Some(DurationRange { low_ns: self.max_ns, high_ns: self.max_ns });
        }
        let bucket = bucket_index(quantile_ns);
        let high_ns = least_ns(bucket).saturating_add(width_ns(bucket) - 1);
        Some(DurationRange { low_ns: least_ns(bucket), high_ns: high_ns.min(self.max_ns) })
    }

    /// Pairs of a duration, with an error of at most one sixteenth, and its count; shortest first.
    pub fn counts(&self) -> Vec<(u64, u64)> {
        self.non_empty_buckets()
            .map(|(bucket, count)| (middle_ns(bucket).min(self.max_ns), count))
            .collect()
    }

    /// Reduces the memory to the non-empty buckets. Returns an empty histogram that reuses the freed memory.
    pub fn compact(&mut self) -> Histogram {
        self.compact =
            self.non_empty_buckets().map(|(bucket, count)| (bucket as u16, count)).collect();
        let mut counts = self.counts.take();
        counts.iter_mut().for_each(|counts| counts.fill(0));
        Histogram { counts, ..Histogram::default() }
    }

    fn counts_mut(&mut self) -> &mut [u64; BUCKETS] {
        let compact = std::mem::take(&mut self.compact);
        let counts = self.counts.get_or_insert_with(no_counts);
        for (bucket, count) in compact {
            counts[usize::from(bucket) % BUCKETS] += count;
        }
        counts
    }

    fn non_empty_buckets(&self) -> impl Iterator<Item = (usize, u64)> {
        let counts = self.counts.as_deref().into_iter().flatten();
        let compact = self.compact.iter().map(|&(bucket, count)| (usize::from(bucket), count));
        counts.copied().enumerate().filter(|&(_, count)| count > 0).chain(compact)
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.max_ns == other.max_ns && self.non_empty_buckets().eq(other.non_empty_buckets())
    }
}

fn no_counts() -> Box<[u64; BUCKETS]> {
    Box::new([0; BUCKETS])
}

/// Bucket of a duration. Durations up to 15 ns have a bucket each; above, the bucket is given by the exponent and the three bits below
/// the leading bit.
#[inline]
fn bucket_index(ns: u64) -> usize {
    let octave = (ns | 1).ilog2().saturating_sub(OCTAVE_BITS);
    ((octave as usize) << OCTAVE_BITS) + (ns >> octave) as usize
}

/// Middle of a bucket's durations.
fn middle_ns(bucket: usize) -> u64 {
    least_ns(bucket) + width_ns(bucket) / 2
}

/// Shortest duration of a bucket.
fn least_ns(bucket: usize) -> u64 {
    let octave = octave(bucket);
    ((bucket - (octave << OCTAVE_BITS)) as u64) << octave
}

/// Number of durations, in whole nanoseconds, that share a bucket.
fn width_ns(bucket: usize) -> u64 {
    1 << octave(bucket)
}

/// Logarithm of a bucket's width.
fn octave(bucket: usize) -> usize {
    (bucket >> OCTAVE_BITS).saturating_sub(1)
}

/// Serialized form: the non-empty buckets only.
#[derive(Serialize, Deserialize)]
struct Sparse {
    max_ns: u64,
    counts: Vec<(usize, u64)>,
}

impl From<Histogram> for Sparse {
    fn from(histogram: Histogram) -> Self {
        Sparse { max_ns: histogram.max_ns, counts: histogram.non_empty_buckets().collect() }
    }
}

impl TryFrom<Sparse> for Histogram {
    type Error = String;

    fn try_from(sparse: Sparse) -> Result<Self, String> {
        let mut histogram = Histogram { max_ns: sparse.max_ns, ..Histogram::default() };
        for (bucket, count) in sparse.counts {
            let counts = histogram.counts.get_or_insert_with(no_counts);
            let sum = counts
                .get_mut(bucket)
                .ok_or_else(|| format!("a histogram has no bucket `{bucket}`"))?;
            *sum = sum.checked_add(count).ok_or("a histogram counts beyond 2^64")?;
        }
        histogram.compact();
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram_of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|&ns| histogram.record(ns));
        histogram
    }

    #[test]
    fn buckets_cover_all_durations_without_gaps() {
        for (ns, expected) in [
            (0, 0),
            (7, 7),
            (15, 15),
            (16, 16),
            (17, 16),
            (18, 17),
            (31, 23),
            (32, 24),
            (u64::MAX, 495),
        ] {
            assert_eq!(bucket_index(ns), expected, "{ns}");
        }
        assert_eq!([middle_ns(0), middle_ns(15), middle_ns(16), middle_ns(24)], [0, 15, 17, 34]);
        assert!(size_of::<[u64; BUCKETS]>() <= 6 << 10);
    }

    #[test]
    fn quantiles_are_within_a_sixteenth() {
        let hundred: Vec<u64> = (1..=100).map(|ms| ms * 1_000_000).collect();
        let histogram = histogram_of(&hundred);
        assert_eq!((histogram.count(), histogram.max()), (100, Some(100_000_000)));
        for (q, expected) in
            [(0.0, 1e6), (0.5, 50e6), (0.9, 90e6), (0.99, 99e6), (0.999, 100e6), (1.0, 100e6)]
        {
            let found = histogram.quantile(q).unwrap() as f64;
            assert!((found / expected - 1.0).abs() <= 1.0 / 16.0, "{q}: {found}");
        }
        assert_eq!(histogram.quantile(1.0), Some(100_000_000));
        assert_eq!(histogram_of(&[5, 20_000, 5]).counts(), [(5, 2), (19_456, 1)]);
        assert_eq!(histogram.quantile(f64::NAN), None);
        assert_eq!((Histogram::new().quantile(0.5), Histogram::new().max()), (None, None));
    }

    /// 50 ms is in the bucket from 11 × 2^22 to 12 × 2^22 − 1 ns, and the longest duration ends the range.
    #[test]
    fn a_quantile_is_known_to_its_bucket() {
        let range = |values: &[u64]| histogram_of(values).quantile_range(0.5).unwrap();
        let bucket = DurationRange { low_ns: 11 << 22, high_ns: (12 << 22) - 1 };
        assert_eq!(range(&[50_000_000, 50_000_000, 60_000_000]), bucket);
        let longest = DurationRange { high_ns: 50_000_000, ..bucket };
        assert_eq!(range(&[50_000_000; 3]), longest);
        let exact = DurationRange { low_ns: 50_000_000, high_ns: 50_000_000 };
        assert_eq!(range(&[50_000_000]), exact);
        assert_eq!(range(&[7, 7, 9]), DurationRange { low_ns: 7, high_ns: 7 });
        assert_eq!(Histogram::new().quantile_range(0.5), None);
    }

    #[test]
    fn serialized_histograms_are_small_and_read_back() {
        let text = serde_json::to_string(&histogram_of(&[5, 5, 20_000])).unwrap();
        assert_eq!(text, r#"{"max_ns":20000,"counts":[[5,2],[97,1]]}"#);
        assert_eq!(
            serde_json::from_str::<Histogram>(&text).unwrap(),
            histogram_of(&[5, 20_000, 5])
        );
        assert_eq!(
            serde_json::to_string(&Histogram::default()).unwrap(),
            r#"{"max_ns":0,"counts":[]}"#
        );
        assert!(serde_json::from_str::<Histogram>(r#"{"max_ns":1,"counts":[[512,1]]}"#).is_err());
        assert_eq!(Histogram::new(), Histogram::default());
    }

    #[test]
    fn compacting_returns_the_memory_as_an_empty_histogram() {
        let mut histogram = histogram_of(&[5, 20_000]);
        let mut next = histogram.compact();
        assert!(histogram.counts.is_none() && next.counts.is_some());
        assert_eq!((&histogram, next.max()), (&histogram_of(&[5, 20_000]), None));
        next.record(7);
        assert_eq!(next, histogram_of(&[7]));
    }

    proptest! {
        #[test]
        fn values_are_known_to_a_sixteenth(ns: u64) {
            let found = middle_ns(bucket_index(ns));
            prop_assert!(u128::from(found.abs_diff(ns)) * 16 <= u128::from(ns));
        }

        #[test]
        fn merging_equals_recording_all_values(a: Vec<u64>, b: Vec<u64>, compacts: bool) {
            let mut merged = histogram_of(&a);
            if compacts {
                merged.compact();
            }
            merged.merge(&histogram_of(&b));
            prop_assert_eq!(merged, histogram_of(&[a, b].concat()));
        }
    }
}
