//! How the conductor waits for deadlines and batches.

use super::shared::Shared;
use std::time::Duration;

/// Longest wait of the conductor before it checks the interrupt flag.
pub(super) const CHECK_INTERVAL_NS: u64 = 100_000_000;
/// Time before a deadline during which the conductor may spin; covers the delay of the kernel's wake-ups.
const SPIN_NS: u64 = 120_000;
/// Time for which the conductor may spin for a batch before it sleeps: about what the kernel needs to wake it.
const SPIN_FOR_BATCH_NS: u64 = 10_000;
/// Upper limit of the wake-up delay that the conductor compensates for.
const LATE_NS_MAX: u64 = 150_000;

/// Waits on behalf of the conductor.
pub(super) struct Waiter {
    spins: bool,
    /// Whether to tolerate late wake-ups, like an ordinary training process.
    wakes_late: bool,
    /// Recent wake-up delay of the kernel; sleeps are shortened by it.
    late_ns: u64,
}

impl Waiter {
    pub(super) fn new(spins: bool, wakes_late: bool) -> Self {
        Waiter { spins, wakes_late, late_ns: if spins { SPIN_NS } else { 0 } }
    }

    /// Waits until `deadline_ns`, until the thread is unparked, or for [`CHECK_INTERVAL_NS`]. Just before the deadline it spins if
    /// there are idle cores and yields otherwise. Without a deadline it spins for [`SPIN_FOR_BATCH_NS`] if there are idle cores.
    pub(super) fn wait(&mut self, shared: &Shared, now_ns: u64, deadline_ns: Option<u64>) {
        let Some(deadline_ns) = deadline_ns else {
            while self.spins && shared.clock.now_ns() < now_ns + SPIN_FOR_BATCH_NS {
                if !shared.ready.is_empty() || !shared.computed.is_empty() {
                    return;
                }
                std::hint::spin_loop();
            }
            return std::thread::park_timeout(Duration::from_nanos(CHECK_INTERVAL_NS));
        };
        let wake_ns = deadline_ns.saturating_sub(self.late_ns).min(now_ns + CHECK_INTERVAL_NS);
        if wake_ns > now_ns {
            std::thread::park_timeout(Duration::from_nanos(wake_ns - now_ns));
            if !self.spins && !self.wakes_late && shared.ready.is_empty() {
                self.update_delay(shared.clock.now_ns().saturating_sub(wake_ns));
            }
            return;
        }
        while shared.ready.is_empty() && shared.clock.now_ns() < deadline_ns {
            if self.spins { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    fn update_delay(&mut self, late_ns: u64) {
        self.late_ns = ((7 * self.late_ns + 2 * late_ns) / 8).min(LATE_NS_MAX);
    }
}
