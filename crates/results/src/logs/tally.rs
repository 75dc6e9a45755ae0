//! Counts what a log tells of, as a run of our own counts its reads. Memory is bounded whatever a log says: what is beyond is told
//! as lost.

use super::Lost;
use super::reader::{Op, ReaderLog};
use feedrate_measure::record::IoCounters;
use feedrate_measure::record::access::{FilesRead, Follows, bin};
use feedrate_measure::record::ranges::{FileRange, FileReads, RANGES_MAX};
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{Hash, Hasher};

/// Files that are told apart.
const FILES_MAX: usize = 1 << 20;
/// Kinds of files that are told apart.
const KINDS_MAX: usize = 64;
/// Ranks and kinds of files together.
const COUNTERS_MAX: usize = 4096;
/// Ranks of which files and bytes are known.
pub(super) const RANKS_MAX: u32 = 1 << 16;
/// Calls of all readers that are kept one by one.
const OPS_MAX: usize = 1 << 21;
/// No call reads more, and no file of a log reaches further: sums stay below 2^64.
const CALL_BYTES_MAX: u64 = 1 << 31;
const OFFSET_MAX: u64 = 1 << 43;
/// Thirteen days: calls of a rank together are told to have lasted no longer.
const NS_MAX: u64 = 1 << 50;

/// Who made a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Caller {
    pub(super) rank: u32,
    /// Thread or process; where the log does not tell them apart, 0.
    pub(super) thread: u64,
    /// Whether it is the first thread of the rank, which trains; `None` where that is not known.
    pub(super) is_first: Option<bool>,
}

/// A call on a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileCall {
    pub(super) caller: Caller,
    pub(super) file: u32,
    /// When it began, from any beginning.
    pub(super) start_ns: u64,
    /// How long it took; `None` where that is not known.
    pub(super) ns: Option<u64>,
}

impl FileCall {
    fn end_ns(self) -> u64 {
        self.start_ns.saturating_add(self.ns.unwrap_or(0))
    }
}

/// Where a reader stands in an open file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Position {
    /// Where the next read begins; `None` where that is not known.
    pub(super) offset: Option<u64>,
    pub(super) last_end: Option<u64>,
}

impl Position {
    /// `bytes` are read at `place`, or else from here on.
    pub(super) fn read(&mut self, bytes: u64, place: Option<u64>) -> ReadCall {
        let offset = place.or(self.offset);
        let end = offset.map(|offset| offset.saturating_add(bytes));
        let follows = offset.map_or(Follows::Nothing, |offset| Follows::new(self.last_end, offset));
        self.last_end = end.or(self.last_end);
        if place.is_none() {
            self.offset = end;
        }
        ReadCall { bytes, offset, follows }
    }
}

/// A read that returned something, or nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadCall {
    pub(super) bytes: u64,
    /// `None` where it is not known.
    pub(super) offset: Option<u64>,
    pub(super) follows: Follows,
}

/// A file that may be data.
pub(super) struct FileFacts {
    pub(super) kind: u16,
    /// Its length, or as much as is known of it.
    pub(super) length_bytes: u64,
    pub(super) opens: u32,
}

/// Files of one ending.
pub(super) struct FileKind {
    /// Lower case; empty without any.
    pub(super) extension: String,
    /// Folder that all lie in.
    pub(super) folder: String,
    /// One of them.
    pub(super) example: String,
    pub(super) ranks: BTreeMap<u32, IoCounters>,
    /// Time from the first call to the end of the last.
    pub(super) span_ns: Option<(u64, u64)>,
    pub(super) mapped_bytes: u64,
    /// Reads that were told one by one beside the counters.
    segments: u64,
    /// Those that are not in `reads` yet.
    ranges: Vec<FileRange>,
    reads: FileReads,
}

/// All that a log told.
pub(super) struct Tally {
    numbers: HashMap<u64, Option<u32>>,
    pub(super) files: Vec<FileFacts>,
    pub(super) kinds: Vec<FileKind>,
    pub(super) readers: BTreeMap<(u16, Caller), ReaderLog>,
    ops: usize,
    counters: usize,
    lost: BTreeMap<(&'static str, &'static str), u64>,
    /// Ranks of the job, where the log tells how many there were.
    pub(super) ranks: Option<u32>,
    /// Read by a rank of a file; `None` where there are more ranks and files than are kept.
    pub(super) read_bytes: Option<HashMap<(u32, u32), u64>>,
    /// Advice where nothing of this is data.
    pub(super) no_data_hint: &'static str,
}

