//! A storage as one worker sees it: every operation is timed and counted, and logged where the run is traced. Time that no operation
//! took is decoding.

use crate::clock::Clock;
use crate::op_log::{LoggedOp, OpKind, OpLog};
use feedrate_data::storage::{Handle, ReadStorage, StorageError};
use feedrate_engine::loader::ReadTimes;
use feedrate_measure::record::IoCounters;
use feedrate_measure::record::access::{self, Follows};
use std::sync::Arc;

/// The longest path that the system opens.
const NAME_BYTES: usize = 4096;

/// Counts into its own memory; nobody else writes there.
pub struct Recorded {
    storage: Arc<dyn ReadStorage>,
    clock: Clock,
    /// Place for what a file is opened by, where that is looked up.
    name: String,
    /// When the last thing ended.
    at_ns: u64,
    sample_began_ns: u64,
    /// Else another of its group reads, and what comes is counted as from memory.
    pub reads_itself: bool,
    /// Times of the task being read.
    pub task: ReadTimes,
    /// Since they were last taken.
    pub counters: IoCounters,
    /// The operations that are counted; `None` where nobody traces them.
    pub ops: Option<OpLog>,
}

impl Recorded {
    /// Around `storage`, of which an accelerator reads itself or is told what another reads.
    pub fn new(
        storage: Arc<dyn ReadStorage>,
        clock: Clock,
        reads_itself: bool,
        ops: Option<OpLog>,
    ) -> Self {
        Recorded {
            storage,
            clock,
            name: String::with_capacity(NAME_BYTES),
            at_ns: 0,
            sample_began_ns: 0,
            reads_itself,
            task: ReadTimes::default(),
            counters: IoCounters::new(),
            ops,
        }
    }

    /// A task begins now, after `idle_since_ns` if the worker had nothing to do.
    pub fn begin_task(&mut self, idle_since_ns: Option<u64>) -> u64 {
        self.at_ns = self.clock.now_ns();
        if let Some(since_ns) = idle_since_ns {
            self.counters.idle_ns += self.at_ns - since_ns;
        }
        self.task = ReadTimes { begun_ns: self.at_ns, ..ReadTimes::default() };
        self.at_ns
    }

    /// A sample begins where the last thing ended.
    pub fn begin_sample(&mut self) {
        self.sample_began_ns = self.at_ns;
    }

    /// The sample is whole.
    pub fn end_sample(&mut self) {
        self.counters.samples += 1;
        self.counters.sample_latency.record(self.at_ns - self.sample_began_ns);
    }

    /// Open a file, which is `part` of all.
    ///
    /// # Errors
    /// The storage's.
    pub fn open(&mut self, path: &str, part: u64) -> Result<Handle, StorageError> {
        let is_found = self.storage.look_up(path, &mut self.name)?;
        if is_found {
            self.at_ns = self.clock.now_ns();
        }
        let result = self.storage.open(if is_found { &self.name } else { path });
        let ns = self.lap();
        self.count_open(ns);
        self.log(OpKind::Open, part, 0, result.is_ok().then_some(0), ns);
        if self.reads_itself {
            self.counters.opens += 1;
            self.counters.open_latency.record(ns);
        }
        result
    }

    /// Length of a file.
    ///
    /// # Errors
    /// The storage's.
    pub fn len(&mut self, file: &Handle, part: u64) -> Result<u64, StorageError> {
        let result = self.storage.len(file);
        let ns = self.lap();
        self.count_open(ns);
        self.log(OpKind::Length, part, 0, result.is_ok().then_some(0), ns);
        result
    }

