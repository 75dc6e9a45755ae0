//! One thread or process of a log that read, call by call: how many read at a time, and where batches end.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

/// A read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) bytes: u64,
    pub(super) file: u32,
    /// It is the first since a file was opened.
    pub(super) is_new_file: bool,
}

/// Reads of one thread or process.
#[derive(Debug, Default)]
pub(super) struct ReaderLog {
    pub(super) ops: Vec<Op>,
    last_name: String,
    has_opened: bool,
    /// Files opened after one whose name comes before theirs, and after another.
    pub(super) ascending: u64,
    pub(super) descending: u64,
}

/// Parts into which long gaps cut the reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bursts {
    /// Files that are opened, or where none are, reads that are made, between two long gaps.
    pub(super) each: u64,
    pub(super) bytes_each: u64,
    /// Whether files are what is counted.
    pub(super) counts_files: bool,
    /// Different files that are read, most often.
    pub(super) files: u64,
    /// The long gaps, in the median.
    pub(super) gap_ns: u64,
    /// Gaps before a file's first read that are not long.
    pub(super) short_gap_ns: u64,
    /// From the start of one to the start of the next, in the median.
    pub(super) period_ns: u64,
}

/// Fewer bursts tell nothing.
const BURSTS_MIN: usize = 5;
/// A gap is long that is so many times as long as those that are not.
const LONG: f64 = 1.5;
/// Places where long gaps may begin that are tried.
const CUTS: usize = 16;
/// Parts begin regularly where the time between two of them is within this share of its median.
const REGULAR: f64 = 0.3;

/// Reasons to take the parts between long gaps for batches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PartRule {
    /// Each has as many files, or reads.
    Alike,
    /// They begin regularly, as those of a stream, whose buffers do not end where batches do.
    Regular,
}

/// Reads between two long gaps.
#[derive(Default)]
struct Part {
    start_ns: u64,
    count: u64,
    bytes: u64,
    files: HashSet<u32>,
}

impl ReaderLog {
    pub(super) fn opened(&mut self, name: &str) {
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

    pub(super) fn push(&mut self, op: Op) {
        let is_new_file = std::mem::take(&mut self.has_opened);
        self.ops.push(Op { is_new_file, ..op });
    }

    /// Put reads that came file by file in the order of their times.
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

    /// From its first read to the end of its last.
    pub(super) fn span_ns(&self) -> Option<(u64, u64)> {
        let start_ns = self.ops.iter().map(|op| op.start_ns).min()?;
        Some((start_ns, self.ops.iter().map(|op| op.end_ns).max()?))
    }

    /// The longest gaps by which the reads fall into parts that are alike.
    pub(super) fn bursts(&self) -> Option<Bursts> {
        let pairs = self.ops.windows(2);
        let gaps: Vec<u64> =
            pairs.map(|pair| pair[1].start_ns.saturating_sub(pair[0].end_ns)).collect();
        let mut sorted = gaps.clone();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let ratio = |at: usize| sorted[at - 1] as f64 / sorted[at].max(1) as f64;
        let mut cuts: Vec<usize> =
            (BURSTS_MIN..sorted.len()).filter(|&at| ratio(at) >= LONG).collect();
        cuts.sort_by(|&a, &b| ratio(b).total_cmp(&ratio(a)));
        cuts.truncate(CUTS);
        cuts.sort_unstable();
        [PartRule::Alike, PartRule::Regular]
            .into_iter()
            .find_map(|rule| cuts.iter().find_map(|&at| self.cut(&gaps, sorted[at - 1], rule)))
    }

    /// Parts between gaps of `long_ns` and more.
    fn cut(&self, gaps: &[u64], long_ns: u64, rule: PartRule) -> Option<Bursts> {
        let opens = self.ops.iter().filter(|op| op.is_new_file).count();
        let counts_files =
            rule == PartRule::Alike && opens * 2 > self.ops.len().min(2 * BURSTS_MIN);
        let mut parts: Vec<Part> = Vec::new();
        for (at, op) in self.ops.iter().enumerate() {
            if at == 0 || gaps[at - 1] >= long_ns {
                parts.push(Part { start_ns: op.start_ns, ..Part::default() });
            }
            let part = parts.last_mut()?;
            part.count += u64::from(op.is_new_file || !counts_files);
            part.bytes += op.bytes;
            part.files.insert(op.file);
        }
        let each = most_common(parts.iter().map(|part| part.count))?;
        let periods: Vec<u64> =
            parts.windows(2).map(|two| two[1].start_ns.saturating_sub(two[0].start_ns)).collect();
        let period_ns = median(periods.clone())?;
        let mut bytes_each = median(parts.iter().map(|part| part.bytes).collect())?;
        let are_so = match rule {
            PartRule::Alike => each > 0 && are_most(&parts, |part| part.count == each),
            PartRule::Regular => {
                opens < parts.len()
                    && are_most(&periods, |&ns| {
                        ns.abs_diff(period_ns) as f64 <= REGULAR * period_ns as f64
                    })
            }
        };
        if !are_so {
            return None;
        }
        if rule == PartRule::Regular {
            // But for what is read ahead as an epoch begins, and its rest.
            let mut own: Vec<u64> = parts.iter().map(|part| part.bytes).collect();
            own.retain(|own| own / 3 <= bytes_each && bytes_each / 3 <= *own);
            bytes_each = own.iter().sum::<u64>() / own.len() as u64;
        }
        let short = (0..gaps.len())
            .filter(|&at| gaps[at] < long_ns)
            .filter(|at| self.ops[at + 1].is_new_file || !counts_files);
        Some(Bursts {
            each,
            bytes_each,
            counts_files,
            files: most_common(parts.iter().map(|part| part.files.len() as u64))?,
            gap_ns: median(gaps.iter().copied().filter(|&gap| gap >= long_ns).collect())?,
            short_gap_ns: median(short.map(|at| gaps[at]).collect()).unwrap_or(0),
            period_ns,
        })
    }
}

/// Whether four of five are so.
fn are_most<T>(all: &[T], is_so: impl Fn(&T) -> bool) -> bool {
    all.iter().filter(|one| is_so(one)).count() * 5 >= all.len() * 4
}

impl Bursts {
    /// Whether another reader does the same.
    pub(super) fn is_like(&self, other: &Bursts) -> bool {
        let is_near = self.bytes_each.abs_diff(other.bytes_each) <= other.bytes_each / 10;
        self.counts_files == other.counts_files
            && if self.counts_files { self.each == other.each } else { is_near }
    }
}

/// The reads of threads that take turns at the same open files, as those of one; `None` where each has files of its own.
pub(super) fn in_turns<'a>(logs: impl Iterator<Item = &'a ReaderLog> + Clone) -> Option<ReaderLog> {
    let threads = logs.clone().enumerate();
    let ops = threads.flat_map(|(thread, log)| log.ops.iter().map(move |op| (thread, *op)));
    let mut all: Vec<(usize, Op)> = ops.collect();
    all.sort_by_key(|of| of.1.start_ns);
    let mut last = HashMap::new();
    let [mut opens, mut handed] = [0, 0];
    for (thread, op) in &all {
        let before = last.insert(op.file, *thread);
        opens += u64::from(op.is_new_file || before.is_none());
        handed += u64::from(!op.is_new_file && before.is_some_and(|before| before != *thread));
    }
    (handed > opens).then(|| ReaderLog {
        ops: all.into_iter().map(|of| of.1).collect(),
        ascending: logs.clone().map(|log| log.ascending).sum(),
        descending: logs.map(|log| log.descending).sum(),
        ..ReaderLog::default()
    })
}

