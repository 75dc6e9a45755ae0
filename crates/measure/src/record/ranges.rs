//! The bytes of files that accelerators read, each counted once over the run, and by how many. Workers log what they read into
//! memory that they have; between epochs logs are put together. What would take more memory than there is for it is unknown.

use super::access::{FilesByRanks, FilesRead};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// More ranges are not kept, of all processes together: 13 MiB, of which there are at most four at a time. On rank 0 these are its
/// own and those that others sent, those of earlier epochs, and those that are put to them.
pub const RANGES_MAX: usize = 560_000;
/// Some workers, and processes, may log so much more than others.
const UNEVEN: usize = 2;
/// More words of 64 accelerators of a file are not kept: 8 MiB.
const WORDS_MAX: usize = 1 << 20;
/// In place of a reader.
const SEVERAL: u32 = u32::MAX;

/// Bytes of a file that one accelerator, or several of them, read. In the order of files and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileRange {
    file: u32,
    start: u64,
    end: u64,
    reader: u32,
}

impl FileRange {
    /// `bytes` of `file` from `start` on, which `reader` read; `None` where they end beyond 2^64.
    pub fn new(file: u32, start: u64, bytes: u64, reader: u32) -> Option<Self> {
        Some(FileRange { file, start, end: start.checked_add(bytes)?, reader })
    }
}

/// Length of a range in a message.
const RANGE_BYTES: usize = 24;

