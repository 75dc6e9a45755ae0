//! Reads of one thread or process of a log, call by call. Batches are detected from the gaps between reads.

use super::file_use::{FileUse, Opening};
use super::natural_order::natural_order;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

/// Upper limit of a rank's summed call time, about thirteen days. Longer sums saturate.
const NS_MAX: u64 = 1 << 50;

/// Adds a duration to a sum, which saturates at [`NS_MAX`].
pub(super) fn add_ns(sum: &mut u64, ns: u64) {
    *sum = sum.saturating_add(ns).min(NS_MAX);
}

/// A read call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) bytes: u64,
    pub(super) file: u32,
    /// Whether this is the first read after a file was opened.
    pub(super) is_new_file: bool,
    /// Time in opens and other calls on files since the reader's previous read.
    pub(super) metadata_ns: u64,
    /// Whether the reader received a message, such as the next batch's indices, since its previous read.
    pub(super) follows_message: bool,
}

/// Times of a reader's calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CallTimes {
    /// Start of the first call and end of the last.
    pub(super) span_ns: Option<(u64, u64)>,
    pub(super) read_ns: u64,
    /// Time in opens and other calls on files.
    pub(super) metadata_ns: u64,
    pub(super) calls: u64,
    /// Number of calls of unknown duration.
    pub(super) untimed: u64,
    /// Time for which the reader was blocked in calls that wait for other processes, between its first and last call.
    pub(super) blocked_ns: u64,
}

impl CallTimes {
    pub(super) fn add(&mut self, other: &CallTimes) {
        self.read_ns = self.read_ns.saturating_add(other.read_ns);
        self.metadata_ns = self.metadata_ns.saturating_add(other.metadata_ns);
        self.calls += other.calls;
        self.untimed += other.untimed;
        self.blocked_ns = self.blocked_ns.saturating_add(other.blocked_ns);
        other.span_ns.into_iter().for_each(|(start_ns, end_ns)| self.extend_span(start_ns, end_ns));
    }

    fn extend_span(&mut self, start_ns: u64, end_ns: u64) {
        let (first, last) = self.span_ns.unwrap_or((start_ns, end_ns));
        self.span_ns = Some((first.min(start_ns), last.max(end_ns)));
    }
}

/// Pauses of a thread so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pauses {
    /// Number of messages received from other processes.
    pub(super) messages: u64,
    /// Time in calls that wait for other processes.
    pub(super) blocked_ns: u64,
}

/// Reads of one thread or process.
#[derive(Debug, Default)]
pub(super) struct ReaderLog {
    pub(super) ops: Vec<Op>,
    pub(super) times: CallTimes,
    /// Time in other calls than reads since the last read.
    metadata_ns: u64,
    /// Pauses of the thread before its last call.
    pauses: Pauses,
    follows_message: bool,
    last_name: String,
    has_opened: bool,
    /// The use of the file that the reader opened last.
    pub(super) file_use: FileUse,
    /// Number of files whose name sorts after the name of the previously opened file.
    pub(super) ascending: u64,
    /// Number of files whose name sorts before the name of the previously opened file.
    pub(super) descending: u64,
}

/// Properties of bursts, the groups of reads between long gaps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bursts {
    /// Most common number of files opened, or of reads if no files are opened, per burst.
    pub(super) count: u64,
    pub(super) bytes: u64,
    /// Whether `count` is a number of files.
    pub(super) counts_files: bool,
    /// Most common number of different files read per burst.
    pub(super) files: u64,
    /// Median of the long gaps; if each file is a burst, the mean time between reads per file.
    pub(super) gap_ns: u64,
    /// Median of the other gaps (before the first read of a file, if files are counted).
    pub(super) short_gap_ns: u64,
    /// Median time from the start of a burst to the start of the next.
    pub(super) period_ns: u64,
    /// Time in long gaps, without the part that other gaps have too.
    pub(super) paused_ns: u64,
}

/// Minimum number of bursts.
const BURSTS_MIN: usize = 5;
/// Minimum ratio of a long gap to the next shorter one.
const LONG_RATIO: f64 = 1.5;
/// Maximum number of thresholds for long gaps that are tried.
const THRESHOLDS_MAX: usize = 16;
/// Maximum relative deviation of regular bursts from the median period.
const REGULAR_TOLERANCE: f64 = 0.3;

/// Files that are opened in a stream are fewer than its batches, by more than the inverse of this number.
const STREAM_OPENS_DIVISOR: usize = 5;
/// Inverse of the maximum number of long gaps within files, relative to the gaps that separate batches of files.
const LONG_WITHIN_FILES_DIVISOR: usize = 5;

