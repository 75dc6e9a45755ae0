//! Logs of `strace -f -ttt -T`, with `-y` and `-ff` too: calls are put back together, and descriptors followed through
//! processes to files.

mod line;
mod processes;

use self::line::{SystemCall, TimedLine};
use self::processes::{Description, Process, Processes, Shared};
use super::lines::Lines;
use super::tally::{FileCall, Position, Tally};
use super::{Input, LogError, LogKind, LogPart};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::rc::Rc;

pub(super) static KIND: LogKind = LogKind {
    name: "strace",
    summary: "what `strace -f -ttt -T` writes, with `-y` and `-ff` too",
    input: Input::Text,
    is: |_, head| {
        // Of other clocks too: these are refused with what to use.
        head.lines().take(64).any(|text| {
            let starts = text.match_indices(' ').map(|space| space.0 + 1).take(24);
            [0].into_iter().chain(starts).any(|start| has_call(&text[start..]))
        })
    },
    read,
};

/// Bytes of a call that is not finished that are kept.
const UNFINISHED_BYTES_MAX: usize = 8 << 10;
/// Its result is an address, which may look negative.
const MAP: &str = "mmap";
/// A log has no clock of which more than one call in so many goes back.
const BACKWARD: u64 = 8;
const UNFINISHED: &str = "<unfinished ...>";

fn has_call(rest: &str) -> bool {
    line::call(rest).is_some() || rest.ends_with(UNFINISHED) || rest.starts_with("<... ")
}

fn read(parts: Vec<LogPart>) -> Result<Tally, LogError> {
    let mut reader = StraceReader::default();
    let mut lines = merged(parts)?;
    let mut passed = 0;
    while let Some((own, text)) = lines.next()? {
        match line::timed(&text) {
            Some(timed) => reader.line(timed, own),
            None => passed += u64::from(!text.trim().is_empty() && !text.starts_with("strace: ")),
        }
    }
    let StraceReader { mut tally, understood, timed_calls, backward, .. } = reader;
    tally.lose_many("line", "without a time of `strace -ttt`", passed);
    lines.parts.iter().for_each(|part| part.1.tell(&mut tally));
    if understood == 0 || backward * BACKWARD > understood {
        let what = if understood == 0 {
            "no call of `strace` with its time since 1970 is in it"
        } else {
            "its times go back again and again, as those of `strace -r`"
        };
        return Err(LogError::new(what, "record it with `strace -f -ttt -T -y -o LOG COMMAND`"));
    }
    tally.lose_many("call", "with a time before that of the call before it", backward);
    if timed_calls == 0 {
        tally.lose("log", "without `-T`: time in I/O is not known");
    }
    Ok(tally)
}

/// Lines of all files of a log, by their times.
struct MergedLines<'a> {
    parts: Vec<(Option<u64>, Lines<'a>)>,
    /// The next line of each part.
    next: BinaryHeap<Reverse<(u64, usize, String)>>,
}

fn merged<'a>(parts: Vec<LogPart<'a>>) -> io::Result<MergedLines<'a>> {
    let is_one = parts.len() == 1;
    let parts = parts.into_iter().map(|part| {
        let own = if is_one { None } else { part.name.rsplit('.').next() };
        (own.and_then(|own| own.parse().ok()), Lines::new(part.text))
    });
    let mut merged = MergedLines { parts: parts.collect(), next: BinaryHeap::new() };
    for at in 0..merged.parts.len() {
        merged.fill(at, 0)?;
    }
    Ok(merged)
}

impl MergedLines<'_> {
    /// Put the next line of a part among those of the others; what has no time comes right after the one before.
    fn fill(&mut self, at: usize, last_ns: u64) -> io::Result<()> {
        if let Some(text) = self.parts[at].1.next()? {
            let ns = line::timed(&text).map_or(last_ns, |timed| timed.ns);
            self.next.push(Reverse((ns, at, text)));
        }
        Ok(())
    }

    fn next(&mut self) -> io::Result<Option<(Option<u64>, String)>> {
        let Some(Reverse((ns, at, text))) = self.next.pop() else { return Ok(None) };
        self.fill(at, ns)?;
        Ok(Some((self.parts[at].0, text)))
    }
}

