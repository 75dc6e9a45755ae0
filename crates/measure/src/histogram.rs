//! A histogram of nanoseconds with log-linear buckets, as HdrHistogram has: eight to an octave, so that a value is known
//! to one sixteenth. Recording allocates at most once; nothing here reads a clock.

use serde::{Deserialize, Serialize};

/// Octaves have 2^3 buckets; the first two are exact.
const OCTAVE_BITS: u32 = 3;
/// Buckets of all `u64`, 496, rounded up so that an index needs no check.
const BUCKETS: usize = 512;

/// Counts of durations. Empty, it owns no memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Sparse", into = "Sparse")]
pub struct Histogram {
    counts: Option<Box<[u64; BUCKETS]>>,
    /// Filled buckets and their counts, in order, where there is no array.
    compact: Vec<(u16, u64)>,
    max_ns: u64,
}

impl Histogram {
    /// An empty one with its memory (4 KiB), so that [`Histogram::record`] never allocates.
    pub fn new() -> Self {
        Histogram { counts: Some(no_counts()), compact: Vec::new(), max_ns: 0 }
    }

    /// Count one duration.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.array()[bucket(ns) % BUCKETS] += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    /// Count everything that `other` counted.
    pub fn merge(&mut self, other: &Histogram) {
        if other.filled().next().is_none() {
            return;
        }
        let counts = self.array();
        for (bucket, count) in other.filled() {
            counts[bucket] += count;
        }
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Durations counted.
    pub fn count(&self) -> u64 {
        self.filled().map(|(_, count)| count).sum()
    }

    /// The longest, exactly.
    pub fn max(&self) -> Option<u64> {
        self.filled().next().map(|_| self.max_ns)
    }

    /// The duration that a share `q` (0 to 1) of all does not exceed, to one sixteenth. `None` if empty.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let count = self.count();
        if count == 0 || !(0.0..=1.0).contains(&q) {
            return None;
        }
        let rank = ((q * count as f64).ceil() as u64).clamp(1, count);
        if rank == count {
            return Some(self.max_ns);
        }
        let mut below = 0;
        let (bucket, _) = self.filled().find(|(_, count)| {
            below += count;
            rank <= below
        })?;
        Some(middle(bucket).min(self.max_ns))
    }

    /// The counts, ascending: about how long, to one sixteenth, and how often.
    pub fn counts(&self) -> Vec<(u64, u64)> {
        self.filled().map(|(bucket, count)| (middle(bucket).min(self.max_ns), count)).collect()
    }

    /// Keep the filled buckets only. Returns an empty histogram in the memory that this frees.
    pub fn compact(&mut self) -> Histogram {
        self.compact = self.filled().map(|(bucket, count)| (bucket as u16, count)).collect();
        let mut counts = self.counts.take();
        counts.iter_mut().for_each(|counts| counts.fill(0));
        Histogram { counts, ..Histogram::default() }
    }

    fn array(&mut self) -> &mut [u64; BUCKETS] {
        let compact = std::mem::take(&mut self.compact);
        let counts = self.counts.get_or_insert_with(no_counts);
        for (bucket, count) in compact {
            counts[usize::from(bucket) % BUCKETS] += count;
        }
        counts
    }

    fn filled(&self) -> impl Iterator<Item = (usize, u64)> {
        let counts = self.counts.as_deref().into_iter().flatten();
        let compact = self.compact.iter().map(|&(bucket, count)| (usize::from(bucket), count));
        counts.copied().enumerate().filter(|&(_, count)| count > 0).chain(compact)
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.max_ns == other.max_ns && self.filled().eq(other.filled())
    }
}

fn no_counts() -> Box<[u64; BUCKETS]> {
    Box::new([0; BUCKETS])
}

/// 0 to 15 are their own buckets; above, the exponent and the three bits below the leading one.
#[inline]
fn bucket(ns: u64) -> usize {
    let octave = (ns | 1).ilog2().saturating_sub(OCTAVE_BITS);
    ((octave as usize) << OCTAVE_BITS) + (ns >> octave) as usize
}

