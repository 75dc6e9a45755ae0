//! DFTracer's `.pfw` and `.pfw.gz`, and traces of our own: an event a line, in JSON.

use super::lines::Lines;
use super::tally::{Caller, FileCall, Position, Tally};
use super::{Input, LogError, LogKind, LogPart};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};

pub(super) static KIND: LogKind = LogKind {
    name: "dftracer",
    summary: "DFTracer's `.pfw` and `.pfw.gz`, and traces of feedrate",
    input: Input::Text,
    is: |name, _| name.ends_with(".pfw") || name.ends_with(".pfw.gz"),
    read,
};

/// Names of files that are known at a time, and files that are open.
const NAMES_MAX: usize = 1 << 19;
const OPEN_MAX: usize = 1 << 16;
/// Lines at the beginning of each file among which a process tells who began it.
const HEAD_LINES: usize = 64;
const TIME_MAX: f64 = (1_u64 << 62) as f64;

#[derive(Default)]
struct EventReader {
    tally: Tally,
    names: HashMap<String, (Option<u32>, String)>,
    /// Files that threads have open.
    open: HashMap<(u64, u32), Position>,
    /// Who began a process, and with which command.
    starts: HashMap<u64, (u64, String)>,
    ranks: HashMap<u64, u32>,
    /// Nanoseconds of a unit of time.
    unit_ns: f64,
    understood: u64,
}

fn read(parts: Vec<LogPart>) -> Result<Tally, LogError> {
    let mut reader = EventReader { unit_ns: 1e3, ..EventReader::default() };
    let mut opened = Vec::new();
    for part in parts {
        let (mut lines, mut head) = (Lines::new(part.text), VecDeque::new());
        while head.len() < HEAD_LINES
            && let Some(line) = lines.next()?
        {
            reader.start(&line);
            head.push_back(line);
        }
        opened.push((lines, head));
    }
    for (lines, head) in &mut opened {
        while let Some(line) =
            head.pop_front().map_or_else(|| lines.next(), |line| Ok(Some(line)))?
        {
            reader.line(&line);
        }
        lines.tell(&mut reader.tally);
    }
    if reader.understood == 0 {
        return Err(LogError::new(
            "no event of POSIX or STDIO is in it",
            "record it with `DFTRACER_ENABLE=1 DFTRACER_INC_METADATA=1`, which tells the names and lengths of reads",
        ));
    }
    Ok(reader.tally)
}

fn event(line: &str) -> Option<Value> {
    let line = line.trim().trim_start_matches('[').trim_end_matches([',', ']']);
    if line.is_empty() { None } else { serde_json::from_str(line).ok() }
}

/// A number, or a text that is one.
fn number(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
    (number.abs() < TIME_MAX).then_some(number)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

impl EventReader {
    fn start(&mut self, line: &str) {
        let Some(event) = event(line).filter(|event| event["name"] == "start") else { return };
        let process = [&event["pid"], &event["args"]["ppid"]].map(Value::as_u64);
        if let [Some(own), Some(parent)] = process
            && self.starts.len() < OPEN_MAX
        {
            self.starts.insert(own, (parent, text(&event["args"]["cmd_hash"])));
        }
    }

    /// The process that a rank began with: one that forks runs the same command.
    fn root(&self, mut process: u64) -> u64 {
        for _ in 0..HEAD_LINES {
            let Some((parent, command)) = self.starts.get(&process) else { break };
            match self.starts.get(parent) {
                Some(of_parent) if of_parent.1 == *command => process = *parent,
                _ => break,
            }
        }
        process
    }

    fn line(&mut self, line: &str) {
        let Some(event) = event(line) else {
            let is_nothing = line.trim_matches(['[', ']', ',', ' ', '\r']).is_empty();
            self.tally.lose_many("line", "without an event", u64::from(!is_nothing));
            return;
        };
        let (name, arguments) = (event["name"].as_str().unwrap_or_default(), &event["args"]);
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
                let dropped = arguments["dropped_events"].as_u64().unwrap_or(0);
                self.tally.lose_many("event", "that the program dropped", dropped);
            }
            _ if event["cat"] == "POSIX" || event["cat"] == "STDIO" => {
                self.understood += 1;
                self.call(name, &event);
            }
            _ => {}
        }
    }

    fn call(&mut self, name: &str, event: &Value) {
        let arguments = &event["args"];
        let Some((file, path)) = self.file(name, arguments) else { return };
        let (Some(pid), Some(tid)) = (event["pid"].as_u64(), event["tid"].as_u64()) else { return };
        let Some(start) = number(&event["ts"]).filter(|&start| start >= 0.0) else { return };
        // As whole numbers: a float does not hold nanoseconds since 1970.
        let start_ns = (start * self.unit_ns.min(1e3)) as u64;
        let start_ns = event["ts"]
            .as_u64()
            .and_then(|ts| ts.checked_mul(self.unit_ns as u64))
            .unwrap_or(start_ns);
        let ns =
            number(&event["dur"]).filter(|&dur| dur >= 0.0).map(|dur| (dur * self.unit_ns) as u64);
        let root = self.root(pid);
        let next = self.ranks.len() as u32;
        let caller = Caller {
            rank: *self.ranks.entry(root).or_insert(next),
            thread: tid,
            is_first: Some(pid == root && tid == pid),
        };
        let call = FileCall { caller, file, start_ns, ns };
        let returned = number(&arguments["ret"]);
        if returned.is_some_and(|returned| returned < 0.0) {
            return;
        }
        let name = name.trim_start_matches('_');
        if name.starts_with("open") || name.starts_with("fopen") {
            if !is_for_writing(arguments) {
                self.tally.opened(call, &path);
                self.keep((tid, file), Position { offset: Some(0), last_end: None });
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
                    .lose("read", "without a length: record with DFTRACER_INC_METADATA=1");
            };
            let place = if name.starts_with('p') { number(&arguments["offset"]) } else { None };
            let mut position = self.open.remove(&(tid, file)).unwrap_or_default();
            let read = position.read((returned * size) as u64, place.map(|place| place as u64));
            self.keep((tid, file), position);
            self.tally.read(call, read);
        } else {
            if name.contains("seek") {
                let offset = returned.map(|returned| returned as u64);
                let last_end = self.open.remove(&(tid, file)).and_then(|open| open.last_end);
                let offset = if name.starts_with('f') { None } else { offset };
                self.keep((tid, file), Position { offset, last_end });
            } else if name.starts_with("close") || name.starts_with("fclose") {
                self.open.remove(&(tid, file));
            } else if name.starts_with("mmap") {
                self.tally.lose("mapping", "of a file: how much of it was read is not in the log");
            }
            self.tally.looked(call);
        }
    }

    /// The file of a call; `None` of what is no data.
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

    fn keep(&mut self, key: (u64, u32), position: Position) {
        if self.open.len() < OPEN_MAX || self.open.contains_key(&key) {
            self.open.insert(key, position);
        }
    }
}

fn is_for_writing(arguments: &Value) -> bool {
    let mode = arguments["mode"].as_str().unwrap_or_default();
    let flags = arguments["flags"].as_u64().unwrap_or(0);
    // O_WRONLY, of the two bits that tell reading from writing.
    flags & 3 == 1 || mode.starts_with(['w', 'a'])
}
