//! Measures plain reads and opens of a dataset's files at a given concurrency, without format, loader or decoding. Emulated limits
//! and delays of the plan's storage apply.

use crate::buffer::{ALIGN, AlignedBuffer};
use crate::clock::Clock;
use crate::driver::RunError;
use crate::layers;
use feedrate_data::storage::{Handle, ReadStorage};
use feedrate_spec::plan::StoragePlan;
use feedrate_spec::plan::order::Permutation;
use std::iter::Sum;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::Duration;

/// Interval at which the threads and the deadline are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// Time limit of the first operation, as a multiple of the time limit.
const FIRST_OPERATION_LIMITS: u64 = 4;
/// Seed of the order of stretches.
const SEED: u64 = 0x5eed;

/// A file of the dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainFile {
    /// Path in the storage.
    pub path: String,
    /// Length of the file.
    pub bytes: u64,
}

/// Finished operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Number of operations.
    pub count: u64,
    /// Bytes returned.
    pub bytes: u64,
    /// Time from the start to the end of the last operation.
    pub ns: u64,
}

impl Sum for Operations {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Operations::default(), |sum, operations| Operations {
            count: sum.count + operations.count,
            bytes: sum.bytes + operations.bytes,
            ns: sum.ns + operations.ns,
        })
    }
}

/// Settings for reading files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainReads {
    /// Size of a read request.
    pub request_bytes: u64,
    /// Bytes of a file that a thread reads sequentially.
    pub stretch_bytes: u64,
    /// Whether stretches are read in random order.
    pub shuffled: bool,
    /// Whether the files are read repeatedly until the time limit; otherwise once.
    pub repeats: bool,
}

/// Reads or opens files with several threads for a limited time.
pub struct Probe<'a> {
    /// The storage without emulated limits and delays.
    pub storage: Arc<dyn ReadStorage>,
    /// Emulated limits and delays.
    pub plan: &'a StoragePlan,
    /// Files to read or open.
    pub files: &'a [PlainFile],
    /// Number of threads.
    pub in_flight: u32,
    /// Time limit. The first operation may take longer, so that slow storage yields a result.
    pub limit: Duration,
    /// Set when the user interrupts.
    pub interrupted: &'a AtomicBool,
}

/// A range of one file that is read sequentially.
#[derive(Clone, Copy)]
struct Stretch {
    file: usize,
    start: u64,
    end: u64,
}

/// Counters of finished operations, shared by the threads.
struct Counters {
    clock: Clock,
    /// Set when no more operations may begin; also ends waits of the emulated storage.
    stop: Arc<AtomicBool>,
    count: AtomicU64,
    bytes: AtomicU64,
    last_ns: AtomicU64,
}

impl Counters {
    fn new() -> Self {
        Counters {
            clock: Clock::new(),
            stop: Arc::default(),
            count: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            last_ns: AtomicU64::new(0),
        }
    }

    /// Counts a finished operation. Operations after the stop do not count, because their waits were cut short.
    fn add(&self, bytes: u64) {
        if !self.is_stopped() {
            self.count.fetch_add(1, Relaxed);
            self.bytes.fetch_add(bytes, Relaxed);
            self.last_ns.fetch_max(self.clock.now_ns(), Relaxed);
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    fn operations(&self) -> Operations {
        Operations {
            count: self.count.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            ns: self.last_ns.load(Relaxed),
        }
    }
}

impl Probe<'_> {
    /// Reads the files within the time limit. The time to open them does not count.
    ///
    /// # Errors
    /// A file could not be opened or read, a buffer could not be allocated, or a thread could not be started.
    pub fn measure_reads(&self, reads: PlainReads) -> Result<Operations, RunError> {
        let handles = self.files.iter().map(|file| self.storage.open(&file.path));
        let handles = handles.collect::<Result<Vec<Handle>, _>>()?;
        let stretches = self.stretches(reads);
        let buffer_bytes = reads.request_bytes.max(1).next_multiple_of(ALIGN as u64);
        let repeats = reads.repeats && !stretches.is_empty();
        let count = if repeats { usize::MAX } else { stretches.len() };
        let outcome = self.run_threads(count, |counters, storage, next| {
            let mut buffer = AlignedBuffer::new(buffer_bytes as usize)
                .map_err(|source| RunError::Memory { bytes: buffer_bytes as usize, source })?;
            while let Some(number) = next() {
                let Stretch { file, start, end } = stretches[number % stretches.len()];
                let offsets = (start..end).step_by(reads.request_bytes.max(1) as usize);
                for offset in offsets.take_while(|_| !counters.is_stopped()) {
                    // `O_DIRECT` needs whole blocks, so the last read may extend beyond the requested bytes.
                    let requested = reads.request_bytes.min(end - offset);
                    let len = requested.next_multiple_of(ALIGN as u64).min(buffer_bytes) as usize;
                    let target = buffer.aligned_like(0, len);
                    let read_bytes = storage.read_at(&handles[file], offset, target)?;
                    counters.add((read_bytes as u64).min(requested));
                }
            }
            Ok(())
        });
        handles.into_iter().for_each(|handle| self.storage.close(handle));
        outcome
    }

    /// Opens and closes the files within the time limit, repeatedly if `repeats` is set.
    ///
    /// # Errors
    /// A file could not be opened, or a thread could not be started.
    pub fn measure_opens(&self, repeats: bool) -> Result<Operations, RunError> {
        let count = if repeats { usize::MAX } else { self.files.len() };
        self.run_threads(count, |counters, storage, next| {
            while let Some(number) = next() {
                storage.close(storage.open(&self.files[number % self.files.len()].path)?);
                counters.add(0);
            }
            Ok(())
        })
    }

    /// Divides the files into stretches of whole requests. A file that is smaller than a request is read whole.
    fn stretches(&self, reads: PlainReads) -> Vec<Stretch> {
        let request_bytes = reads.request_bytes.max(1);
        let stretch_bytes = request_bytes * (reads.stretch_bytes / request_bytes).max(1);
        let mut stretches = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            let rest = if file.bytes < request_bytes { 0 } else { file.bytes % request_bytes };
            let bytes = file.bytes - rest;
            for start in (0..bytes).step_by(stretch_bytes as usize) {
                let end = bytes.min(start + stretch_bytes);
                stretches.push(Stretch { file: number, start, end });
            }
        }
        if !reads.shuffled {
            return stretches;
        }
        let count = stretches.len() as u64;
        let order = Permutation::new(count, SEED);
        (0..count).map(|number| stretches[order.number_at(number) as usize]).collect()
    }

