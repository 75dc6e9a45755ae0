//! Reads logs of `strace -f -ttt -T`, optionally with `-y` and `-ff`. The two lines of an interrupted call are joined, and each descriptor is
//! resolved to a file, also in forked processes.

mod line;
mod processes;

use self::line::{SystemCall, TimedLine};
use self::processes::{OpenFile, Process, Processes, Shared};
use super::lines::Lines;
use super::process_tree::NumberedProcesses;
use super::tally::{FileCall, Position, Tally};
use super::{Input, LogError, LogKind, LogPart};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::io;
use std::rc::Rc;

pub(super) static KIND: LogKind = LogKind {
    name: "strace",
    summary: "output of `strace -f -ttt -T`, also with `-y` and `-ff`",
    input: Input::Text,
    detect: |_, head| {
        // Accepts other time formats too, which `read` refuses with a hint.
        head.lines().take(64).any(|text| {
            let starts = text.match_indices(' ').map(|(space, _)| space + 1).take(24);
            [0].into_iter().chain(starts).any(|start| has_call(&text[start..]))
        })
    },
    has_content: |_| true,
    read,
};

/// Maximum length of an unfinished call.
const UNFINISHED_BYTES_MAX: usize = 8 << 10;
/// Name of the call whose result is an address, which may look negative.
const MAP: &str = "mmap";
/// Inverse of the maximum share of calls that are earlier than the previous call. A log with a larger share has no usable clock.
const BACKWARD_DIVISOR: u64 = 8;
/// Upper limit of the time that strace adds to a call. Calls of a few microseconds take 15 to 40 µs under strace.
const OVERHEAD_NS: u64 = 40_000;
const NO_DATA_HINT: &str =
    "record training while it reads data, with `-f` for the processes that it starts";
const UNFINISHED: &str = "<unfinished ...>";
/// Largest share of unreadable calls that is negligible, in percent.
const UNREADABLE_PERCENT_MAX: f64 = 1.0;

fn has_call(rest: &str) -> bool {
    line::parse_call(rest).is_some() || rest.ends_with(UNFINISHED) || rest.starts_with("<... ")
}

fn read(parts: Vec<LogPart>) -> Result<Tally, LogError> {
    let mut reader = StraceReader::default();
    reader.tally.ranks_are_final = false;
    reader.tally.no_data_hint = NO_DATA_HINT;
    let mut lines = merge_parts(parts)?;
    let mut untimed = 0;
    let mut has_times_of_day = false;
    let mut is_cut = false;
    while let Some(line) = lines.next()? {
        let problems_before = reader.unreadable + untimed;
        match line::parse_line(&line.text) {
            Some(timed) => reader.read_line(timed, &line),
            None => {
                let is_call = !line.text.trim().is_empty() && !line.text.starts_with("strace: ");
                untimed += u64::from(is_call);
                has_times_of_day |= is_call && line::has_time_of_day(&line.text);
            }
        }
        is_cut = problems_before < reader.unreadable + untimed;
        if let Some(repeated) = reader.repeated.take()
            && lines.has_more(repeated.other_part)
        {
            return Err(LogError::new(
                format!("two of its files have calls of process {} at the same time", repeated.pid),
                "give each log once, and the logs of each machine separately",
            ));
        }
    }
    if are_separate_jobs(reader.spans.values()) {
        return Err(LogError::new(
            "its files are logs of separate jobs: one ended before the next began",
            "import each log alone",
        ));
    }
    let running = reader.processes.running();
    let StraceReader { mut tally, processes, calls, timed_calls, backward, .. } = reader;
    if 0 < reader.exits || is_cut {
        let why = "still running when the log ends: the job may be larger";
        tally.lose_many("process", why, running);
    }
    let unreadable_percent =
        100.0 * reader.unreadable as f64 / (calls + reader.unreadable).max(1) as f64;
    if UNREADABLE_PERCENT_MAX < unreadable_percent {
        tally.unreadable_percent = Some(unreadable_percent);
        tally.hides_reads = true;
    }
    // Only other output can follow the ends of all processes.
    tally.is_cut = is_cut && 0 < running;
    tally.first_ns = reader.first_ns;
    tally.processes =
        NumberedProcesses { first_threads: processes.first_threads(), tree: processes.tree };
    tally.overhead_ns = OVERHEAD_NS;
    tally.lose_many("line", "without a time of `strace -ttt`", untimed);
    lines.parts.iter().for_each(|(_, part)| part.report_lost(&mut tally));
    if calls == 0 || backward * BACKWARD_DIVISOR > calls {
        let problem = match (calls, has_times_of_day) {
            (0, true) => "its lines have times of day (`-t`, `-tt`) instead of times since 1970",
            (0, false) => "its lines have no times since 1970",
            _ => "its times often go backwards, as with `strace -r`",
        };
        return Err(LogError::new(problem, "record it with `strace -f -ttt -T -y -o LOG COMMAND`"));
    }
    tally.lose_many("call", "with an earlier time than the call before it", backward);
    if timed_calls == 0 {
        tally.lose("log", "without `-T`, so that the time in I/O is unknown");
    }
    Ok(tally)
}

