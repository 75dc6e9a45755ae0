//! Darshan's counters of a run, from what a tracer before the C library saw: those of `POSIX_RECORD_READ` and
//! `POSIX_RECORD_WRITE` of its darshan-posix.c, and of darshan-stdio.c, an accelerator for a rank. Darshan keeps them for each file and
//! rank; here they are summed, as its logs are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Counters that are not 0, by the names of Darshan.
#[derive(Debug, Default)]
pub(crate) struct Darshan {
    counters: BTreeMap<&'static str, u64>,
    /// Reads by size, `POSIX_ACCESS1_ACCESS` and on.
    pub(crate) accesses: BTreeMap<u64, u64>,
    /// Sizes of `fwrite` and of `write`, in their order.
    pub(crate) stdio_writes: Vec<u64>,
    pub(crate) posix_writes: Vec<u64>,
    /// Of each file its ranks, and of each rank the reads there: offset and bytes.
    files: BTreeMap<String, BTreeMap<String, FileRecord>>,
}

#[derive(Debug, Default)]
struct FileRecord {
    last_byte_read: i64,
    reads: Vec<(u64, u64)>,
}

/// `DARSHAN_BUCKET_INC`: ends of bins, each inside.
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
    /// Of the lines of a trace.
    pub(crate) fn of_trace(path: &Path) -> Darshan {
        let mut darshan = Darshan::default();
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| fields[at].parse::<u64>().unwrap();
            match fields[1] {
                "open" => darshan.count("POSIX_OPENS", 1),
                "read" => darshan.read(fields[0], fields[2], number(3), number(4)),
                "write" => darshan.posix_writes.push(number(3)),
                "fdopen" => darshan.count("STDIO_OPENS", 1),
                "fwrite" => darshan.stdio_writes.push(number(3)),
                other => panic!("{other}"),
            }
        }
        darshan
    }

    fn read(&mut self, rank: &str, path: &str, offset: u64, bytes: u64) {
        let file = self.files.entry(path.into()).or_default().entry(rank.into()).or_default();
        // The last byte that was read is 0 before any was.
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

    fn count(&mut self, name: &'static str, by: u64) {
        *self.counters.entry(name).or_default() += by;
    }

    /// A counter by its name.
    pub(crate) fn get(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// Counters of reads by size, by the names that are behind `POSIX_SIZE_READ_`.
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

    /// Files by the number of ranks that read of them.
    pub(crate) fn files_by_ranks(&self) -> BTreeMap<usize, u64> {
        let mut by_ranks = BTreeMap::new();
        for ranks in self.files.values() {
            *by_ranks.entry(ranks.len()).or_default() += 1;
        }
        by_ranks
    }

    /// Whether all ranks read the same offsets, in the same order.
    pub(crate) fn all_read_the_same(&self) -> bool {
        let mut orders = self
            .files
            .values()
            .map(|ranks| ranks.values().map(|file| &file.reads).collect::<BTreeSet<_>>().len());
        orders.all(|orders| orders == 1)
    }

    /// Bytes that were read to one of the files that were read, each read to its end.
    pub(crate) fn bytes_read_to_one(&self) -> f64 {
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