impl Default for Tally {
    fn default() -> Self {
        Tally {
            numbers: HashMap::new(),
            files: Vec::new(),
            kinds: Vec::new(),
            readers: BTreeMap::new(),
            ops: 0,
            counters: 0,
            lost: BTreeMap::new(),
            ranks: None,
            read_bytes: Some(HashMap::new()),
            no_data_hint: "record the training while it reads, with the processes that it starts",
        }
    }
}

impl Tally {
    /// Count something that does not come through.
    pub(super) fn lose(&mut self, noun: &'static str, why: &'static str) {
        self.lose_many(noun, why, 1);
    }

    pub(super) fn lose_many(&mut self, noun: &'static str, why: &'static str, count: u64) {
        if count > 0 {
            *self.lost.entry((noun, why)).or_default() += count;
        }
    }

    /// Losses so far, by kind.
    pub(super) fn take_lost(&mut self) -> Vec<Lost> {
        let lost = std::mem::take(&mut self.lost).into_iter();
        lost.map(|(what, count)| Lost { count, noun: what.0, why: what.1 }).collect()
    }

    /// The number of a file; `None` of files that belong to programs, and of those that are too many.
    pub(super) fn file(&mut self, name: &str) -> Option<u32> {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(&known) = self.numbers.get(&hash) {
            return known;
        }
        if self.numbers.len() >= FILES_MAX {
            self.lose("file", "beyond the number that is told apart");
            return None;
        }
        let number = if is_of_programs(name) { None } else { self.add_file(name) };
        self.numbers.insert(hash, number);
        number
    }

    fn add_file(&mut self, name: &str) -> Option<u32> {
        let (folder, own) = name.rsplit_once('/').unwrap_or(("", name));
        let extension = extension(own);
        let at = match self.kinds.iter().position(|kind| kind.extension == extension) {
            Some(at) => {
                let kind = &mut self.kinds[at];
                kind.folder.truncate(shared_folder(&kind.folder, folder));
                at
            }
            None if self.kinds.len() < KINDS_MAX => {
                self.kinds.push(FileKind {
                    extension,
                    folder: folder.into(),
                    example: own.into(),
                    ranks: BTreeMap::new(),
                    span_ns: None,
                    mapped_bytes: 0,
                    segments: 0,
                    ranges: Vec::new(),
                    reads: FileReads::new(1),
                });
                self.kinds.len() - 1
            }
            None => {
                self.lose("file", "of more endings than are told apart");
                return None;
            }
        };
        self.files.push(FileFacts { kind: at as u16, length_bytes: 0, opens: 0 });
        Some((self.files.len() - 1) as u32)
    }

    /// A file was opened to be read.
    pub(super) fn opened(&mut self, call: FileCall, name: &str) {
        let Some(io) = self.call(call) else { return };
        io.opens += 1;
        if let Some(ns) = call.ns {
            add_ns(&mut io.open_ns, ns);
            io.open_latency.record(ns);
        }
        self.opened_times(call.file, 1);
        if let Some(reader) = self.reader(call) {
            reader.opened(name);
        }
    }

    /// A call on an open file that reads nothing: seek, length, close.
    pub(super) fn looked(&mut self, call: FileCall) {
        if let Some(io) = self.call(call) {
            add_ns(&mut io.open_ns, call.ns.unwrap_or(0));
        }
    }

    /// `bytes` of a file are known to be there.
    pub(super) fn length(&mut self, file: u32, bytes: u64) {
        let facts = &mut self.files[file as usize];
        facts.length_bytes = facts.length_bytes.max(bytes.min(OFFSET_MAX));
    }

    /// A file was mapped into memory.
    pub(super) fn mapped(&mut self, call: FileCall, bytes: u64) {
        self.looked(call);
        self.kind(call.file).mapped_bytes += bytes.min(CALL_BYTES_MAX);
    }

    /// A file was read.
    pub(super) fn read(&mut self, call: FileCall, read: ReadCall) {
        let ReadCall { bytes, offset, follows } = read;
        if self.is_impossible(bytes, offset) {
            return;
        }
        let Some(io) = self.call(call) else { return };
        io.reads += 1;
        io.read_bytes += bytes;
        io.access.read(bytes, follows);
        if let Some(ns) = call.ns {
            add_ns(&mut io.read_ns, ns);
            add_ns(&mut io.size_ns[bin(bytes)], ns);
            io.read_latency.record(ns);
        }
        self.read_by(call.caller.rank, call.file, bytes);
        self.place(call, offset, bytes);
    }