    /// Read.
    ///
    /// # Errors
    /// The storage's.
    pub fn read_at(
        &mut self,
        file: &Handle,
        part: u64,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, StorageError> {
        let result = self.storage.read_at(file, offset, buffer);
        let ns = self.lap();
        self.log(OpKind::Read, part, offset, result.as_ref().ok().map(|&bytes| bytes as u64), ns);
        self.task.read_ns += ns;
        self.counters.read_ns += ns;
        let bytes = *result.as_ref().unwrap_or(&0) as u64;
        if self.reads_itself {
            self.counters.reads += 1;
            self.counters.read_latency.record(ns);
            self.counters.size_ns[access::bin(bytes)] += ns;
            self.counters.read_bytes += bytes;
        } else {
            self.counters.memory_bytes += bytes;
        }
        result
    }

    /// The last read returned `bytes`, and was this to the one before it.
    pub fn followed(&mut self, bytes: usize, follows: Follows) {
        if self.reads_itself {
            self.counters.access.read(bytes as u64, follows);
        }
    }

    /// The sample was read, not found in memory, and is of a kind that should have been decoded and could not.
    pub fn sample_read(&mut self, payload_bytes: Option<u64>, undecoded: Option<&str>) {
        if self.reads_itself {
            self.counters.access.sample(payload_bytes);
            self.counters.count_undecoded(undecoded);
        }
    }

    /// Close.
    pub fn close(&mut self, file: Handle, part: u64) {
        self.storage.close(file);
        let ns = self.lap();
        self.count_open(ns);
        self.log(OpKind::Close, part, 0, Some(0), ns);
    }

    /// When the last thing ended.
    pub fn at_ns(&self) -> u64 {
        self.at_ns
    }

    /// The sample came from memory.
    pub fn from_memory(&mut self, bytes: u64) {
        self.counters.memory_bytes += bytes;
        self.decoded();
    }

    /// Others were decoding: decoding held this task up, but this worker did none.
    pub fn waited(&mut self) {
        self.task.decode_ns += self.lap();
    }

    /// Client's work was done: the worker's thread had run for `own_ns` since the last, and burnt `burnt_ns` beside.
    pub fn client_worked(&mut self, own_ns: u64, burnt_ns: u64) {
        let ns = self.lap();
        self.task.client_ns += ns;
        self.counters.client_ns += ns;
        self.counters.client_own_ns += own_ns;
        self.counters.client_burnt_ns += burnt_ns;
    }

    /// The bytes that were read have been decoded and checked.
    pub fn decoded(&mut self) {
        let ns = self.lap();
        self.task.decode_ns += ns;
        self.counters.decode_ns += ns;
    }

    fn count_open(&mut self, ns: u64) {
        self.task.open_ns += ns;
        self.counters.open_ns += ns;
    }

    /// An operation that took `ns` is over.
    fn log(&mut self, kind: OpKind, part: u64, offset: u64, bytes: Option<u64>, ns: u64) {
        if !self.reads_itself {
            return;
        }
        let (start_ns, end_ns) = (self.at_ns - ns, self.at_ns);
        self.counters.lasted([start_ns, end_ns]);
        if let Some(ops) = &mut self.ops {
            ops.add(LoggedOp { kind, part, start_ns, end_ns, offset, bytes });
        }
    }

    fn lap(&mut self) -> u64 {
        let now_ns = self.clock.now_ns();
        let ns = now_ns - self.at_ns;
        self.at_ns = now_ns;
        ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_data::storage;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// Knows files by other names, and keeps when it was last asked for one.
    struct Indexed {
        clock: Clock,
        looked_up_ns: AtomicU64,
        inner: Box<dyn storage::Storage>,
    }

    impl ReadStorage for Indexed {
        fn look_up(&self, path: &str, name: &mut String) -> Result<bool, StorageError> {
            let begun_ns = self.clock.now_ns();
            while self.clock.now_ns() < begun_ns + 1000 {}
            name.clear();
            name.push_str(&path.replace("plan", "real"));
            self.looked_up_ns.store(self.clock.now_ns(), Relaxed);
            Ok(true)
        }

        fn open(&self, path: &str) -> Result<Handle, StorageError> {
            assert_eq!(path, "real.npz");
            self.inner.open(path)
        }

        fn len(&self, file: &Handle) -> Result<u64, StorageError> {
            self.inner.len(file)
        }

        fn read_at(&self, file: &Handle, at: u64, to: &mut [u8]) -> Result<usize, StorageError> {
            self.inner.read_at(file, at, to)
        }

        fn close(&self, file: Handle) {
            self.inner.close(file);
        }
    }

    #[test]
    fn looking_names_up_is_no_part_of_opens() {
        let clock = Clock::new();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("real.npz"), "x").unwrap();
        let inner = storage::open("file", folder.path()).unwrap();
        let looked_up_ns = AtomicU64::new(0);
        let indexed = Arc::new(Indexed { clock, looked_up_ns, inner });
        let mut recorded = Recorded::new(indexed.clone(), clock, true, None);
        recorded.begin_task(None);
        let file = recorded.open("plan.npz", 0).unwrap();
        let since_ns = clock.now_ns() - indexed.looked_up_ns.load(Relaxed);
        let counters = &recorded.counters;
        assert!(
            counters.opens == 1 && counters.open_ns <= since_ns,
            "{} > {since_ns}",
            counters.open_ns
        );
        recorded.close(file, 0);
    }
}
