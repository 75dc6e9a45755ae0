//! How files were read, as Darshan counts it: sizes of requests, what follows what. Counting neither allocates nor locks.

use serde::{Deserialize, Serialize};

/// Upper ends of all size bins but the last, each inside its bin: `DARSHAN_BUCKET_INC` of darshan-common.h.
const BIN_ENDS: [u64; BINS - 1] =
    [100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30];
/// Bins of request sizes.
pub const BINS: usize = 10;
/// Darshan's names of them.
pub const BIN_NAMES: [&str; BINS] = [
    "0-100", "100-1K", "1K-10K", "10K-100K", "100K-1M", "1M-4M", "4M-10M", "10M-100M", "100M-1G",
    "1G+",
];
/// Sizes that are counted singly. Every size of more than one in so many reads is among them.
const SIZES: usize = 16;

/// Place of a read after the one before it in the same open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Follows {
    /// It is the first since the file was opened.
    #[default]
    Nothing,
    /// It began before the end of the last.
    Back,
    /// It began further on.
    Ahead,
    /// It began where the last ended.
    Next,
}

impl Follows {
    /// Place of a read at `offset`, after one that ended at `last_end`.
    #[inline]
    pub fn new(last_end: Option<u64>, offset: u64) -> Self {
        match last_end {
            None => Follows::Nothing,
            Some(end) if offset == end => Follows::Next,
            Some(end) if offset > end => Follows::Ahead,
            Some(_) => Follows::Back,
        }
    }
}

/// Reads of one accelerator over an epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Reads that returned so many bytes, by [`BIN_NAMES`].
    pub sizes: [u64; BINS],
    /// Bytes that those of each bin returned together; all 0 in records of versions that did not count.
    #[serde(default)]
    pub size_bytes: [u64; BINS],
    /// The commonest sizes.
    pub common: CommonSizes,
    /// Reads that followed another in the same open file: all but the first of each.
    pub following: u64,
    /// Those of them at or after the end of the one before: `POSIX_SEQ_READS`.
    pub sequential: u64,
    /// Those of them right at its end: `POSIX_CONSEC_READS`.
    pub consecutive: u64,
    /// Samples that were read, those from memory not among them.
    pub samples_read: u64,
    /// Payload of those whose size is known.
    pub payload_bytes: u64,
    /// How many those are.
    pub payload_samples: u64,
    /// Files that samples were read of, each once; `None` where that would take too much memory to know.
    pub files: Option<u64>,
}

impl Access {
    /// Count a read.
    #[inline]
    pub fn read(&mut self, bytes: u64, follows: Follows) {
        self.sizes[bin(bytes)] += 1;
        self.size_bytes[bin(bytes)] += bytes;
        self.common.count(bytes);
        self.following += u64::from(follows != Follows::Nothing);
        self.sequential += u64::from(matches!(follows, Follows::Ahead | Follows::Next));
        self.consecutive += u64::from(follows == Follows::Next);
    }

    /// Count a sample that was read, and its payload where that is known.
    pub fn sample(&mut self, payload_bytes: Option<u64>) {
        self.samples_read += 1;
        if let Some(bytes) = payload_bytes {
            self.payload_bytes += bytes;
            self.payload_samples += 1;
        }
    }

    /// Reads counted here; none in records of versions that did not count.
    pub fn reads(&self) -> u64 {
        self.sizes.iter().sum()
    }

    /// Count what `other` counted too, but for files: both may have read the same.
    pub fn add(&mut self, other: &Access) {
        add_bins(&mut self.sizes, &other.sizes);
        add_bins(&mut self.size_bytes, &other.size_bytes);
        self.common.add(&other.common);
        self.following += other.following;
        self.sequential += other.sequential;
        self.consecutive += other.consecutive;
        self.samples_read += other.samples_read;
        self.payload_bytes += other.payload_bytes;
        self.payload_samples += other.payload_samples;
    }
}

/// Bin of reads that returned `bytes`.
#[inline]
pub fn bin(bytes: u64) -> usize {
    BIN_ENDS.iter().map(|&end| usize::from(bytes > end)).sum()
}

