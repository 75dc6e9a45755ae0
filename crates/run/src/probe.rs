//! Plain reads and opens of a dataset's files, so many at once: no format, no loader, nothing decoded. The storage is the one that a run
//! of the plan reads, throttle and delays with it.

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

/// Who waits for the threads looks at them so often.
const LOOK: Duration = Duration::from_millis(5);
/// So many times as long a first operation may take.
const PATIENCE: u64 = 4;
/// Seed of the order of stretches.
const SEED: u64 = 0x5eed;

/// A file, and how much there is to read of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainFile {
    /// Relative to the storage's root.
    pub path: String,
    /// Its length.
    pub bytes: u64,
}

/// Operations that ended, from the first's begin to the last's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// How many.
    pub count: u64,
    /// Bytes that they returned.
    pub bytes: u64,
    /// How long they took together.
    pub ns: u64,
}

impl Sum for Operations {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Operations::default(), |sum, own| Operations {
            count: sum.count + own.count,
            bytes: sum.bytes + own.bytes,
            ns: sum.ns + own.ns,
        })
    }
}

/// How files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainReads {
    /// Bytes of a read.
    pub request_bytes: u64,
    /// Each thread reads so many bytes of a file one after another.
    pub stretch_bytes: u64,
    /// Stretches follow one another anyhow.
    pub shuffled: bool,
    /// All is read again, as long as time allows; else once.
    pub again: bool,
}

/// Threads that do the same to files, for so long.
pub struct Probe<'a> {
    /// Without throttle and delays.
    pub storage: Arc<dyn ReadStorage>,
    /// Throttle and delays.
    pub plan: &'a StoragePlan,
    /// Files that are read or opened.
    pub files: &'a [PlainFile],
    /// Threads.
    pub in_flight: u32,
    /// Nothing begins later than this, unless nothing has ended by then.
    pub limit: Duration,
    /// The user's wish.
    pub interrupted: &'a AtomicBool,
}

/// A run of consecutive reads of one file.
#[derive(Clone, Copy)]
struct Stretch {
    file: usize,
    start: u64,
    end: u64,
}

/// Operations that ended so far, and whether more may begin.
struct Timed {
    clock: Clock,
    /// Ends the waits of the emulated storage too.
    stop: Arc<AtomicBool>,
    count: AtomicU64,
    bytes: AtomicU64,
    last_ns: AtomicU64,
}

impl Timed {
    fn new() -> Self {
        let [count, bytes, last_ns] = [const { AtomicU64::new(0) }; 3];
        Timed { clock: Clock::new(), stop: Arc::default(), count, bytes, last_ns }
    }

    /// Count one that ended, unless its wait was cut short.
    fn ended(&self, bytes: u64) {
        if !self.is_over() {
            self.count.fetch_add(1, Relaxed);
            self.bytes.fetch_add(bytes, Relaxed);
            self.last_ns.fetch_max(self.clock.now_ns(), Relaxed);
        }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Relaxed)
    }

    fn operations(&self) -> Operations {
        let [count, bytes, ns] =
            [&self.count, &self.bytes, &self.last_ns].map(|of| of.load(Relaxed));
        Operations { count, bytes, ns }
    }
}