/// A criterion for groups of reads to be batches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BatchRule {
    /// All groups have the same number of files or reads.
    EqualCounts,
    /// Groups start at regular times. This holds for streams, whose buffers do not end where batches do.
    RegularStarts,
}

/// A group of reads between two long gaps.
#[derive(Default)]
struct Group {
    start_ns: u64,
    count: u64,
    bytes: u64,
    files: HashSet<u32>,
}

impl ReaderLog {
    /// Counts an open of a file whose length is `length_bytes`, as far as it is known.
    pub(super) fn open(&mut self, file: u32, name: &str, length_bytes: u64) -> Opening {
        let opening = self.file_use.open(file, length_bytes);
        if opening == Opening::First {
            self.count_open(name);
        }
        opening
    }

    fn count_open(&mut self, name: &str) {
        match natural_order(name, &self.last_name) {
            _ if self.last_name.is_empty() => {}
            Ordering::Greater => self.ascending += 1,
            Ordering::Less => self.descending += 1,
            Ordering::Equal => {}
        }
        self.last_name.clear();
        self.last_name.push_str(name);
        self.has_opened = true;
    }

    /// Counts a read. Its call must have been counted before.
    pub(super) fn push(&mut self, op: Op) {
        let is_new_file = std::mem::take(&mut self.has_opened);
        let metadata_ns = std::mem::take(&mut self.metadata_ns);
        let follows_message = std::mem::take(&mut self.follows_message);
        self.ops.push(Op { is_new_file, metadata_ns, follows_message, ..op });
    }

    /// Counts the time of a call; `ns` is its duration. `pauses` are those of the thread so far.
    pub(super) fn count_call(
        &mut self,
        start_ns: u64,
        ns: Option<u64>,
        is_read: bool,
        pauses: Pauses,
    ) {
        if self.times.span_ns.is_some() {
            let blocked_ns = pauses.blocked_ns.saturating_sub(self.pauses.blocked_ns);
            add_ns(&mut self.times.blocked_ns, blocked_ns);
        }
        self.follows_message |= self.pauses.messages < pauses.messages;
        self.pauses = pauses;
        self.times.calls += 1;
        self.times.untimed += u64::from(ns.is_none());
        let ns = ns.unwrap_or(0);
        self.times.extend_span(start_ns, start_ns.saturating_add(ns));
        if is_read {
            add_ns(&mut self.times.read_ns, ns);
        } else {
            add_ns(&mut self.times.metadata_ns, ns);
            add_ns(&mut self.metadata_ns, ns);
        }
    }

