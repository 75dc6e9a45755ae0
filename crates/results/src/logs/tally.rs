//! Counts the calls in a log with the counters that feedrate's own runs have. Memory is bounded for any input; calls beyond the limits are reported as
//! lost.
//!
//! Long because all limits of memory and all counters are kept together.

use super::Lost;
use super::file_use::Opening;
use super::process_tree::NumberedProcesses;
use super::program_files::{extension, is_program_file};
use super::reader::{Op, Pauses, ReaderLog, add_ns};
use feedrate_measure::record::IoCounters;
use feedrate_measure::record::access::{FilesRead, ReadPosition, bin_index};
use feedrate_measure::record::ranges::{FileRange, FileReads, RANGES_MAX};
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{Hash, Hasher};

/// Maximum number of files.
const FILES_MAX: usize = 1 << 20;
/// Maximum number of kinds of files.
const KINDS_MAX: usize = 64;
/// Maximum number of counters, one per rank and kind of files.
const COUNTERS_MAX: usize = 4096;
/// Maximum number of ranks.
pub(super) const RANKS_MAX: u32 = 1 << 16;
/// Maximum number of reads, over all readers, that are kept one by one.
const OPS_MAX: usize = 1 << 21;
/// Maximum size of a read. With [`OFFSET_MAX`], it keeps sums below 2^64.
const CALL_BYTES_MAX: u64 = 1 << 31;
/// Maximum offset in a file.
const OFFSET_MAX: u64 = 1 << 43;

/// The thread or process that made a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Caller {
    pub(super) rank: u32,
    /// Number of the thread or process; 0 if the log does not distinguish them.
    pub(super) thread: u64,
    /// Whether it is the rank's first thread, which trains; `None` if unknown.
    pub(super) is_first: Option<bool>,
}

/// A call on a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileCall {
    pub(super) caller: Caller,
    pub(super) file: u32,
    /// Start time. The origin is arbitrary.
    pub(super) start_ns: u64,
    /// Duration; `None` if unknown.
    pub(super) ns: Option<u64>,
}

impl FileCall {
    fn end_ns(self) -> u64 {
        self.start_ns.saturating_add(self.ns.unwrap_or(0))
    }
}

/// Position in an open file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Position {
    /// Offset of the next read; `None` if unknown.
    pub(super) offset: Option<u64>,
    /// End of the last read.
    pub(super) last_end: Option<u64>,
}

impl Position {
    /// Reads `bytes` at `explicit_offset`, or at the current offset, which then advances.
    pub(super) fn read(&mut self, bytes: u64, explicit_offset: Option<u64>) -> ReadCall {
        let offset = explicit_offset.or(self.offset);
        let end = offset.map(|offset| offset.saturating_add(bytes));
        let follows =
            offset.map_or(ReadPosition::First, |offset| ReadPosition::new(self.last_end, offset));
        self.last_end = end.or(self.last_end);
        if explicit_offset.is_none() {
            self.offset = end;
        }
        ReadCall { bytes, offset, follows }
    }
}

/// A successful read, possibly of no bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadCall {
    pub(super) bytes: u64,
    /// Offset in the file; `None` if unknown.
    pub(super) offset: Option<u64>,
    pub(super) follows: ReadPosition,
}

/// A file that may be data.
pub(super) struct FileFacts {
    /// Index of its kind.
    pub(super) kind: u16,
    /// Largest known extent of the file.
    pub(super) length_bytes: u64,
    /// Number of opens, without those that continue the use of a file.
    pub(super) opens: u32,
}

/// Files with the same extension, and the counters of their reads.
pub(super) struct FileKind {
    /// Extension in lower case; may be empty.
    pub(super) extension: String,
    /// Folder that contains all files.
    pub(super) folder: String,
    /// Name of one file.
    pub(super) example: String,
    /// Counters of reads, by rank.
    pub(super) ranks: BTreeMap<u32, IoCounters>,
    /// Start of the first call and end of the last.
    pub(super) span_ns: Option<(u64, u64)>,
    pub(super) mapped_bytes: u64,
    /// Bytes at the start of files that a reader read again because it opened a file several times for one use.
    pub(super) repeated_bytes: u64,
    /// Number of reads that were reported individually in addition to counters.
    segments: u64,
    /// Ranges that are not yet in `reads`.
    pub(super) ranges: Vec<FileRange>,
    reads: FileReads,
}

