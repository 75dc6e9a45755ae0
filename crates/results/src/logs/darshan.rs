//! Reads Darshan's logs from the output of `darshan-parser` (counters of each file) and `darshan-dxt-parser` (single reads). All counts are taken from
//! the counters; DXT adds the position, time and concurrency of reads.

use super::lines::Lines;
use super::program_files::is_program_file;
use super::reader::add_ns;
use super::tally::{Caller, FileCall, Tally};
use super::{Input, LogError, LogKind, LogPart};
use feedrate_measure::record::access::BIN_NAMES;
use std::collections::{HashMap, HashSet};

const COUNTERS: &str = "darshan-parser";
const SEGMENTS: &str = "darshan-dxt-parser";

pub(super) static KIND: LogKind = LogKind {
    name: "darshan",
    summary: "Darshan's `.darshan`, with or without DXT",
    input: Input::Programs(&[COUNTERS, SEGMENTS]),
    detect: |name, _| name.ends_with(".darshan"),
    has_content,
    read,
};

/// The number after the eight bytes of the version in a log of Darshan 3, in the byte order of the machine that wrote it.
const MAGIC: u64 = 6_567_223;
/// First bytes of logs of Darshan 2, which are compressed: gzip or bzip2.
const COMPRESSED: [&[u8]; 2] = [&[0x1f, 0x8b], b"BZh"];

/// Largest valid counter of a file.
const COUNT_MAX: f64 = (1_u64 << 50) as f64;
/// Largest valid time within a log.
const SECONDS_MAX: f64 = 1e7;
/// Maximum number of ranks among which a file that all ranks read is distributed.
const RANKS_MAX: usize = 4096;
/// Latest valid start of a log.
const SECONDS_SINCE_1970_MAX: f64 = 1e10;
const NO_DATA_HINT: &str = "before version 3.4.5, Darshan writes no logs for processes that a loader forks: pass the folder of all logs, record with `num_workers=0`, or record with `strace -f -ttt -T -y -o LOG`";
const PARTIAL_MODULE: &str =
    "that Darshan kept only in part: set `DARSHAN_EXCLUDE_DIRS` or `DARSHAN_MODMEM`";
const FULL_HINT: &str = "Darshan's memory was full, partly because of records of program files: exclude them with `DARSHAN_EXCLUDE_DIRS=/usr,/opt` (and the folder of \
    Python), or raise the limit with `DARSHAN_MODMEM=64` (MiB)";

/// The counters of one rank for one file.
#[derive(Default)]
struct FileCounters {
    key: String,
    rank: i64,
    name: String,
    values: HashMap<String, f64>,
}

impl FileCounters {
    /// Returns a counter; 0 if it is missing or unknown. Darshan writes −1 for unknown values.
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
    /// Number of this log's first rank among the ranks of all logs.
    first_rank: u32,
    /// Number of ranks of this log.
    ranks: u32,
    /// Ranks of processes by process ID, to find the rank of forked processes.
    rank_of_process: HashMap<u64, u32>,
    /// Number of this log if its process was forked by a process with another log.
    forked_log: Option<u64>,
    logs: u64,
    /// Start of this log, in the common clock.
    start_ns: u64,
    /// Starts of all logs so far.
    starts_ns: Vec<u64>,
    next_rank: u32,
    /// Total number of ranks in logs with several ranks. The rank of a log with one rank counts only if it reads data.
    shared_log_ranks: u32,
    is_reading_segments: bool,
    /// File of the following segments.
    segment_file: Option<u32>,
    counter_lines: u64,
    /// Files to which a rank (`None` for all ranks) wrote more bytes than it read. They are not data.
    written: HashSet<(Option<u32>, u32)>,
    /// Files with reads that are not sequential.
    non_sequential: HashSet<u32>,
}

fn read(parts: Vec<LogPart>) -> Result<Tally, LogError> {
    let mut reader = DarshanReader { ranks: 1, ..DarshanReader::default() };
    reader.tally.no_data_hint = NO_DATA_HINT;
    for part in parts {
        reader.is_reading_segments = part.name == SEGMENTS;
        if !reader.is_reading_segments {
            reader.first_rank = reader.next_rank;
            reader.logs += 1;
            reader.forked_log = None;
            reader.start_ns = 0;
            reader.ranks = 1;
        }
        let mut lines = Lines::new(part.text);
        while let Some(line) = lines.next()? {
            reader.read_line(&line);
        }
        reader.flush_counters();
        lines.report_lost(&mut reader.tally);
    }
    if reader.counter_lines == 0 {
        return Err(LogError::new(
            "it contains no counters of POSIX files",
            "record it with Darshan's module POSIX, and with `DXT_ENABLE_IO_TRACE=1` for the order of reads",
        ));
    }
    let DarshanReader { mut tally, shared_log_ranks, non_sequential, .. } = reader;
    tally.set_ranks(shared_log_ranks);
    tally.check_segments();
    let shared_files =
        tally.concurrently_read_files().map_or(non_sequential.len(), |files| files.len());
    tally.lose_many(
        "file",
        "that threads may share: Darshan merges the reads of threads, which makes them look out of order and like more epochs",
        shared_files as u64,
    );
    Ok(tally)
}

