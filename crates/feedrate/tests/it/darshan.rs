//! The counters that Darshan would have for a run, computed from the log of `tracer.c`. They follow `POSIX_RECORD_READ` and
//! `POSIX_RECORD_WRITE` in Darshan's darshan-posix.c, and darshan-stdio.c. An accelerator counts as a rank. Darshan counts per file and rank;
//! here the counters are summed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Counters that are not 0, by Darshan's names.
#[derive(Debug, Default)]
pub(crate) struct Darshan {
    counters: BTreeMap<&'static str, u64>,
    /// Reads by size, `POSIX_ACCESS1_ACCESS` and on.
    pub(crate) accesses: BTreeMap<u64, u64>,
    /// Sizes of calls of `fwrite`, in order.
    pub(crate) stdio_writes: Vec<u64>,
    /// Sizes of calls of `write`, in order.
    pub(crate) posix_writes: Vec<u64>,
    /// For each file, the reads of each rank.
    files: BTreeMap<String, BTreeMap<String, FileRecord>>,
}

#[derive(Debug, Default)]
struct FileRecord {
    last_byte_read: i64,
    /// Offset and bytes of each read.
    reads: Vec<(u64, u64)>,
}

/// Bins of read sizes with their inclusive upper ends, as in Darshan's `DARSHAN_BUCKET_INC`.
const BINS: [(&str, u64); 9] = [
    ("POSIX_SIZE_READ_0_100", 100),
    ("POSIX_SIZE_READ_100_1K", 1 << 10),
    ("POSIX_SIZE_READ_1K_10K", 10 << 10),
    ("POSIX_SIZE_READ_10K_100K", 100 << 10),
    ("POSIX_SIZE_READ_100K_1M", 1 << 20),
    ("POSIX_SIZE_READ_1M_4M", 4 << 20),
    ("POSIX_SIZE_READ_4M_10M", 10 << 20),
    ("POSIX_SIZE_READ_10M_100M", 100 << 20),
    ("POSIX_SIZE_READ_100M_1G", 1 << 30),
];

impl Darshan {
    /// Reads the log of `tracer.c`.
    pub(crate) fn from_trace(path: &Path) -> Darshan {
        let mut darshan = Darshan::default();
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let number = |index: usize| fields[index].parse::<u64>().unwrap();
            match fields[1] {
                "open" => darshan.count("POSIX_OPENS", 1),
                "read" => darshan.add_read(fields[0], fields[2], number(3), number(4)),
                "write" => darshan.posix_writes.push(number(3)),
                "fdopen" => darshan.count("STDIO_OPENS", 1),
                "fwrite" => darshan.stdio_writes.push(number(3)),
                other => panic!("{other}"),
            }
        }
        darshan
    }

    fn add_read(&mut self, rank: &str, path: &str, offset: u64, bytes: u64) {
        let file = self.files.entry(path.into()).or_default().entry(rank.into()).or_default();
        // As in Darshan, the last byte read is 0 before the first read.
        let is_sequential = offset as i64 > file.last_byte_read;
        let is_consecutive = offset as i64 == file.last_byte_read + 1;
        file.last_byte_read = offset as i64 + bytes as i64 - 1;
        file.reads.push((offset, bytes));
        self.count("POSIX_SEQ_READS", is_sequential.into());
        self.count("POSIX_CONSEC_READS", is_consecutive.into());
        self.count("POSIX_READS", 1);
        self.count("POSIX_BYTES_READ", bytes);
        let bin =
            BINS.iter().find(|bin| bytes <= bin.1).map_or("POSIX_SIZE_READ_1G_PLUS", |bin| bin.0);
        self.count(bin, 1);
        *self.accesses.entry(bytes).or_default() += 1;
    }

    fn count(&mut self, name: &'static str, increment: u64) {
        *self.counters.entry(name).or_default() += increment;
    }

    /// A counter by its name.
    pub(crate) fn get(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// Counters of reads by size; the names lack the prefix `POSIX_SIZE_READ_`.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (String, u64)> {
        self.counters.iter().filter_map(|counter| {
            let name = counter.0.strip_prefix("POSIX_SIZE_READ_")?;
            Some((name.replace('_', "-"), *counter.1))
        })
    }

    /// A counter as a share of all reads.
    pub(crate) fn share(&self, name: &str) -> f64 {
        self.get(name) as f64 / self.get("POSIX_READS") as f64
    }

    /// Number of files by the number of ranks that read them.
    pub(crate) fn files_by_ranks(&self) -> BTreeMap<usize, u64> {
        let mut by_ranks = BTreeMap::new();
        for ranks in self.files.values() {
            *by_ranks.entry(ranks.len()).or_default() += 1;
        }
        by_ranks
    }

    /// Whether all ranks read the same offsets, in the same order.
    pub(crate) fn all_ranks_read_the_same(&self) -> bool {
        let mut orders = self
            .files
            .values()
            .map(|ranks| ranks.values().map(|file| &file.reads).collect::<BTreeSet<_>>().len());
        orders.all(|orders| orders == 1)
    }

    /// Bytes read per byte of the files, each file as long as its last read.
    pub(crate) fn read_amplification(&self) -> f64 {
        let ends = self.files.values().map(|ranks| {
            let reads = ranks.values().flat_map(|file| &file.reads);
            reads.map(|read| read.0 + read.1).max().unwrap_or(0)
        });
        self.get("POSIX_BYTES_READ") as f64 / ends.sum::<u64>() as f64
    }

    /// The first reads of each rank in a file: offset and bytes.
    pub(crate) fn first_reads(&self, count: usize) -> impl Iterator<Item = &[(u64, u64)]> {
        let files = self.files.values().flat_map(BTreeMap::values);
        files.map(move |file| &file.reads[..count])
    }
}
