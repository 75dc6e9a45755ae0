//! Emulates the client's work on real threads. Each thread burns the processor time of the thread that it represents, so that cores are
//! as contended as in the real job.

use crate::clock::thread_cpu_ns;
use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::thread::Thread;

/// Multiplications between two readings of the clock, which is a system call: about a microsecond.
const CLOCK_INTERVAL: u64 = 1 << 10;

/// Burns processor time until the calling thread has used `until_ns` in all, or until `is_stopped` returns true. Returns the thread's
/// processor time.
pub(super) fn burn(until_ns: u64, is_stopped: impl Fn() -> bool) -> u64 {
    let mut number = until_ns;
    loop {
        let cpu_ns = thread_cpu_ns();
        if until_ns <= cpu_ns || is_stopped() {
            return cpu_ns;
        }
        for step in 0..CLOCK_INTERVAL {
            number = black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step));
        }
    }
}

/// Requests to the thread that emulates the training process of one accelerator. It starts the workers and receives their batches.
#[derive(Default)]
pub(super) struct Receiver {
    /// Request to start workers for an epoch of this many steps; 0 is no request.
    pub(super) start_steps: AtomicU64,
    /// Duration of the latest start of workers; 0 after it was taken.
    pub(super) started_ns: AtomicU64,
    /// Request to receive a batch: its bytes plus 1; 0 is no request.
    pub(super) batch_bytes: AtomicU64,
    /// Time of the latest request.
    pub(super) requested_ns: AtomicU64,
    /// End of receiving the latest batch.
    pub(super) receive_end_ns: AtomicU64,
    pub(super) thread: OnceLock<Thread>,
}

impl Receiver {
    /// Requests the start of the workers for an epoch of `steps` steps.
    pub(super) fn start(&self, steps: u64, now_ns: u64) {
        self.requested_ns.store(now_ns, Relaxed);
        self.start_steps.store(steps, Release);
        self.unpark();
    }

    /// Requests that a batch be received. The receiver notifies the conductor once it has set `receive_end_ns`.
    pub(super) fn receive(&self, bytes: u64, now_ns: u64) {
        self.requested_ns.store(now_ns, Relaxed);
        self.batch_bytes.store(bytes + 1, Release);
        self.unpark();
    }

    /// Returns the time spent starting workers since the previous batch, and the time spent receiving the batch, which ends at
    /// `now_ns`.
    pub(super) fn durations_ns(&self, now_ns: u64) -> [u64; 2] {
        [self.started_ns.swap(0, AcqRel), now_ns - self.requested_ns.load(Acquire)]
    }

    pub(super) fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}