fn has_content(head: &[u8]) -> bool {
    let number = head.get(8..16);
    [MAGIC.to_le_bytes(), MAGIC.to_be_bytes()].iter().any(|magic| number == Some(&magic[..]))
        || COMPRESSED.iter().any(|start| head.starts_with(start))
}

fn parse_number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

impl DarshanReader {
    fn read_line(&mut self, line: &str) {
        if let Some(words) = line.strip_prefix("# DXT, file_id: ") {
            let name = words.split_once("file_name: ").map(|(_, name)| name);
            self.segment_file = name.and_then(|name| self.tally.file(name.trim()));
        } else if let Some(count) = line.strip_prefix("# nprocs:") {
            self.ranks = count.trim().parse().unwrap_or(1);
            self.next_rank = self.next_rank.max(self.first_rank.saturating_add(self.ranks));
            if self.ranks > 1 && !self.is_reading_segments {
                self.shared_log_ranks = self.shared_log_ranks.saturating_add(self.ranks);
            }
        } else if let Some(value) = line.strip_prefix("# start_time: ") {
            self.start_ns = self.common_start_ns(value.trim());
        } else if let Some(process) = line.strip_prefix("# jobid: ").and_then(parse_number) {
            // Without a scheduler, the job ID is the ID of the first process.
            self.rank_of_process.entry(process).or_insert(self.first_rank);
        } else if let Some(parent) =
            line.strip_prefix("# metadata: fork_parent = ").and_then(parse_number)
        {
            self.forked_log = Some(self.logs);
            self.first_rank = *self.rank_of_process.entry(parent).or_insert(self.first_rank);
        } else if line.starts_with("# *WARNING*") || line.contains("incomplete data") {
            self.tally.lose_reads("module", PARTIAL_MODULE, 1);
            self.tally.no_data_hint = FULL_HINT;
        } else if line.trim_start().starts_with("X_POSIX") {
            self.read_segment(line);
        } else if !line.starts_with('#') {
            self.read_counter(line);
        }
    }

    /// Reads a line such as `POSIX 0 1234 POSIX_OPENS 3 /path / ext4`, separated by tabs.
    fn read_counter(&mut self, line: &str) {
        let words: Vec<&str> = line.split('\t').collect();
        let &[module, rank, id, counter, value, name, ..] = &words[..] else { return };
        let (Ok(rank), Ok(value)) = (rank.parse(), value.parse()) else { return };
        if module == "STDIO" && counter == "STDIO_READS" && value >= 1.0 {
            let count = (value as u64).min(1 << 40);
            if self.tally.file(name).is_some() {
                self.tally.lose_reads(
                    "read",
                    "through stdio, for which Darshan counts no sizes",
                    count,
                );
            }
        }
        let Some(counter) = counter.strip_prefix("POSIX_") else { return };
        let key = format!("{rank} {id}");
        if key != self.counters.key {
            self.flush_counters();
            let name = name.to_string();
            self.counters = FileCounters { key, rank, name, values: HashMap::new() };
        }
        self.counter_lines += 1;
        // All versions have fewer counters.
        if self.counters.values.len() < 256 {
            self.counters.values.insert(counter.into(), value);
        }
    }

    /// Converts a start time in seconds to the common clock. Integer times are rounded, so two of them count as equal if they differ by at most a
    /// second.
    fn common_start_ns(&mut self, seconds: &str) -> u64 {
        let Some(value) = seconds
            .parse::<f64>()
            .ok()
            .filter(|value| (0.0..SECONDS_SINCE_1970_MAX).contains(value))
        else {
            return 0;
        };
        let exact_ns = (value * 1e9) as u64;
        let is_integer = !seconds.contains('.');
        let is_equal = |known: &u64| is_integer && known.abs_diff(exact_ns) <= 1_000_000_000;
        let start_ns = self.starts_ns.iter().copied().find(is_equal).unwrap_or(exact_ns);
        self.starts_ns.push(start_ns);
        start_ns
    }

    /// Converts a rank of this log to a rank of all logs.
    fn global_rank(&self, rank: i64) -> u32 {
        self.first_rank.saturating_add(u32::try_from(rank).unwrap_or(0))
    }

