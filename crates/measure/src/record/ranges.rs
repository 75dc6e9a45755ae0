//! Counts the distinct bytes of files that accelerators read over a run, and how many accelerators read them.
//!
//! Workers log ranges of bytes into preallocated memory; the logs are merged between epochs. If a fixed amount of memory does not suffice,
//! the counts are unknown.

use super::access::{FilesByRanks, FilesRead};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Maximum number of ranges of all processes together: 13 MiB. At most four such lists exist at a time: on rank 0, its own ranges, the
/// ranges received from other processes, the ranges of earlier epochs, and the merged ranges.
pub const RANGES_MAX: usize = 560_000;
/// A worker or process may log at most this multiple of its equal share of the ranges.
const IMBALANCE_MAX: usize = 2;
/// Maximum number of words in the bit sets of readers: 8 MiB. A file has one word per 64 accelerators.
const WORDS_MAX: usize = 1 << 20;
/// Value of `reader` for ranges that several accelerators read.
const SEVERAL_READERS: u32 = u32::MAX;

/// A range of bytes of a file, with the accelerator that read it or `SEVERAL_READERS`. Ranges are ordered by file and start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileRange {
    file: u32,
    start: u64,
    end: u64,
    reader: u32,
}

impl FileRange {
    /// A range of `bytes` bytes from `start`; `None` if its end exceeds 2^64.
    pub fn new(file: u32, start: u64, bytes: u64, reader: u32) -> Option<Self> {
        Some(FileRange { file, start, end: start.checked_add(bytes)?, reader })
    }

    /// Returns the accelerator that read the range.
    pub fn reader(&self) -> u32 {
        self.reader
    }

    /// Sets the accelerator that read the range.
    pub fn set_reader(&mut self, reader: u32) {
        self.reader = reader;
    }
}

/// Size of a serialized range.
const RANGE_BYTES: usize = 24;

/// Serializes ranges for another process. The message is empty if the ranges are unknown; otherwise it is no larger than the
/// ranges in memory.
pub fn to_message(ranges: Option<&[FileRange]>) -> Vec<u8> {
    let Some(ranges) = ranges else { return Vec::new() };
    // The leading byte distinguishes an empty list from unknown ranges.
    let mut bytes = Vec::with_capacity(1 + ranges.len() * RANGE_BYTES);
    bytes.push(0);
    for range in ranges {
        bytes.extend(range.file.to_le_bytes());
        bytes.extend(range.reader.to_le_bytes());
        bytes.extend(range.start.to_le_bytes());
        bytes.extend(range.end.to_le_bytes());
    }
    bytes
}

/// Deserializes ranges; `None` if they are unknown or the message is invalid.
pub fn from_message(bytes: &[u8]) -> Option<Vec<FileRange>> {
    let (words, []) = bytes.get(1..)?.as_chunks::<8>() else { return None };
    let (ranges, []) = words.as_chunks::<3>() else { return None };
    let ranges = ranges.iter().map(|range| {
        let [file_and_reader, start, end] = range.map(u64::from_le_bytes);
        FileRange {
            file: file_and_reader as u32,
            reader: (file_and_reader >> 32) as u32,
            start,
            end,
        }
    });
    Some(ranges.collect())
}

/// Ranges that one worker read for one accelerator since the start of the epoch. Logging does not allocate.
#[derive(Debug)]
pub struct RangeLog {
    reader: u32,
    ranges: Vec<FileRange>,
    is_complete: bool,
}

impl RangeLog {
    /// An empty log for accelerator `reader`; `logs` is the number of logs of the run, which share the available memory.
    pub fn new(reader: u32, logs: u64) -> Self {
        let capacity = (RANGES_MAX * IMBALANCE_MAX) as u64 / logs.max(1);
        RangeLog { reader, ranges: Vec::with_capacity(capacity as usize), is_complete: true }
    }