#[derive(Default)]
struct StraceReader {
    tally: Tally,
    processes: Processes,
    /// Calls that have begun, with their times.
    unfinished: HashMap<u64, (u64, String)>,
    understood: u64,
    timed_calls: u64,
    /// Calls of a process before the one before.
    backward: u64,
}

/// A call that a process made, and when.
#[derive(Clone, Copy)]
struct MadeCall<'c> {
    process: &'c Shared<Process>,
    call: &'c SystemCall<'c>,
    start_ns: u64,
}

impl MadeCall<'_> {
    fn argument(&self, at: usize) -> &str {
        self.call.arguments.get(at).copied().unwrap_or_default()
    }
}

impl StraceReader {
    fn line(&mut self, timed: TimedLine, own: Option<u64>) {
        let TimedLine { pid, ns, rest } = timed;
        let pid = pid.or(own).unwrap_or(0);
        if rest.starts_with("+++ ") {
            self.processes.ended(pid);
            self.unfinished.remove(&pid);
            return;
        }
        if rest.starts_with("--- ") {
            return;
        }
        if !self.processes.has(pid) && !self.begins(pid) {
            return self.tally.lose("line", "of more processes than are told apart");
        }
        if let Some(text) = rest.strip_suffix(UNFINISHED) {
            if text.len() <= UNFINISHED_BYTES_MAX {
                self.unfinished.insert(pid, (ns, text.trim_end().into()));
            }
            return;
        }
        if let Some(resumed) = rest.strip_prefix("<... ") {
            let Some((start_ns, begun)) = self.unfinished.remove(&pid) else {
                return self.tally.lose("call", "whose beginning is not in the log");
            };
            let Some((_, rest)) = resumed.split_once("resumed>") else { return };
            return self.whole(pid, start_ns, &format!("{begun}{rest}"));
        }
        self.whole(pid, ns, rest);
    }

    /// Make a process that is seen first. Whoever is about to make one began it; else nobody is known to have.
    fn begins(&mut self, pid: u64) -> bool {
        let forking = self.unfinished.iter().filter(|of| processes::is_fork(&of.1.1));
        match forking.max_by_key(|of| of.1.0) {
            Some((&parent, (_, text))) => self.processes.forked(parent, pid as i64, text),
            None => self.processes.found(pid),
        }
        self.processes.has(pid)
    }

    fn whole(&mut self, pid: u64, start_ns: u64, text: &str) {
        let Some(call) = line::call(text) else {
            return self.tally.lose("line", "not understood, or cut off");
        };
        self.understood += 1;
        self.timed_calls += u64::from(call.ns.is_some());
        let Some(process) = self.processes.find(pid) else { return };
        self.backward += u64::from(start_ns < process.borrow().last_ns);
        process.borrow_mut().last_ns = start_ns;
        let Some(returned) = call.returned.filter(|&value| value >= 0 || call.name == MAP) else {
            return;
        };
        if processes::is_fork(call.name) {
            return self.processes.forked(pid, returned, text);
        }
        self.apply(MadeCall { process: &process, call: &call, start_ns }, returned);
    }

    fn apply(&mut self, made: MadeCall, returned: i64) {
        let MadeCall { process, call, .. } = made;
        let number = |at: usize| line::descriptor(made.argument(at)).0.map(|value| value as u64);
        match call.name {
            "open" => self.open(made, None),
            "openat" | "openat2" => self.open(made, Some(made.argument(0))),
            "read" | "readv" => self.read(made, returned as u64, None),
            "pread64" | "pread" | "preadv" | "preadv2" => {
                self.read(made, returned as u64, number(3));
            }
            "lseek" => self.seek(made, returned as u64),
            "close" => {
                self.look(made, None);
                let descriptor = line::descriptor(made.argument(0)).0;
                descriptor.map(|number| process.borrow().files.borrow_mut().remove(&number));
            }
            "fstat" | "newfstatat" | "statx" | "fstat64" => {
                self.look(made, length(&call.arguments));
            }
            "dup" | "dup2" | "dup3" => process.borrow().copied(made.argument(0), returned),
            "fcntl" if made.argument(1).starts_with("F_DUPFD") => {
                process.borrow().copied(made.argument(0), returned);
            }
            MAP => self.map(made, number(1).unwrap_or(0)),
            "execve" | "execveat" => self.processes.became(process, &call.arguments),
            "io_uring_enter" | "io_submit" => {
                self.tally.lose("call", "of io_uring or libaio: what they read is not in the log");
            }
            "sendfile" | "copy_file_range" | "splice" => {
                self.tally.lose("call", "copying between descriptors, not counted as reads");
            }
            _ => {}
        }
    }

