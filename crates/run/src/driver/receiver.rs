//! Stands for the training's process of an accelerator: starts the workers, and takes their batches over. A thread each; that of the
//! only accelerator is the conductor, as in a loop that sleeps through its steps and is then handed a batch.

use super::client::burn;
use super::shared::Shared;
use crate::clock::thread_cpu_ns;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Until told to stop.
pub(super) fn run(shared: &Shared, accelerator: u32) {
    while !shared.stop.load(Acquire) {
        if !serve(shared, accelerator, || shared.stop.load(Acquire)) {
            std::thread::park();
        }
    }
}

/// Do what was asked for. False: nothing was.
pub(super) fn serve(shared: &Shared, accelerator: u32, is_stopped: impl Fn() -> bool) -> bool {
    let loader = &shared.job.plan.loader;
    let Some(own) = shared.receivers.get(accelerator as usize) else { return false };
    // Returns when it was asked for, and when it is done.
    let work = |seconds: f64| {
        burn(thread_cpu_ns().saturating_add((seconds * 1e9) as u64), &is_stopped);
        (own.asked_ns.load(Relaxed), shared.clock.now_ns())
    };
    let steps = own.start_steps.swap(0, AcqRel);
    if steps > 0 {
        let (asked_ns, now_ns) = work(loader.start_s());
        own.started_ns.store(now_ns - asked_ns, Release);
        shared.queues[accelerator as usize].publish(steps);
        shared.wake_workers(accelerator);
        return true;
    }
    let bytes = own.batch_bytes.swap(0, AcqRel);
    if bytes > 0 {
        let [cpu_s, wait_s] = loader.receive_s((bytes - 1) as f64, shared.at_work(accelerator));
        let (asked_ns, now_ns) = work(cpu_s);
        // Where cores are contended, computing takes longer, and less is left to wait for.
        let ends_ns = asked_ns.saturating_add(((cpu_s + wait_s) * 1e9) as u64);
        own.ends_ns.store(ends_ns.max(now_ns), Release);
        shared.tell(accelerator);
    }
    bytes > 0
}