    /// Logs a read of `bytes` bytes from `start`.
    #[inline]
    pub fn add(&mut self, file: u64, start: u64, bytes: u64) {
        let end = start + bytes;
        if let Some(last) = self.ranges.last_mut()
            && u64::from(last.file) == file
            && start <= last.end
            && last.start <= end
        {
            last.start = last.start.min(start);
            last.end = last.end.max(end);
        } else if self.ranges.len() < self.ranges.capacity()
            && let Ok(file) = u32::try_from(file)
        {
            self.ranges.push(FileRange { file, start, end, reader: self.reader });
        } else {
            self.is_complete = false;
        }
    }

    /// Returns the log of the epoch and starts an empty one with the same capacity.
    pub fn take(&mut self) -> RangeLog {
        let reader = self.reader;
        let ranges = Vec::with_capacity(self.ranges.capacity());
        std::mem::replace(self, RangeLog { reader, ranges, is_complete: true })
    }

    /// Joins the logs of one process. `processes` is the number of processes that share the available memory. `None` if a log is incomplete or there are
    /// too many ranges.
    pub fn join(logs: impl Iterator<Item = RangeLog>, processes: u32) -> Option<Vec<FileRange>> {
        let ranges_max = (IMBALANCE_MAX * RANGES_MAX / processes.max(1) as usize).min(RANGES_MAX);
        let mut ranges = Vec::new();
        for mut log in logs {
            ranges.append(&mut log.ranges);
            if !log.is_complete || ranges.len() > ranges_max {
                return None;
            }
        }
        Some(ranges)
    }
}

/// Ranges read since the start of the run; `None` once they are unknown.
#[derive(Debug)]
pub struct FileReads(Option<KnownReads>);

#[derive(Debug)]
struct KnownReads {
    /// Sorted and disjoint.
    ranges: Vec<FileRange>,
    words_per_file: usize,
    /// A bit set per file: the accelerators that read it.
    readers: Vec<u64>,
}

impl FileReads {
    /// Starts without ranges, for a run with `accelerators` accelerators.
    pub fn new(accelerators: u32) -> Self {
        let words_per_file = accelerators.div_ceil(64).max(1) as usize;
        FileReads(Some(KnownReads { ranges: Vec::new(), words_per_file, readers: Vec::new() }))
    }

    /// Adds the ranges of all processes in an epoch, and returns the counts since the start of the run. `None` once
    /// the counts are unknown.
    pub fn add(
        &mut self,
        processes: impl IntoIterator<Item = Option<Vec<FileRange>>>,
    ) -> Option<FilesRead> {
        let mut known = self.0.take()?;
        for ranges in processes {
            known.append(ranges?)?;
        }
        known.ranges = merge_ranges(BinaryHeap::from(into_reverse(known.ranges)))?;
        let files_read = known.files_read();
        self.0 = Some(known);
        Some(files_read)
    }
}

impl KnownReads {
    fn append(&mut self, mut ranges: Vec<FileRange>) -> Option<()> {
        for range in &ranges {
            let word = range.file as usize * self.words_per_file + range.reader as usize / 64;
            if word >= WORDS_MAX {
                return None;
            }
            if word >= self.readers.len() {
                self.readers.resize((range.file as usize + 1) * self.words_per_file, 0);
            }
            self.readers[word] |= 1 << (range.reader % 64);
        }
        self.ranges.reserve_exact(ranges.len());
        self.ranges.append(&mut ranges);
        (self.ranges.len() <= 2 * RANGES_MAX).then_some(())
    }