    /// Sorts reads that were reported file by file by their start times.
    pub(super) fn sort(&mut self) {
        self.ops.sort_by_key(|op| op.start_ns);
        let mut last = None;
        for op in &mut self.ops {
            op.is_new_file = last != Some(op.file);
            last = Some(op.file);
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.ops.iter().map(|op| op.bytes).sum()
    }

    /// Returns the start of the first read and the end of the last.
    pub(super) fn span_ns(&self) -> Option<(u64, u64)> {
        let start_ns = self.ops.iter().map(|op| op.start_ns).min()?;
        Some((start_ns, self.ops.iter().map(|op| op.end_ns).max()?))
    }

    /// Divides the reads into batches: where the reader received messages, else at the longest gaps that fit a rule. If no gaps separate
    /// batches, each file is a burst.
    pub(super) fn bursts(&self) -> Option<Bursts> {
        let gaps = self.gaps_ns();
        let opens = self.ops.iter().filter(|op| op.is_new_file).count();
        let counts_files = opens * 2 > self.ops.len().min(2 * BURSTS_MIN);
        let starts_where = |is_start: fn(&Op) -> bool| {
            let starts: Vec<bool> = self.ops.iter().skip(1).map(is_start).collect();
            let count = starts.iter().filter(|is_start| **is_start).count();
            (BURSTS_MIN <= count).then_some(starts)
        };
        let at_messages = starts_where(|op| op.follows_message)
            .and_then(|starts| self.split(&gaps, &starts, BatchRule::EqualCounts, counts_files));
        let at_files = || {
            let starts = starts_where(|op| op.is_new_file).filter(|_| counts_files)?;
            self.split(&gaps, &starts, BatchRule::EqualCounts, true)
        };
        at_messages
            .filter(|bursts| 1 < bursts.count)
            .or_else(|| self.split_at_long_gaps(&gaps, BatchRule::EqualCounts, counts_files))
            .or_else(|| self.split_at_long_gaps(&gaps, BatchRule::RegularStarts, false))
            .or_else(at_files)
    }

    /// Returns the time between consecutive reads outside of calls on files.
    fn gaps_ns(&self) -> Vec<u64> {
        let pairs = self.ops.windows(2);
        pairs
            .map(|pair| {
                let between_ns = pair[1].start_ns.saturating_sub(pair[0].end_ns);
                between_ns.saturating_sub(pair[1].metadata_ns)
            })
            .collect()
    }

    /// Finds the highest threshold for long gaps that divides the reads into batches. Batches of files begin with a new file; few gaps within files
    /// may be as long.
    fn split_at_long_gaps(
        &self,
        gaps: &[u64],
        rule: BatchRule,
        counts_files: bool,
    ) -> Option<Bursts> {
        let may_start: Vec<bool> =
            self.ops.iter().skip(1).map(|op| op.is_new_file || !counts_files).collect();
        let candidates = gaps.iter().zip(&may_start).filter(|(_, may_start)| **may_start);
        let mut sorted: Vec<u64> = candidates.map(|(gap, _)| *gap).collect();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let ratio = |rank: usize| sorted[rank - 1] as f64 / sorted[rank].max(1) as f64;
        let mut thresholds: Vec<usize> =
            (BURSTS_MIN..sorted.len()).filter(|&rank| ratio(rank) >= LONG_RATIO).collect();
        thresholds.sort_by(|&a, &b| ratio(b).total_cmp(&ratio(a)));
        thresholds.truncate(THRESHOLDS_MAX);
        thresholds.sort_unstable();
        thresholds.iter().find_map(|&rank| {
            let is_long = |gap: usize| gaps[gap] >= sorted[rank - 1];
            let within_files = (0..gaps.len()).filter(|&gap| is_long(gap) && !may_start[gap]);
            if within_files.count() * LONG_WITHIN_FILES_DIVISOR > rank {
                return None;
            }
            let starts: Vec<bool> =
                (0..gaps.len()).map(|gap| is_long(gap) && may_start[gap]).collect();
            let bursts = self.split(gaps, &starts, rule, counts_files)?;
            (!counts_files || 1 < bursts.count).then_some(bursts)
        })
    }

    /// Divides the reads where `starts` is true for the gap before them. `None` if the groups violate `rule`.
    fn split(
        &self,
        gaps: &[u64],
        starts: &[bool],
        rule: BatchRule,
        counts_files: bool,
    ) -> Option<Bursts> {
        let mut groups: Vec<Group> = Vec::new();
        for (index, op) in self.ops.iter().enumerate() {
            if index == 0 || starts[index - 1] {
                groups.push(Group { start_ns: op.start_ns, ..Group::default() });
            }
            let group = groups.last_mut()?;
            group.count += u64::from(op.is_new_file || !counts_files);
            group.bytes += op.bytes;
            group.files.insert(op.file);
        }
        let count = most_common(groups.iter().map(|group| group.count))?;
        let periods: Vec<u64> = groups
            .windows(2)
            .map(|pair| pair[1].start_ns.saturating_sub(pair[0].start_ns))
            .collect();
        let period_ns = median(periods.clone())?;
        let mut bytes = median(groups.iter().map(|group| group.bytes).collect())?;
        let is_regular =
            |&ns: &u64| ns.abs_diff(period_ns) as f64 <= REGULAR_TOLERANCE * period_ns as f64;
        let opens = self.ops.iter().filter(|op| op.is_new_file).count();
        let are_batches = match rule {
            BatchRule::EqualCounts => {
                count > 0 && holds_for_most(&groups, |group| group.count == count)
            }
            BatchRule::RegularStarts => {
                // Groups of about one file each are no batches of a stream.
                opens * STREAM_OPENS_DIVISOR < groups.len() * (STREAM_OPENS_DIVISOR - 1)
                    && holds_for_most(&periods, is_regular)
            }
        };
        if !are_batches {
            return None;
        }
        if rule == BatchRule::RegularStarts {
            // Leaves out the reads ahead at the start of an epoch and the remainder at its end.
            let mut typical: Vec<u64> = groups.iter().map(|group| group.bytes).collect();
            typical.retain(|size| size / 3 <= bytes && bytes / 3 <= *size);
            bytes = typical.iter().sum::<u64>() / typical.len() as u64;
        }
        let gaps_where = |is_start: bool| {
            let selected = (0..gaps.len()).filter(move |&gap| starts[gap] == is_start);
            selected.map(|gap| (gap, gaps[gap]))
        };
        let short = gaps_where(false)
            .filter(|(gap, _)| self.ops[gap + 1].is_new_file || !counts_files)
            .map(|(_, ns)| ns);
        let short_gap_ns = median(short.collect()).unwrap_or(0);
        let long: Vec<u64> = gaps_where(true).map(|(_, ns)| ns).collect();
        let gap_ns = if counts_files && count < 2 {
            // Decoding counts as compute, also between the reads of a file.
            gaps.iter().copied().fold(0, u64::saturating_add).checked_div(long.len() as u64)?
        } else {
            median(long.clone())?
        };
        Some(Bursts {
            count,
            bytes,
            counts_files,
            files: most_common(groups.iter().map(|group| group.files.len() as u64))?,
            paused_ns: long
                .iter()
                .map(|ns| ns.saturating_sub(short_gap_ns))
                .fold(0, u64::saturating_add),
            gap_ns,
            short_gap_ns,
            period_ns,
        })
    }
}

/// Returns whether a predicate holds for at least four of five values.
fn holds_for_most<T>(values: &[T], predicate: impl Fn(&T) -> bool) -> bool {
    values.iter().filter(|value| predicate(value)).count() * 5 >= values.len() * 4
}

impl Bursts {
    /// Returns whether another reader has bursts of a similar size.
    pub(super) fn is_similar(&self, other: &Bursts) -> bool {
        let has_similar_bytes = self.bytes.abs_diff(other.bytes) <= other.bytes / 10;
        self.counts_files == other.counts_files
            && if self.counts_files { self.count == other.count } else { has_similar_bytes }
    }
}

/// Merges the reads of threads that take turns reading the same open files. `None` if threads mostly read files that they opened themselves.
pub(super) fn merge_turns<'a>(
    logs: impl Iterator<Item = &'a ReaderLog> + Clone,
) -> Option<ReaderLog> {
    let threads = logs.clone().enumerate();
    let ops = threads.flat_map(|(thread, log)| log.ops.iter().map(move |op| (thread, *op)));
    let mut by_time: Vec<(usize, Op)> = ops.collect();
    by_time.sort_by_key(|(_, op)| op.start_ns);
    let mut last_threads = HashMap::new();
    // Workers that each opened a shared file read it independently.
    let mut own_files = HashSet::new();
    let mut opens = 0;
    let mut handovers = 0;
    for (thread, op) in &by_time {
        if op.is_new_file {
            own_files.insert((*thread, op.file));
        }
        let last_thread = last_threads.insert(op.file, *thread);
        let is_handover = last_thread.is_some_and(|last| last != *thread)
            && !own_files.contains(&(*thread, op.file));
        opens += u64::from(op.is_new_file || last_thread.is_none());
        handovers += u64::from(is_handover);
    }
    (handovers > opens).then(|| ReaderLog {
        ops: by_time.into_iter().map(|(_, op)| op).collect(),
        ascending: logs.clone().map(|log| log.ascending).sum(),
        descending: logs.map(|log| log.descending).sum(),
        ..ReaderLog::default()
    })
}

