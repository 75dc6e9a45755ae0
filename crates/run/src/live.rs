//! State shared between a run and its caller: stop requests in one direction, live figures in the other. All state is atomic, so the
//! run never waits for a reader.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};

/// Phase of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum LivePhase {
    /// Checking files, preparing the page cache, or waiting; no figures change.
    #[default]
    Prepares,
    /// Copying the dataset.
    Copies,
    /// Running training steps.
    Trains,
    /// Running evaluation steps.
    Evaluates,
    /// Writing a checkpoint while steps wait.
    Saves,
    /// Reading a checkpoint back.
    Loads,
    /// Waiting for the time of the next checkpoint, without training.
    Waits,
}

/// Live figures of the current epoch, and of the current copy or checkpoint.
#[derive(Debug, Default)]
pub struct Live {
    phase: AtomicU8,
    /// Number of the epoch, from 1; 0 before the first.
    pub epoch: AtomicU32,
    /// Start of the first epoch, on the clock of the run.
    pub start_ns: AtomicU64,
    /// End of the wait for the next checkpoint, likewise.
    pub wait_end_ns: AtomicU64,
    /// Steps finished.
    pub step: AtomicU64,
    /// Number of steps in this epoch.
    pub steps: AtomicU64,
    /// Time waited for data, summed over accelerators.
    pub load_ns: AtomicU64,
    /// Time computed, summed over accelerators.
    pub compute_ns: AtomicU64,
    /// Time waited at the barrier, summed over accelerators.
    pub barrier_ns: AtomicU64,
    /// Bytes read by all loaders in this epoch.
    pub read_bytes: AtomicU64,
    /// Progress of the latest copy or checkpoint.
    pub bytes: LiveBytes,
}

/// State of an accelerator's loader at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveLoader {
    /// Bytes read since the start of the run.
    pub read_bytes: u64,
    /// Complete batches that the accelerator has not taken.
    pub ready_batches: u64,
    /// Number of batches that may be in flight.
    pub batches_in_flight: u64,
    /// Threads that read or decode.
    pub busy_threads: u32,
    /// Number of reading threads.
    pub threads: u32,
}

/// Progress of this process's part of a copy or checkpoint.
#[derive(Debug, Default)]
pub struct LiveBytes {
    /// Start, on the clock of the run.
    pub start_ns: AtomicU64,
    /// Bytes to write; 0 if unknown.
    pub total: AtomicU64,
    /// Bytes written.
    pub done: AtomicU64,
}

/// Flags and figures shared by a run and its caller.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// Set by the caller to request the end of the run.
    pub interrupted: Arc<AtomicBool>,
    /// Set by the caller to end the run even if storage calls hang; they are abandoned.
    pub abandon: Arc<AtomicBool>,
    /// Set by the driver when no more work may begin; it ends the waits of emulated storages.
    pub stop: Arc<AtomicBool>,
    /// Live figures.
    pub live: Arc<Live>,
}

impl Live {
    /// Returns the current phase.
    pub fn phase(&self) -> LivePhase {
        use LivePhase::{Copies, Evaluates, Loads, Prepares, Saves, Trains, Waits};
        let all = [Prepares, Copies, Trains, Evaluates, Saves, Loads, Waits];
        all.into_iter().find(|&phase| phase as u8 == self.phase.load(Relaxed)).unwrap_or_default()
    }

    /// Sets the phase.
    pub fn set_phase(&self, phase: LivePhase) {
        self.phase.store(phase as u8, Relaxed);
    }

    /// Runs `work` in `phase`, then restores the previous phase.
    pub fn run_in_phase<T>(&self, phase: LivePhase, work: impl FnOnce() -> T) -> T {
        let before = self.phase.swap(phase as u8, Relaxed);
        let result = work();
        self.phase.store(before, Relaxed);
        result
    }
}

impl LiveBytes {
    /// Resets the progress to 0 of `total` bytes.
    pub fn begin(&self, total: Option<u64>, now_ns: u64) {
        self.total.store(total.unwrap_or(0), Relaxed);
        self.done.store(0, Relaxed);
        self.start_ns.store(now_ns, Relaxed);
    }
}