/// Returns whether the process trees of several files follow each other, as those of separate jobs do.
fn are_separate_jobs<'a>(files: impl Iterator<Item = &'a FileSpan>) -> bool {
    let mut trees: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for file in files {
        let (first_ns, last_ns) = trees.entry(file.root).or_insert((file.first_ns, file.last_ns));
        *first_ns = file.first_ns.min(*first_ns);
        *last_ns = file.last_ns.max(*last_ns);
    }
    let mut spans: Vec<(u64, u64)> = trees.into_values().collect();
    spans.sort_unstable();
    let mut last_end_ns = None;
    spans.into_iter().any(|(first_ns, last_ns)| {
        let follows = last_end_ns.is_some_and(|end_ns| end_ns < first_ns);
        last_end_ns = last_end_ns.max(Some(last_ns));
        follows
    })
}

/// The time from the first to the last line of a file.
struct FileSpan {
    /// The first ancestor of the process of the first line.
    root: u64,
    first_ns: u64,
    last_ns: u64,
}

/// The lines of all files of a log, merged by time. Each part has the process ID from its file name, if there are several files.
struct MergedLines<'a> {
    parts: Vec<(Option<u64>, Lines<'a>)>,
    /// Time, part and text of the next line of each part.
    next: BinaryHeap<Reverse<(u64, usize, String)>>,
}

/// A line of a merged log.
struct MergedLine {
    part: usize,
    /// The process of the file, for lines without a process.
    file_pid: Option<u64>,
    text: String,
}

fn merge_parts<'a>(parts: Vec<LogPart<'a>>) -> io::Result<MergedLines<'a>> {
    let is_single = parts.len() == 1;
    let parts = parts.into_iter().map(|part| {
        let suffix = if is_single { None } else { part.name.rsplit('.').next() };
        (suffix.and_then(|pid| pid.parse().ok()), Lines::new(part.text))
    });
    let mut merged = MergedLines { parts: parts.collect(), next: BinaryHeap::new() };
    for part in 0..merged.parts.len() {
        merged.queue_next(part, 0)?;
    }
    Ok(merged)
}

impl MergedLines<'_> {
    /// Queues the next line of a part. A line without a time follows the previous line of its part.
    fn queue_next(&mut self, part: usize, last_ns: u64) -> io::Result<()> {
        if let Some(text) = self.parts[part].1.next()? {
            let ns = line::parse_line(&text).map_or(last_ns, |timed| timed.ns);
            self.next.push(Reverse((ns, part, text)));
        }
        Ok(())
    }

    fn next(&mut self) -> io::Result<Option<MergedLine>> {
        let Some(Reverse((ns, part, text))) = self.next.pop() else { return Ok(None) };
        self.queue_next(part, ns)?;
        Ok(Some(MergedLine { part, file_pid: self.parts[part].0, text }))
    }

    /// Returns whether a part has further lines.
    fn has_more(&self, part: usize) -> bool {
        self.next.iter().any(|Reverse((_, next_part, _))| *next_part == part)
    }
}