/// Ranges as a message to another process, which takes no more memory than they do; nothing where they are unknown.
pub fn to_message(ranges: Option<&[FileRange]>) -> Vec<u8> {
    let Some(ranges) = ranges else { return Vec::new() };
    // A message of none is not that of unknown ones.
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

/// The ranges of a message.
pub fn from_message(bytes: &[u8]) -> Option<Vec<FileRange>> {
    let (words, []) = bytes.get(1..)?.as_chunks::<8>() else { return None };
    let (ranges, []) = words.as_chunks::<3>() else { return None };
    let ranges = ranges.iter().map(|range| {
        let [both, start, end] = range.map(u64::from_le_bytes);
        FileRange { file: both as u32, reader: (both >> 32) as u32, start, end }
    });
    Some(ranges.collect())
}

/// Ranges that one worker read for one accelerator since the epoch began. Logging does not allocate.
#[derive(Debug)]
pub struct RangeLog {
    reader: u32,
    ranges: Vec<FileRange>,
    is_whole: bool,
}

impl RangeLog {
    /// A log of accelerator `reader`, one of `logs` logs of the run.
    pub fn new(reader: u32, logs: u64) -> Self {
        let most = (RANGES_MAX * UNEVEN) as u64 / logs.max(1);
        RangeLog { reader, ranges: Vec::with_capacity(most as usize), is_whole: true }
    }

    /// `bytes` of a file were read.
    #[inline]
    pub fn add(&mut self, file: u64, start: u64, bytes: u64) {
        let end = start + bytes;
        if let Some(last) = self.ranges.last_mut()
            && u64::from(last.file) == file
            && start <= last.end
            && last.start <= end
        {
            (last.start, last.end) = (last.start.min(start), last.end.max(end));
        } else if self.ranges.len() < self.ranges.capacity()
            && let Ok(file) = u32::try_from(file)
        {
            self.ranges.push(FileRange { file, start, end, reader: self.reader });
        } else {
            self.is_whole = false;
        }
    }

    /// Hand over what was logged, and begin anew.
    pub fn take(&mut self) -> RangeLog {
        let (reader, ranges) = (self.reader, Vec::with_capacity(self.ranges.capacity()));
        std::mem::replace(self, RangeLog { reader, ranges, is_whole: true })
    }

    /// All of one of so many processes; `None` where one is not whole, or they are too many.
    pub fn joined(logs: impl Iterator<Item = RangeLog>, processes: u32) -> Option<Vec<FileRange>> {
        let most = (UNEVEN * RANGES_MAX / processes.max(1) as usize).min(RANGES_MAX);
        let mut all = Vec::new();
        for mut log in logs {
            all.append(&mut log.ranges);
            if !log.is_whole || all.len() > most {
                return None;
            }
        }
        Some(all)
    }
}

/// Ranges that have been read since the run began; `None` once that is unknown.
#[derive(Debug)]
pub struct FileReads(Option<KnownReads>);

#[derive(Debug)]
struct KnownReads {
    /// In order; no byte is in two.
    ranges: Vec<FileRange>,
    words_each: usize,
    /// A bit for each accelerator that read of a file.
    readers: Vec<u64>,
}

impl FileReads {
    /// Nothing yet, by none of `accelerators`.
    pub fn new(accelerators: u32) -> Self {
        let words_each = accelerators.div_ceil(64).max(1) as usize;
        FileReads(Some(KnownReads { ranges: Vec::new(), words_each, readers: Vec::new() }))
    }

    /// An epoch's ranges of all processes come to what was there.
    pub fn add(
        &mut self,
        processes: impl IntoIterator<Item = Option<Vec<FileRange>>>,
    ) -> Option<FilesRead> {
        let mut known = self.0.take()?;
        for ranges in processes {
            known.append(ranges?)?;
        }
        known.ranges = merged(BinaryHeap::from(into_reverse(known.ranges)))?;
        let files_read = known.sum_up();
        self.0 = Some(known);
        Some(files_read)
    }
}

impl KnownReads {
    fn append(&mut self, mut ranges: Vec<FileRange>) -> Option<()> {
        for range in &ranges {
            let at = range.file as usize * self.words_each + range.reader as usize / 64;
            if at >= WORDS_MAX {
                return None;
            }
            if at >= self.readers.len() {
                self.readers.resize((range.file as usize + 1) * self.words_each, 0);
            }
            self.readers[at] |= 1 << (range.reader % 64);
        }
        self.ranges.reserve_exact(ranges.len());
        self.ranges.append(&mut ranges);
        (self.ranges.len() <= 2 * RANGES_MAX).then_some(())
    }

    fn sum_up(&self) -> FilesRead {
        let bytes = |several: bool| {
            let ranges = self.ranges.iter().filter(|range| !several || range.reader == SEVERAL);
            ranges.map(|range| range.end - range.start).sum()
        };
        let mut files_by_ranks = BTreeMap::new();
        for words in self.readers.chunks(self.words_each) {
            let ranks: u32 = words.iter().map(|word| word.count_ones()).sum();
            if ranks > 0 {
                *files_by_ranks.entry(u64::from(ranks)).or_default() += 1;
            }
        }
        let files_by_ranks = files_by_ranks.into_iter();
        let files_by_ranks = files_by_ranks.map(FilesByRanks::from).collect();
        FilesRead { unique_bytes: bytes(false), overlap_bytes: bytes(true), files_by_ranks }
    }
}

/// The order of the heap is upside down.
fn into_reverse(ranges: Vec<FileRange>) -> Vec<Reverse<FileRange>> {
    ranges.into_iter().map(Reverse).collect()
}

/// The same bytes in as few ranges as there can be, none in two of them.
fn merged(mut rest: BinaryHeap<Reverse<FileRange>>) -> Option<Vec<FileRange>> {
    let mut whole: Vec<FileRange> = Vec::new();
    while let Some(Reverse(first)) = rest.pop() {
        let next = rest.peek().map(|next| next.0);
        let next = next.filter(|next| next.file == first.file && next.start < first.end);
        let Some(next) = next else {
            push(&mut whole, first)?;
            continue;
        };
        if first.start < next.start {
            push(&mut whole, FileRange { end: next.start, ..first })?;
            rest.push(Reverse(FileRange { start: next.start, ..first }));
            continue;
        }
        // Both begin here, and the first does not end after the next.
        rest.pop();
        let reader = if first.reader == next.reader { first.reader } else { SEVERAL };
        rest.push(Reverse(FileRange { reader, ..first }));
        if first.end < next.end {
            rest.push(Reverse(FileRange { start: first.end, ..next }));
        }
    }
    Some(whole)
}

fn push(whole: &mut Vec<FileRange>, range: FileRange) -> Option<()> {
    match whole.last_mut() {
        Some(last)
            if (last.file, last.end, last.reader) == (range.file, range.start, range.reader) =>
        {
            last.end = range.end;
        }
        _ => whole.push(range),
    }
    (whole.len() <= RANGES_MAX).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// (reader, file, start, bytes) of reads, and what they come to.
    fn check(
        reads: &[(u32, u64, u64, u64)],
        unique_bytes: u64,
        overlap_bytes: u64,
        by: &[(u64, u64)],
    ) {
        let files_by_ranks = by.iter().copied().map(FilesByRanks::from).collect();
        let expected = FilesRead { unique_bytes, overlap_bytes, files_by_ranks };
        let log = |read: &(u32, u64, u64, u64)| {
            let (reader, file, start, bytes) = *read;
            let mut log = RangeLog::new(reader, 100);
            log.add(file, start, bytes);
            log
        };
        // In one epoch, and each read in an epoch of its own.
        let ranges = RangeLog::joined(reads.iter().map(log), 1);
        assert_eq!(FileReads::new(70).add(vec![ranges]).unwrap(), expected);
        let mut files = FileReads::new(70);
        let last =
            reads.iter().map(|read| files.add(vec![RangeLog::joined([log(read)].into_iter(), 1)]));
        assert_eq!(last.last().flatten().unwrap(), expected);
    }

    #[test]
    fn bytes_count_once() {
        check(&[(0, 0, 0, 100), (0, 0, 100, 50), (0, 1, 0, 10)], 160, 0, &[(1, 2)]);
        check(&[(0, 0, 0, 100), (0, 0, 50, 100)], 150, 0, &[(1, 1)]);
        check(&[(0, 0, 0, 100), (69, 0, 50, 100)], 150, 50, &[(2, 1)]);
        check(&[(0, 0, 0, 100), (1, 0, 100, 100), (1, 3, 0, 1)], 201, 0, &[(1, 1), (2, 1)]);
        check(&[(0, 0, 10, 10), (1, 0, 0, 100), (2, 0, 5, 10), (2, 0, 90, 30)], 120, 25, &[(3, 1)]);
    }

    #[test]
    fn a_log_joins_what_follows() {
        let mut log = RangeLog::new(1, 1);
        for (start, bytes) in [(100, 10), (110, 10), (90, 10), (95, 3), (0, 10)] {
            log.add(7, start, bytes);
        }
        let range = |start, end| FileRange { file: 7, start, end, reader: 1 };
        assert_eq!(log.take().ranges, [range(90, 120), range(0, 10)]);
        assert!(log.take().ranges.is_empty());
    }

    #[test]
    fn too_much_is_unknown_from_then_on() {
        let mut log = RangeLog::new(0, RANGES_MAX as u64);
        (0..=UNEVEN as u64).for_each(|file| log.add(file, 0, 1));
        let ranges = RangeLog::joined([log].into_iter(), 1);
        assert_eq!(ranges, None);
        let mut files = FileReads::new(1);
        assert!(files.add(vec![Some(Vec::new())]).is_some());
        assert_eq!(files.add(vec![Some(Vec::new()), ranges]), None);
        assert_eq!(files.add(vec![Some(Vec::new())]), None);
        let far = FileRange { file: WORDS_MAX as u32, start: 0, end: 1, reader: 0 };
        assert_eq!(FileReads::new(1).add(vec![Some(vec![far])]), None);
        assert!(size_of::<FileRange>() * RANGES_MAX * 4 + 8 * WORDS_MAX <= 64 << 20);
    }

    #[test]
    fn processes_send_no_more_than_their_share_in_as_few_bytes_as_they_have() {
        let range = FileRange { file: 1, start: 2, end: 1 << 40, reader: SEVERAL };
        let check = |count: usize, processes: u32, is_known: bool| {
            let ranges = vec![range; count];
            let log = RangeLog { reader: 0, ranges: ranges.clone(), is_whole: true };
            let own = RangeLog::joined([log].into_iter(), processes);
            let message = to_message(own.as_deref());
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
        fn it_is_what_a_map_of_bytes_says(
            reads in prop::collection::vec((0u32..3, 0u32..2, 0u64..40, 1u64..12), 0..40),
        ) {
            let mut bytes: BTreeMap<(u32, u64), u32> = BTreeMap::new();
            let mut ranges = Vec::new();
            for &(reader, file, start, len) in &reads {
                ranges.push(FileRange { file, start, end: start + len, reader });
                for at in start..start + len {
                    *bytes.entry((file, at)).or_default() |= 1 << reader;
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