pub(super) fn add_bins(sums: &mut [u64; BINS], others: &[u64; BINS]) {
    for (sum, other) in sums.iter_mut().zip(others) {
        *sum += other;
    }
}

/// Files of the dataset, indexes among them, and their bytes that were read since the run began, each counted once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesRead {
    /// Bytes that any accelerator read.
    pub unique_bytes: u64,
    /// Those of them that several accelerators read.
    pub overlap_bytes: u64,
    /// Files by the number of accelerators that read of them, ascending.
    pub files_by_ranks: Vec<FilesByRanks>,
}

/// Files that so many accelerators read of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct FilesByRanks {
    pub ranks: u64,
    pub files: u64,
}

impl From<(u64, u64)> for FilesByRanks {
    fn from((ranks, files): (u64, u64)) -> Self {
        FilesByRanks { ranks, files }
    }
}

/// Space-Saving (Metwally, Agrawal, El Abbadi 2005): a new size takes the place of the rarest, and its count.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<CommonSize>", into = "Vec<CommonSize>")]
pub struct CommonSizes {
    table: [CommonSize; SIZES],
    /// Where the last was found; the next is likely the same.
    last: usize,
}

/// A size of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommonSize {
    /// Bytes that each returned.
    pub bytes: u64,
    /// How many of them, at most.
    pub count: u64,
    /// Number of them that may have been others, of sizes that are no longer in the table.
    pub excess: u64,
}

impl CommonSize {
    fn is_of(&self, bytes: u64) -> bool {
        self.bytes == bytes && self.count > 0
    }

    /// So many reads were of this size at least.
    pub fn at_least(&self) -> u64 {
        self.count - self.excess
    }
}

impl CommonSizes {
    #[inline]
    fn count(&mut self, bytes: u64) {
        let last = &mut self.table[self.last % SIZES];
        if last.bytes == bytes && last.count > 0 {
            last.count += 1;
        } else {
            self.count_other(bytes);
        }
    }

    fn count_other(&mut self, bytes: u64) {
        self.last = match self.table.iter().position(|size| size.is_of(bytes)) {
            Some(at) => at,
            None => {
                let rarest = self.rarest();
                let excess = self.table[rarest].count;
                self.table[rarest] = CommonSize { bytes, count: excess, excess };
                rarest
            }
        };
        self.table[self.last].count += 1;
    }

    fn rarest(&self) -> usize {
        let mut rarest = 0;
        for (at, size) in self.table.iter().enumerate() {
            if size.count < self.table[rarest].count {
                rarest = at;
            }
        }
        rarest
    }

    /// The sizes known to be the most frequent, those first, at most `most`.
    pub fn top(&self, most: usize) -> Vec<CommonSize> {
        let mut sizes = self.filled();
        sizes.sort_by_key(|size| (std::cmp::Reverse(size.at_least()), size.bytes));
        sizes.truncate(most);
        sizes
    }

    fn filled(&self) -> Vec<CommonSize> {
        self.table.iter().copied().filter(|size| size.count > 0).collect()
    }

    /// Both together (Cafaro, Pulimeno, Tempesta 2016): what one table lacks may have been counted under its rarest.
    fn add(&mut self, other: &CommonSizes) {
        let mut sum: Vec<CommonSize> = self.filled();
        for size in other.filled().iter().filter(|size| !self.has(size.bytes)) {
            sum.push(CommonSize { count: 0, excess: 0, ..*size });
        }
        for size in &mut sum {
            let (own, more) = (self.bound(size.bytes), other.bound(size.bytes));
            (size.count, size.excess) = (own.count + more.count, own.excess + more.excess);
        }
        sum.sort_by_key(|size| (std::cmp::Reverse(size.count), size.bytes));
        sum.truncate(SIZES);
        *self = CommonSizes::default();
        self.table[..sum.len()].copy_from_slice(&sum);
    }

    fn has(&self, bytes: u64) -> bool {
        self.table.iter().any(|size| size.is_of(bytes))
    }