    fn open(&mut self, made: MadeCall, folder: Option<&str>) {
        let MadeCall { process, call, .. } = made;
        let first = usize::from(folder.is_some());
        let Some(number) = call.returned else { return };
        let told = || {
            let name = line::quoted(made.argument(first))?;
            let (number, path) = line::descriptor(folder.unwrap_or_default());
            if name.starts_with('/') {
                return Some(name);
            }
            let folder =
                path.or_else(|| Some(process.borrow().find(number?)?.borrow().name.clone()));
            Some(match folder {
                Some(folder) => format!("{}/{name}", folder.trim_end_matches('/')),
                None => name,
            })
        };
        let Some(name) = call.path.clone().or_else(told) else { return };
        let flags = made.argument(first + 1);
        let is_read =
            !["O_WRONLY", "O_DIRECTORY", "O_PATH"].iter().any(|flag| flags.contains(flag));
        let file = if is_read { self.tally.file(&name) } else { None };
        if let Some(file) = file {
            let call = self.file_call(made, file);
            self.tally.opened(call, &name);
        }
        let position = Position { offset: Some(0), last_end: None };
        let opened = Description { file, name, position };
        process.borrow().keep(number, Rc::new(RefCell::new(opened)));
    }

    /// The open file of a descriptor; of one that was opened before the log began, by the path that `-y` adds.
    fn described(
        &mut self,
        process: &Shared<Process>,
        argument: &str,
    ) -> Option<Shared<Description>> {
        let (number, path) = line::descriptor(argument);
        if let Some(known) = process.borrow().find(number?)
            && path.as_ref().is_none_or(|path| known.borrow().is_named(path))
        {
            return Some(known);
        }
        let name = path?;
        let file = self.tally.file(&name);
        let opened = Description { file, name, position: Position::default() };
        let opened = Rc::new(RefCell::new(opened));
        process.borrow().keep(number?, opened.clone());
        Some(opened)
    }

    fn file_call(&mut self, made: MadeCall, file: u32) -> FileCall {
        let caller = self.processes.caller(made.process);
        FileCall { caller, file, start_ns: made.start_ns, ns: made.call.ns }
    }

    fn read(&mut self, made: MadeCall, bytes: u64, place: Option<u64>) {
        let Some(open) = self.described(made.process, made.argument(0)) else {
            if !made.process.borrow().is_whole {
                self.tally.lose("read", "of a pipe, or of a file whose opening is not in the log");
            }
            return;
        };
        let mut open = open.borrow_mut();
        let Some(file) = open.file else { return };
        let call = self.file_call(made, file);
        self.tally.read(call, open.position.read(bytes, place));
    }

    fn seek(&mut self, made: MadeCall, place: u64) {
        let Some(open) = self.described(made.process, made.argument(0)) else { return };
        open.borrow_mut().position.offset = Some(place);
        self.look(made, (made.argument(2) == "SEEK_END").then_some(place));
    }

    /// A call that reads nothing, and perhaps tells the length of a file.
    fn look(&mut self, made: MadeCall, length: Option<u64>) {
        let Some(open) = self.described(made.process, made.argument(0)) else { return };
        if let Some(file) = open.borrow().file {
            let call = self.file_call(made, file);
            self.tally.looked(call);
            self.tally.length(file, length.unwrap_or(0));
        }
    }

    fn map(&mut self, made: MadeCall, bytes: u64) {
        let Some(open) = self.described(made.process, made.argument(4)) else { return };
        if let Some(file) = open.borrow().file {
            let call = self.file_call(made, file);
            self.tally.mapped(call, bytes);
        }
    }
}

/// The length among what a call tells of a file.
fn length(arguments: &[&str]) -> Option<u64> {
    let told = arguments.iter().find_map(|text| {
        let (_, rest) = text.split_once("st_size=").or_else(|| text.split_once("stx_size="))?;
        rest.split(|char: char| !char.is_ascii_digit()).next()
    });
    told?.parse().ok()
}
