//! Reads traces of DFTracer (`.pfw` and `.pfw.gz`) and of feedrate, with one JSON event per line.

use super::lines::Lines;
use super::tally::{Caller, FileCall, Position, Tally};
use super::{Input, LogError, LogKind, LogPart};
use serde_json::Value;
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};

pub(super) static KIND: LogKind = LogKind {
    name: "dftracer",
    summary: "DFTracer's `.pfw` and `.pfw.gz`, and traces of feedrate",
    input: Input::Text,
    has_content: |_| true,
    detect: |name, _| name.ends_with(".pfw") || name.ends_with(".pfw.gz"),
    read,
};

/// Maximum number of file names.
const NAMES_MAX: usize = 1 << 19;
/// Maximum number of open files, and of processes.
const OPEN_MAX: usize = 1 << 16;
/// Number of lines at the start of each file that are searched for the event with the parent of the process.
const HEAD_LINES: usize = 64;
/// Limit of numbers in events.
const NUMBER_MAX: f64 = (1_u64 << 62) as f64;

#[derive(Default)]
struct EventReader {
    tally: Tally,
    /// Numbers and paths of files, by the hash of the path in events.
    names: HashMap<String, (Option<u32>, String)>,
    /// Positions in open files, by thread and file.
    open: HashMap<(u64, u32), Position>,
    /// Parent and hash of the command of each process.
    starts: HashMap<u64, (u64, String)>,
    /// Ranks by their first process.
    ranks: HashMap<u64, u32>,
    /// Length of the trace's unit of time in nanoseconds.
    unit_ns: f64,
    calls: u64,
}

fn read(parts: Vec<LogPart>) -> Result<Tally, LogError> {
    let mut reader = EventReader { unit_ns: 1e3, ..EventReader::default() };
    let mut opened = Vec::new();
    for part in parts {
        let mut lines = Lines::new(part.text);
        let mut head = VecDeque::new();
        while head.len() < HEAD_LINES
            && let Some(line) = lines.next()?
        {
            reader.read_start(&line);
            head.push_back(line);
        }
        opened.push((lines, head));
    }
    for (lines, head) in &mut opened {
        while let Some(line) =
            head.pop_front().map_or_else(|| lines.next(), |line| Ok(Some(line)))?
        {
            reader.read_line(&line);
        }
        lines.report_lost(&mut reader.tally);
    }
    if reader.calls == 0 {
        return Err(LogError::new(
            "it contains no events of POSIX or STDIO",
            "record it with `DFTRACER_ENABLE=1 DFTRACER_INC_METADATA=1`, which includes the names and lengths of reads",
        ));
    }
    Ok(reader.tally)
}

fn parse_event(line: &str) -> Option<Value> {
    let json = line.trim().trim_start_matches('[').trim_end_matches([',', ']']);
    if json.is_empty() { None } else { serde_json::from_str(json).ok() }
}

/// Reads a number, which may be written as a string.
fn number(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
    (number.abs() < NUMBER_MAX).then_some(number)
}