/// Returns the median; for an even number of values, the lower of the two middle values.
pub(super) fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}

fn most_common(values: impl Iterator<Item = u64>) -> Option<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    let groups = values.chunk_by(|a, b| a == b);
    groups.max_by_key(|group| group.len()).and_then(|group| group.first().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates batches of 4 files with two reads each: 10 µs between reads of a file, 1 ms between files, and `compute_ms` after a batch.
    fn batch_log(batches: u64, compute_ms: u64) -> ReaderLog {
        let mut log = ReaderLog::default();
        let mut now = 0;
        for batch in 0..batches {
            for file in 0..4 {
                log.open((batch * 4 + file) as u32, &format!("img_{}", batch * 4 + file), 0);
                for _ in 0..2 {
                    let op = Op {
                        start_ns: now,
                        end_ns: now + 50_000,
                        bytes: 100,
                        file: (batch * 4 + file) as u32,
                        is_new_file: false,
                        metadata_ns: 0,
                        follows_message: false,
                    };
                    log.push(op);
                    now += 60_000;
                }
                now += 990_000;
            }
            now += compute_ms * 1_000_000;
        }
        log
    }

    #[test]
    fn batches_end_where_gaps_are_long() {
        let bursts = batch_log(20, 30).bursts().unwrap();
        assert_eq!((bursts.count, bursts.bytes), (4, 800));
        assert_eq!((bursts.gap_ns, bursts.short_gap_ns), (31_000_000, 1_000_000));
        assert_eq!(bursts.period_ns, 34_440_000);
        let count = |log: ReaderLog| log.bursts().map(|bursts| bursts.count);
        assert_eq!(
            count(batch_log(3, 30)),
            Some(1),
            "three batches are too few, twelve files are enough"
        );
        assert_eq!(count(batch_log(20, 0)), Some(1), "each file is a burst");
        assert_eq!((batch_log(20, 0).ascending, batch_log(20, 0).descending), (79, 0));
        assert_eq!(ReaderLog::default().bursts(), None);
    }
}