    fn files_read(&self) -> FilesRead {
        let total_bytes = |is_counted: fn(&FileRange) -> bool| {
            let counted = self.ranges.iter().filter(|range| is_counted(range));
            counted.map(|range| range.end - range.start).sum()
        };
        let mut files_by_ranks: BTreeMap<u64, u64> = BTreeMap::new();
        for words in self.readers.chunks(self.words_per_file) {
            let readers: u32 = words.iter().map(|word| word.count_ones()).sum();
            if readers > 0 {
                *files_by_ranks.entry(u64::from(readers)).or_default() += 1;
            }
        }
        FilesRead {
            unique_bytes: total_bytes(|_| true),
            overlap_bytes: total_bytes(|range| range.reader == SEVERAL_READERS),
            files_by_ranks: files_by_ranks.into_iter().map(FilesByRanks::from).collect(),
        }
    }
}

/// Wraps ranges in [`Reverse`], as a heap returns the largest item first.
fn into_reverse(ranges: Vec<FileRange>) -> Vec<Reverse<FileRange>> {
    ranges.into_iter().map(Reverse).collect()
}

/// Merges ranges into the smallest number of sorted, disjoint ranges that cover the same bytes. `None` if there are too many.
fn merge_ranges(mut rest: BinaryHeap<Reverse<FileRange>>) -> Option<Vec<FileRange>> {
    let mut merged: Vec<FileRange> = Vec::new();
    while let Some(Reverse(first)) = rest.pop() {
        let overlapping = rest
            .peek()
            .map(|next| next.0)
            .filter(|next| next.file == first.file && next.start < first.end);
        let Some(next) = overlapping else {
            push_or_extend(&mut merged, first)?;
            continue;
        };
        if first.start < next.start {
            push_or_extend(&mut merged, FileRange { end: next.start, ..first })?;
            rest.push(Reverse(FileRange { start: next.start, ..first }));
            continue;
        }
        // Both ranges start at the same byte. By their order, the first range ends no later than the next.
        rest.pop();
        let reader = if first.reader == next.reader { first.reader } else { SEVERAL_READERS };
        rest.push(Reverse(FileRange { reader, ..first }));
        if first.end < next.end {
            rest.push(Reverse(FileRange { start: first.end, ..next }));
        }
    }
    Some(merged)
}