/// Everything that was counted in a log.
pub(super) struct Tally {
    /// Numbers of files by the hash of their path; `None` for files that are ignored.
    numbers: HashMap<u64, Option<u32>>,
    pub(super) files: Vec<FileFacts>,
    pub(super) kinds: Vec<FileKind>,
    /// Readers by kind of file and caller.
    pub(super) readers: BTreeMap<(u16, Caller), ReaderLog>,
    /// Whether callers have their final ranks, rather than the numbers of processes.
    pub(super) ranks_are_final: bool,
    /// Processes that are not yet assigned to ranks.
    pub(super) processes: NumberedProcesses,
    /// Pauses by thread.
    pauses: HashMap<u64, Pauses>,
    /// Whether calls that may read data are not counted, so that the time in I/O is a lower bound.
    pub(super) hides_reads: bool,
    /// Share of calls that could not be read, in percent; `None` if it is unknown or negligible.
    pub(super) unreadable_percent: Option<f64>,
    /// Whether the end of the log is missing.
    pub(super) is_cut: bool,
    /// Time of the first line of the log; `None` if it is unknown.
    pub(super) first_ns: Option<u64>,
    /// Upper limit of the time by which recording lengthens each call.
    pub(super) overhead_ns: u64,
    ops: usize,
    counters: usize,
    /// Number of lost entries by noun and reason.
    lost: BTreeMap<(&'static str, &'static str), u64>,
    /// Number of ranks of the job, if the log contains it.
    pub(super) ranks: Option<u32>,
    /// Bytes read by rank and file; `None` if there are too many combinations.
    pub(super) read_bytes: Option<HashMap<(u32, u32), u64>>,
    /// Whether files of data were written.
    pub(super) has_writes: bool,
    /// Remedy to suggest if the log contains no data.
    pub(super) no_data_hint: &'static str,
}

impl Default for Tally {
    fn default() -> Self {
        Tally {
            numbers: HashMap::new(),
            files: Vec::new(),
            kinds: Vec::new(),
            readers: BTreeMap::new(),
            ranks_are_final: true,
            processes: NumberedProcesses::default(),
            pauses: HashMap::new(),
            hides_reads: false,
            unreadable_percent: None,
            is_cut: false,
            first_ns: None,
            overhead_ns: 0,
            ops: 0,
            counters: 0,
            lost: BTreeMap::new(),
            ranks: None,
            read_bytes: Some(HashMap::new()),
            has_writes: false,
            no_data_hint: "record training while it reads data, including the processes that it starts",
        }
    }
}

impl Tally {
    /// Counts a lost entry.
    pub(super) fn lose(&mut self, noun: &'static str, why: &'static str) {
        self.lose_many(noun, why, 1);
    }

    /// Counts several lost entries.
    pub(super) fn lose_many(&mut self, noun: &'static str, why: &'static str, count: u64) {
        if count > 0 {
            *self.lost.entry((noun, why)).or_default() += count;
        }
    }

    /// Counts entries that may stand for reads of data.
    pub(super) fn lose_reads(&mut self, noun: &'static str, why: &'static str, count: u64) {
        self.lose_many(noun, why, count);
        self.hides_reads |= count > 0;
    }

    /// Counts a call that waits for other processes; `is_message` if it received something from them.
    pub(super) fn add_pause(&mut self, thread: u64, ns: Option<u64>, is_message: bool) {
        if self.pauses.len() >= COUNTERS_MAX && !self.pauses.contains_key(&thread) {
            return;
        }
        let pauses = self.pauses.entry(thread).or_default();
        add_ns(&mut pauses.blocked_ns, ns.unwrap_or(0));
        pauses.messages += u64::from(is_message);
    }

