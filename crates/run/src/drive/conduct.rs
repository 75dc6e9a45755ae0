//! Turns the training's actions into calls on queues, timers and workers, whatever the driver.

use crate::engine::{Action, Event};
use crate::loader::{Loader, Queue, Wakes};
use feedrate_measure::record::AcceleratorEpoch;
use std::collections::VecDeque;

/// What a driver can do for the training.
pub(super) trait Hands {
    /// Workers of an accelerator may have work.
    fn wake(&mut self, accelerator: u32, wakes: Wakes);
    /// Say when a step that begins at `now_ns` is over: at `at_ns`, or when a device has carried it out.
    fn compute(&mut self, accelerator: u32, now_ns: u64, at_ns: u64);
    /// Wait for the other processes. False: one of them will not come, and the run has failed.
    fn barrier(&mut self) -> bool;
}

/// Events to be handled, each at a known time or now.
pub(super) type Events = VecDeque<(Event, Option<u64>)>;

/// Carry out one action at `now_ns`. True when the block is over, and with the last the epoch.
pub(super) fn perform(
    action: Action,
    now_ns: u64,
    queues: &[Queue],
    loader: &dyn Loader,
    hands: &mut dyn Hands,
    events: &mut Events,
) -> bool {
    match action {
        Action::Ask(accelerator, batch) => {
            let queue = &queues[accelerator as usize];
            if queue.ask(batch) {
                deliver(accelerator, batch, queues, loader, hands, events);
            } else if queue.reads_when_asked() {
                hands.wake(accelerator, loader.wakes(queue, batch));
            }
        }
        // A step without compute ends when it begins.
        Action::ComputeUntil(accelerator, at_ns) if at_ns <= now_ns => {
            events.push_back((Event::ComputeDone(accelerator), Some(now_ns)));
        }
        Action::ComputeUntil(accelerator, at_ns) => hands.compute(accelerator, now_ns, at_ns),
        Action::Barrier => {
            if hands.barrier() {
                events.push_back((Event::BarrierOpen, None));
            }
        }
        Action::BlockDone | Action::EpochDone => return true,
    }
    false
}

/// A batch that was missing is there: take the one asked for, if no other is missing.
pub(super) fn retry(
    accelerator: u32,
    queues: &[Queue],
    loader: &dyn Loader,
    hands: &mut dyn Hands,
    events: &mut Events,
) {
    let queue = &queues[accelerator as usize];
    let batch = queue.next_batch();
    if queue.ask(batch) {
        deliver(accelerator, batch, queues, loader, hands, events);
    }
}

/// Take a whole batch, let its place be filled, and tell the training.
fn deliver(
    accelerator: u32,
    batch: u64,
    queues: &[Queue],
    loader: &dyn Loader,
    hands: &mut dyn Hands,
    events: &mut Events,
) {
    let queue = &queues[accelerator as usize];
    let (delivered, opened) = queue.take(batch);
    if let Some(opened) = opened {
        hands.wake(accelerator, loader.wakes(queue, opened));
    }
    events.push_back((Event::BatchReady(accelerator, delivered), None));
}

/// Write down when each accelerator's loader claimed its last work, and keep no more memory than its counts need.
pub(super) fn close_epoch(queues: &[Queue], accelerators: &mut [AcceleratorEpoch]) {
    for (epoch, queue) in accelerators.iter_mut().zip(queues) {
        epoch.io.compact();
        if let Some((at_ns, bytes)) = queue.last_claim() {
            epoch.last_read_start_ns = Some(at_ns);
            epoch.last_read_start_bytes = bytes;
        }
    }
}

/// Open the next epoch's batches on all queues, and wake their workers.
pub(super) fn publish(steps: u64, queues: &[Queue], hands: &mut dyn Hands) {
    for (accelerator, queue) in queues.iter().enumerate() {
        queue.publish(steps);
        hands.wake(accelerator as u32, Wakes::Any);
    }
}
