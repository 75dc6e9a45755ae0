//! Derives the properties of a job from the calls in its log: files, readers, batches, epochs and compute time. Properties that the log does not
//! determine are `None`.

use super::LogError;
use super::answer::{IoAnswer, IoTimes, TimeOf};
use super::reader::{Bursts, CallTimes, ReaderLog, median, merge_turns};
use super::tally::{FileFacts, FileKind, Tally};
use feedrate_measure::metric::{counters_of_run, mean, stdev};
use feedrate_measure::record::{AcceleratorEpoch, EpochRecord, IoCounters, Record};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Properties of a job that follow from its log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct LogJob {
    /// Extension of the data files in lower case; empty if they have none.
    pub extension: String,
    /// Folder that contains all data files.
    pub folder: String,
    /// Name of one data file.
    pub example: String,
    /// Number of data files.
    pub files: u64,
    /// Mean size of a file. A file of unknown size counts with the part that was read.
    pub file_bytes: f64,
    /// Standard deviation of the sizes of files.
    pub file_bytes_stdev: f64,
    /// Files with other extensions, which are not counted as data.
    pub left_out: Vec<OtherFiles>,
    /// Bytes of data files that were mapped into memory. A log does not show how many of them were read.
    pub mapped_bytes: u64,
    /// Number of processes that the job started with.
    pub ranks: u64,
    /// Number of threads or processes of a rank that read concurrently; `None` if the log does not distinguish them.
    pub readers: Option<u64>,
    /// Whether only the training thread reads.
    pub trains_and_reads: Option<bool>,
    /// Size of reads that delivered the most bytes; `None` if no size is typical, as with reads up to the ends of files of different sizes.
    pub read_bytes: Option<u64>,
    /// Number of times that the dataset was read; `None` if the log does not show which rank read which file.
    pub epochs: Option<u64>,
    /// Mean number of ranks that read each byte in an epoch, 1 if ranks read separate shares. `None` as for `epochs`.
    pub ranks_each: Option<f64>,
    /// Whether the order of files differs from the order of their names.
    pub is_shuffled: Option<bool>,
    /// Batches, as inferred from the gaps between reads.
    pub batch: Option<LogBatch>,
    /// Compute time of a step; `None` if reads may overlap it. If `batch` has one file, it includes decoding.
    pub compute_ns: Option<u64>,
    /// Upper limit of the compute time if `compute_ns` is `None`: the time from batch to batch. `None` if `batch` is, because readers that
    /// read ahead may end long before training.
    pub compute_max_ns: Option<u64>,
}

/// Files of one extension that are not counted as data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OtherFiles {
    /// Extension in lower case; may be empty.
    pub extension: String,
    /// Number of files.
    pub files: u64,
    /// Bytes that were read from them.
    pub bytes: u64,
}

/// Reads of one step of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LogBatch {
    /// Number of files opened per step; `None` if files stay open between steps.
    pub files: Option<u64>,
    /// Bytes read per step.
    pub bytes: u64,
}

/// A reader that reads less than this share of the readers' mean bytes only inspects files and is ignored.
const READER_SHARE_MIN: f64 = 0.1;
/// Minimum share of files that are opened in the order of names in jobs that do not shuffle.
const IN_ORDER_SHARE_MIN: f64 = 0.9;
/// Minimum number of consecutive opens from which an order is inferred.
const FOLLOWING_MIN: u64 = 8;
/// If a reader waits for at least this share of its time, it has read ahead of training.
const WAITING_SHARE: f64 = 0.5;

/// Relative difference up to which ranks read files equally often.
const EQUAL_TOLERANCE: f64 = 0.1;
/// Minimum share of ranks and files that must be read equally often.
const EQUAL_SHARE: f64 = 0.98;
/// Minimum share of bytes that several ranks read if all ranks read the same data.
const OVERLAP_SHARE: f64 = 0.999;

/// Minimum share of bytes that reads of a typical size deliver.
const TYPICAL_SHARE: f64 = 0.25;

/// Largest share of mapped bytes for which reads through mappings are neglected.
const MAPPED_SHARE_MAX: f64 = 0.1;

/// What follows from the calls of a log.
pub(super) struct Evaluation {
    pub(super) record: Record,
    pub(super) job: LogJob,
    pub(super) answer: IoAnswer,
    /// Time from the start of the log to the first call on a data file; `None` if it is unknown.
    pub(super) before_ns: Option<u64>,
}

