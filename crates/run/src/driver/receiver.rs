//! Serves the requests to a [`Receiver`](super::client::Receiver): starts workers and receives batches. Each receiver has a separate
//! thread. With a single accelerator the conductor serves the requests itself, because a training loop receives its batches between steps.

use super::client::burn;
use super::shared::Shared;
use crate::clock::thread_cpu_ns;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Serves the requests to an accelerator's receiver until the run stops.
pub(super) fn run(shared: &Shared, accelerator: u32) {
    while !shared.stop.load(Acquire) {
        if !serve(shared, accelerator, || shared.stop.load(Acquire)) {
            std::thread::park();
        }
    }
}

/// Serves a pending request. Returns false if there was none.
pub(super) fn serve(shared: &Shared, accelerator: u32, is_stopped: impl Fn() -> bool) -> bool {
    let loader = &shared.job.plan.loader;
    let Some(receiver) = shared.receivers.get(accelerator as usize) else { return false };
    let work = |seconds: f64| {
        burn(thread_cpu_ns().saturating_add((seconds * 1e9) as u64), &is_stopped);
    };
    let steps = receiver.start_steps.swap(0, AcqRel);
    if steps > 0 {
        work(loader.start_s());
        let start_ns = receiver.requested_ns.load(Relaxed);
        receiver.started_ns.store(shared.clock.now_ns() - start_ns, Release);
        shared.queues[accelerator as usize].publish(steps);
        shared.wake_workers(accelerator);
        return true;
    }
    let bytes = receiver.batch_bytes.swap(0, AcqRel);
    if bytes > 0 {
        let [cpu_s, wait_s] =
            loader.receive_s((bytes - 1) as f64, shared.active_workers(accelerator));
        work(cpu_s);
        // If cores are contended, the work takes longer and the wait gets shorter.
        let start_ns = receiver.requested_ns.load(Relaxed);
        let ends_ns = start_ns.saturating_add(((cpu_s + wait_s) * 1e9) as u64);
        receiver.receive_end_ns.store(ends_ns.max(shared.clock.now_ns()), Release);
        shared.notify_ready(accelerator);
    }
    bytes > 0
}