    /// Whether a read is of more than a file can hold, which is told.
    fn is_impossible(&mut self, bytes: u64, offset: Option<u64>) -> bool {
        let is_impossible = bytes > CALL_BYTES_MAX || offset.is_some_and(|at| at > OFFSET_MAX);
        self.lose_many("read", "of more than a file can hold", u64::from(is_impossible));
        is_impossible
    }

    /// So much of a file was read by a rank.
    pub(super) fn read_by(&mut self, rank: u32, file: u32, bytes: u64) {
        let Some(kept) = &mut self.read_bytes else { return };
        let read_bytes = kept.entry((rank, file)).or_default();
        *read_bytes = read_bytes.saturating_add(bytes);
        if kept.len() > FILES_MAX {
            self.read_bytes = None;
            self.lose("log", "of more ranks and files than are kept: its epochs are not told from ranks that read the same");
        }
    }

    /// A read that counters have counted.
    pub(super) fn segment(&mut self, call: FileCall, offset: u64, bytes: u64) {
        if !self.is_impossible(bytes, Some(offset)) && self.call(call).is_some() {
            self.kind(call.file).segments += 1;
            self.place(call, Some(offset), bytes);
        }
    }

    /// Where and when something was read.
    fn place(&mut self, call: FileCall, offset: Option<u64>, bytes: u64) {
        let FileCall { caller, file, start_ns, .. } = call;
        let range = offset.and_then(|start| FileRange::new(file, start, bytes, caller.rank));
        self.kind(file).add_range(range, bytes);
        self.length(file, offset.unwrap_or(0) + bytes);
        if self.ops >= OPS_MAX {
            return self.lose("read", "too many to tell batches and compute by");
        }
        let op = Op { start_ns, end_ns: call.end_ns(), bytes, file, is_new_file: false };
        if let Some(reader) = self.reader(call) {
            reader.push(op);
            self.ops += 1;
        }
    }

    /// Counters are of a log of so many ranks.
    pub(super) fn has_ranks(&mut self, ranks: u32) {
        self.ranks = Some(ranks.min(COUNTERS_MAX as u32));
    }

    /// How often a file was opened.
    pub(super) fn opened_times(&mut self, file: u32, opens: u64) {
        let facts = &mut self.files[file as usize];
        facts.opens = facts.opens.saturating_add(u32::try_from(opens).unwrap_or(u32::MAX));
    }

    /// Calls on a file were made from one time to another.
    pub(super) fn lasted(&mut self, file: u32, start_ns: u64, end_ns: u64) {
        self.kind(file).lasted(start_ns, end_ns.max(start_ns));
    }

    /// Forget places of reads, but where each read that was counted has been told by itself.
    pub(super) fn compare_with_segments(&mut self) {
        let mut lacking = 0;
        for kind in &mut self.kinds {
            let reads: u64 = kind.ranks.values().map(|io| io.reads).sum();
            if reads != kind.segments {
                lacking += reads.saturating_sub(kind.segments);
                kind.forget_ranges();
            }
        }
        self.lose_many(
            "read",
            "without a segment of DXT: its place and time are not known",
            lacking,
        );
        self.readers.values_mut().for_each(ReaderLog::sort);
    }

