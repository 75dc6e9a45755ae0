//! Records the operations of one worker: times and counts each, and logs it if the run is traced. The worker attributes the time between
//! operations, mostly to decoding.

use crate::clock::Clock;
use crate::op_log::{LoggedOp, OpKind, OpLog};
use feedrate_data::storage::{Handle, ReadStorage, StorageError};
use feedrate_engine::loader::ReadTimes;
use feedrate_engine::reader::SampleReader;
use feedrate_measure::record::IoCounters;
use feedrate_measure::record::access::{self, ReadPosition};
use std::sync::Arc;

/// Longest path that the system opens.
const PATH_BYTES: usize = 4096;

/// A storage with the counters of one worker's reads for one accelerator.
pub struct RecordedStorage {
    storage: Arc<dyn ReadStorage>,
    clock: Clock,
    /// Buffer for the real name of a file, if names have to be looked up.
    /// Name of the file that was opened last.
    name: String,
    /// End of the latest operation or other activity.
    activity_end_ns: u64,
    sample_start_ns: u64,
    /// Whether this accelerator reads for its group. The other accelerators of the group get the data from memory.
    pub reads_itself: bool,
    /// Times of the current task.
    pub task: ReadTimes,
    /// Counters since they were last taken.
    pub counters: IoCounters,
    /// Log of the operations, if the run is traced.
    pub ops: Option<OpLog>,
}

impl RecordedStorage {
    /// Wraps `storage`.
    pub fn new(
        storage: Arc<dyn ReadStorage>,
        clock: Clock,
        reads_itself: bool,
        ops: Option<OpLog>,
    ) -> Self {
        RecordedStorage {
            storage,
            clock,
            name: String::with_capacity(PATH_BYTES),
            activity_end_ns: 0,
            sample_start_ns: 0,
            reads_itself,
            task: ReadTimes::default(),
            counters: IoCounters::new(),
            ops,
        }
    }

    /// Begins a task and returns the current time. `idle_since_ns` is set if the worker was idle before.
    pub fn begin_task(&mut self, idle_since_ns: Option<u64>) -> u64 {
        self.activity_end_ns = self.clock.now_ns();
        if let Some(since_ns) = idle_since_ns {
            self.counters.idle_ns += self.activity_end_ns - since_ns;
        }
        self.task = ReadTimes { task_start_ns: self.activity_end_ns, ..ReadTimes::default() };
        self.activity_end_ns
    }

    /// Begins a sample, at the end of the previous activity.
    pub fn begin_sample(&mut self) {
        self.sample_start_ns = self.activity_end_ns;
    }

    /// Ends and counts a sample.
    pub fn end_sample(&mut self) {
        self.counters.samples += 1;
        self.counters.sample_latency.record(self.activity_end_ns - self.sample_start_ns);
    }

    /// Opens a file; `part` is its number in the log.
    ///
    /// # Errors
    /// The storage failed.
    pub fn open(&mut self, path: &str, part: u64) -> Result<Handle, StorageError> {
        if self.storage.look_up(path, &mut self.name)? {
            self.activity_end_ns = self.clock.now_ns();
        } else {
            self.name.clear();
            self.name.push_str(path);
        }
        let result = self.storage.open(&self.name);
        let ns = self.lap();
        self.count_open(ns);
        self.log(OpKind::Open, part, 0, result.is_ok().then_some(0), ns);
        if self.reads_itself {
            self.counters.opens += 1;
            self.counters.open_latency.record(ns);
        }
        result
    }

    /// Returns the length of a file.
    ///
    /// # Errors
    /// The storage failed.
    pub fn len(&mut self, file: &Handle, part: u64) -> Result<u64, StorageError> {
        let result = self.storage.len(file);
        let ns = self.lap();
        self.count_open(ns);
        self.log(OpKind::Length, part, 0, result.is_ok().then_some(0), ns);
        result
    }

    /// Reads into `buffer`, as [`ReadStorage::read_piece`], and returns the number of bytes read.
    ///
    /// # Errors
    /// The storage failed.
    pub fn read_piece(
        &mut self,
        file: &Handle,
        part: u64,
        offset: u64,
        buffer: &mut [u8],
        end: u64,
    ) -> Result<usize, StorageError> {
        let result = self.storage.read_piece(file, offset, buffer, end);
        self.count_read(part, offset, result.as_ref().ok().map(|&bytes| bytes as u64));
        result
    }

    /// Reads `len` bytes and drops them, as [`ReadStorage::read_over`]. Counts as one read.
    ///
    /// # Errors
    /// The storage failed.
    pub fn read_over(
        &mut self,
        file: &Handle,
        part: u64,
        offset: u64,
        len: u64,
        buffer: &mut [u8],
    ) -> Result<u64, StorageError> {
        let result = self.storage.read_over(file, offset, len, buffer);
        self.count_read(part, offset, result.as_ref().ok().copied());
        result
    }

