//! Darshan's logs, as `darshan-parser` and `darshan-dxt-parser` print them: counters of each file, and with DXT each read. Counts
//! are of the counters; DXT tells which bytes, when, and how many at a time.

use super::lines::Lines;
use super::tally::{Caller, FileCall, Tally, add_ns};
use super::{Input, LogError, LogKind, LogPart};
use feedrate_measure::record::access::BIN_NAMES;
use std::collections::{HashMap, HashSet};

const COUNTERS: &str = "darshan-parser";
const SEGMENTS: &str = "darshan-dxt-parser";

pub(super) static KIND: LogKind = LogKind {
    name: "darshan",
    summary: "Darshan's `.darshan`, with DXT or without",
    input: Input::Programs(&[COUNTERS, SEGMENTS]),
    is: |name, _| name.ends_with(".darshan"),
    read,
};

/// No counter of a file that is larger is believed, nor a time after so many seconds.
const COUNT_MAX: f64 = (1_u64 << 50) as f64;
const SECONDS_MAX: f64 = 1e7;
/// A file that all ranks read is counted for no more of them.
const RANKS_MAX: usize = 4096;
/// No log began later.
const SECONDS_SINCE_1970_MAX: f64 = 1e10;
const NO_DATA: &str = "processes that a loader forks leave no log of Darshan before 3.4.5: give the folder of all logs, record with `num_workers=0`, or by `strace -f -ttt -T -y -o LOG`";
const PART_ONLY: &str =
    "of which Darshan kept a part only: set `DARSHAN_EXCLUDE_DIRS` or `DARSHAN_MODMEM`";
const FULL: &str = "Darshan's records were full, of files of programs too: leave these out by `DARSHAN_EXCLUDE_DIRS=/usr,/opt` (and the folder of \
    Python), or give it more memory by `DARSHAN_MODMEM=64` (MiB)";

/// The counters of one rank for one file.
#[derive(Default)]
struct FileCounters {
    key: String,
    rank: i64,
    name: String,
    values: HashMap<String, f64>,
}

impl FileCounters {
    /// 0 where it is not told, and −1, which is Darshan's word for that.
    fn value(&self, name: &str) -> f64 {
        self.values
            .get(name)
            .copied()
            .filter(|value| (0.0..COUNT_MAX).contains(value))
            .unwrap_or(0.0)
    }

    fn count(&self, name: &str) -> u64 {
        self.value(name) as u64
    }

    fn ns(&self, name: &str) -> u64 {
        (self.value(name).min(SECONDS_MAX) * 1e9) as u64
    }
}

#[derive(Default)]
struct DarshanReader {
    tally: Tally,
    counters: FileCounters,
    /// First rank of this log among those of all.
    first_rank: u32,
    /// How many it has.
    ranks: u32,
    /// Rank by a process's number, for those that it forked.
    rank_of_process: HashMap<u64, u32>,
    /// Number of this log, where its process was forked by another that has a log.
    forked: Option<u64>,
    logs: u64,
    /// When this log and those before began, in the clock of all.
    start_ns: u64,
    starts_ns: Vec<u64>,
    next_rank: u32,
    /// Ranks of logs that several have in common; of other logs each that reads is one.
    told_ranks: u32,
    is_of_segments: bool,
    /// The file of the segments that follow.
    file: Option<u32>,
    understood: u64,
    /// Files that a rank wrote more than it read, which are no data of its own; `None` for all ranks.
    written: HashSet<(Option<u32>, u32)>,
    /// Files of which a read began before the end of the one before.
    went_back: HashSet<u32>,
}

