//! State that the threads of this rank share, above all whether and why the common work of the ranks has ended. Every wait checks it.

use crate::comm::{CommError, End};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Exit code of a failure.
const EXIT_FAILED: i32 = 1;
/// Exit code of an interrupted process.
const EXIT_INTERRUPTED: i32 = 130;

/// Called with an event to report.
pub type OnLoss = Arc<dyn Fn(&CommError) + Send + Sync>;

/// A flag that is never cleared.
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

/// State shared by the main thread of the rank and the thread that listens to the control channel.
#[derive(Default)]
pub(super) struct RankState {
    rank: u32,
    on_loss: Option<OnLoss>,
    on_wait: Option<OnLoss>,
    /// Set to interrupt this process, by the caller or because another rank has ended.
    pub(super) stop: Arc<AtomicBool>,
    /// Number of reports that the ranks this rank waits for are alive.
    pub(super) alive_reports: AtomicU64,
    /// Number of operations that this rank has started.
    pub(super) started_operations: AtomicU64,
    /// Set when this rank has given up; it takes no part in further operations.
    pub(super) gave_up: Flag,
    /// Whether `end` is set.
    pub(super) is_ended: Flag,
    /// Set when an MPI operation was begun and may never be finished.
    pub(super) unfinished: Flag,
    /// Set when all ranks have left without unfinished operations.
    pub(super) all_idle: Flag,
    /// Set when rank 0 died or does not answer; its deputy then reports to the user.
    pub(super) hub_died: Flag,
    /// The deputy of rank 0; rank 1 if not set.
    pub(super) deputy: OnceLock<u32>,
    /// Set when this rank has said goodbye, after which a closed connection is not a failure.
    pub(super) leaving: Flag,
    /// Set when MPI is finalized and must not be called any more.
    pub(super) finalized: Flag,
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

    /// Ends the common work. Only the first reason counts.
    pub(super) fn end_with(&self, error: CommError) {
        let mut end = lock(&self.end);
        if end.is_some() {
            return;
        }
        // Reported first, since some launchers kill this process soon.
        if self.must_report() {
            self.report(&error);
        }
        *end = Some(error);
        drop(end);
        self.is_ended.set();
        self.stop.store(true, Relaxed);
    }

    /// Returns why the common work has ended, if it has.
    pub(super) fn end(&self) -> Option<CommError> {
        if self.is_ended.is_set() { lock(&self.end).clone() } else { None }
    }

    /// Fails if the common work has ended.
    pub(super) fn check_end(&self) -> Result<(), CommError> {
        if self.is_ended.is_set() { Err(self.end().unwrap_or(CommError::Stopped)) } else { Ok(()) }
    }

    /// Fails if MPI must not be called any more.
    pub(super) fn check_call(&self, call: &'static str) -> Result<(), CommError> {
        if self.finalized.is_set() {
            return Err(CommError::Library {
                call,
                reason: "the ranks have disconnected".to_owned(),
            });
        }
        Ok(())
    }

    /// Reports the loss of ranks to the caller.
    pub(super) fn report(&self, error: &CommError) {
        if let Some(on_loss) = &self.on_loss {
            on_loss(error);
        }
    }

    /// Reports to the caller that this rank waits for other ranks that are working.
    pub(super) fn report_wait(&self, late: &CommError) {
        if let Some(on_wait) = &self.on_wait {
            on_wait(late);
        }
    }

    /// Remembers the first failed operation of this rank.
    pub(super) fn fail(&self, error: &CommError) {
        lock(&self.failure).get_or_insert_with(|| error.clone());
    }

    pub(super) fn has_failed(&self) -> bool {
        self.is_ended.is_set() || lock(&self.failure).is_some()
    }

    /// Whether this rank reports to the user.
    pub(super) fn must_report(&self) -> bool {
        let deputy = self.deputy.get().copied().unwrap_or(1);
        self.rank == if self.hub_died.is_set() { deputy } else { 0 }
    }

    /// Returns the exit code for the failure.
    pub(super) fn exit_code(&self) -> i32 {
        let error = self.end().or_else(|| lock(&self.failure).clone());
        if error.is_some_and(|error| error.is_interruption()) {
            EXIT_INTERRUPTED
        } else {
            EXIT_FAILED
        }
    }

    /// Returns how this rank ended, if it failed and the other ranks do not know yet.
    pub(super) fn unreported_end(&self) -> Option<End> {
        if self.is_ended.is_set() {
            return None;
        }
        lock(&self.failure).as_ref().map(CommError::end)
    }
}

/// Locks a mutex. Poisoning is ignored, since guarded values are valid at any time.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