    /// Counts a read that has just ended and returned `bytes`; `None` if it failed.
    fn count_read(&mut self, part: u64, offset: u64, read_bytes: Option<u64>) {
        let ns = self.lap();
        self.log(OpKind::Read, part, offset, read_bytes, ns);
        self.task.read_ns += ns;
        self.counters.read_ns += ns;
        let bytes = read_bytes.unwrap_or_default();
        if self.reads_itself {
            self.counters.reads += 1;
            self.counters.read_latency.record(ns);
            self.counters.size_ns[access::bin_index(bytes)] += ns;
            self.counters.read_bytes += bytes;
        } else {
            self.counters.memory_bytes += bytes;
        }
    }

    /// Counts the latest read in the access pattern. The read returned `bytes`; `position` is its relation to the previous read.
    pub fn count_access(&mut self, bytes: usize, position: ReadPosition) {
        if self.reads_itself {
            self.counters.access.count_read(bytes as u64, position);
        }
    }

    /// Counts the sample that `reader` has read from the storage.
    pub fn count_sample_read(&mut self, reader: &SampleReader) {
        if self.reads_itself {
            // Names of files in the folder itself begin with a separator.
            reader.count_sample(&mut self.counters, self.name.trim_start_matches('/'));
        }
    }

    /// Counts `samples` samples that `reader` has ready, each with an equal share of the time since the previous activity.
    pub fn count_ready(&mut self, reader: &mut SampleReader, samples: u64) {
        self.begin_sample();
        reader.take_ready(samples, &mut self.counters, self.name.trim_start_matches('/'));
        self.end_decoding();
        self.counters.samples += samples;
        let ns = self.activity_end_ns - self.sample_start_ns;
        self.counters.sample_latency.record_repeated(ns / samples, samples);
    }

    /// Closes a file.
    pub fn close(&mut self, file: Handle, part: u64) {
        self.storage.close(file);
        let ns = self.lap();
        self.count_open(ns);
        self.log(OpKind::Close, part, 0, Some(0), ns);
    }

    /// Returns the end of the latest activity.
    pub fn activity_end_ns(&self) -> u64 {
        self.activity_end_ns
    }

    /// Counts a sample that was taken from memory.
    pub fn count_memory_sample(&mut self, bytes: u64) {
        self.counters.memory_bytes += bytes;
        self.end_decoding();
    }

    /// Ends a wait for a decoding permit. It delays the task as decoding does, but is not decoding time of this worker.
    pub fn end_wait(&mut self) {
        self.task.decode_ns += self.lap();
    }

    /// Counts emulated work of the client: the thread itself ran for `worked_ns` since the last call, then burnt `burnt_ns`.
    pub fn count_client_work(&mut self, worked_ns: u64, burnt_ns: u64) {
        let ns = self.lap();
        self.task.client_ns += ns;
        self.counters.client_ns += ns;
        self.counters.client_own_ns += worked_ns;
        self.counters.client_burnt_ns += burnt_ns;
    }

    /// Ends decoding and checking of bytes that were read.
    pub fn end_decoding(&mut self) {
        let ns = self.lap();
        self.task.decode_ns += ns;
        self.counters.decode_ns += ns;
    }

    fn count_open(&mut self, ns: u64) {
        self.task.open_ns += ns;
        self.counters.open_ns += ns;
    }

    /// Logs an operation that took `ns` and has just ended.
    fn log(&mut self, kind: OpKind, part: u64, offset: u64, bytes: Option<u64>, ns: u64) {
        if !self.reads_itself {
            return;
        }
        let start_ns = self.activity_end_ns - ns;
        let end_ns = self.activity_end_ns;
        self.counters.extend_span([start_ns, end_ns]);
        if let Some(ops) = &mut self.ops {
            ops.add(LoggedOp { kind, part, start_ns, end_ns, offset, bytes });
        }
    }

    /// Returns the time since the previous activity ended. The current activity ends now.
    fn lap(&mut self) -> u64 {
        let now_ns = self.clock.now_ns();
        let ns = now_ns - self.activity_end_ns;
        self.activity_end_ns = now_ns;
        ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_data::storage;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// A storage with other names of files than in the plan. It records when a name was last looked up.
    struct IndexedStorage {
        clock: Clock,
        looked_up_ns: AtomicU64,
        inner: Box<dyn storage::Storage>,
    }

    impl ReadStorage for IndexedStorage {
        fn look_up(&self, path: &str, name: &mut String) -> Result<bool, StorageError> {
            let start_ns = self.clock.now_ns();
            while self.clock.now_ns() < start_ns + 1000 {}
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

        fn read_piece(
            &self,
            file: &Handle,
            offset: u64,
            buffer: &mut [u8],
            end: u64,
        ) -> Result<usize, StorageError> {
            self.inner.read_piece(file, offset, buffer, end)
        }

        fn close(&self, file: Handle) {
            self.inner.close(file);
        }
    }

    #[test]
    fn opens_do_not_include_name_lookups() {
        let clock = Clock::new();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("real.npz"), "x").unwrap();
        let inner = storage::open("file", folder.path()).unwrap();
        let looked_up_ns = AtomicU64::new(0);
        let indexed = Arc::new(IndexedStorage { clock, looked_up_ns, inner });
        let mut recorded = RecordedStorage::new(indexed.clone(), clock, true, None);
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
