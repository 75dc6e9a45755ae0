//! What a reading thread does while it has no work: yields, sleeps, and hands over its counters when they are requested.

use super::shared::{Shared, WorkerHandle};
use std::sync::atomic::Ordering::SeqCst;

/// Number of times that an idle thread yields and tries to get work before it sleeps.
const YIELDS_BEFORE_SLEEP: u32 = 4;
/// Number of threads above which yielding costs more than sleeping.
const YIELDING_THREADS_MAX: usize = 64;

/// The idle state of a reading thread.
pub(super) struct Rest<'s> {
    shared: &'s Shared,
    handle: &'s WorkerHandle,
    /// Number of the last request for counters that was answered.
    flushed: u32,
    /// Whether the thread is marked as idle.
    is_marked_idle: bool,
    /// Yields since the last work.
    yields: u32,
    is_started: bool,
}

impl<'s> Rest<'s> {
    pub(super) fn new(shared: &'s Shared, handle: &'s WorkerHandle) -> Self {
        Rest { shared, handle, flushed: 0, is_marked_idle: false, yields: 0, is_started: false }
    }

    /// Ends the rest, because there is work.
    pub(super) fn end(&mut self) {
        self.mark_idle(false);
        self.yields = 0;
    }

    /// Takes one step towards sleeping, because there is no work: hands over the counters if requested; otherwise yields a few times, then
    /// marks the thread as idle, then sleeps until woken. The caller tries to get work between these steps. Returns true if the epoch has
    /// ended.
    pub(super) fn step(&mut self, hand_over: impl FnOnce()) -> bool {
        let wanted = self.shared.flush_wanted.load(SeqCst);
        if wanted != self.flushed {
            self.flushed = wanted;
            hand_over();
            self.shared.count_flushed_worker();
            return true;
        }
        // The next batch is often opened sooner than sleeping and waking would take.
        if self.yields < YIELDS_BEFORE_SLEEP && self.shared.workers.len() <= YIELDING_THREADS_MAX {
            self.yields += 1;
            std::thread::yield_now();
            return false;
        }
        // A batch that opens after the flag is set wakes this thread. An earlier batch is found before sleeping.
        if self.is_marked_idle {
            std::thread::park();
            self.mark_idle(false);
        } else {
            self.mark_idle(true);
            if !self.is_started {
                self.is_started = true;
                self.shared.count_started_worker();
            }
        }
        false
    }

    fn mark_idle(&mut self, idle: bool) {
        if self.is_marked_idle != idle {
            self.handle.idle.store(idle, SeqCst);
            self.is_marked_idle = idle;
        }
    }
}
