//! The client's work on real threads: processor time is burnt on the core of who owes it, so that cores are as contended as in the real job.

use super::shared::Shared;
use crate::clock::thread_cpu_ns;
use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::Thread;

/// Multiplications between two looks at the clock, which is a system call: about a microsecond.
const LOOK_EVERY: u64 = 1 << 10;

/// Burn processor time until the calling thread has run for `until_ns`, or `stop` is set. Returns how long it has run then.
pub(super) fn burn(until_ns: u64, stop: &AtomicBool) -> u64 {
    let mut number = until_ns;
    loop {
        let ran_ns = thread_cpu_ns();
        if until_ns <= ran_ns || stop.load(Relaxed) {
            return ran_ns;
        }
        for step in 0..LOOK_EVERY {
            number = black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step));
        }
    }
}

/// Copy so many bytes, whatever they are.
pub(super) fn copy(bytes: u64, halves: &mut [u8]) {
    let (from, to) = halves.split_at_mut(halves.len() / 2);
    let mut left = bytes;
    while left > 0 && !to.is_empty() {
        let piece = left.min(to.len() as u64);
        to[..piece as usize].copy_from_slice(&from[..piece as usize]);
        black_box(&mut *to);
        left -= piece;
    }
}

/// Stands for the training's process of one accelerator: starts its workers, and takes their batches over.
#[derive(Default)]
pub(super) struct Receiver {
    /// Steps of the epoch that workers are to be started for; 0 is none.
    start_steps: AtomicU64,
    started_ns: AtomicU64,
    /// One more than the bytes of the batch that is to be taken over; 0 is none.
    batch_bytes: AtomicU64,
    took_ns: AtomicU64,
    pub(super) thread: OnceLock<Thread>,
}

impl Receiver {
    /// Start the workers, and open the queue for so many steps.
    pub(super) fn start(&self, steps: u64) {
        self.start_steps.store(steps, Release);
        self.unpark();
    }

    /// Take a batch over, and tell the conductor.
    pub(super) fn receive(&self, bytes: u64) {
        self.batch_bytes.store(bytes + 1, Release);
        self.unpark();
    }

    /// How long the last batch took, and starting workers since the one before.
    pub(super) fn took_ns(&self) -> u64 {
        self.took_ns.load(Acquire) + self.started_ns.swap(0, AcqRel)
    }

    pub(super) fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Until told to stop.
    pub(super) fn run(&self, shared: &Shared, accelerator: u32) {
        let loader = &shared.job.plan.loader;
        let work = |seconds: f64| {
            let began_ns = shared.clock.now_ns();
            burn(thread_cpu_ns() + (seconds * 1e9) as u64, &shared.stop);
            shared.clock.now_ns() - began_ns
        };
        while !shared.stop.load(Acquire) {
            let steps = self.start_steps.swap(0, AcqRel);
            if steps > 0 {
                self.started_ns.store(work(loader.start_s()), Release);
                shared.queues[accelerator as usize].publish(steps);
                shared.wake_workers(accelerator);
                continue;
            }
            match self.batch_bytes.swap(0, AcqRel) {
                0 => std::thread::park(),
                bytes => {
                    self.took_ns.store(work(loader.receive_s((bytes - 1) as f64)), Release);
                    shared.tell(accelerator);
                }
            }
        }
    }
}
