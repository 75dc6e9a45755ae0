//! The commonest sizes of reads, counted in bounded memory: Misra and Gries 1982, put together as Agarwal et al. 2012
//! ("Mergeable Summaries") do. Counting neither allocates nor locks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// Sizes that are counted singly: so many different ones are counted exactly.
const SIZES: usize = 64;

/// Sizes with their counts. Each was really read between `count` and `count + missed` times, one that is not there at most
/// `missed` times, and `missed` is at most one in 65 of all reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "SizesInFile", into = "SizesInFile")]
pub struct CommonSizes {
    bytes: [u64; SIZES],
    /// A place with a count of 0 is free.
    counts: [u64; SIZES],
    missed: u64,
    /// Where the last was found; the next is likely the same.
    last: usize,
}

/// A size of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CommonSize {
    /// Bytes that each returned.
    pub bytes: u64,
    /// How many of them, at least.
    pub count: u64,
}

impl CommonSizes {
    #[inline]
    pub(super) fn count(&mut self, bytes: u64) {
        if self.bytes[self.last] == bytes && self.counts[self.last] > 0 {
            self.counts[self.last] += 1;
        } else {
            self.count_other(bytes);
        }
    }

    fn count_other(&mut self, bytes: u64) {
        if let Some(at) = self.place(bytes) {
            self.bytes[at] = bytes;
            self.counts[at] += 1;
            self.last = at;
        } else {
            // This one and one of each other size are forgotten together.
            self.counts.iter_mut().for_each(|count| *count -= 1);
            self.missed += 1;
        }
    }

    /// Place of a size, or else a free one.
    fn place(&self, bytes: u64) -> Option<usize> {
        let mut sizes = self.bytes.iter().zip(&self.counts);
        let known = sizes.position(|(&own, &count)| own == bytes && count > 0);
        known.or_else(|| self.counts.iter().position(|&count| count == 0))
    }

    /// Count reads of one size that somebody else counted.
    pub fn count_many(&mut self, bytes: u64, count: u64) {
        if count > 0 {
            self.add(&CommonSizes::from_counts(&mut [CommonSize { bytes, count }], 0));
        }
    }

    /// The `most` commonest sizes, or as many fewer as are known for sure to be the commonest; `None` where reads were counted
    /// and none is.
    pub fn commonest(&self, most: usize) -> Option<Vec<CommonSize>> {
        let mut sizes = self.sizes();
        let count = |at: usize| sizes.get(at).map_or(0, |size: &CommonSize| size.count);
        let certain = |told: &usize| count(told - 1) >= count(*told) + self.missed;
        let told = (1..=most.min(sizes.len())).rev().find(certain);
        if told.is_none() && (self.missed > 0 || !sizes.is_empty()) {
            return None;
        }
        sizes.truncate(told.unwrap_or(0));
        Some(sizes)
    }

    /// Those that were counted, the commonest first.
    fn sizes(&self) -> Vec<CommonSize> {
        let places = self.bytes.iter().zip(&self.counts);
        let sizes = places.map(|(&bytes, &count)| CommonSize { bytes, count });
        let mut sizes: Vec<CommonSize> = sizes.filter(|size| size.count > 0).collect();
        sizes.sort_unstable_by_key(|size| (Reverse(size.count), size.bytes));
        sizes
    }

    /// Count what `other` counted too.
    pub(super) fn add(&mut self, other: &CommonSizes) {
        let mut sum = self.sizes();
        for more in other.sizes() {
            match sum.iter_mut().find(|size| size.bytes == more.bytes) {
                Some(size) => size.count += more.count,
                None => sum.push(more),
            }
        }
        *self = CommonSizes::from_counts(&mut sum, self.missed + other.missed);
    }

    /// Where there are more than are kept, as many reads of each are forgotten as of the first that is not kept.
    fn from_counts(sizes: &mut [CommonSize], missed: u64) -> Self {
        sizes.sort_unstable_by_key(|size| (Reverse(size.count), size.bytes));
        let forgotten = sizes.get(SIZES).map_or(0, |size| size.count);
        let mut kept = CommonSizes { missed: missed + forgotten, ..CommonSizes::default() };
        for (at, size) in sizes.iter().take(SIZES).enumerate() {
            (kept.bytes[at], kept.counts[at]) = (size.bytes, size.count - forgotten);
        }
        kept
    }
}