    /// Files of which a thread or process that is told as one began a read before the end of another; `None` where no reads are told.
    pub(super) fn files_at_a_time(&self) -> Option<HashSet<u32>> {
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

    /// Counters of the rank for the kind of a file.
    pub(super) fn counters(&mut self, rank: u32, file: u32) -> Option<&mut IoCounters> {
        let is_new = !self.kind(file).ranks.contains_key(&rank);
        if is_new && (self.counters >= COUNTERS_MAX || rank >= RANKS_MAX) {
            self.lose("call", "of more ranks than are told apart");
            return None;
        }
        self.counters += usize::from(is_new);
        Some(self.kind(file).ranks.entry(rank).or_default())
    }

    /// Files of one kind, by its place.
    pub(super) fn files_of(&self, kind: usize) -> impl Iterator<Item = &FileFacts> {
        self.files.iter().filter(move |file| usize::from(file.kind) == kind)
    }

    fn kind(&mut self, file: u32) -> &mut FileKind {
        &mut self.kinds[usize::from(self.files[file as usize].kind)]
    }

    /// Counters of the caller's rank for the kind of the file.
    fn call(&mut self, call: FileCall) -> Option<&mut IoCounters> {
        self.kind(call.file).lasted(call.start_ns, call.end_ns());
        self.counters(call.caller.rank, call.file)
    }

    fn reader(&mut self, call: FileCall) -> Option<&mut ReaderLog> {
        let key = (self.files[call.file as usize].kind, call.caller);
        if self.readers.len() >= COUNTERS_MAX && !self.readers.contains_key(&key) {
            self.lose("call", "of more threads than are told apart");
            return None;
        }
        Some(self.readers.entry(key).or_default())
    }
}

impl FileKind {
    /// Calls were made from one time to another.
    pub(super) fn lasted(&mut self, start_ns: u64, end_ns: u64) {
        let (first, last) = self.span_ns.unwrap_or((start_ns, end_ns));
        self.span_ns = Some((first.min(start_ns), last.max(end_ns)));
    }

    /// Add a range; one that is not known makes all of them unknown.
    fn add_range(&mut self, range: Option<FileRange>, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.ranges.extend(range);
        if range.is_none() {
            self.forget_ranges();
        } else if self.ranges.len() >= RANGES_MAX {
            self.files_read();
        }
    }

    fn forget_ranges(&mut self) {
        self.ranges = Vec::new();
        self.reads.add([None]);
    }

    /// Files and bytes that were read, each once.
    pub(super) fn files_read(&mut self) -> Option<FilesRead> {
        self.reads.add([Some(std::mem::take(&mut self.ranges))])
    }
}

/// No log makes a sum overflow.
pub(super) fn add_ns(sum: &mut u64, ns: u64) {
    *sum = sum.saturating_add(ns).min(NS_MAX);
}

/// Lower case; empty of names that have none, or a number in its place.
fn extension(name: &str) -> String {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_one = ending.len() <= 16 && ending.chars().any(|char| char.is_ascii_alphabetic());
    if is_one { ending.to_ascii_lowercase() } else { String::new() }
}

/// Length of the path of the folder that holds both.
fn shared_folder(one: &str, other: &str) -> usize {
    if one == other {
        return one.len();
    }
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let ends = |path: &str| path.len() == same || path.as_bytes()[same] == b'/';
    if ends(one) && ends(other) {
        return same;
    }
    one.as_bytes()[..same].iter().rposition(|&byte| byte == b'/').unwrap_or(0)
}

/// Folders of the system, and of what programs are made of.
const OF_SYSTEM: [&str; 11] = [
    "/proc/",
    "/sys/",
    "/etc/",
    "/usr/",
    "/lib/",
    "/lib32/",
    "/lib64/",
    "/bin/",
    "/sbin/",
    "/run/",
    "/var/lib/",
];
const OF_PROGRAMS: [&str; 4] = ["/site-packages/", "/dist-packages/", "/lib/python", "/.cache/"];
const PROGRAM_ENDINGS: [&str; 14] = [
    "py", "pyc", "pyo", "so", "pth", "cfg", "ini", "toml", "yaml", "yml", "egg-link", "conf", "sh",
    "log",
];

/// Whether a file belongs to a program and not to its data.
fn is_of_programs(name: &str) -> bool {
    let own = name.rsplit('/').next().unwrap_or_default();
    let is_device = name.starts_with("/dev/") && !name.starts_with("/dev/shm/");
    // Tensors on their way between processes.
    let is_shared_memory = name.starts_with("/dev/shm/")
        && ["torch_", "sem.", "psm_", "pym-"].iter().any(|start| own.starts_with(start));
    let is_path = name.starts_with('/') || !name.contains(":[");
    !is_path
        || is_device
        || is_shared_memory
        || name.starts_with("/memfd:")
        || OF_SYSTEM.iter().any(|folder| name.starts_with(folder))
        || OF_PROGRAMS.iter().any(|part| name.contains(part))
        || own.contains(".so.")
        // Of a dataset of ours; our other notes are hidden, and so is what is being written.
        || own == "manifest.json"
        || own.starts_with('.')
        || PROGRAM_ENDINGS.contains(&extension(own).as_str())
}