/// Computes the record, the properties of a job, and whether I/O is its problem.
pub(super) fn evaluate(tally: &mut Tally) -> Result<Evaluation, LogError> {
    let kinds = tally.kinds.iter().enumerate().map(|(index, kind)| {
        let read: u64 = kind.ranks.values().map(|io| io.read_bytes).sum();
        let opens: u64 = kind.ranks.values().map(|io| io.opens).sum();
        (read.saturating_add(kind.mapped_bytes), opens, Reverse(index))
    });
    let Some((_, _, Reverse(data))) = kinds.max().filter(|(bytes, ..)| *bytes > 0) else {
        let problem = if tally.has_writes {
            "the recorded processes wrote data and read none"
        } else {
            "it contains no reads of data, at most reads of program files"
        };
        return Err(LogError::new(problem, tally.no_data_hint));
    };
    tally.assign_ranks(data);
    let mut left_out: Vec<OtherFiles> = Vec::new();
    for (index, kind) in tally.kinds.iter().enumerate().filter(|(index, _)| *index != data) {
        let files = tally.files_of_kind(index).count() as u64;
        let bytes = kind.ranks.values().map(|io| io.read_bytes).sum();
        left_out.push(OtherFiles { extension: kind.extension.clone(), files, bytes });
    }
    left_out.sort_by_key(|other| Reverse(other.bytes));
    let mut record = record(&mut tally.kinds[data], tally.ranks);
    let mut job = LogJob { left_out, ..files(tally, data) };
    let times = add_readers(tally, data, &mut job);
    job.ranks = record.plan.accelerators.into();
    let io = counters_of_run(&record);
    let read_once_bytes = io.read_bytes - tally.kinds[data].repeated_bytes.min(io.read_bytes);
    (job.ranks_each, job.epochs) = epochs(tally, data, &record, read_once_bytes).unzip();
    let common = io.access.common.most_common(16).unwrap_or_default();
    let total_bytes = |bytes: u64, count: u64| bytes.saturating_mul(count);
    let largest = common.iter().max_by_key(|size| total_bytes(size.bytes, size.count));
    let is_typical = |bytes: u64| bytes as f64 >= TYPICAL_SHARE * io.read_bytes as f64;
    let typical =
        largest.filter(|size| size.bytes > 0 && is_typical(total_bytes(size.bytes, size.count)));
    job.read_bytes = typical.map(|size| size.bytes);
    record.plan.loader.workers = job.readers.unwrap_or(1) as u32;
    let answer = IoAnswer::new(&io_times(tally, &job, &times, &io, record.epochs[0].end_ns));
    let start_ns = tally.kinds[data].span_ns.map(|(start_ns, _)| start_ns);
    let before_ns =
        start_ns.zip(tally.first_ns).map(|(start_ns, first_ns)| start_ns.saturating_sub(first_ns));
    Ok(Evaluation { record, job, answer, before_ns })
}

/// Summarises the times of a job's readers. `span_ns` is the time from the first call of all readers to the last.
fn io_times<'a>(
    tally: &Tally,
    job: &LogJob,
    times: &JobTimes,
    io: &'a IoCounters,
    span_ns: u64,
) -> IoTimes<'a> {
    let time_of = match job.trains_and_reads {
        Some(true) => TimeOf::Training,
        Some(false) => TimeOf::Readers,
        None => TimeOf::Processes,
    };
    let calls = &times.calls;
    let is_timed = calls.untimed == 0 && 0 < io.read_ns;
    let (reader_span_ns, io_ns) = match time_of {
        // Counters sum up the calls of all threads of a process. It is certain only that reads took place while one was in progress.
        TimeOf::Processes => {
            let span_ns = span_ns.saturating_mul(job.ranks);
            (span_ns, [times.reading_ns, io.open_ns.saturating_add(io.read_ns).min(span_ns)])
        }
        TimeOf::Training | TimeOf::Readers => {
            let io_ns = calls.read_ns.saturating_add(calls.metadata_ns);
            let overhead_ns = calls.calls.saturating_mul(tally.overhead_ns);
            (times.span_ns, [io_ns.saturating_sub(overhead_ns), io_ns])
        }
    };
    IoTimes {
        time_of,
        span_ns: reader_span_ns,
        io_ns: is_timed.then_some(io_ns),
        blocked_ns: calls.blocked_ns,
        paused_share: times.paused_share,
        hides_reads: tally.hides_reads
            || MAPPED_SHARE_MAX * (io.read_bytes as f64) < job.mapped_bytes as f64,
        io,
        data_reads: times.data_reads,
        reads_in_flight: times.reads_in_flight,
    }
}