    /// Removes and returns the lost entries.
    pub(super) fn take_lost(&mut self) -> Vec<Lost> {
        let lost = std::mem::take(&mut self.lost).into_iter();
        lost.map(|((noun, why), count)| Lost { count, noun, why }).collect()
    }

    /// Returns the number of a file; `None` for files of programs and beyond the limit.
    pub(super) fn file(&mut self, name: &str) -> Option<u32> {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(&known) = self.numbers.get(&hash) {
            return known;
        }
        if self.numbers.len() >= FILES_MAX {
            self.lose("file", "beyond the supported number of files");
            return None;
        }
        let number = if is_program_file(name) { None } else { self.add_file(name) };
        self.numbers.insert(hash, number);
        number
    }

    fn add_file(&mut self, path: &str) -> Option<u32> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let extension = extension(name);
        let kind = match self.kinds.iter().position(|kind| kind.extension == extension) {
            Some(index) => {
                let kind = &mut self.kinds[index];
                kind.folder.truncate(common_folder_length(&kind.folder, folder));
                index
            }
            None if self.kinds.len() < KINDS_MAX => {
                self.kinds.push(FileKind {
                    extension,
                    folder: folder.into(),
                    example: name.into(),
                    ranks: BTreeMap::new(),
                    span_ns: None,
                    mapped_bytes: 0,
                    repeated_bytes: 0,
                    segments: 0,
                    ranges: Vec::new(),
                    reads: FileReads::new(1),
                });
                self.kinds.len() - 1
            }
            None => {
                self.lose("file", "with an extension beyond the supported number of extensions");
                return None;
            }
        };
        self.files.push(FileFacts { kind: kind as u16, length_bytes: 0, opens: 0 });
        Some((self.files.len() - 1) as u32)
    }

    /// Counts the opening of a file for reading.
    pub(super) fn add_open(&mut self, call: FileCall, name: &str) {
        let Some(io) = self.call_counters(call) else { return };
        io.opens += 1;
        if let Some(ns) = call.ns {
            add_ns(&mut io.open_ns, ns);
            io.open_latency.record(ns);
        }
        let length_bytes = self.files[call.file as usize].length_bytes;
        let opened = self.reader(call).map(|reader| reader.open(call.file, name, length_bytes));
        if opened != Some(Opening::Again) {
            self.add_opens(call.file, 1);
        }
        self.count_call(call, false);
    }

    /// Notes that an open file was closed.
    pub(super) fn close(&mut self, call: FileCall) {
        if let Some(reader) = self.reader(call) {
            reader.file_use.close(call.file);
        }
    }

    /// Counts the time of a call for its reader.
    fn count_call(&mut self, call: FileCall, is_read: bool) {
        let pauses = self.pauses.get(&call.caller.thread).copied().unwrap_or_default();
        if let Some(reader) = self.reader(call) {
            reader.count_call(call.start_ns, call.ns, is_read, pauses);
        }
    }

    /// Counts a call on an open file that reads no data: seek, stat, close.
    pub(super) fn add_metadata_call(&mut self, call: FileCall) {
        if let Some(io) = self.call_counters(call) {
            add_ns(&mut io.open_ns, call.ns.unwrap_or(0));
        }
        self.count_call(call, false);
    }

    /// Raises the known length of a file to `bytes`.
    pub(super) fn set_length(&mut self, file: u32, bytes: u64) {
        let facts = &mut self.files[file as usize];
        facts.length_bytes = facts.length_bytes.max(bytes.min(OFFSET_MAX));
    }

    /// Counts the mapping of a file into memory.
    pub(super) fn add_mapping(&mut self, call: FileCall, bytes: u64) {
        self.add_metadata_call(call);
        if let Some(reader) = self.reader(call) {
            reader.file_use.end();
        }
        self.kind(call.file).mapped_bytes += bytes.min(CALL_BYTES_MAX);
    }

    /// Counts a read.
    pub(super) fn add_read(&mut self, call: FileCall, read: ReadCall) {
        let ReadCall { bytes, offset, follows } = read;
        if self.rejects(bytes, offset) {
            return;
        }
        let Some(io) = self.call_counters(call) else { return };
        io.reads += 1;
        io.read_bytes += bytes;
        io.access.count_read(bytes, follows);
        if let Some(ns) = call.ns {
            add_ns(&mut io.read_ns, ns);
            add_ns(&mut io.size_ns[bin_index(bytes)], ns);
            io.read_latency.record(ns);
        }
        let length_bytes = self.files[call.file as usize].length_bytes;
        let repeated = self
            .reader(call)
            .map(|reader| reader.file_use.read(call.file, length_bytes, offset, bytes));
        let repeated = repeated.unwrap_or(0);
        self.kind(call.file).repeated_bytes += repeated;
        self.add_read_bytes(call.caller.rank, call.file, bytes - repeated);
        self.count_call(call, true);
        self.add_position(call, offset, bytes);
    }

    /// Returns whether a read exceeds the limits of sizes, and counts it as lost if so.
    fn rejects(&mut self, bytes: u64, offset: Option<u64>) -> bool {
        let is_too_large =
            bytes > CALL_BYTES_MAX || offset.is_some_and(|offset| offset > OFFSET_MAX);
        self.lose_many("read", "of an impossible size or offset", u64::from(is_too_large));
        is_too_large
    }

    /// Adds bytes that a rank read from a file.
    pub(super) fn add_read_bytes(&mut self, rank: u32, file: u32, bytes: u64) {
        let Some(by_rank_and_file) = &mut self.read_bytes else { return };
        let read_bytes = by_rank_and_file.entry((rank, file)).or_default();
        *read_bytes = read_bytes.saturating_add(bytes);
        if by_rank_and_file.len() > FILES_MAX {
            self.read_bytes = None;
            self.lose("log", "with too many ranks and files to distinguish epochs from ranks that read the same data");
        }
    }

    /// Adds the position and time of a read that the counters already include.
    pub(super) fn add_segment(&mut self, call: FileCall, offset: u64, bytes: u64) {
        if !self.rejects(bytes, Some(offset)) && self.call_counters(call).is_some() {
            self.kind(call.file).segments += 1;
            self.add_position(call, Some(offset), bytes);
        }
    }

    /// Adds the position and time of a read.
    fn add_position(&mut self, call: FileCall, offset: Option<u64>, bytes: u64) {
        let FileCall { caller, file, start_ns, .. } = call;
        let range = offset.and_then(|start| FileRange::new(file, start, bytes, caller.rank));
        let ranks_are_final = self.ranks_are_final;
        self.kind(file).add_range(range, bytes, ranks_are_final);
        self.set_length(file, offset.unwrap_or(0) + bytes);
        if self.ops >= OPS_MAX {
            return self.lose("read", "beyond those evaluated for batches and compute time");
        }
        let op = Op {
            start_ns,
            end_ns: call.end_ns(),
            bytes,
            file,
            is_new_file: false,
            metadata_ns: 0,
            follows_message: false,
        };
        if let Some(reader) = self.reader(call) {
            reader.push(op);
            self.ops += 1;
        }
    }

    /// Sets the number of ranks of the job.
    pub(super) fn set_ranks(&mut self, ranks: u32) {
        self.ranks = Some(ranks.min(COUNTERS_MAX as u32));
    }

    /// Adds opens of a file.
    pub(super) fn add_opens(&mut self, file: u32, opens: u64) {
        let facts = &mut self.files[file as usize];
        facts.opens = facts.opens.saturating_add(u32::try_from(opens).unwrap_or(u32::MAX));
    }

    /// Extends the time span of calls on a kind of files.
    pub(super) fn extend_span(&mut self, file: u32, start_ns: u64, end_ns: u64) {
        self.kind(file).extend_span(start_ns, end_ns.max(start_ns));
    }

    /// Discards the positions of reads for each kind of files in which some counted reads have no segment, and sorts segments by time.
    pub(super) fn check_segments(&mut self) {
        let mut missing = 0;
        for kind in &mut self.kinds {
            let reads: u64 = kind.ranks.values().map(|io| io.reads).sum();
            if reads != kind.segments {
                missing += reads.saturating_sub(kind.segments);
                kind.discard_ranges();
            }
        }
        self.lose_many(
            "read",
            "without a segment of DXT, whose position and time are unknown",
            missing,
        );
        self.readers.values_mut().for_each(ReaderLog::sort);
    }

    /// Returns the files in which reads of one reader overlap. Such a reader stands for several threads. `None` if the log has no individual reads.
    pub(super) fn concurrently_read_files(&self) -> Option<HashSet<u32>> {
        let mut files = HashSet::new();
        for log in self.readers.values() {
            let mut ends = HashMap::new();
            for op in &log.ops {
                let end = ends.entry(op.file).or_insert(0);
                if op.start_ns < *end {
                    files.insert(op.file);
                }
                *end = op.end_ns.max(*end);
            }
        }
        (!self.readers.is_empty()).then_some(files)
    }

    /// Returns the counters of a rank for the kind of a file; `None` beyond the limits.
    pub(super) fn counters(&mut self, rank: u32, file: u32) -> Option<&mut IoCounters> {
        let is_new = !self.kind(file).ranks.contains_key(&rank);
        if is_new && (self.counters >= COUNTERS_MAX || rank >= RANKS_MAX) {
            self.lose("call", "of a rank beyond the supported number of ranks");
            return None;
        }
        self.counters += usize::from(is_new);
        Some(self.kind(file).ranks.entry(rank).or_default())
    }

    /// Returns the files of a kind, given by its index.
    pub(super) fn files_of_kind(&self, kind: usize) -> impl Iterator<Item = &FileFacts> {
        self.files.iter().filter(move |file| usize::from(file.kind) == kind)
    }

    fn kind(&mut self, file: u32) -> &mut FileKind {
        &mut self.kinds[usize::from(self.files[file as usize].kind)]
    }

    /// Extends the time span by a call, and returns the counters for it.
    fn call_counters(&mut self, call: FileCall) -> Option<&mut IoCounters> {
        self.kind(call.file).extend_span(call.start_ns, call.end_ns());
        self.counters(call.caller.rank, call.file)
    }

    fn reader(&mut self, call: FileCall) -> Option<&mut ReaderLog> {
        let key = (self.files[call.file as usize].kind, call.caller);
        if self.readers.len() >= COUNTERS_MAX && !self.readers.contains_key(&key) {
            self.lose("call", "of a thread beyond the supported number of threads");
            return None;
        }
        Some(self.readers.entry(key).or_default())
    }
}

