//! The monotonic clock of a run, in nanoseconds from its start. The only reader of time.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

/// The kernel may wake a sleeper so much too late.
const LATE_NS: u64 = 100_000;
/// Sleepers look at their stop flag at least so often.
const SLICE_NS: u64 = 50_000_000;

/// Starts at 0.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
    wall_origin: SystemTime,
}

impl Clock {
    /// A clock that starts now.
    #[expect(clippy::new_without_default, reason = "a clock's start is an act, not a default")]
    pub fn new() -> Self {
        Clock { origin: Instant::now(), wall_origin: SystemTime::now() }
    }

    /// Let it show `offset_ns` more from now on.
    pub fn shift(&mut self, offset_ns: i64) {
        let by = Duration::from_nanos(offset_ns.unsigned_abs());
        let earlier = offset_ns > 0;
        let origin =
            if earlier { self.origin.checked_sub(by) } else { self.origin.checked_add(by) };
        self.origin = origin.unwrap_or(self.origin);
        let wall = self.wall_origin;
        let wall = if earlier { wall.checked_sub(by) } else { wall.checked_add(by) };
        self.wall_origin = wall.unwrap_or(self.wall_origin);
    }

    /// Nanoseconds since the start.
    pub fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// The wall clock at `ns`, as it was set at the start.
    pub fn wall_at(&self, ns: u64) -> SystemTime {
        self.wall_origin + Duration::from_nanos(ns)
    }

    /// How far the wall clock has moved against the monotonic clock since the start.
    pub fn wall_step_ns(&self) -> i64 {
        let expected = self.wall_at(self.now_ns());
        match SystemTime::now().duration_since(expected) {
            Ok(ahead) => ahead.as_nanos() as i64,
            Err(behind) => -(behind.duration().as_nanos() as i64),
        }
    }

    /// Sleep until shortly before `deadline_ns`, then give the core away until then, or until `stop` is set.
    pub fn wait_until(&self, deadline_ns: u64, stop: &AtomicBool) {
        self.sleep_until(deadline_ns.saturating_sub(LATE_NS), stop);
        while self.now_ns() < deadline_ns && !stop.load(Relaxed) {
            std::thread::yield_now();
        }
    }

    /// Sleep until `deadline_ns`, later by the kernel's timer slack and scheduling, or until `stop` is set.
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

/// Processor time of the calling thread.
pub fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The monotonic clock that all processes of this machine share.
pub fn machine_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