/// Appends a range, or extends the last range if both are adjacent and have the same reader.
fn push_or_extend(merged: &mut Vec<FileRange>, range: FileRange) -> Option<()> {
    match merged.last_mut() {
        Some(last)
            if (last.file, last.end, last.reader) == (range.file, range.start, range.reader) =>
        {
            last.end = range.end;
        }
        _ => merged.push(range),
    }
    (merged.len() <= RANGES_MAX).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `reads` are (reader, file, start, bytes), `files_by_ranks` are (accelerators, files).
    fn check(
        reads: &[(u32, u64, u64, u64)],
        unique_bytes: u64,
        overlap_bytes: u64,
        files_by_ranks: &[(u64, u64)],
    ) {
        let files_by_ranks = files_by_ranks.iter().copied().map(FilesByRanks::from).collect();
        let expected = FilesRead { unique_bytes, overlap_bytes, files_by_ranks };
        let log = |read: &(u32, u64, u64, u64)| {
            let (reader, file, start, bytes) = *read;
            let mut log = RangeLog::new(reader, 100);
            log.add(file, start, bytes);
            log
        };
        // First all reads in one epoch, then each in a separate epoch.
        let ranges = RangeLog::join(reads.iter().map(log), 1);
        assert_eq!(FileReads::new(70).add(vec![ranges]).unwrap(), expected);
        let mut files = FileReads::new(70);
        let counts =
            reads.iter().map(|read| files.add(vec![RangeLog::join([log(read)].into_iter(), 1)]));
        assert_eq!(counts.last().flatten().unwrap(), expected);
    }

    #[test]
    fn bytes_read_several_times_count_once() {
        check(&[(0, 0, 0, 100), (0, 0, 100, 50), (0, 1, 0, 10)], 160, 0, &[(1, 2)]);
        check(&[(0, 0, 0, 100), (0, 0, 50, 100)], 150, 0, &[(1, 1)]);
        check(&[(0, 0, 0, 100), (69, 0, 50, 100)], 150, 50, &[(2, 1)]);
        check(&[(0, 0, 0, 100), (1, 0, 100, 100), (1, 3, 0, 1)], 201, 0, &[(1, 1), (2, 1)]);
        check(&[(0, 0, 10, 10), (1, 0, 0, 100), (2, 0, 5, 10), (2, 0, 90, 30)], 120, 25, &[(3, 1)]);
    }

    #[test]
    fn a_log_joins_adjacent_reads() {
        let mut log = RangeLog::new(1, 1);
        for (start, bytes) in [(100, 10), (110, 10), (90, 10), (95, 3), (0, 10)] {
            log.add(7, start, bytes);
        }
        let range = |start, end| FileRange { file: 7, start, end, reader: 1 };
        assert_eq!(log.take().ranges, [range(90, 120), range(0, 10)]);
        assert!(log.take().ranges.is_empty());
    }

    #[test]
    fn too_many_ranges_make_later_counts_unknown() {
        let mut log = RangeLog::new(0, RANGES_MAX as u64);
        (0..=IMBALANCE_MAX as u64).for_each(|file| log.add(file, 0, 1));
        let ranges = RangeLog::join([log].into_iter(), 1);
        assert_eq!(ranges, None);
        let mut files = FileReads::new(1);
        assert!(files.add(vec![Some(Vec::new())]).is_some());
        assert_eq!(files.add(vec![Some(Vec::new()), ranges]), None);
        assert_eq!(files.add(vec![Some(Vec::new())]), None);
        let beyond_limit = FileRange { file: WORDS_MAX as u32, start: 0, end: 1, reader: 0 };
        assert_eq!(FileReads::new(1).add(vec![Some(vec![beyond_limit])]), None);
        assert!(size_of::<FileRange>() * RANGES_MAX * 4 + 8 * WORDS_MAX <= 64 << 20);
    }

    #[test]
    fn a_process_sends_at_most_its_limit_of_ranges_in_a_compact_message() {
        let range = FileRange { file: 1, start: 2, end: 1 << 40, reader: SEVERAL_READERS };
        let check = |count: usize, processes: u32, is_known: bool| {
            let ranges = vec![range; count];
            let log = RangeLog { reader: 0, ranges: ranges.clone(), is_complete: true };
            let joined = RangeLog::join([log].into_iter(), processes);
            let message = to_message(joined.as_deref());
            assert!(message.len() <= 1 + count * size_of::<FileRange>());
            assert_eq!(from_message(&message), is_known.then_some(ranges));
        };
        check(0, 2, true);
        check(3, 2, true);
        check(RANGES_MAX, 2, true);
        check(RANGES_MAX, 4, false);
        check(RANGES_MAX / 2, 4, true);
        assert_eq!(from_message(&[0; 30]), None);
    }

    proptest! {
        #[test]
        fn counts_equal_a_map_of_single_bytes(
            reads in prop::collection::vec((0u32..3, 0u32..2, 0u64..40, 1u64..12), 0..40),
        ) {
            let mut bytes: BTreeMap<(u32, u64), u32> = BTreeMap::new();
            let mut ranges = Vec::new();
            for &(reader, file, start, len) in &reads {
                ranges.push(FileRange { file, start, end: start + len, reader });
                for offset in start..start + len {
                    *bytes.entry((file, offset)).or_default() |= 1 << reader;
                }
            }
            let mut files = FileReads::new(3);
            let (early, late) = ranges.split_at(ranges.len() / 2);
            files.add(vec![Some(early.to_vec())]);
            let found = files.add(vec![Some(late.to_vec())]).unwrap();
            prop_assert_eq!(found.unique_bytes, bytes.len() as u64);
            let several = bytes.values().filter(|readers| readers.count_ones() > 1).count();
            prop_assert_eq!(found.overlap_bytes, several as u64);
        }
    }
}