impl Probe<'_> {
    /// Read every file, or as far as time allows. Opening them does not count.
    ///
    /// # Errors
    /// A file could not be opened or read, or there was no memory or thread.
    pub fn reads(&self, how: PlainReads) -> Result<Operations, RunError> {
        let handles = self.files.iter().map(|file| self.storage.open(&file.path));
        let handles = handles.collect::<Result<Vec<Handle>, _>>()?;
        let stretches = self.stretches(how);
        let bytes = how.request_bytes.max(1).next_multiple_of(ALIGN as u64);
        let count = if how.again && !stretches.is_empty() { usize::MAX } else { stretches.len() };
        let outcome = self.timed(count, |timed, storage, next| {
            let mut buffer = AlignedBuffer::new(bytes as usize)
                .map_err(|source| RunError::Memory { bytes: bytes as usize, source })?;
            while let Some(at) = next() {
                let Stretch { file, start, end } = stretches[at % stretches.len()];
                let offsets = (start..end).step_by(how.request_bytes.max(1) as usize);
                for offset in offsets.take_while(|_| !timed.is_over()) {
                    // Whole blocks, as `O_DIRECT` wants them; a file ends where it ends.
                    let wanted = how.request_bytes.min(end - offset);
                    let len = wanted.next_multiple_of(ALIGN as u64).min(bytes) as usize;
                    let own = buffer.aligned_like(0, len);
                    let come = storage.read_at(&handles[file], offset, own)?;
                    timed.ended((come as u64).min(wanted));
                }
            }
            Ok(())
        });
        handles.into_iter().for_each(|handle| self.storage.close(handle));
        outcome
    }

    /// Open and close files, as far as time allows; `again` from the first after the last.
    ///
    /// # Errors
    /// A file could not be opened, or there was no thread.
    pub fn opens(&self, again: bool) -> Result<Operations, RunError> {
        let count = if again { usize::MAX } else { self.files.len() };
        self.timed(count, |timed, storage, next| {
            while let Some(at) = next() {
                storage.close(storage.open(&self.files[at % self.files.len()].path)?);
                timed.ended(0);
            }
            Ok(())
        })
    }

    /// Whole requests, where a file has one.
    fn stretches(&self, how: PlainReads) -> Vec<Stretch> {
        let request_bytes = how.request_bytes.max(1);
        let stretch_bytes = request_bytes * (how.stretch_bytes / request_bytes).max(1);
        let mut all = Vec::new();
        for (file, of) in self.files.iter().enumerate() {
            let rest = if of.bytes < request_bytes { 0 } else { of.bytes % request_bytes };
            let bytes = of.bytes - rest;
            for start in (0..bytes).step_by(stretch_bytes as usize) {
                all.push(Stretch { file, start, end: bytes.min(start + stretch_bytes) });
            }
        }
        if how.shuffled {
            let order = Permutation::new(all.len() as u64, SEED);
            all = (0..all.len() as u64).map(|at| all[order.at(at) as usize]).collect();
        }
        all
    }

    /// Do `work` on all threads until it is done or time is over. It is handed numbers below `count`, each once.
    fn timed(
        &self,
        count: usize,
        work: impl Fn(&Timed, &dyn ReadStorage, &dyn Fn() -> Option<usize>) -> Result<(), RunError>
        + Sync,
    ) -> Result<Operations, RunError> {
        let (timed, taken) = (Timed::new(), AtomicUsize::new(0));
        let storage =
            layers::emulated(self.plan, Arc::clone(&self.storage), timed.clock, &timed.stop);
        let next = || {
            let at = taken.fetch_add(1, Relaxed);
            (at < count && !timed.is_over()).then_some(at)
        };
        let workers = self.in_flight.max(1) as usize;
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for worker in 0..workers {
                let thread = std::thread::Builder::new().spawn_scoped(scope, || {
                    let outcome = work(&timed, &*storage, &next);
                    // Nobody goes on where one cannot.
                    timed.stop.fetch_or(outcome.is_err(), Relaxed);
                    outcome
                });
                threads.push(thread.map_err(|source| RunError::Thread {
                    worker,
                    workers,
                    source,
                })?);
            }
            while threads.iter().any(|thread| !thread.is_finished()) {
                std::thread::sleep(LOOK);
                timed.stop.fetch_or(self.is_late(&timed), Relaxed);
            }
            for thread in threads {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            Ok(timed.operations())
        })
    }

    /// Whether time is over. A first operation is waited for longer.
    fn is_late(&self, timed: &Timed) -> bool {
        let (limit_ns, now_ns) = (self.limit.as_nanos() as u64, timed.clock.now_ns());
        let patience = if timed.count.load(Relaxed) > 0 { 1 } else { PATIENCE };
        limit_ns.saturating_mul(patience) <= now_ns || self.interrupted.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_data::storage::{self, Storage};
    use std::path::Path;

    const FILES: u64 = 5;

    /// A probe of the storage that answers at once, with this emulated.
    fn probe(plan: StoragePlan, act: impl Fn(&Probe<'_>) -> Operations) -> Operations {
        let files = (0..FILES).map(|at| PlainFile { path: at.to_string(), bytes: 10_000 + at });
        let storage: Arc<dyn Storage> = Arc::from(storage::open("null", Path::new("/")).unwrap());
        let (files, interrupted) = (files.collect::<Vec<_>>(), AtomicBool::new(false));
        let limit = Duration::from_millis(200);
        act(&Probe {
            storage,
            plan: &plan,
            files: &files,
            in_flight: 4,
            limit,
            interrupted: &interrupted,
        })
    }

    fn reads(plan: StoragePlan, how: PlainReads) -> Operations {
        probe(plan, |probe| probe.reads(how).unwrap())
    }

    #[test]
    fn files_are_read_once_in_requests_of_the_size_that_was_asked_for() {
        for (request_bytes, stretch_bytes, shuffled, count, bytes) in [
            (4096, 4096, true, 2 * FILES, 2 * 4096 * FILES),
            (4096, 8192, false, 2 * FILES, 2 * 4096 * FILES),
            (3000, 1 << 20, true, 3 * FILES, 9000 * FILES),
            (1 << 20, 1 << 20, false, FILES, 10_000 * FILES + 10),
        ] {
            let how = PlainReads { request_bytes, stretch_bytes, shuffled, again: false };
            let all = reads(StoragePlan::default(), how);
            assert_eq!((all.count, all.bytes), (count, bytes), "{how:?}");
        }
    }

    /// Readers of a throttle are served one after another, so that what has ended by then is known to the byte.
    #[test]
    fn reads_that_time_cuts_short_do_not_count() {
        let how =
            PlainReads { request_bytes: 1000, stretch_bytes: 1000, shuffled: false, again: true };
        let rate = 100_000.0;
        let throttled =
            StoragePlan { throttle_bytes_per_second: Some(rate), ..StoragePlan::default() };
        let all = reads(throttled, how);
        assert!(0 < all.count && all.count < 51, "{all:?}");
        assert!(all.bytes as f64 / (all.ns as f64 / 1e9) <= rate, "{all:?}");
        // No operation ends: it is waited for longer, not for ever.
        let hopeless = StoragePlan { delay_s: 1000.0, ..StoragePlan::default() };
        assert_eq!(reads(hopeless, how), Operations::default());
    }

    #[test]
    fn opens_go_on_from_the_first_file() {
        let delayed = StoragePlan { open_delay_s: 0.001, ..StoragePlan::default() };
        let all = probe(delayed, |probe| probe.opens(true).unwrap());
        assert!(all.count > FILES && all.bytes == 0, "{all:?}");
        assert!(all.count <= 4 * (all.ns / 1_000_000 + 1), "four at a time, each of 1 ms: {all:?}");
    }
}