impl Default for CommonSizes {
    fn default() -> Self {
        CommonSizes { bytes: [0; SIZES], counts: [0; SIZES], missed: 0, last: 0 }
    }
}

impl PartialEq for CommonSizes {
    fn eq(&self, other: &Self) -> bool {
        (self.sizes(), self.missed) == (other.sizes(), other.missed)
    }
}

impl Eq for CommonSizes {}

/// As records have them.
#[derive(Serialize, Deserialize)]
struct SizesInFile {
    sizes: Vec<(u64, u64)>,
    missed: u64,
}

impl From<CommonSizes> for SizesInFile {
    fn from(common: CommonSizes) -> Self {
        let sizes = common.sizes().into_iter().map(|size| (size.bytes, size.count));
        SizesInFile { sizes: sizes.collect(), missed: common.missed }
    }
}

impl From<SizesInFile> for CommonSizes {
    fn from(SizesInFile { sizes, missed }: SizesInFile) -> Self {
        let sizes = sizes.into_iter().map(|(bytes, count)| CommonSize { bytes, count });
        CommonSizes::from_counts(&mut sizes.collect::<Vec<_>>(), missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn of(sizes: &[u64]) -> CommonSizes {
        let mut common = CommonSizes::default();
        sizes.iter().for_each(|&bytes| common.count(bytes));
        common
    }

    fn exactly(sizes: &[u64]) -> BTreeMap<u64, u64> {
        let mut counts = BTreeMap::new();
        sizes.iter().for_each(|&bytes| *counts.entry(bytes).or_insert(0) += 1);
        counts
    }

    #[test]
    fn sizes_that_are_all_different_have_no_commonest() {
        let different: Vec<u64> = (0..1000).collect();
        assert_eq!(of(&different).commonest(4), None);
        assert_eq!(of(&[]).commonest(4), Some(vec![]));
        let both: Vec<u64> = different.iter().flat_map(|&bytes| [4096, bytes + 5000]).collect();
        let common = of(&both).commonest(4).unwrap();
        assert_eq!(common.iter().map(|size| size.bytes).collect::<Vec<_>>(), [4096]);
    }

    #[test]
    fn they_come_back_from_the_file() {
        let common = of(&(0..500).map(|i| i % 70).collect::<Vec<_>>());
        let text = serde_json::to_string(&common).unwrap();
        assert_eq!(serde_json::from_str::<CommonSizes>(&text).unwrap(), common);
    }

    proptest! {
        /// Whoever counted them, each count is a bound within what was missed, and what is told to be commonest is.
        #[test]
        fn no_other_size_is_commoner_than_those_that_are_told(
            a in prop::collection::vec((0u64..200).prop_map(|i| i * i / 100), 0..900),
            b in prop::collection::vec(0u64..90, 0..900),
        ) {
            let mut both = of(&a);
            both.add(&of(&b));
            let all = [a, b].concat();
            let really = exactly(&all);
            prop_assert!(both.missed * (SIZES as u64 + 1) <= all.len() as u64);
            for (&bytes, &count) in &really {
                let own = both.sizes().into_iter().find(|size| size.bytes == bytes);
                let least = own.map_or(0, |size| size.count);
                prop_assert!(least <= count && count <= least + both.missed);
            }
            if really.len() <= SIZES {
                prop_assert_eq!(both.missed, 0);
                prop_assert_eq!(both.commonest(4).unwrap().len(), really.len().min(4));
            }
            let told = both.commonest(4).unwrap_or_default();
            let told: Vec<u64> = told.iter().map(|size| size.bytes).collect();
            let rarest = told.iter().map(|bytes| really[bytes]).min();
            let others = really.iter().filter(|(bytes, _)| !told.contains(bytes));
            if let Some(rarest) = rarest {
                prop_assert!(others.map(|(_, &count)| count).all(|count| count <= rarest));
            }
        }
    }
}
