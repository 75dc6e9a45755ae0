//! Shared by a run and whoever started it: wishes to end, and figures of what it does at the moment, for whoever shows them.
//! Nothing waits for a reader.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};

/// The work that a run is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum LivePhase {
    /// Nothing that moves figures: it looks at files and the page cache, or waits.
    #[default]
    Prepares,
    /// Its dataset is copied.
    Copies,
    /// Steps of training.
    Trains,
    /// Steps of an evaluation.
    Evaluates,
    /// A checkpoint is written and waited for.
    Saves,
    /// A checkpoint is read back.
    Loads,
}

/// Figures of the epoch being run, and of bytes that go elsewhere than into batches.
#[derive(Debug, Default)]
pub struct Live {
    phase: AtomicU8,
    /// From 1; 0 before the first.
    pub epoch: AtomicU32,
    /// Start of the first epoch, on the clock of the run.
    pub begun_ns: AtomicU64,
    /// Steps finished.
    pub step: AtomicU64,
    /// Steps of this epoch.
    pub steps: AtomicU64,
    /// Summed over accelerators.
    pub load_ns: AtomicU64,
    /// Summed over accelerators.
    pub compute_ns: AtomicU64,
    /// Summed over accelerators.
    pub barrier_ns: AtomicU64,
    /// Read by all loaders in this epoch.
    pub read_bytes: AtomicU64,
    /// The copy or checkpoint that was begun last.
    pub bytes: LiveBytes,
}

/// A copy or a checkpoint under way, as far as this process has a part in it.
#[derive(Debug, Default)]
pub struct LiveBytes {
    /// On the clock of the run.
    pub begun_ns: AtomicU64,
    /// All of them; 0 where that is not known.
    pub total: AtomicU64,
    /// Those that are done.
    pub done: AtomicU64,
}

/// Shared by a run and whoever started it.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// Set by whoever wants the run to end.
    pub interrupted: Arc<AtomicBool>,
    /// Set when it has to: nothing that hangs is waited for any more.
    pub leave: Arc<AtomicBool>,
    /// Set by the driver when no more work may begin; waits of emulated storages end then.
    pub stop: Arc<AtomicBool>,
    /// Figures of what it does.
    pub live: Arc<Live>,
}

impl Live {
    /// The phase it is in.
    pub fn phase(&self) -> LivePhase {
        use LivePhase::{Copies, Evaluates, Loads, Prepares, Saves, Trains};
        let all = [Prepares, Copies, Trains, Evaluates, Saves, Loads];
        all.into_iter().find(|&phase| phase as u8 == self.phase.load(Relaxed)).unwrap_or_default()
    }

    /// Another phase begins.
    pub fn enter(&self, phase: LivePhase) {
        self.phase.store(phase as u8, Relaxed);
    }

    /// Do `act` in a phase of its own.
    pub fn during<T>(&self, phase: LivePhase, act: impl FnOnce() -> T) -> T {
        let before = self.phase.swap(phase as u8, Relaxed);
        let done = act();
        self.phase.store(before, Relaxed);
        done
    }
}

impl LiveBytes {
    /// From here on so many are to be done.
    pub fn begin(&self, total: Option<u64>, now_ns: u64) {
        self.total.store(total.unwrap_or(0), Relaxed);
        self.done.store(0, Relaxed);
        self.begun_ns.store(now_ns, Relaxed);
    }
}