#[derive(Default)]
struct StraceReader {
    tally: Tally,
    processes: Processes,
    /// Start time and text of unfinished calls, by process.
    unfinished: HashMap<u64, (u64, String)>,
    calls: u64,
    /// Number of calls with a duration.
    timed_calls: u64,
    /// Number of calls that are earlier than the process's previous call.
    backward: u64,
    /// Number of calls that were cut off, not understood or without their beginning.
    unreadable: u64,
    /// Number of ends of processes and threads.
    exits: u64,
    /// Time of the earliest line.
    first_ns: Option<u64>,
    /// Times of each file.
    spans: BTreeMap<usize, FileSpan>,
    /// The process of the last line, if a line of it before was in another file.
    repeated: Option<RepeatedProcess>,
}

/// A process with lines in two files.
struct RepeatedProcess {
    pid: u64,
    other_part: usize,
}

/// A call of a process, with its start time.
#[derive(Clone, Copy)]
struct ProcessCall<'c> {
    process: &'c Shared<Process>,
    call: &'c SystemCall<'c>,
    start_ns: u64,
}

impl ProcessCall<'_> {
    fn argument(&self, index: usize) -> &str {
        self.call.arguments.get(index).copied().unwrap_or_default()
    }
}

impl StraceReader {
    /// Reads `timed`, which was parsed from `line`.
    fn read_line(&mut self, timed: TimedLine, line: &MergedLine) {
        let TimedLine { pid: line_pid, ns, rest } = timed;
        let known_pid = line_pid.or(line.file_pid);
        let pid = known_pid.unwrap_or(0);
        self.first_ns = Some(self.first_ns.map_or(ns, |first_ns| first_ns.min(ns)));
        if let Some(span) = self.spans.get_mut(&line.part) {
            span.last_ns = span.last_ns.max(ns);
        }
        if rest.starts_with("+++ ") {
            self.exits += 1;
            self.processes.remove(pid);
            self.unfinished.remove(&pid);
            return;
        }
        if rest.starts_with("--- ") {
            return;
        }
        if !self.processes.has(pid) && !self.add_process(pid) {
            return self
                .tally
                .lose("line", "of a process beyond the supported number of processes");
        }
        let process = self.processes.find(pid);
        if let Some(process) = &process {
            let root = process.borrow().root;
            let span = FileSpan { root, first_ns: ns, last_ns: ns };
            self.spans.entry(line.part).or_insert(span);
        }
        let part_before = process.and_then(|process| process.borrow_mut().part.replace(line.part));
        self.repeated = part_before
            .filter(|&other_part| other_part != line.part && known_pid.is_some())
            .map(|other_part| RepeatedProcess { pid, other_part });
        if let Some(text) = rest.strip_suffix(UNFINISHED) {
            if text.len() <= UNFINISHED_BYTES_MAX {
                self.unfinished.insert(pid, (ns, text.trim_end().into()));
            }
            return;
        }
        if let Some(resumed) = rest.strip_prefix("<... ") {
            let Some((start_ns, start)) = self.unfinished.remove(&pid) else {
                self.unreadable += 1;
                return self.tally.lose("call", "whose beginning is not in the log");
            };
            let Some((_, end)) = resumed.split_once("resumed>") else { return self.lose_line() };
            return self.read_call(pid, start_ns, &format!("{start}{end}"));
        }
        self.read_call(pid, ns, rest);
    }

