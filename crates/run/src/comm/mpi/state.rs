//! The end of the ranks' work together, as far as this process knows of it; looked at by whatever waits.

use crate::comm::{CommError, End};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Exit code of a failure, and of a process that was told to stop.
const FAILED: i32 = 1;
const STOPPED: i32 = 130;

/// Takes what happened.
pub type OnLoss = Arc<dyn Fn(&CommError) + Send + Sync>;

/// Set once.
#[derive(Default)]
pub(super) struct Flag(AtomicBool);

impl Flag {
    pub(super) fn set(&self) {
        self.0.store(true, Release);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Acquire)
    }
}

/// Shared by the rank's own thread and the one that listens to the control channel.
#[derive(Default)]
pub(super) struct RankState {
    rank: u32,
    on_loss: Option<OnLoss>,
    on_wait: Option<OnLoss>,
    /// Told to stop, or to stop because another rank has ended.
    pub(super) stop: Arc<AtomicBool>,
    /// How often it was heard that those who are waited for live.
    pub(super) alive: AtomicU64,
    /// Operations that this rank has begun.
    pub(super) begun: AtomicU64,
    /// This rank gave up: it takes part in nothing more, though the others may not know yet.
    pub(super) gave_up: Flag,
    /// Whether `end` has something.
    pub(super) is_ended: Flag,
    /// An operation of MPI was begun and is not waited for.
    pub(super) undone: Flag,
    /// All ranks have left with nothing under way, and know it of each other.
    pub(super) all_idle: Flag,
    /// Rank 0 died, or does not answer: its deputy speaks.
    pub(super) hub_died: Flag,
    /// Rank 1 until the machines are known.
    pub(super) deputy: OnceLock<u32>,
    /// This rank has said goodbye: that the other side hangs up is no death.
    pub(super) leaving: Flag,
    /// MPI must not be called any more.
    pub(super) over: Flag,
    end: Mutex<Option<CommError>>,
    /// The first operation of this rank that failed.
    failure: Mutex<Option<CommError>>,
}

impl RankState {
    pub(super) fn new(
        rank: u32,
        stop: Arc<AtomicBool>,
        on_loss: Option<OnLoss>,
        on_wait: Option<OnLoss>,
    ) -> Self {
        RankState { rank, on_loss, on_wait, stop, ..RankState::default() }
    }

    /// The work of all is over. The first reason counts.
    pub(super) fn end_with(&self, error: CommError) {
        let mut end = lock(&self.end);
        if end.is_some() {
            return;
        }
        // First of all: some launchers leave no time.
        if self.must_report() {
            self.tell(&error);
        }
        *end = Some(error);
        drop(end);
        self.is_ended.set();
        self.stop.store(true, Relaxed);
    }

    /// The reason why the work of all is over.
    pub(super) fn end(&self) -> Option<CommError> {
        if self.is_ended.is_set() { lock(&self.end).clone() } else { None }
    }

    /// An error where the work of all is over.
    pub(super) fn check_end(&self) -> Result<(), CommError> {
        if self.is_ended.is_set() { Err(self.end().unwrap_or(CommError::Stopped)) } else { Ok(()) }
    }

    /// Refuse `call` where MPI must not be called any more.
    pub(super) fn may_call(&self, call: &'static str) -> Result<(), CommError> {
        if self.over.is_set() {
            return Err(CommError::Library { call, reason: "the ranks have parted".to_owned() });
        }
        Ok(())
    }

    /// Tell whoever started this process.
    pub(super) fn tell(&self, error: &CommError) {
        if let Some(on_loss) = &self.on_loss {
            on_loss(error);
        }
    }

    /// Others are late, but at work.
    pub(super) fn note(&self, late: &CommError) {
        if let Some(on_wait) = &self.on_wait {
            on_wait(late);
        }
    }

    /// An operation of this rank failed, for whatever reason.
    pub(super) fn fail(&self, error: &CommError) {
        lock(&self.failure).get_or_insert_with(|| error.clone());
    }

    pub(super) fn has_failed(&self) -> bool {
        self.is_ended.is_set() || lock(&self.failure).is_some()
    }

    /// Whether this rank reports the end of the work.
    pub(super) fn must_report(&self) -> bool {
        let deputy = self.deputy.get().copied().unwrap_or(1);
        self.rank == if self.hub_died.is_set() { deputy } else { 0 }
    }

    /// The exit code that goes with the failure.
    pub(super) fn code(&self) -> i32 {
        let error = self.end().or_else(|| lock(&self.failure).clone());
        if error.is_some_and(|error| error.is_interruption()) { STOPPED } else { FAILED }
    }

    /// The end that the others are to be told, if they have not been.
    pub(super) fn untold(&self) -> Option<End> {
        if self.is_ended.is_set() {
            return None;
        }
        lock(&self.failure).as_ref().map(CommError::end)
    }
}

/// A value that is guarded is whole at any time.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