/// Creates a record with one epoch, from the first call to the end of the last. `ranks` is the number of ranks according to the log.
fn record(kind: &mut FileKind, ranks: Option<u32>) -> Record {
    let files_read = kind.files_read();
    let (start_ns, end_ns) = kind.span_ns.unwrap_or_default();
    let counters = std::mem::take(&mut kind.ranks).into_values();
    let mut accelerators: Vec<AcceleratorEpoch> = counters
        .map(|mut io| {
            io.compact();
            AcceleratorEpoch { io, ..AcceleratorEpoch::default() }
        })
        .collect();
    let count = ranks.map_or(0, |ranks| ranks as usize).max(accelerators.len());
    accelerators.resize_with(count, AcceleratorEpoch::default);
    let mut record = Record { complete: true, ..Record::default() };
    record.plan.accelerators = accelerators.len() as u32;
    record.epochs.push(EpochRecord {
        number: 1,
        end_ns: end_ns.saturating_sub(start_ns),
        accelerators,
        files_read,
        ..EpochRecord::default()
    });
    record
}

/// Describes the files of a job.
fn files(tally: &Tally, data: usize) -> LogJob {
    let kind = &tally.kinds[data];
    let all_lengths = tally.files_of_kind(data).map(|file| file.length_bytes as f64);
    let lengths: Vec<f64> = all_lengths.filter(|&bytes| bytes > 0.0).collect();
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

/// Estimates the number of ranks that read each byte in an epoch, and the number of epochs. Epochs follow from the bytes read per unique byte, or
/// from the opens per file if that number is similar and lower.
fn epochs(tally: &Tally, data: usize, record: &Record, read_bytes: u64) -> Option<(f64, u64)> {
    let opens =
        tally.files_of_kind(data).map(|file| u64::from(file.opens)).filter(|&opens| opens > 0);
    let opens_per_file = median(opens.collect()).unwrap_or(1) as f64;
    let known = record.epochs[0].files_read.as_ref();
    let total_bytes: u64 = tally.files_of_kind(data).map(|file| file.length_bytes).sum();
    let unique_bytes = known.map_or(total_bytes, |files| files.unique_bytes) as f64;
    if unique_bytes == 0.0 {
        return Some((1.0, opens_per_file.max(1.0) as u64));
    }
    let has_full_overlap = known.is_none_or(|files| {
        files.overlap_bytes as f64 >= OVERLAP_SHARE * files.unique_bytes as f64
    });
    let ranks = record.plan.accelerators;
    let ranks_each = match &tally.read_bytes {
        _ if ranks < 2 => 1.0,
        Some(read_bytes) => {
            let is_data = |file: u32| usize::from(tally.files[file as usize].kind) == data;
            let data_reads = read_bytes.iter().filter(|((_, file), _)| is_data(*file));
            let share_read = unique_bytes / total_bytes as f64;
            ranks_each(&tally.files, data_reads, share_read, ranks, has_full_overlap)
        }
        None => return None,
    };
    let by_opens = (opens_per_file / ranks_each).max(1.0);
    let by_bytes = (read_bytes as f64 / unique_bytes / ranks_each).max(1.0);
    let is_similar = (by_opens / by_bytes - 1.0).abs() < 0.35;
    let epochs = if is_similar { by_opens.min(by_bytes) } else { by_bytes };
    Some((ranks_each, epochs.round() as u64))
}

/// Estimates the number of ranks that read each byte in an epoch. It is more than one only if all ranks read their files equally often: if ranks read
/// separate shares in several epochs, they read some files more often than others.
///
/// `read_bytes` are the bytes by rank and file, and `share_read` is the share of each file that is read at all.
fn ranks_each<'t>(
    files: &[FileFacts],
    read_bytes: impl Iterator<Item = (&'t (u32, u32), &'t u64)>,
    share_read: f64,
    ranks: u32,
    has_full_overlap: bool,
) -> f64 {
    let mut distinct_files = BTreeSet::new();
    let mut repetitions = Vec::new();
    for (&(_, file), &bytes) in read_bytes.filter(|(_, bytes)| **bytes > 0) {
        distinct_files.insert(file);
        let length_bytes = files[file as usize].length_bytes as f64 * share_read;
        repetitions.push(bytes as f64 / length_bytes.max(1.0));
    }
    repetitions.sort_by(f64::total_cmp);
    let Some(&typical) = repetitions.get(repetitions.len() / 2) else { return 1.0 };
    let is_typical = |count: &&f64| (**count / typical - 1.0).abs() < EQUAL_TOLERANCE;
    let equal = repetitions.iter().filter(is_typical).count();
    let ranks_per_file = repetitions.len() as f64 / distinct_files.len() as f64;
    // A rank that reads a share of each file in each epoch has not read files an integer number of times.
    let is_integer = (typical - typical.round()).abs() < EQUAL_TOLERANCE;
    let all_read_all = repetitions.len() == distinct_files.len() * ranks as usize
        && has_full_overlap
        && is_integer;
    let some_overlap = (1.05..1.95).contains(&ranks_per_file);
    let are_equal =
        typical > 1.0 - EQUAL_TOLERANCE && equal as f64 >= EQUAL_SHARE * repetitions.len() as f64;
    if are_equal && (all_read_all || some_overlap) { ranks_per_file } else { 1.0 }
}

