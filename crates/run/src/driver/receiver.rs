//! A thread that stands for the training's process of one accelerator: it starts the workers, and takes their batches over.

use super::client::burn;
use super::shared::Shared;
use crate::clock::thread_cpu_ns;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

/// Until told to stop.
pub(super) fn run(shared: &Shared, accelerator: u32) {
    let (own, loader) = (&shared.receivers[accelerator as usize], &shared.job.plan.loader);
    let work = |seconds: f64| {
        let began_ns = shared.clock.now_ns();
        burn(thread_cpu_ns().saturating_add((seconds * 1e9) as u64), &shared.stop);
        shared.clock.now_ns() - began_ns
    };
    while !shared.stop.load(Acquire) {
        let steps = own.start_steps.swap(0, AcqRel);
        if steps > 0 {
            own.started_ns.store(work(loader.start_s()), Release);
            shared.queues[accelerator as usize].publish(steps);
            shared.wake_workers(accelerator);
            continue;
        }
        match own.batch_bytes.swap(0, AcqRel) {
            0 => std::thread::park(),
            bytes => {
                own.took_ns.store(work(loader.receive_s((bytes - 1) as f64)), Release);
                shared.tell(accelerator);
            }
        }
    }
}