fn middle(bucket: usize) -> u64 {
    let octave = (bucket >> OCTAVE_BITS).saturating_sub(1);
    let least = ((bucket - (octave << OCTAVE_BITS)) as u64) << octave;
    least + (1 << octave) / 2
}

/// As written: the filled buckets only.
#[derive(Serialize, Deserialize)]
struct Sparse {
    max_ns: u64,
    counts: Vec<(usize, u64)>,
}

impl From<Histogram> for Sparse {
    fn from(histogram: Histogram) -> Self {
        Sparse { max_ns: histogram.max_ns, counts: histogram.filled().collect() }
    }
}

impl TryFrom<Sparse> for Histogram {
    type Error = String;

    fn try_from(sparse: Sparse) -> Result<Self, String> {
        let mut histogram = Histogram { max_ns: sparse.max_ns, ..Histogram::default() };
        for (at, count) in sparse.counts {
            let counts = histogram.counts.get_or_insert_with(no_counts);
            let place =
                counts.get_mut(at).ok_or_else(|| format!("a histogram has no bucket `{at}`"))?;
            *place = place.checked_add(count).ok_or("a histogram counts beyond 2^64")?;
        }
        histogram.compact();
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|&ns| histogram.record(ns));
        histogram
    }

    #[test]
    fn buckets_follow_one_another() {
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
            assert_eq!(bucket(ns), expected, "{ns}");
        }
        assert_eq!([middle(0), middle(15), middle(16), middle(24)], [0, 15, 17, 34]);
        assert!(size_of::<[u64; BUCKETS]>() <= 6 << 10);
    }

    #[test]
    fn quantiles_of_a_hundred() {
        let hundred: Vec<u64> = (1..=100).map(|ms| ms * 1_000_000).collect();
        let histogram = of(&hundred);
        assert_eq!((histogram.count(), histogram.max()), (100, Some(100_000_000)));
        for (q, expected) in
            [(0.0, 1e6), (0.5, 50e6), (0.9, 90e6), (0.99, 99e6), (0.999, 100e6), (1.0, 100e6)]
        {
            let found = histogram.quantile(q).unwrap() as f64;
            assert!((found / expected - 1.0).abs() <= 1.0 / 16.0, "{q}: {found}");
        }
        assert_eq!(histogram.quantile(1.0), Some(100_000_000));
        assert_eq!(of(&[5, 20_000, 5]).counts(), [(5, 2), (19_456, 1)]);
        assert_eq!(histogram.quantile(f64::NAN), None);
        assert_eq!((Histogram::new().quantile(0.5), Histogram::new().max()), (None, None));
    }

    #[test]
    fn what_is_written_is_small_and_comes_back() {
        let text = serde_json::to_string(&of(&[5, 5, 20_000])).unwrap();
        assert_eq!(text, r#"{"max_ns":20000,"counts":[[5,2],[97,1]]}"#);
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), of(&[5, 20_000, 5]));
        assert_eq!(
            serde_json::to_string(&Histogram::default()).unwrap(),
            r#"{"max_ns":0,"counts":[]}"#
        );
        assert!(serde_json::from_str::<Histogram>(r#"{"max_ns":1,"counts":[[512,1]]}"#).is_err());
        assert_eq!(Histogram::new(), Histogram::default());
    }

    #[test]
    fn compacting_frees_memory_for_the_next() {
        let mut histogram = of(&[5, 20_000]);
        let mut next = histogram.compact();
        assert!(histogram.counts.is_none() && next.counts.is_some());
        assert_eq!((&histogram, next.max()), (&of(&[5, 20_000]), None));
        next.record(7);
        assert_eq!(next, of(&[7]));
    }

    proptest! {
        #[test]
        fn values_are_known_to_a_sixteenth(ns: u64) {
            let found = middle(bucket(ns));
            prop_assert!(u128::from(found.abs_diff(ns)) * 16 <= u128::from(ns));
        }

        #[test]
        fn merging_is_recording_both(a: Vec<u64>, b: Vec<u64>, compacts: bool) {
            let mut merged = of(&a);
            if compacts {
                merged.compact();
            }
            merged.merge(&of(&b));
            prop_assert_eq!(merged, of(&[a, b].concat()));
        }
    }
}