/// A reader's log, and whether the reader is the training thread if that is known.
struct Reader {
    is_training: Option<bool>,
    log: ReaderLog,
}

/// Times of all readers of a job.
#[derive(Default)]
struct JobTimes {
    calls: CallTimes,
    /// Sum of the times from the first to the last call of each reader.
    span_ns: u64,
    /// Sum over all ranks of the time with at least one read in progress.
    reading_ns: u64,
    /// Mean number of reads of all ranks in progress while there is at least one.
    reads_in_flight: Option<f64>,
    /// Number of reads that returned data; `None` if the log has no single reads.
    data_reads: Option<u64>,
    /// Share of time in gaps between batches that are longer than other gaps; `None` if batches are unknown.
    paused_share: Option<f64>,
}

impl JobTimes {
    fn new(by_rank: &BTreeMap<u32, Vec<Reader>>) -> Self {
        let mut times = JobTimes::default();
        let logs = || by_rank.values().flatten().map(|reader| &reader.log);
        for log in logs() {
            let (start_ns, end_ns) = log.times.span_ns.unwrap_or_default();
            times.span_ns = times.span_ns.saturating_add(end_ns - start_ns);
            times.calls.add(&log.times);
        }
        let spans = |readers: &[Reader]| -> Vec<(u64, u64)> {
            let ops = readers.iter().flat_map(|reader| &reader.log.ops);
            ops.map(|op| (op.start_ns, op.end_ns)).collect()
        };
        let reading_ns = by_rank.values().map(|readers| covered_ns(spans(readers)));
        times.reading_ns = saturating_sum(reading_ns);
        let all_spans: Vec<(u64, u64)> =
            by_rank.values().flat_map(|readers| spans(readers)).collect();
        let sum_ns = saturating_sum(all_spans.iter().map(|(start_ns, end_ns)| end_ns - start_ns));
        let covered_ns = covered_ns(all_spans);
        times.reads_in_flight = (0 < covered_ns).then(|| sum_ns as f64 / covered_ns as f64);
        let data_reads = logs().flat_map(|log| &log.ops).filter(|op| 0 < op.bytes).count() as u64;
        times.data_reads = (0 < data_reads).then_some(data_reads);
        times
    }
}