fn read(parts: Vec<LogPart>) -> Result<Tally, LogError> {
    let mut reader = DarshanReader { ranks: 1, ..DarshanReader::default() };
    reader.tally.no_data_hint = NO_DATA;
    for part in parts {
        reader.is_of_segments = part.name == SEGMENTS;
        if !reader.is_of_segments {
            reader.first_rank = reader.next_rank;
            reader.logs += 1;
            (reader.forked, reader.start_ns, reader.ranks) = (None, 0, 1);
        }
        let mut lines = Lines::new(part.text);
        while let Some(line) = lines.next()? {
            reader.line(&line);
        }
        reader.flush();
        lines.tell(&mut reader.tally);
    }
    if reader.understood == 0 {
        return Err(LogError::new(
            "no counter of POSIX files is in it",
            "record it with Darshan's module POSIX, and with `DXT_ENABLE_IO_TRACE=1` for the order of reads",
        ));
    }
    let DarshanReader { mut tally, told_ranks, went_back, .. } = reader;
    tally.has_ranks(told_ranks);
    tally.compare_with_segments();
    let shared = tally.files_at_a_time().map_or(went_back.len(), |files| files.len());
    tally.lose_many(
        "file",
        "that threads may share: Darshan tells their reads as those of one, which look out of order and like more epochs",
        shared as u64,
    );
    Ok(tally)
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

impl DarshanReader {
    fn line(&mut self, line: &str) {
        if let Some(words) = line.strip_prefix("# DXT, file_id: ") {
            let name = words.split_once("file_name: ").map(|halves| halves.1);
            self.file = name.and_then(|name| self.tally.file(name.trim()));
        } else if let Some(count) = line.strip_prefix("# nprocs:") {
            self.ranks = count.trim().parse().unwrap_or(1);
            self.next_rank = self.next_rank.max(self.first_rank.saturating_add(self.ranks));
            if self.ranks > 1 && !self.is_of_segments {
                self.told_ranks = self.told_ranks.saturating_add(self.ranks);
            }
        } else if let Some(value) = line.strip_prefix("# start_time: ") {
            self.start_ns = self.started(value.trim());
        } else if let Some(process) = line.strip_prefix("# jobid: ").and_then(number) {
            // Where no scheduler gave it another, the first process's own number.
            self.rank_of_process.entry(process).or_insert(self.first_rank);
        } else if let Some(parent) =
            line.strip_prefix("# metadata: fork_parent = ").and_then(number)
        {
            self.forked = Some(self.logs);
            self.first_rank = *self.rank_of_process.entry(parent).or_insert(self.first_rank);
        } else if line.starts_with("# *WARNING*") || line.contains("incomplete data") {
            self.tally.lose("module", PART_ONLY);
            self.tally.no_data_hint = FULL;
        } else if line.trim_start().starts_with("X_POSIX") {
            self.segment(line);
        } else if !line.starts_with('#') {
            self.counter(line);
        }
    }

    /// `POSIX 0 1234 POSIX_OPENS 3 /path / ext4`, with tabs between.
    fn counter(&mut self, line: &str) {
        let words: Vec<&str> = line.split('\t').collect();
        let &[module, rank, id, counter, value, name, ..] = &words[..] else { return };
        let (Ok(rank), Ok(value)) = (rank.parse(), value.parse()) else { return };
        if module == "STDIO" && counter == "STDIO_READS" && value >= 1.0 {
            let count = (value as u64).min(1 << 40);
            if self.tally.file(name).is_some() {
                self.tally.lose_many(
                    "read",
                    "through stdio: Darshan counts no sizes of these",
                    count,
                );
            }
        }
        let Some(counter) = counter.strip_prefix("POSIX_") else { return };
        let key = format!("{rank} {id}");
        if key != self.counters.key {
            self.flush();
            let name = name.to_string();
            self.counters = FileCounters { key, rank, name, values: HashMap::new() };
        }
        self.understood += 1;
        // No version has so many.
        if self.counters.values.len() < 256 {
            self.counters.values.insert(counter.into(), value);
        }
    }

    /// The time of a start in seconds. Of whole ones a second's difference is their rounding.
    fn started(&mut self, seconds: &str) -> u64 {
        let Some(value) = seconds
            .parse::<f64>()
            .ok()
            .filter(|value| (0.0..SECONDS_SINCE_1970_MAX).contains(value))
        else {
            return 0;
        };
        let ns = (value * 1e9) as u64;
        let is_near = |known: &u64| !seconds.contains('.') && known.abs_diff(ns) <= 1_000_000_000;
        let ns = self.starts_ns.iter().copied().find(is_near).unwrap_or(ns);
        self.starts_ns.push(ns);
        ns
    }

    fn rank(&self, rank: i64) -> u32 {
        self.first_rank.saturating_add(u32::try_from(rank).unwrap_or(0))
    }

    /// Count what was told of a file.
    fn flush(&mut self) {
        let told = std::mem::take(&mut self.counters);
        if told.key.is_empty() || told.count("READS") == 0 {
            return;
        }
        let Some(file) = self.tally.file(&told.name) else { return };
        if told.count("BYTES_WRITTEN") > told.count("BYTES_READ") {
            let rank = (told.rank >= 0).then(|| self.rank(told.rank));
            self.written.insert((rank, file));
            return self.tally.lose("file", "that was written more than read: no data");
        }
        if told.rank < 0 && self.ranks > 1 {
            self.tally
                .lose("file", "that all ranks read: Darshan counts them together, as of rank 0");
        }
        let rank = self.rank(told.rank);
        self.next_rank = self.next_rank.max(rank.saturating_add(1));
        let of_all = if told.rank < 0 {
            self.first_rank..self.first_rank.saturating_add(self.ranks)
        } else {
            rank..rank.saturating_add(1)
        };
        let each = told.count("BYTES_READ") / (of_all.len() as u64).max(1);
        of_all.take(RANKS_MAX).for_each(|rank| self.tally.read_by(rank, file, each));
        let Some(io) = self.tally.counters(rank, file) else { return };
        let (opens, reads) = (told.count("OPENS"), told.count("READS"));
        io.opens += opens;
        io.reads += reads;
        io.read_bytes += told.count("BYTES_READ");
        add_ns(&mut io.open_ns, told.ns("F_META_TIME"));
        add_ns(&mut io.read_ns, told.ns("F_READ_TIME"));
        for (count, name) in io.access.sizes.iter_mut().zip(BIN_NAMES) {
            // `0-100` is SIZE_READ_0_100, `1G+` SIZE_READ_1G_PLUS.
            let name = name.replace('-', "_").replace('+', "_PLUS");
            *count += told.count(&format!("SIZE_READ_{name}"));
        }
        let following = reads.saturating_sub(opens.max(1));
        let sequential = told.count("SEQ_READS").min(following);
        io.access.following += following;
        io.access.sequential += sequential;
        io.access.consecutive += told.count("CONSEC_READS").min(following);
        if sequential < following {
            self.went_back.insert(file);
        }
        let writes = told.count("WRITES");
        if writes == 0 {
            for at in 1..=4 {
                let count = told.count(&format!("ACCESS{at}_COUNT"));
                io.access.common.count_many(told.count(&format!("ACCESS{at}_ACCESS")), count);
            }
        } else {
            self.tally.lose("file", "written too: common sizes are of reads and writes");
        }
        self.tally.length(file, told.count("MAX_BYTE_READ") + 1);
        self.tally.opened_times(file, opens);
        let end_ns = told.ns("F_READ_END_TIMESTAMP").max(told.ns("F_CLOSE_END_TIMESTAMP"));
        let start_ns = told.ns("F_OPEN_START_TIMESTAMP");
        // 0 is Darshan's word for a time that was not taken.
        if start_ns > 0 && end_ns > 0 {
            self.tally.lasted(file, self.start_ns + start_ns, self.start_ns + end_ns);
        }
    }

    /// ` X_POSIX  0  read  0  4096  262144  0.0029  0.0032`.
    fn segment(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[_, rank, way, _, offset, length, start, end, ..] = &words[..] else { return };
        let ("read", Some(file)) = (way, self.file) else { return };
        let seconds = |text: &str| {
            let value = text.parse::<f64>().ok()?;
            (0.0..SECONDS_MAX).contains(&value).then_some((value * 1e9) as u64)
        };
        let (Ok(rank), Ok(offset), Ok(bytes)) = (rank.parse(), offset.parse(), length.parse())
        else {
            return self.tally.lose("line", "of DXT, not understood");
        };
        let (Some(start_ns), Some(end_ns)) = (seconds(start), seconds(end)) else {
            return self.tally.lose("line", "of DXT, not understood");
        };
        let rank = self.rank(rank);
        if [Some(rank), None].iter().any(|&rank| self.written.contains(&(rank, file))) {
            return;
        }
        let (thread, is_first) = self.forked.map_or((0, None), |log| (log, Some(false)));
        let caller = Caller { rank, thread, is_first };
        let ns = Some(end_ns.saturating_sub(start_ns));
        let call = FileCall { caller, file, start_ns: self.start_ns + start_ns, ns };
        self.tally.segment(call, offset, bytes);
    }
}