impl FileKind {
    /// Extends the time span of calls.
    pub(super) fn extend_span(&mut self, start_ns: u64, end_ns: u64) {
        let (first, last) = self.span_ns.unwrap_or((start_ns, end_ns));
        self.span_ns = Some((first.min(start_ns), last.max(end_ns)));
    }

    /// Adds the range of a read. An unknown range makes all ranges unknown.
    fn add_range(&mut self, range: Option<FileRange>, bytes: u64, ranks_are_final: bool) {
        if bytes == 0 {
            return;
        }
        self.ranges.extend(range);
        if range.is_none() {
            self.discard_ranges();
        } else if self.ranges.len() >= RANGES_MAX {
            // Merged ranges cannot be assigned to other ranks.
            if ranks_are_final {
                self.files_read();
            } else {
                self.discard_ranges();
            }
        }
    }

    fn discard_ranges(&mut self) {
        self.ranges = Vec::new();
        self.reads.add([None]);
    }

    /// Returns the number of distinct files and bytes that were read.
    pub(super) fn files_read(&mut self) -> Option<FilesRead> {
        self.reads.add([Some(std::mem::take(&mut self.ranges))])
    }
}

/// Returns the length of the path of the innermost folder that contains both paths.
fn common_folder_length(first: &str, second: &str) -> usize {
    if first == second {
        return first.len();
    }
    let same = first.bytes().zip(second.bytes()).take_while(|(a, b)| a == b).count();
    let ends = |path: &str| path.len() == same || path.as_bytes()[same] == b'/';
    if ends(first) && ends(second) {
        return same;
    }
    first.as_bytes()[..same].iter().rposition(|&byte| byte == b'/').unwrap_or(0)
}