    /// As it was counted; one that is not in the table may have been counted as often as the rarest.
    fn bound(&self, bytes: u64) -> CommonSize {
        let known = self.table.iter().copied().find(|size| size.is_of(bytes));
        known.unwrap_or_else(|| {
            let count = self.table[self.rarest()].count;
            CommonSize { bytes, count, excess: count }
        })
    }
}

impl PartialEq for CommonSizes {
    fn eq(&self, other: &Self) -> bool {
        self.filled() == other.filled()
    }
}

impl Eq for CommonSizes {}

impl From<CommonSizes> for Vec<CommonSize> {
    fn from(sizes: CommonSizes) -> Self {
        sizes.filled()
    }
}

impl TryFrom<Vec<CommonSize>> for CommonSizes {
    type Error = String;

    fn try_from(sizes: Vec<CommonSize>) -> Result<Self, String> {
        let mut table = [CommonSize::default(); SIZES];
        let places = table.get_mut(..sizes.len());
        places.ok_or(format!("more than {SIZES} common sizes"))?.copy_from_slice(&sizes);
        if sizes.iter().any(|size| size.count < size.excess) {
            return Err("a common size counts less than its excess".into());
        }
        Ok(CommonSizes { table, last: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(sizes: &[u64]) -> Access {
        let mut access = Access::default();
        sizes.iter().for_each(|&bytes| access.read(bytes, Follows::Nothing));
        access
    }

    #[test]
    fn sizes_fall_into_darshans_bins() {
        let ends = [
            (0, 0),
            (100, 0),
            (101, 1),
            (1024, 1),
            (1025, 2),
            (10_240, 2),
            (262_144, 4),
            (1 << 20, 4),
            ((1 << 20) + 1, 5),
            (100 << 20, 7),
            (1 << 30, 8),
            ((1 << 30) + 1, 9),
        ];
        for (bytes, expected) in ends {
            assert_eq!(bin(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn what_follows_what() {
        let mut access = Access::default();
        let mut last_end = None;
        for (offset, bytes) in [(10, 5), (15, 5), (30, 5), (34, 5), (0, 5)] {
            access.read(bytes, Follows::new(last_end, offset));
            last_end = Some(offset + bytes);
        }
        assert_eq!((access.following, access.sequential, access.consecutive), (4, 2, 1));
    }

    #[test]
    fn it_comes_back_from_the_file() {
        let access = Access { files: Some(3), ..of(&[5, 5, 7]) };
        let text = serde_json::to_string(&access).unwrap();
        assert_eq!(serde_json::from_str::<Access>(&text).unwrap(), access);
        let many = vec![CommonSize::default(); SIZES + 1];
        assert!(CommonSizes::try_from(many).is_err());
        assert!(CommonSizes::try_from(vec![CommonSize { bytes: 1, count: 1, excess: 2 }]).is_err());
    }

    proptest! {
        /// Few sizes are counted exactly, whoever counted them.
        #[test]
        fn few_sizes_are_exact(a in prop::collection::vec(0u64..8, 0..200), b in prop::collection::vec(8u64..16, 0..200)) {
            let mut both = of(&a);
            both.add(&of(&b));
            for size in both.common.top(SIZES) {
                let really = a.iter().chain(&b).filter(|&&bytes| bytes == size.bytes).count() as u64;
                prop_assert_eq!((size.at_least(), size.count), (really, really));
            }
        }

        /// Counts of many sizes are bounds, and none that is common is missed.
        #[test]
        fn counts_are_bounds(a in prop::collection::vec(0u64..60, 0..400), b in prop::collection::vec(0u64..60, 0..400)) {
            let mut both = of(&a);
            both.add(&of(&b));
            let all = [a, b].concat();
            let top = both.common.top(SIZES);
            for bytes in 0..60 {
                let really = all.iter().filter(|&&other| other == bytes).count() as u64;
                match top.iter().find(|size| size.bytes == bytes) {
                    Some(size) => prop_assert!(size.at_least() <= really && really <= size.count),
                    None => prop_assert!(really * SIZES as u64 <= all.len() as u64),
                }
            }
            prop_assert_eq!(both.reads(), all.len() as u64);
        }
    }
}