/// The lower of the two in the middle.
pub(super) fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}

fn most_common(values: impl Iterator<Item = u64>) -> Option<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    let runs = values.chunk_by(|a, b| a == b);
    runs.max_by_key(|run| run.len()).and_then(|run| run.first().copied())
}

/// By their letters, and by their numbers as numbers: `img_9` before `img_10`.
fn natural_order(one: &str, other: &str) -> Ordering {
    let (mut a, mut b) = (one.as_bytes(), other.as_bytes());
    while let (Some(&first), Some(&second)) = (a.first(), b.first()) {
        let order = if first.is_ascii_digit() && second.is_ascii_digit() {
            let (x, y) = (take_number(&mut a), take_number(&mut b));
            x.len().cmp(&y.len()).then(x.cmp(y))
        } else {
            (a, b) = (&a[1..], &b[1..]);
            first.cmp(&second)
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

/// The digits that a text begins with, without leading zeros.
fn take_number<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    *text = rest;
    let zeros = digits.iter().position(|&byte| byte != b'0').unwrap_or(digits.len());
    &digits[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_numbers() {
        assert_eq!(natural_order("img_9.npz", "img_10.npz"), Ordering::Less);
        assert_eq!(natural_order("a/007", "a/7"), Ordering::Equal);
        assert_eq!(natural_order("b1", "a2"), Ordering::Greater);
        assert_eq!(natural_order("", "1"), Ordering::Less);
    }

    /// Batches of 4 files of two reads each: 10 µs between reads of a file, 1 ms between files, then `compute_ms`.
    fn log(batches: u64, compute_ms: u64) -> ReaderLog {
        let (mut log, mut now) = (ReaderLog::default(), 0);
        for batch in 0..batches {
            for file in 0..4 {
                log.opened(&format!("img_{}", batch * 4 + file));
                for _ in 0..2 {
                    let op = Op {
                        start_ns: now,
                        end_ns: now + 50_000,
                        bytes: 100,
                        file: file as u32,
                        is_new_file: false,
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
        let bursts = log(20, 30).bursts().unwrap();
        assert_eq!((bursts.each, bursts.bytes_each), (4, 800));
        assert_eq!((bursts.gap_ns, bursts.short_gap_ns), (31_000_000, 1_000_000));
        assert_eq!(bursts.period_ns, 34_440_000);
        let each = |log: ReaderLog| log.bursts().map(|bursts| bursts.each);
        assert_eq!(each(log(3, 30)), Some(1), "three batches tell nothing, twelve files do");
        assert_eq!(each(log(20, 0)), Some(1), "each file is one");
        assert_eq!((log(20, 0).ascending, log(20, 0).descending), (79, 0));
        assert_eq!(ReaderLog::default().bursts(), None);
    }
}