    /// Adds the collected counters of a file to the tally.
    fn flush_counters(&mut self) {
        let counters = std::mem::take(&mut self.counters);
        if counters.key.is_empty() {
            return;
        }
        self.tally.has_writes |=
            counters.count("BYTES_WRITTEN") > 0 && !is_program_file(&counters.name);
        if counters.count("READS") == 0 {
            return;
        }
        let Some(file) = self.tally.file(&counters.name) else { return };
        // Darshan writes rank −1 for counters that are summed over all ranks.
        let is_sum = counters.rank < 0;
        if counters.count("BYTES_WRITTEN") > counters.count("BYTES_READ") {
            let rank = (!is_sum).then(|| self.global_rank(counters.rank));
            self.written.insert((rank, file));
            return self.tally.lose("file", "written more than read, which is not data");
        }
        if is_sum && self.ranks > 1 {
            self.tally.lose(
                "file",
                "that all ranks read: Darshan sums up its counters, which are counted for rank 0",
            );
        }
        let rank = self.global_rank(counters.rank);
        self.next_rank = self.next_rank.max(rank.saturating_add(1));
        let reading_ranks = if is_sum {
            self.first_rank..self.first_rank.saturating_add(self.ranks)
        } else {
            rank..rank.saturating_add(1)
        };
        let bytes_each = counters.count("BYTES_READ") / (reading_ranks.len() as u64).max(1);
        for reading_rank in reading_ranks.take(RANKS_MAX) {
            self.tally.add_read_bytes(reading_rank, file, bytes_each);
        }
        let Some(io) = self.tally.counters(rank, file) else { return };
        let opens = counters.count("OPENS");
        let reads = counters.count("READS");
        io.opens += opens;
        io.reads += reads;
        io.read_bytes += counters.count("BYTES_READ");
        add_ns(&mut io.open_ns, counters.ns("F_META_TIME"));
        add_ns(&mut io.read_ns, counters.ns("F_READ_TIME"));
        for (count, name) in io.access.sizes.iter_mut().zip(BIN_NAMES) {
            // Bin `0-100` is SIZE_READ_0_100, and `1G+` is SIZE_READ_1G_PLUS.
            let suffix = name.replace('-', "_").replace('+', "_PLUS");
            *count += counters.count(&format!("SIZE_READ_{suffix}"));
        }
        let following = reads.saturating_sub(opens.max(1));
        let sequential = counters.count("SEQ_READS").min(following);
        io.access.following += following;
        io.access.sequential += sequential;
        io.access.consecutive += counters.count("CONSEC_READS").min(following);
        if sequential < following {
            self.non_sequential.insert(file);
        }
        if counters.count("WRITES") == 0 {
            for number in 1..=4 {
                let size = counters.count(&format!("ACCESS{number}_ACCESS"));
                let count = counters.count(&format!("ACCESS{number}_COUNT"));
                io.access.common.count_many(size, count);
            }
        } else {
            self.tally.lose("file", "written too, whose common sizes mix reads and writes");
        }
        self.tally.set_length(file, counters.count("MAX_BYTE_READ") + 1);
        self.tally.add_opens(file, opens);
        let end_ns = counters.ns("F_READ_END_TIMESTAMP").max(counters.ns("F_CLOSE_END_TIMESTAMP"));
        let start_ns = counters.ns("F_OPEN_START_TIMESTAMP");
        // Darshan writes 0 for times that were not measured.
        if start_ns > 0 && end_ns > 0 {
            self.tally.extend_span(file, self.start_ns + start_ns, self.start_ns + end_ns);
        }
    }

    /// Reads a line such as ` X_POSIX  0  read  0  4096  262144  0.0029  0.0032`.
    fn read_segment(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[_, rank, direction, _, offset, length, start, end, ..] = &words[..] else { return };
        let ("read", Some(file)) = (direction, self.segment_file) else { return };
        let parse_ns = |text: &str| {
            let seconds = text.parse::<f64>().ok()?;
            (0.0..SECONDS_MAX).contains(&seconds).then_some((seconds * 1e9) as u64)
        };
        let (Ok(local_rank), Ok(offset), Ok(bytes)) =
            (rank.parse(), offset.parse(), length.parse())
        else {
            return self.tally.lose("line", "of DXT not understood");
        };
        let (Some(start_ns), Some(end_ns)) = (parse_ns(start), parse_ns(end)) else {
            return self.tally.lose("line", "of DXT not understood");
        };
        let rank = self.global_rank(local_rank);
        if [Some(rank), None].iter().any(|&rank| self.written.contains(&(rank, file))) {
            return;
        }
        // Forked processes are workers. Otherwise, Darshan does not distinguish threads.
        let (thread, is_first) = self.forked_log.map_or((0, None), |log| (log, Some(false)));
        let caller = Caller { rank, thread, is_first };
        let ns = Some(end_ns.saturating_sub(start_ns));
        let call = FileCall { caller, file, start_ns: self.start_ns + start_ns, ns };
        self.tally.add_segment(call, offset, bytes);
    }
}