    /// Runs `work` on all threads until it ends or time is up. `work` takes numbers from `next`, which returns each number below
    /// `count` once.
    fn run_threads(
        &self,
        count: usize,
        work: impl Fn(&Counters, &dyn ReadStorage, &dyn Fn() -> Option<usize>) -> Result<(), RunError>
        + Sync,
    ) -> Result<Operations, RunError> {
        let counters = Counters::new();
        let next_number = AtomicUsize::new(0);
        let storage =
            layers::emulate(self.plan, Arc::clone(&self.storage), counters.clock, &counters.stop);
        let next = || {
            let number = next_number.fetch_add(1, Relaxed);
            (number < count && !counters.is_stopped()).then_some(number)
        };
        let workers = self.in_flight.max(1) as usize;
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for worker in 0..workers {
                let thread = std::thread::Builder::new().spawn_scoped(scope, || {
                    let outcome = work(&counters, &*storage, &next);
                    // The failure of one thread stops all threads.
                    counters.stop.fetch_or(outcome.is_err(), Relaxed);
                    outcome
                });
                threads.push(thread.map_err(|source| RunError::Thread {
                    worker,
                    workers,
                    source,
                })?);
            }
            while threads.iter().any(|thread| !thread.is_finished()) {
                std::thread::sleep(CHECK_INTERVAL);
                counters.stop.fetch_or(self.is_time_up(&counters), Relaxed);
            }
            for thread in threads {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            Ok(counters.operations())
        })
    }

    /// Whether the time limit has passed or the user interrupted.
    fn is_time_up(&self, counters: &Counters) -> bool {
        let limit_ns = self.limit.as_nanos() as u64;
        let limits = if counters.count.load(Relaxed) > 0 { 1 } else { FIRST_OPERATION_LIMITS };
        limit_ns.saturating_mul(limits) <= counters.clock.now_ns() || self.interrupted.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_data::storage::{self, Storage};
    use std::path::Path;

    const FILES: u64 = 5;

    /// Calls `measure` with a probe of the null storage with the limits of `plan`.
    fn probe(plan: StoragePlan, measure: impl Fn(&Probe<'_>) -> Operations) -> Operations {
        let files =
            (0..FILES).map(|number| PlainFile { path: number.to_string(), bytes: 10_000 + number });
        let storage: Arc<dyn Storage> = Arc::from(storage::open("null", Path::new("/")).unwrap());
        measure(&Probe {
            storage,
            plan: &plan,
            files: &files.collect::<Vec<_>>(),
            in_flight: 4,
            limit: Duration::from_millis(200),
            interrupted: &AtomicBool::new(false),
        })
    }

    fn reads(plan: StoragePlan, plain_reads: PlainReads) -> Operations {
        probe(plan, |probe| probe.measure_reads(plain_reads).unwrap())
    }

    #[test]
    fn files_are_read_once_in_requests_of_the_configured_size() {
        for (request_bytes, stretch_bytes, shuffled, count, bytes) in [
            (4096, 4096, true, 2 * FILES, 2 * 4096 * FILES),
            (4096, 8192, false, 2 * FILES, 2 * 4096 * FILES),
            (3000, 1 << 20, true, 3 * FILES, 9000 * FILES),
            (1 << 20, 1 << 20, false, FILES, 10_000 * FILES + 10),
        ] {
            let plain_reads = PlainReads { request_bytes, stretch_bytes, shuffled, repeats: false };
            let all = reads(StoragePlan::default(), plain_reads);
            assert_eq!((all.count, all.bytes), (count, bytes), "{plain_reads:?}");
        }
    }

    /// A throttle serves readers one after another, so the number of finished bytes is exact.
    #[test]
    fn reads_that_the_time_limit_cuts_short_do_not_count() {
        let plain_reads =
            PlainReads { request_bytes: 1000, stretch_bytes: 1000, shuffled: false, repeats: true };
        let rate = 100_000.0;
        let throttled =
            StoragePlan { throttle_bytes_per_second: Some(rate), ..StoragePlan::default() };
        let all = reads(throttled, plain_reads);
        assert!(0 < all.count, "{all:?}");
        assert!(all.bytes as f64 / (all.ns as f64 / 1e9) <= rate, "{all:?}");
        // If no operation ends, the probe gives up after a multiple of the limit.
        let stuck = StoragePlan { delay_s: 1000.0, ..StoragePlan::default() };
        assert_eq!(reads(stuck, plain_reads), Operations::default());
    }

    #[test]
    fn opens_are_repeated_from_the_first_file() {
        let delayed = StoragePlan { open_delay_s: 0.001, ..StoragePlan::default() };
        let all = probe(delayed, |probe| probe.measure_opens(true).unwrap());
        assert!(all.count > FILES && all.bytes == 0, "{all:?}");
        assert!(all.count <= 4 * (all.ns / 1_000_000 + 1), "four at a time, each of 1 ms: {all:?}");
    }
}
