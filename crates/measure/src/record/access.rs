//! Counters of file accesses by the definitions of Darshan: request sizes and the order of reads. Counting does not allocate or lock.

use super::common_sizes::CommonSizes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Upper ends, inclusive, of all size bins except the last: `DARSHAN_BUCKET_INC` of darshan-common.h.
const BIN_ENDS: [u64; BINS - 1] =
    [100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30];
/// Number of size bins.
pub const BINS: usize = 10;
/// Darshan's names of the bins.
pub const BIN_NAMES: [&str; BINS] = [
    "0-100", "100-1K", "1K-10K", "10K-100K", "100K-1M", "1M-4M", "4M-10M", "10M-100M", "100M-1G",
    "1G+",
];

/// Position of a read relative to the previous one in the same open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadPosition {
    /// It is the first read since the file was opened.
    #[default]
    First,
    /// It starts before the end of the previous read.
    Backward,
    /// It starts after the end of the previous read.
    Forward,
    /// It starts exactly at the end of the previous read.
    Consecutive,
}

impl ReadPosition {
    /// Classifies a read at `offset` after a read that ended at `last_end`.
    #[inline]
    pub fn new(last_end: Option<u64>, offset: u64) -> Self {
        match last_end {
            None => ReadPosition::First,
            Some(end) if offset == end => ReadPosition::Consecutive,
            Some(end) if offset > end => ReadPosition::Forward,
            Some(_) => ReadPosition::Backward,
        }
    }
}

/// Reads of one accelerator over an epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Number of reads by size bin, in the order of [`BIN_NAMES`].
    pub sizes: [u64; BINS],
    /// Bytes read by size bin; all 0 in records of older versions.
    #[serde(default)]
    pub size_bytes: [u64; BINS],
    /// The most common sizes.
    pub common: CommonSizes,
    /// Reads that have a previous one in the same open file.
    pub following: u64,
    /// Reads that start at or after the end of the previous one: `POSIX_SEQ_READS`.
    pub sequential: u64,
    /// Reads that start exactly at the end of the previous one: `POSIX_CONSEC_READS`.
    pub consecutive: u64,
    /// Samples that were read, without those served from the process's memory.
    pub samples_read: u64,
    /// Payload bytes of samples with known payload.
    pub payload_bytes: u64,
    /// Number of samples with known payload.
    pub payload_samples: u64,
    /// Number of different files that samples were read from; `None` if counting them would take too much memory.
    pub files: Option<u64>,
}

impl Access {
    /// Counts a read.
    #[inline]
    pub fn count_read(&mut self, bytes: u64, position: ReadPosition) {
        self.sizes[bin_index(bytes)] += 1;
        self.size_bytes[bin_index(bytes)] += bytes;
        self.common.count(bytes);
        self.following += u64::from(position != ReadPosition::First);
        self.sequential +=
            u64::from(matches!(position, ReadPosition::Forward | ReadPosition::Consecutive));
        self.consecutive += u64::from(position == ReadPosition::Consecutive);
    }

    /// Counts a sample that was read, and its payload if it is known.
    pub fn count_sample(&mut self, payload_bytes: Option<u64>) {
        self.count_samples(1, payload_bytes);
    }

    /// Counts samples that were read, and the payload of all of them if it is known.
    pub fn count_samples(&mut self, samples: u64, payload_bytes: Option<u64>) {
        self.samples_read += samples;
        if let Some(bytes) = payload_bytes {
            self.payload_bytes += bytes;
            self.payload_samples += samples;
        }
    }

    /// Number of reads; 0 in records of older versions.
    pub fn reads(&self) -> u64 {
        self.sizes.iter().sum()
    }

    /// Adds the counts of `other`, except the number of files, as both may have read the same files.
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

/// Index of the bin of a read that returned `bytes`.
#[inline]
pub fn bin_index(bytes: u64) -> usize {
    BIN_ENDS.iter().map(|&end| usize::from(bytes > end)).sum()
}

pub(super) fn add_bins(sums: &mut [u64; BINS], others: &[u64; BINS]) {
    for (sum, other) in sums.iter_mut().zip(others) {
        *sum += other;
    }
}

/// Distinct files and bytes of the dataset, including indexes, that were read since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesRead {
    /// Bytes that any accelerator read.
    pub unique_bytes: u64,
    /// Bytes that several accelerators read.
    pub overlap_bytes: u64,
    /// Number of files by the number of accelerators that read them, ascending.
    pub files_by_ranks: Vec<FilesByRanks>,
}

/// Number of files that were read by a given number of accelerators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct FilesByRanks {
    pub ranks: u64,
    pub files: u64,
}

impl From<(u64, u64)> for FilesByRanks {
    fn from(pair: (u64, u64)) -> Self {
        FilesByRanks { ranks: pair.0, files: pair.1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_reads(sizes: &[u64]) -> Access {
        let mut access = Access::default();
        sizes.iter().for_each(|&bytes| access.count_read(bytes, ReadPosition::First));
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
            assert_eq!(bin_index(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn the_order_of_reads_is_counted() {
        let mut access = Access::default();
        let mut last_end = None;
        for (offset, bytes) in [(10, 5), (15, 5), (30, 5), (34, 5), (0, 5)] {
            access.count_read(bytes, ReadPosition::new(last_end, offset));
            last_end = Some(offset + bytes);
        }
        assert_eq!((access.following, access.sequential, access.consecutive), (4, 2, 1));
    }

    #[test]
    fn serialized_counters_read_back() {
        let access = Access { files: Some(3), ..with_reads(&[5, 5, 7]) };
        let text = serde_json::to_string(&access).unwrap();
        assert_eq!(serde_json::from_str::<Access>(&text).unwrap(), access);
    }
}