/// Adds the number of readers, the order of files, and the batches and compute time that follow from gaps between reads. Returns the times of the
/// readers.
fn add_readers(tally: &mut Tally, data: usize, job: &mut LogJob) -> JobTimes {
    let all_readers = std::mem::take(&mut tally.readers).into_iter();
    let mut by_rank: BTreeMap<u32, Vec<Reader>> = BTreeMap::new();
    let mut ascending = 0;
    let mut following = 0;
    let is_reader = |log: &ReaderLog| !log.ops.is_empty();
    for ((_, caller), log) in
        all_readers.filter(|((kind, _), log)| usize::from(*kind) == data && is_reader(log))
    {
        ascending += log.ascending;
        following += log.ascending + log.descending;
        by_rank.entry(caller.rank).or_default().push(Reader { is_training: caller.is_first, log });
    }
    if following >= FOLLOWING_MIN {
        job.is_shuffled = Some((ascending as f64) < IN_ORDER_SHARE_MIN * following as f64);
    }
    for readers in by_rank.values_mut() {
        let bytes = readers.iter().map(|reader| reader.log.bytes()).sum::<u64>();
        let mean = bytes as f64 / readers.len().max(1) as f64;
        readers.retain(|reader| reader.log.bytes() as f64 >= READER_SHARE_MIN * mean);
    }
    let mut times = JobTimes::new(&by_rank);
    let mut take_turns = false;
    for readers in by_rank.values_mut() {
        if let Some(log) = merge_turns(readers.iter().map(|reader| &reader.log)) {
            take_turns = true;
            let is_known = readers.iter().all(|reader| reader.is_training.is_some());
            *readers = vec![Reader { is_training: is_known.then_some(false), log }];
        }
    }
    let readers = || by_rank.values().flatten();
    let concurrent = by_rank
        .values()
        .map(|readers| max_overlap(readers.iter().filter_map(|reader| reader.log.span_ns())))
        .max()
        .filter(|&most| most > 0);
    let bursts: Vec<Bursts> = readers().filter_map(|reader| reader.log.bursts()).collect();
    if readers().all(|reader| reader.is_training.is_some()) {
        let calls =
            readers().map(|reader| reader.log.ops.iter().map(|op| (op.start_ns, op.end_ns)));
        job.readers = if take_turns {
            let files = bursts.first().map(|bursts| bursts.files);
            files.or_else(|| calls.map(max_overlap).max())
        } else {
            concurrent
        };
        job.trains_and_reads =
            concurrent.map(|_| readers().all(|reader| reader.is_training == Some(true)));
    }
    let spans = || readers().filter_map(|reader| reader.log.span_ns());
    let total_ns = saturating_sum(spans().map(|(start_ns, end_ns)| end_ns - start_ns));
    let Some(typical) = bursts.first() else { return times };
    let similar = bursts.iter().filter(|other| other.is_similar(typical)).count();
    let is_one_file = typical.count < 2;
    // If every file of a separate reader is a burst, gaps contain decoding as well as waits for the next batch.
    if similar * 5 < readers().count() * 3
        || is_one_file && !(typical.counts_files && job.trains_and_reads == Some(true))
    {
        return times;
    }
    let mean =
        |value: fn(&Bursts) -> u64| saturating_sum(bursts.iter().map(value)) / bursts.len() as u64;
    job.batch = Some(LogBatch {
        files: typical.counts_files.then_some(typical.count),
        bytes: mean(|bursts| bursts.bytes),
    });
    let gap_ns = mean(|bursts| bursts.gap_ns);
    let short_gap_ns = mean(|bursts| bursts.short_gap_ns);
    let period_ns = mean(|bursts| bursts.period_ns);
    let paused_ns = saturating_sum(bursts.iter().map(|bursts| bursts.paused_ns));
    times.paused_share = (0 < total_ns).then(|| paused_ns as f64 / total_ns as f64);
    job.compute_ns = match (job.trains_and_reads, concurrent) {
        (Some(true), _) => Some(gap_ns.saturating_sub(short_gap_ns)),
        (_, Some(readers)) if gap_ns as f64 >= WAITING_SHARE * period_ns as f64 => {
            Some(period_ns / readers)
        }
        _ => None,
    };
    job.compute_max_ns = match job.compute_ns {
        Some(_) => None,
        None => concurrent.map(|readers| period_ns / readers),
    };
    times
}

/// Adds up values of a log, whose times may be arbitrary.
fn saturating_sum(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, u64::saturating_add)
}

/// Returns the length of the union of time spans.
fn covered_ns(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let mut covered_until_ns = 0;
    let mut covered_ns = 0;
    for (start_ns, end_ns) in spans {
        let uncovered_ns = end_ns.saturating_sub(start_ns.max(covered_until_ns));
        covered_ns += uncovered_ns;
        covered_until_ns = end_ns.max(covered_until_ns);
    }
    covered_ns
}

/// Returns the maximum number of time spans that overlap at one moment.
fn max_overlap(spans: impl Iterator<Item = (u64, u64)>) -> u64 {
    let mut changes: Vec<(u64, i64)> =
        spans.flat_map(|(start, end)| [(start, 1), (end, -1)]).collect();
    changes.sort_unstable();
    let mut current = 0;
    let counts = changes.into_iter().map(|(_, change)| {
        current += change;
        current
    });
    counts.max().unwrap_or(0).unsigned_abs()
}
