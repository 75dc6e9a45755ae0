//! The job that the calls of a log tell of: its files, who read them, batches, epochs and compute. Each is `None` where it cannot be told.

use super::LogError;
use super::reader::{Bursts, ReaderLog, in_turns, median};
use super::tally::{FileFacts, FileKind, Tally};
use feedrate_measure::metric::{counters_of_run, mean, stdev};
use feedrate_measure::record::{AcceleratorEpoch, EpochRecord, Record};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A job, as its log tells of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct LogJob {
    /// Ending of its files, in lower case; empty where they have none.
    pub extension: String,
    /// Folder that all of them lie in.
    pub folder: String,
    /// Name of one of them.
    pub example: String,
    /// How many were opened.
    pub files: u64,
    /// Length of a file in the mean, and its standard deviation; what is not known of a file is what was read of it.
    pub file_bytes: f64,
    /// See above.
    pub file_bytes_stdev: f64,
    /// Files of other endings, with the bytes that were read of them.
    pub left_out: Vec<OtherFiles>,
    /// Bytes of them that were mapped into memory; how many of these were read is not in a log.
    pub mapped_bytes: u64,
    /// Processes that the job began with.
    pub ranks: u64,
    /// Threads or processes of a rank that read at a time; `None` where the log does not tell them apart.
    pub readers: Option<u64>,
    /// Whether the thread that trains reads, and no other.
    pub trains_and_reads: Option<bool>,
    /// The size of reads by which most bytes came; `None` where it is not usual, as of reads to the ends of unequal files.
    pub read_bytes: Option<u64>,
    /// How often all was read; `None` where it is not known which rank read what.
    pub epochs: Option<u64>,
    /// Ranks that read a byte in an epoch, in the mean; 1 where each reads its share. `None` as above.
    pub ranks_each: Option<f64>,
    /// Whether files follow each other in another order than that of their names.
    pub is_shuffled: Option<bool>,
    /// Batches that the gaps between reads tell.
    pub batch: Option<LogBatch>,
    /// Time of a step without reading; `None` where reads may have hidden it.
    pub compute_ns: Option<u64>,
}

/// Files that are not taken for data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OtherFiles {
    /// Lower case; empty without any.
    pub extension: String,
    /// How many.
    pub files: u64,
    /// Read of them.
    pub bytes: u64,
}

/// Reads of one step of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LogBatch {
    /// Files that were opened for it, where each is opened anew.
    pub files: Option<u64>,
    /// Bytes that were read for it.
    pub bytes: u64,
}

/// Readers with less than this share of the bytes that one has in the mean look at files, as helpers do, and read no data.
const LEAST_SHARE: f64 = 0.1;
/// Share of files opened after one whose name comes before theirs, where nothing is shuffled.
const IN_ORDER: f64 = 0.9;
/// So many follow another at least before an order is told.
const FOLLOWING_MIN: u64 = 8;
/// A reader that waits so much of its time is ahead of training.
const WAITS: f64 = 0.5;

/// A rank that read files as often as others did so within this share, for this share of files.
const ALIKE: f64 = 0.1;
const ALIKE_SHARE: f64 = 0.98;
/// Share of bytes that several ranks read where all read the same.
const WHOLE: f64 = 0.999;

/// A size is usual by which so much of the bytes came.
const USUAL_SHARE: f64 = 0.25;

/// The record, and what else is known.
pub(super) fn sum_up(tally: &mut Tally) -> Result<(Record, LogJob), LogError> {
    let kinds = tally.kinds.iter().enumerate().map(|(at, kind)| {
        let read: u64 = kind.ranks.values().map(|io| io.read_bytes).sum();
        let opens: u64 = kind.ranks.values().map(|io| io.opens).sum();
        (read.saturating_add(kind.mapped_bytes), opens, Reverse(at))
    });
    let Some((_, _, Reverse(at))) = kinds.max().filter(|most| most.0 > 0) else {
        return Err(LogError::new(
            "no data is read in it: only files of programs, if any",
            tally.no_data_hint,
        ));
    };
    let mut left_out: Vec<OtherFiles> = Vec::new();
    for (other, kind) in tally.kinds.iter().enumerate().filter(|of| of.0 != at) {
        let files = tally.files_of(other).count() as u64;
        let bytes = kind.ranks.values().map(|io| io.read_bytes).sum();
        left_out.push(OtherFiles { extension: kind.extension.clone(), files, bytes });
    }
    left_out.sort_by_key(|other| Reverse(other.bytes));
    let record = record(&mut tally.kinds[at], tally.ranks);
    let mut job = LogJob { left_out, ..files(tally, at) };
    readers(tally, at, &mut job);
    job.ranks = record.plan.accelerators.into();
    let io = counters_of_run(&record);
    (job.ranks_each, job.epochs) = epochs(tally, at, &record, io.read_bytes).unzip();
    let common = io.access.common.most_common(16).unwrap_or_default();
    let most = common.iter().max_by_key(|size| size.bytes.saturating_mul(size.count));
    let is_usual = |bytes: u64| bytes as f64 >= USUAL_SHARE * io.read_bytes as f64;
    let usual =
        most.filter(|size| size.bytes > 0 && is_usual(size.bytes.saturating_mul(size.count)));
    job.read_bytes = usual.map(|size| size.bytes);
    let mut record = record;
    record.plan.loader.workers = job.readers.unwrap_or(1) as u32;
    Ok((record, job))
}

