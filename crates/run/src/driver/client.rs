//! The client's work on real threads: processor time is burnt on the core of who owes it, so that cores are as contended as in the real job.

use crate::clock::thread_cpu_ns;
use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::thread::Thread;

/// Multiplications between two looks at the clock, which is a system call: about a microsecond.
const LOOK_EVERY: u64 = 1 << 10;

/// Burn processor time until the calling thread has run for `until_ns`, or is to stop. Returns how long it has run then.
pub(super) fn burn(until_ns: u64, is_stopped: impl Fn() -> bool) -> u64 {
    let mut number = until_ns;
    loop {
        let ran_ns = thread_cpu_ns();
        if until_ns <= ran_ns || is_stopped() {
            return ran_ns;
        }
        for step in 0..LOOK_EVERY {
            number = black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step));
        }
    }
}

/// Stands for the training's process of one accelerator: starts its workers, and takes their batches over.
#[derive(Default)]
pub(super) struct Receiver {
    /// Steps of the epoch that workers are to be started for; 0 is none.
    pub(super) start_steps: AtomicU64,
    pub(super) started_ns: AtomicU64,
    /// One more than the bytes of the batch that is to be taken over; 0 is none.
    pub(super) batch_bytes: AtomicU64,
    /// When the last of these was asked for, and when the batch is taken over.
    pub(super) asked_ns: AtomicU64,
    pub(super) ends_ns: AtomicU64,
    pub(super) thread: OnceLock<Thread>,
}

impl Receiver {
    /// Start the workers, and open the queue for so many steps.
    pub(super) fn start(&self, steps: u64, now_ns: u64) {
        self.asked_ns.store(now_ns, Relaxed);
        self.start_steps.store(steps, Release);
        self.unpark();
    }

    /// Take a batch over, and tell the conductor.
    pub(super) fn receive(&self, bytes: u64, now_ns: u64) {
        self.asked_ns.store(now_ns, Relaxed);
        self.batch_bytes.store(bytes + 1, Release);
        self.unpark();
    }

    /// How long starting workers took since the batch before, and how long the last batch did, which is taken over at `now_ns`.
    pub(super) fn took_ns(&self, now_ns: u64) -> [u64; 2] {
        [self.started_ns.swap(0, AcqRel), now_ns - self.asked_ns.load(Acquire)]
    }

    pub(super) fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}