/// Reads the number of a process or thread, which may be written as a string. Other strings count as names, and equal names have equal numbers.
fn id(value: &Value) -> Option<u64> {
    if let Some(name) = value.as_str().filter(|name| !name.is_empty()) {
        return Some(name.parse().unwrap_or_else(|_| {
            let mut hasher = DefaultHasher::new();
            name.hash(&mut hasher);
            hasher.finish()
        }));
    }
    value.as_u64()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

impl EventReader {
    /// Reads the event of a process's start, if the line contains it.
    fn read_start(&mut self, line: &str) {
        let Some(event) = parse_event(line).filter(|event| event["name"] == "start") else {
            return;
        };
        if let Some(process) = id(&event["pid"])
            && let Some(parent) = id(&event["args"]["ppid"])
            && self.starts.len() < OPEN_MAX
        {
            self.starts.insert(process, (parent, text(&event["args"]["cmd_hash"])));
        }
    }

    /// Returns the first process of the rank that a process belongs to. Forked processes have the same command as their parent.
    fn root_process(&self, mut process: u64) -> u64 {
        for _ in 0..HEAD_LINES {
            let Some((parent, command)) = self.starts.get(&process) else { break };
            match self.starts.get(parent) {
                Some((_, parent_command)) if parent_command == command => process = *parent,
                _ => break,
            }
        }
        process
    }

    fn read_line(&mut self, line: &str) {
        let Some(event) = parse_event(line) else {
            let is_blank = line.trim_matches(['[', ']', ',', ' ', '\r']).is_empty();
            self.tally.lose_many("line", "without an event", u64::from(!is_blank));
            return;
        };
        let name = event["name"].as_str().unwrap_or_default();
        let arguments = &event["args"];
        match name {
            "FH" if self.names.len() < NAMES_MAX => {
                let path = text(&arguments["name"]);
                let file = self.tally.file(&path);
                self.names.insert(text(&arguments["value"]), (file, path));
            }
            "CM" if arguments["name"] == "time_metric" => {
                self.unit_ns = match arguments["value"].as_str() {
                    Some("NS") => 1.0,
                    Some("MS") => 1e6,
                    _ => 1e3,
                };
            }
            "end" => {
                let dropped = number(&arguments["dropped_events"]).unwrap_or(0.0);
                self.tally.lose_reads("event", "that the program dropped", dropped as u64);
            }
            _ if event["cat"] == "POSIX" || event["cat"] == "STDIO" => {
                self.calls += 1;
                self.read_call(name, &event);
            }
            _ => {}
        }
    }

    fn read_call(&mut self, name: &str, event: &Value) {
        let arguments = &event["args"];
        let Some((file, path)) = self.file(name, arguments) else { return };
        let Some((pid, tid)) = id(&event["pid"]).zip(id(&event["tid"])) else {
            return self.tally.lose("call", "without a process or a thread");
        };
        let Some(start) = number(&event["ts"]).filter(|&start| start >= 0.0) else { return };
        // Integers if possible: nanoseconds since 1970 exceed the precision of a float.
        let integer = || event["ts"].as_u64().or_else(|| event["ts"].as_str()?.parse().ok());
        let exact_ns = integer().and_then(|ts| ts.checked_mul(self.unit_ns as u64));
        let start_ns = exact_ns.unwrap_or((start * self.unit_ns.min(1e3)) as u64);
        let ns =
            number(&event["dur"]).filter(|&dur| dur >= 0.0).map(|dur| (dur * self.unit_ns) as u64);
        let root = self.root_process(pid);
        // Until version 1, numbers are strings, and the number of the process is added to that of the thread.
        let thread =
            if event["tid"].is_string() { tid.checked_sub(pid).unwrap_or(tid) } else { tid };
        let next = self.ranks.len() as u32;
        let caller = Caller {
            rank: *self.ranks.entry(root).or_insert(next),
            thread: tid,
            is_first: Some(pid == root && [tid, thread].contains(&pid)),
        };
        let call = FileCall { caller, file, start_ns, ns };
        let returned = number(&arguments["ret"]);
        if returned.is_some_and(|returned| returned < 0.0) {
            return;
        }
        let name = name.trim_start_matches('_');
        if name.starts_with("open") || name.starts_with("fopen") {
            if !is_for_writing(arguments) {
                self.tally.add_open(call, &path);
                self.store_position((tid, file), Position { offset: Some(0), last_end: None });
            }
        } else if ["read", "pread", "fread"].iter().any(|read| name.starts_with(read))
            && name != "readlink"
            && !name.starts_with("readdir")
        {
            let size = if name.starts_with("fread") {
                number(&arguments["size"]).unwrap_or(1.0)
            } else {
                1.0
            };
            let Some(returned) = returned else {
                return self
                    .tally
                    .lose("read", "without a length (record with DFTRACER_INC_METADATA=1)");
            };
            let offset = if name.starts_with('p') { number(&arguments["offset"]) } else { None };
            let mut position = self.open.remove(&(tid, file)).unwrap_or_default();
            let bytes = (returned * size) as u64;
            let read = position.read(bytes, offset.map(|offset| offset as u64));
            self.store_position((tid, file), position);
            self.tally.add_read(call, read);
        } else {
            if name.contains("seek") {
                let last_end = self.open.remove(&(tid, file)).and_then(|open| open.last_end);
                // `fseek` returns no offset.
                let is_stdio = name.starts_with('f');
                let offset = if is_stdio { None } else { returned.map(|returned| returned as u64) };
                self.store_position((tid, file), Position { offset, last_end });
            } else if name.starts_with("close") || name.starts_with("fclose") {
                self.open.remove(&(tid, file));
                self.tally.close(call);
            } else if name.starts_with("mmap") {
                self.tally.lose_reads("mapping", "of a file, whose reads are not in the log", 1);
            }
            self.tally.add_metadata_call(call);
        }
    }

    /// Returns the file of a call and its path; `None` for files that are not data.
    fn file(&mut self, name: &str, arguments: &Value) -> Option<(u32, String)> {
        if let Some(path) = arguments["fname"].as_str() {
            return Some((self.tally.file(path)?, path.to_string()));
        }
        if arguments["fhash"].is_null() {
            return None;
        }
        let Some((file, path)) = self.names.get(&text(&arguments["fhash"])) else {
            if name.contains("read") {
                self.tally.lose("read", "of files whose names are not in the log");
            }
            return None;
        };
        Some(((*file)?, path.clone()))
    }

    fn store_position(&mut self, key: (u64, u32), position: Position) {
        if self.open.len() < OPEN_MAX || self.open.contains_key(&key) {
            self.open.insert(key, position);
        }
    }
}

fn is_for_writing(arguments: &Value) -> bool {
    let mode = arguments["mode"].as_str().unwrap_or_default();
    let flags = number(&arguments["flags"]).filter(|&flags| flags >= 0.0).unwrap_or(0.0) as u64;
    // The lowest two bits are the access mode; 1 is O_WRONLY.
    flags & 3 == 1 || mode.starts_with(['w', 'a'])
}