/// One epoch, from the first call to the end of the last.
fn record(kind: &mut FileKind, told_ranks: Option<u32>) -> Record {
    let files_read = kind.files_read();
    let (start_ns, end_ns) = kind.span_ns.unwrap_or_default();
    let ranks = std::mem::take(&mut kind.ranks).into_values();
    let mut accelerators: Vec<AcceleratorEpoch> = ranks
        .map(|mut io| {
            io.compact();
            AcceleratorEpoch { io, ..AcceleratorEpoch::default() }
        })
        .collect();
    let least = told_ranks.map_or(0, |ranks| ranks as usize).max(accelerators.len());
    accelerators.resize_with(least, AcceleratorEpoch::default);
    let mut record = Record { complete: true, ..Record::default() };
    record.plan.accelerators = accelerators.len() as u32;
    let end_ns = end_ns.saturating_sub(start_ns);
    record.epochs.push(EpochRecord {
        number: 1,
        end_ns,
        accelerators,
        files_read,
        ..EpochRecord::default()
    });
    record
}

fn files(tally: &Tally, at: usize) -> LogJob {
    let kind = &tally.kinds[at];
    let lengths = tally.files_of(at).map(|file| file.length_bytes as f64);
    let lengths: Vec<f64> = lengths.filter(|&bytes| bytes > 0.0).collect();
    LogJob {
        extension: kind.extension.clone(),
        folder: kind.folder.clone(),
        example: kind.example.clone(),
        files: lengths.len() as u64,
        file_bytes: mean(&lengths).unwrap_or(0.0),
        file_bytes_stdev: stdev(&lengths).unwrap_or(0.0),
        mapped_bytes: kind.mapped_bytes,
        ..LogJob::default()
    }
}

/// Ranks that read a byte in an epoch, and epochs: bytes that were read of each byte or, where these say less, openings of each file.
fn epochs(tally: &Tally, at: usize, record: &Record, read_bytes: u64) -> Option<(f64, u64)> {
    let opens = tally.files_of(at).map(|file| u64::from(file.opens)).filter(|&opens| opens > 0);
    let opens = median(opens.collect()).unwrap_or(1) as f64;
    let known = record.epochs[0].files_read.as_ref();
    let all: u64 = tally.files_of(at).map(|file| file.length_bytes).sum();
    let unique = known.map_or(all, |files| files.unique_bytes) as f64;
    if unique == 0.0 {
        return Some((1.0, opens.max(1.0) as u64));
    }
    let is_overlap_whole =
        known.is_none_or(|files| files.overlap_bytes as f64 >= WHOLE * files.unique_bytes as f64);
    let ranks = record.plan.accelerators;
    let each = match &tally.read_bytes {
        _ if ranks < 2 => 1.0,
        Some(by_rank) => {
            let of_kind =
                by_rank.iter().filter(|of| usize::from(tally.files[of.0.1 as usize].kind) == at);
            ranks_each(&tally.files, of_kind, unique / all as f64, ranks, is_overlap_whole)
        }
        None => return None,
    };
    let [opens, bytes] = [opens, read_bytes as f64 / unique].map(|all| (all / each).max(1.0));
    let is_near = (opens / bytes - 1.0).abs() < 0.35;
    Some((each, if is_near { opens.min(bytes) } else { bytes }.round() as u64))
}

