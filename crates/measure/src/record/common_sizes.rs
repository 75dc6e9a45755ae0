//! The most common sizes of reads, counted in bounded memory by the algorithm of Misra and Gries (1982) and merged as described by
//! Agarwal et al. ("Mergeable Summaries", 2012). Counting does not allocate or lock.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// Number of sizes with a counter. Counts are exact if at most this many different sizes occur.
const SIZES: usize = 64;

/// Sizes with their counts. The true number of reads of a size is between `count` and `count + missed`, and at most `missed` for a size
/// that is not listed. `missed` is at most 1/65 of all reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "SizesInFile", into = "SizesInFile")]
pub struct CommonSizes {
    bytes: [u64; SIZES],
    /// A count of 0 marks a free slot.
    counts: [u64; SIZES],
    missed: u64,
    /// Slot of the last size. It is tried first, as successive sizes are often equal.
    last: usize,
}

/// A request size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CommonSize {
    /// Bytes that each read returned.
    pub bytes: u64,
    /// Number of reads, as a lower bound.
    pub count: u64,
}

impl CommonSizes {
    #[inline]
    pub(super) fn count(&mut self, bytes: u64) {
        if self.bytes[self.last] == bytes && self.counts[self.last] > 0 {
            self.counts[self.last] += 1;
        } else {
            self.count_in_slot(bytes);
        }
    }

    fn count_in_slot(&mut self, bytes: u64) {
        if let Some(slot) = self.slot(bytes) {
            self.bytes[slot] = bytes;
            self.counts[slot] += 1;
            self.last = slot;
        } else {
            // Misra and Gries: drop this read together with one of each counted size.
            self.counts.iter_mut().for_each(|count| *count -= 1);
            self.missed += 1;
        }
    }

    /// Slot of a size, or a free slot if the size has none.
    fn slot(&self, bytes: u64) -> Option<usize> {
        let mut sizes = self.bytes.iter().zip(&self.counts);
        let known = sizes.position(|(&size, &count)| size == bytes && count > 0);
        known.or_else(|| self.counts.iter().position(|&count| count == 0))
    }

    /// Adds `count` reads of one size, for example from an imported log.
    pub fn count_many(&mut self, bytes: u64, count: u64) {
        if count > 0 {
            self.add(&CommonSizes::from_counts(&mut [CommonSize { bytes, count }], 0));
        }
    }

    /// Returns at most `sizes_max` of the most common sizes, most common first. Sizes whose rank is uncertain are omitted. `None` if reads
    /// were counted but every rank is uncertain.
    pub fn most_common(&self, sizes_max: usize) -> Option<Vec<CommonSize>> {
        let mut sizes = self.sizes();
        let count_at = |index: usize| sizes.get(index).map_or(0, |size: &CommonSize| size.count);
        // The first `number` sizes are certain if no further size can have a higher count than size `number`.
        let is_certain = |number: &usize| count_at(number - 1) >= count_at(*number) + self.missed;
        let certain = (1..=sizes_max.min(sizes.len())).rev().find(is_certain);
        if certain.is_none() && (self.missed > 0 || !sizes.is_empty()) {
            return None;
        }
        sizes.truncate(certain.unwrap_or(0));
        Some(sizes)
    }

    /// The counted sizes, most common first.
    fn sizes(&self) -> Vec<CommonSize> {
        let slots = self.bytes.iter().zip(&self.counts);
        let used = slots.filter(|&(_, &count)| count > 0);
        let mut sizes: Vec<CommonSize> =
            used.map(|(&bytes, &count)| CommonSize { bytes, count }).collect();
        sizes.sort_unstable_by_key(|size| (Reverse(size.count), size.bytes));
        sizes
    }

    /// Adds the counts of `other`.
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

    /// Keeps the most common sizes. If there are more than [`SIZES`], the count of the first dropped size is subtracted from all.
    fn from_counts(sizes: &mut [CommonSize], missed: u64) -> Self {
        sizes.sort_unstable_by_key(|size| (Reverse(size.count), size.bytes));
        let dropped = sizes.get(SIZES).map_or(0, |size| size.count);
        let mut kept = CommonSizes { missed: missed + dropped, ..CommonSizes::default() };
        for (slot, size) in sizes.iter().take(SIZES).enumerate() {
            kept.bytes[slot] = size.bytes;
            kept.counts[slot] = size.count - dropped;
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

/// Serialized form.
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

    fn with_reads(sizes: &[u64]) -> CommonSizes {
        let mut common = CommonSizes::default();
        sizes.iter().for_each(|&bytes| common.count(bytes));
        common
    }

    fn exact_counts(sizes: &[u64]) -> BTreeMap<u64, u64> {
        let mut counts = BTreeMap::new();
        sizes.iter().for_each(|&bytes| *counts.entry(bytes).or_insert(0) += 1);
        counts
    }

    #[test]
    fn different_sizes_have_no_most_common_size() {
        let different: Vec<u64> = (0..1000).collect();
        assert_eq!(with_reads(&different).most_common(4), None);
        assert_eq!(with_reads(&[]).most_common(4), Some(vec![]));
        let mixed: Vec<u64> = different.iter().flat_map(|&bytes| [4096, bytes + 5000]).collect();
        let common = with_reads(&mixed).most_common(4).unwrap();
        assert_eq!(common.iter().map(|size| size.bytes).collect::<Vec<_>>(), [4096]);
    }

    #[test]
    fn serialized_counts_read_back() {
        let common = with_reads(&(0..500).map(|i| i % 70).collect::<Vec<_>>());
        let text = serde_json::to_string(&common).unwrap();
        assert_eq!(serde_json::from_str::<CommonSizes>(&text).unwrap(), common);
    }

    proptest! {
        /// After merging, counts are bounds within `missed`, and no other size is more common than the reported ones.
        #[test]
        fn the_most_common_sizes_are_correct(
            a in prop::collection::vec((0u64..200).prop_map(|i| i * i / 100), 0..900),
            b in prop::collection::vec(0u64..90, 0..900),
        ) {
            let mut merged = with_reads(&a);
            merged.add(&with_reads(&b));
            let all = [a, b].concat();
            let exact = exact_counts(&all);
            prop_assert!(merged.missed * (SIZES as u64 + 1) <= all.len() as u64);
            for (&bytes, &count) in &exact {
                let found = merged.sizes().into_iter().find(|size| size.bytes == bytes);
                let lower_bound = found.map_or(0, |size| size.count);
                prop_assert!(lower_bound <= count && count <= lower_bound + merged.missed);
            }
            if exact.len() <= SIZES {
                prop_assert_eq!(merged.missed, 0);
                prop_assert_eq!(merged.most_common(4).unwrap().len(), exact.len().min(4));
            }
            let reported = merged.most_common(4).unwrap_or_default();
            let reported_bytes: Vec<u64> = reported.iter().map(|size| size.bytes).collect();
            let rarest = reported_bytes.iter().map(|bytes| exact[bytes]).min();
            let others = exact.iter().filter(|(bytes, _)| !reported_bytes.contains(bytes));
            if let Some(rarest) = rarest {
                prop_assert!(others.map(|(_, &count)| count).all(|count| count <= rarest));
            }
        }
    }
}
