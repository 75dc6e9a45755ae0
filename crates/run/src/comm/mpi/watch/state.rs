//! What a process knows of the run's end; looked at by whatever waits.

use crate::comm::mpi::{OnLoss, Options};
use crate::comm::{CommError, End};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Exit code of a failure, and of a process that was told to stop.
const FAILED: i32 = 1;
const STOPPED: i32 = 130;

/// Shared by the ranks' thread and the channel's.
pub(in super::super) struct State {
    rank: u32,
    on_loss: Option<OnLoss>,
    on_wait: Option<OnLoss>,
    /// Told to stop, or to stop because another rank has ended.
    stop: Arc<AtomicBool>,
    /// How often it was heard that those who are waited for live.
    alive: AtomicU64,
    /// Operations that this rank has begun.
    pub(in super::super) begun: AtomicU64,
    /// This rank gave up: it takes part in nothing more, though the others may not know yet.
    pub(in super::super) gave_up: AtomicBool,
    /// Whether `end` has something; looked at while waiting.
    pub(in super::super) is_ended: AtomicBool,
    end: Mutex<Option<CommError>>,
    failed: AtomicBool,
    /// What failed on this rank.
    failure: Mutex<Option<CommError>>,
    /// An operation of MPI was begun and is not waited for.
    undone: AtomicBool,
    all_idle: AtomicBool,
    /// Rank 0 died, so rank 1 speaks.
    hub_died: AtomicBool,
    /// This rank has said goodbye: that the other side hangs up is no death.
    leaving: AtomicBool,
    /// MPI must not be called any more.
    over: AtomicBool,
    /// The channel's thread has nobody to hear any more.
    closed: Mutex<bool>,
    closes: Condvar,
}

impl State {
    pub(in super::super) fn new(rank: u32, options: &Options) -> Self {
        State {
            rank,
            on_loss: options.on_loss.clone(),
            on_wait: options.on_wait.clone(),
            stop: Arc::clone(&options.stop),
            alive: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            gave_up: AtomicBool::new(false),
            is_ended: AtomicBool::new(false),
            end: Mutex::new(None),
            failed: AtomicBool::new(false),
            failure: Mutex::new(None),
            undone: AtomicBool::new(false),
            all_idle: AtomicBool::new(false),
            hub_died: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            over: AtomicBool::new(false),
            closed: Mutex::new(false),
            closes: Condvar::new(),
        }
    }

    /// The first that happened counts; true if this is it.
    pub(super) fn end_with(&self, error: CommError) -> bool {
        let mut end = lock(&self.end);
        if end.is_some() {
            return false;
        }
        // First of all: some launchers leave no time.
        if self.tells() {
            self.tell(&error);
        }
        *end = Some(error);
        drop(end);
        self.failed.store(true, Relaxed);
        self.is_ended.store(true, Release);
        self.stop.store(true, Relaxed);
        true
    }

    /// Rank 0 has seen that others are late, but at work.
    pub(super) fn note(&self, late: &CommError) {
        if let Some(on_wait) = &self.on_wait {
            on_wait(late);
        }
    }

    pub(super) fn hear_alive(&self) {
        self.alive.fetch_add(1, Relaxed);
    }

    pub(in super::super) fn alive(&self) -> u64 {
        self.alive.load(Relaxed)
    }

    pub(in super::super) fn tell(&self, error: &CommError) {
        if let Some(on_loss) = &self.on_loss {
            on_loss(error);
        }
    }

    pub(super) fn hub_died(&self) {
        self.hub_died.store(true, Release);
    }

    /// What ended the work of all.
    pub(in super::super) fn end(&self) -> Option<CommError> {
        if !self.is_ended.load(Acquire) {
            return None;
        }
        lock(&self.end).clone()
    }

    /// An operation of this rank failed, for whatever reason.
    pub(in super::super) fn fail(&self, error: &CommError) {
        lock(&self.failure).get_or_insert_with(|| error.clone());
        self.failed.store(true, Relaxed);
    }

    pub(in super::super) fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    /// Whether this rank is the one that speaks.
    pub(in super::super) fn tells(&self) -> bool {
        self.rank == u32::from(self.hub_died.load(Acquire))
    }

    /// The exit code that goes with the failure.
    pub(in super::super) fn code(&self) -> i32 {
        let error = self.end().or_else(|| lock(&self.failure).clone());
        if error.is_some_and(|error| error.is_interruption()) { STOPPED } else { FAILED }
    }

    /// What the others are to be told, if they have not been.
    pub(in super::super) fn untold(&self) -> Option<End> {
        let failure = lock(&self.failure).clone().filter(|_| self.end().is_none())?;
        Some(failure.end())
    }

    /// Something of MPI is under way that nobody will wait for.
    pub(in super::super) fn leave_undone(&self) {
        self.undone.store(true, Release);
    }

    pub(super) fn is_idle(&self) -> bool {
        !self.undone.load(Acquire)
    }

    pub(super) fn set_all_idle(&self) {
        self.all_idle.store(true, Release);
    }

    /// Whether all ranks have left with nothing under way, and know it of each other.
    pub(in super::super) fn are_all_idle(&self) -> bool {
        self.all_idle.load(Acquire)
    }

    pub(super) fn leave(&self) {
        self.leaving.store(true, Release);
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.load(Acquire)
    }

    /// Refuse `call` where MPI must not be called any more.
    pub(in super::super) fn may_call(&self, call: &'static str) -> Result<(), CommError> {
        match self.over.load(Acquire) {
            true => Err(CommError::Library { call, reason: "the ranks have parted".to_owned() }),
            false => Ok(()),
        }
    }

    pub(in super::super) fn set_over(&self) {
        self.over.store(true, Release);
    }

    pub(super) fn close(&self) {
        *lock(&self.closed) = true;
        self.closes.notify_all();
    }

    /// Whether the channel closes within `patience`.
    pub(super) fn wait_closed(&self, patience: Duration) -> bool {
        let closed = lock(&self.closed);
        let waited = self.closes.wait_timeout_while(closed, patience, |closed| !*closed);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// What is guarded is whole at any time.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