/// Ranks that read a byte in an epoch: several where each rank read each file as often. In the shares of several epochs some ranks
/// have files more often than others.
fn ranks_each<'t>(
    all: &[FileFacts],
    by_rank: impl Iterator<Item = (&'t (u32, u32), &'t u64)>,
    share: f64,
    ranks: u32,
    is_overlap_whole: bool,
) -> f64 {
    let by_rank = by_rank.filter(|of| *of.1 > 0);
    let mut files = BTreeSet::new();
    let mut times = Vec::new();
    for (&(_, file), &bytes) in by_rank {
        files.insert(file);
        let length = all[file as usize].length_bytes as f64 * share;
        times.push(bytes as f64 / length.max(1.0));
    }
    times.sort_by(f64::total_cmp);
    let Some(&typical) = times.get(times.len() / 2) else { return 1.0 };
    let alike = times.iter().filter(|&&times| (times / typical - 1.0).abs() < ALIKE).count();
    let each = times.len() as f64 / files.len() as f64;
    // A rank that reads its share of a file each epoch has read no whole number of files.
    let is_whole = (typical - typical.round()).abs() < ALIKE;
    let is_same = times.len() == files.len() * ranks as usize && is_overlap_whole && is_whole;
    let is_partly = (1.05..1.95).contains(&each);
    let is_told = typical > 1.0 - ALIKE && alike as f64 >= ALIKE_SHARE * times.len() as f64;
    if is_told && (is_same || is_partly) { each } else { 1.0 }
}

/// Who read, how many at a time, and what the gaps between their reads tell.
fn readers(tally: &mut Tally, at: usize, job: &mut LogJob) {
    let of_kind =
        std::mem::take(&mut tally.readers).into_iter().filter(|of| usize::from(of.0.0) == at);
    let mut by_rank: BTreeMap<u32, Vec<(Option<bool>, ReaderLog)>> = BTreeMap::new();
    let [mut ascending, mut following] = [0, 0];
    for ((_, caller), log) in of_kind {
        ascending += log.ascending;
        following += log.ascending + log.descending;
        by_rank.entry(caller.rank).or_default().push((caller.is_first, log));
    }
    if following >= FOLLOWING_MIN {
        job.is_shuffled = Some((ascending as f64) < IN_ORDER * following as f64);
    }
    let mut take_turns = false;
    for logs in by_rank.values_mut() {
        let mean =
            logs.iter().map(|of| of.1.bytes()).sum::<u64>() as f64 / logs.len().max(1) as f64;
        logs.retain(|of| of.1.bytes() as f64 >= LEAST_SHARE * mean && !of.1.ops.is_empty());
        if let Some(log) = in_turns(logs.iter().map(|of| &of.1)) {
            take_turns = true;
            let is_known = logs.iter().all(|of| of.0.is_some());
            *logs = vec![(is_known.then_some(false), log)];
        }
    }
    let logs = || by_rank.values().flatten();
    let at_a_time = by_rank
        .values()
        .map(|logs| most_at_a_time(logs.iter().filter_map(|of| of.1.span_ns())))
        .max()
        .filter(|&most| most > 0);
    let bursts: Vec<Bursts> = logs().filter_map(|of| of.1.bursts()).collect();
    if logs().all(|of| of.0.is_some()) {
        let calls = logs().map(|of| of.1.ops.iter().map(|op| (op.start_ns, op.end_ns)));
        job.readers = if take_turns {
            bursts.first().map(|of| of.files).or_else(|| calls.map(most_at_a_time).max())
        } else {
            at_a_time
        };
        job.trains_and_reads = at_a_time.map(|_| logs().all(|of| of.0 == Some(true)));
    }
    let Some(typical) = bursts.first() else { return };
    let alike = bursts.iter().filter(|other| other.is_like(typical)).count();
    // Where each file is a part, its gap is decoding as well as compute.
    if alike * 5 < logs().count() * 3 || typical.each < 2 {
        return;
    }
    let mean =
        |value: fn(&Bursts) -> u64| bursts.iter().map(value).sum::<u64>() / bursts.len() as u64;
    job.batch = Some(LogBatch {
        files: typical.counts_files.then_some(typical.each),
        bytes: mean(|of| of.bytes_each),
    });
    let (gap_ns, short_ns, period_ns) =
        (mean(|of| of.gap_ns), mean(|of| of.short_gap_ns), mean(|of| of.period_ns));
    job.compute_ns = match (job.trains_and_reads, at_a_time) {
        (Some(true), _) => Some(gap_ns.saturating_sub(short_ns)),
        (_, Some(readers)) if gap_ns as f64 >= WAITS * period_ns as f64 => {
            Some(period_ns / readers)
        }
        _ => None,
    };
}

/// Spans that have a moment in common, at most.
fn most_at_a_time(spans: impl Iterator<Item = (u64, u64)>) -> u64 {
    let mut moments: Vec<(u64, i64)> = spans.flat_map(|span| [(span.0, 1), (span.1, -1)]).collect();
    moments.sort_unstable();
    let mut now = 0;
    let counts = moments.into_iter().map(|moment| {
        now += moment.1;
        now
    });
    counts.max().unwrap_or(0).unsigned_abs()
}