    /// Adds a process at its first line. Its parent is the process with the latest unfinished fork, if there is one.
    fn add_process(&mut self, pid: u64) -> bool {
        let forking = self.unfinished.iter().filter(|(_, (_, text))| processes::is_fork(text));
        match forking.max_by_key(|(_, (start_ns, _))| *start_ns) {
            Some((&parent, (_, text))) => self.processes.fork(parent, pid as i64, text),
            None => self.processes.add_without_parent(pid),
        }
        self.processes.has(pid)
    }

    fn lose_line(&mut self) {
        self.unreadable += 1;
        self.tally.lose("line", "not understood or cut off");
    }

    /// Reads a complete call.
    fn read_call(&mut self, pid: u64, start_ns: u64, text: &str) {
        let Some(call) = line::parse_call(text) else {
            return self.lose_line();
        };
        self.calls += 1;
        self.timed_calls += u64::from(call.ns.is_some());
        let Some(process) = self.processes.find(pid) else { return };
        self.backward += u64::from(start_ns < process.borrow().last_ns);
        process.borrow_mut().last_ns = start_ns;
        let Some(returned) = call.returned.filter(|&value| value >= 0 || call.name == MAP) else {
            return;
        };
        if processes::is_fork(call.name) {
            return self.processes.fork(pid, returned, text);
        }
        self.apply(ProcessCall { process: &process, call: &call, start_ns }, returned);
    }

    fn apply(&mut self, event: ProcessCall, returned: i64) {
        let ProcessCall { process, call, .. } = event;
        let number = |index: usize| {
            line::parse_descriptor(event.argument(index)).0.map(|value| value as u64)
        };
        match call.name {
            "open" => self.open(event, None),
            "openat" | "openat2" => self.open(event, Some(event.argument(0))),
            "read" | "readv" => self.read(event, returned as u64, None),
            "pread64" | "pread" | "preadv" | "preadv2" => {
                self.read(event, returned as u64, number(3));
            }
            "poll" | "ppoll" | "select" | "pselect6" | "epoll_wait" | "epoll_pwait" => {
                self.tally.add_pause(process.borrow().serial, call.ns, false);
            }
            "lseek" => self.seek(event, returned as u64),
            "close" => {
                self.add_metadata_call(event, None);
                self.close(event);
                let descriptor = line::parse_descriptor(event.argument(0)).0;
                descriptor.map(|number| process.borrow().files.borrow_mut().remove(&number));
            }
            "fstat" | "newfstatat" | "statx" | "fstat64" => {
                self.add_metadata_call(event, length(&call.arguments));
            }
            "dup" | "dup2" | "dup3" => process.borrow().duplicate(event.argument(0), returned),
            "fcntl" if event.argument(1).starts_with("F_DUPFD") => {
                process.borrow().duplicate(event.argument(0), returned);
            }
            MAP => self.map(event, number(1).unwrap_or(0)),
            "execve" | "execveat" => self.processes.execute(process, &call.arguments),
            "io_uring_enter" | "io_submit" => {
                let why = "of io_uring or libaio, whose reads are not in the log";
                self.tally.lose_reads("call", why, 1);
            }
            "sendfile" | "copy_file_range" | "splice" => {
                self.tally.lose("call", "copying between descriptors, not counted as a read");
            }
            _ => {}
        }
    }

    /// Reads an open. `folder` is the argument with the folder's descriptor, if the call has one.
    fn open(&mut self, event: ProcessCall, folder: Option<&str>) {
        let ProcessCall { process, call, .. } = event;
        let path_argument = usize::from(folder.is_some());
        let Some(number) = call.returned else { return };
        let argument_path = || {
            let path = line::parse_quoted(event.argument(path_argument))?;
            if path.starts_with('/') {
                return Some(path);
            }
            let (folder_number, folder_path) = line::parse_descriptor(folder.unwrap_or_default());
            let from_descriptor =
                || Some(process.borrow().find(folder_number?)?.borrow().path.clone());
            Some(match folder_path.or_else(from_descriptor) {
                Some(folder) => format!("{}/{path}", folder.trim_end_matches('/')),
                None => path,
            })
        };
        let Some(path) = call.path.clone().or_else(argument_path) else { return };
        let flags = event.argument(path_argument + 1);
        let is_read =
            !["O_WRONLY", "O_DIRECTORY", "O_PATH"].iter().any(|flag| flags.contains(flag));
        let file = if is_read { self.tally.file(&path) } else { None };
        if let Some(file) = file {
            let call = self.file_call(event, file);
            self.tally.add_open(call, &path);
        }
        let position = Position { offset: Some(0), last_end: None };
        let opened = OpenFile { file, path, position };
        process.borrow().insert_file(number, Rc::new(RefCell::new(opened)));
    }

