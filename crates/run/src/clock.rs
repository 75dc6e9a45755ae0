//! The monotonic clock of a run, in nanoseconds since its start. Other modules of this crate do not read the time directly.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

/// Delay with which the kernel may wake a sleeping thread.
const WAKE_DELAY_NS: u64 = 100_000;
/// Longest sleep before a sleeper checks its stop flag.
const SLICE_NS: u64 = 50_000_000;

/// A monotonic clock that starts at 0.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
    wall_origin: SystemTime,
}

impl Clock {
    /// Creates a clock that starts now.
    #[expect(clippy::new_without_default, reason = "a clock's start is an act, not a default")]
    pub fn new() -> Self {
        Clock { origin: Instant::now(), wall_origin: SystemTime::now() }
    }

    /// Advances the clock by `offset_ns`.
    pub fn shift(&mut self, offset_ns: i64) {
        let offset = Duration::from_nanos(offset_ns.unsigned_abs());
        let (origin, wall_origin) = if offset_ns > 0 {
            (self.origin.checked_sub(offset), self.wall_origin.checked_sub(offset))
        } else {
            (self.origin.checked_add(offset), self.wall_origin.checked_add(offset))
        };
        self.origin = origin.unwrap_or(self.origin);
        self.wall_origin = wall_origin.unwrap_or(self.wall_origin);
    }

    /// Returns the nanoseconds since the start.
    pub fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// Returns the wall-clock time at `ns`, ignoring changes of the wall clock since the start.
    pub fn wall_at(&self, ns: u64) -> SystemTime {
        self.wall_origin + Duration::from_nanos(ns)
    }

    /// Returns by how much the wall clock was set forward since the start; negative if it was set back.
    pub fn wall_step_ns(&self) -> i64 {
        let expected = self.wall_at(self.now_ns());
        match SystemTime::now().duration_since(expected) {
            Ok(ahead) => ahead.as_nanos() as i64,
            Err(behind) => -(behind.duration().as_nanos() as i64),
        }
    }

    /// Waits until `deadline_ns`, or until `stop` is set. It sleeps until shortly before the deadline and then yields, so that the
    /// deadline is met closely.
    pub fn wait_until(&self, deadline_ns: u64, stop: &AtomicBool) {
        self.sleep_until(deadline_ns.saturating_sub(WAKE_DELAY_NS), stop);
        while self.now_ns() < deadline_ns && !stop.load(Relaxed) {
            std::thread::yield_now();
        }
    }

    /// Sleeps until `deadline_ns`, or until `stop` is set. It may return late by the kernel's timer slack and scheduling delay.
    pub fn sleep_until(&self, deadline_ns: u64, stop: &AtomicBool) {
        loop {
            let now = self.now_ns();
            if now >= deadline_ns || stop.load(Relaxed) {
                return;
            }
            std::thread::sleep(Duration::from_nanos((deadline_ns - now).min(SLICE_NS)));
        }
    }
}

/// Returns the processor time of the calling thread.
pub fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the time of the monotonic clock that all processes of this machine share.
pub fn machine_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