    /// Returns the open file of a descriptor. Files that were opened before the log began are identified by the path that `-y` adds.
    fn open_file(&mut self, process: &Shared<Process>, argument: &str) -> Option<Shared<OpenFile>> {
        let (number, path) = line::parse_descriptor(argument);
        if let Some(known) = process.borrow().find(number?)
            && path.as_ref().is_none_or(|path| known.borrow().may_have_path(path))
        {
            return Some(known);
        }
        let path = path?;
        let file = self.tally.file(&path);
        let opened = Rc::new(RefCell::new(OpenFile { file, path, position: Position::default() }));
        process.borrow().insert_file(number?, opened.clone());
        Some(opened)
    }

    fn file_call(&mut self, event: ProcessCall, file: u32) -> FileCall {
        let caller = self.processes.caller(event.process);
        FileCall { caller, file, start_ns: event.start_ns, ns: event.call.ns }
    }

    fn read(&mut self, event: ProcessCall, bytes: u64, offset: Option<u64>) {
        let thread = event.process.borrow().serial;
        let Some(open) = self.open_file(event.process, event.argument(0)) else {
            if event.process.borrow().is_complete {
                self.tally.add_pause(thread, event.call.ns, bytes > 0);
            } else {
                self.tally.lose("read", "of a pipe, or of a file opened before the log began");
            }
            return;
        };
        let mut open = open.borrow_mut();
        let Some(file) = open.file else {
            if processes::is_connection(&open.path) {
                self.tally.add_pause(thread, event.call.ns, bytes > 0);
            }
            return;
        };
        let call = self.file_call(event, file);
        self.tally.add_read(call, open.position.read(bytes, offset));
    }

    fn seek(&mut self, event: ProcessCall, offset: u64) {
        let Some(open) = self.open_file(event.process, event.argument(0)) else { return };
        open.borrow_mut().position.offset = Some(offset);
        self.add_metadata_call(event, (event.argument(2) == "SEEK_END").then_some(offset));
    }

    /// Counts a call that reads no data. `length` is the length of the file, if the call returned it.
    fn add_metadata_call(&mut self, event: ProcessCall, length: Option<u64>) {
        let Some(open) = self.open_file(event.process, event.argument(0)) else { return };
        if let Some(file) = open.borrow().file {
            let call = self.file_call(event, file);
            self.tally.add_metadata_call(call);
            self.tally.set_length(file, length.unwrap_or(0));
        }
    }

    fn close(&mut self, event: ProcessCall) {
        let Some(open) = self.open_file(event.process, event.argument(0)) else { return };
        if let Some(file) = open.borrow().file {
            let call = self.file_call(event, file);
            self.tally.close(call);
        }
    }

    fn map(&mut self, event: ProcessCall, bytes: u64) {
        let Some(open) = self.open_file(event.process, event.argument(4)) else { return };
        if let Some(file) = open.borrow().file {
            let call = self.file_call(event, file);
            self.tally.add_mapping(call, bytes);
        }
    }
}

/// Finds the length of a file in the result of a stat call.
fn length(arguments: &[&str]) -> Option<u64> {
    let digits = arguments.iter().find_map(|text| {
        let (_, rest) = text.split_once("st_size=").or_else(|| text.split_once("stx_size="))?;
        rest.split(|char: char| !char.is_ascii_digit()).next()
    });
    digits?.parse().ok()
}
