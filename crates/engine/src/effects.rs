//! Turns the stepper's actions into calls to queues, timers and workers, for the real and the simulated driver.

use crate::loader::{CompleteBatch, Loader, Queue, ReadTimes, WakeTarget};
use crate::stepper::{StepAction, StepEvent, Stepper};
use feedrate_measure::record::AcceleratorEpoch;
use std::collections::VecDeque;

/// The effects that differ between drivers.
pub trait Effects {
    /// Wakes the workers of an accelerator that may have work.
    fn wake(&mut self, accelerator: u32, target: WakeTarget);
    /// Starts compute at `now_ns`. The driver reports the end of compute: at `end_ns`, or when a real device has finished.
    fn compute(&mut self, accelerator: u32, now_ns: u64, end_ns: u64);
    /// Starts the workers of an accelerator for an epoch of `steps` steps. Returns true if starting takes time; the driver then
    /// publishes the epoch to the queue afterwards.
    fn start(&mut self, accelerator: u32, steps: u64) -> bool;
    /// Lets the training process receive `batch`. Returns the time spent starting workers since the previous batch and the time spent
    /// receiving this one, including the wait until it is pinned. Returns `None` if receiving takes time; the caller retries afterwards.
    fn receive(&mut self, accelerator: u32, batch: CompleteBatch) -> Option<[u64; 2]>;
    /// Waits for the other processes. Returns false if one of them is lost and the run has failed.
    fn barrier(&mut self) -> bool;
}

/// The event loop of a driver: it passes queued events to the stepper and executes the resulting actions.
pub struct Conductor {
    loader: &'static dyn Loader,
    events: VecDeque<(StepEvent, Option<u64>)>,
    actions: VecDeque<StepAction>,
}

impl Conductor {
    /// Creates a conductor with memory for the concurrent events of `accelerators`.
    pub fn new(loader: &'static dyn Loader, accelerators: u32) -> Self {
        let capacity = 2 * accelerators as usize + 2;
        Conductor {
            loader,
            events: VecDeque::with_capacity(capacity),
            actions: VecDeque::with_capacity(capacity),
        }
    }

    /// Queues an event.
    pub fn push(&mut self, event: StepEvent) {
        self.events.push_back((event, None));
    }

    /// Takes the next event. Its time is given only if it differs from the current time.
    pub fn pop(&mut self) -> Option<(StepEvent, Option<u64>)> {
        self.events.pop_front()
    }

    /// Whether no event is queued.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Publishes the next epoch's batches to all queues and wakes their workers.
    pub fn publish(&self, steps: u64, queues: &[Queue], effects: &mut dyn Effects) {
        for (accelerator, queue) in queues.iter().enumerate() {
            queue.begin_epoch();
            if !effects.start(accelerator as u32, steps) {
                queue.publish(steps);
                effects.wake(accelerator as u32, WakeTarget::Any);
            }
        }
    }

    /// Handles `event` at `now_ns` and executes the resulting actions. Returns true at the end of a block.
    pub fn handle(
        &mut self,
        event: StepEvent,
        now_ns: u64,
        stepper: &mut Stepper,
        queues: &[Queue],
        effects: &mut dyn Effects,
    ) -> bool {
        stepper.handle(event, now_ns, queues, &mut self.actions);
        let mut block_ended = false;
        while let Some(action) = self.actions.pop_front() {
            match action {
                StepAction::RequestBatch(accelerator, batch) => {
                    self.request_batch(accelerator, batch, queues, effects);
                }
                // A step without compute ends at once.
                StepAction::ComputeUntil(accelerator, end_ns) if end_ns <= now_ns => {
                    self.events.push_back((StepEvent::ComputeDone(accelerator), Some(now_ns)));
                }
                StepAction::ComputeUntil(accelerator, end_ns) => {
                    effects.compute(accelerator, now_ns, end_ns);
                }
                StepAction::Barrier => {
                    if effects.barrier() {
                        self.push(StepEvent::BarrierOpen);
                    }
                }
                StepAction::BlockDone => block_ended = true,
            }
        }
        block_ended
    }

    /// Requests a batch. A complete batch is received and taken, and workers are woken for the batch that this opens.
    fn request_batch(
        &mut self,
        accelerator: u32,
        batch: u64,
        queues: &[Queue],
        effects: &mut dyn Effects,
    ) {
        let queue = &queues[accelerator as usize];
        if queue.request(batch) {
            let received = effects.receive(accelerator, queue.complete_batch(batch));
            let Some([start_ns, receive_ns]) = received else { return };
            let (read_times, opened) = queue.take(batch);
            let times = ReadTimes { start_ns, receive_ns, ..read_times };
            if let Some(opened) = opened {
                effects.wake(accelerator, queue.workers_to_wake(self.loader, opened));
            }
            self.push(StepEvent::BatchReady(accelerator, times));
        } else if queue.reads_on_request() {
            effects.wake(accelerator, queue.workers_to_wake(self.loader, batch));
        }
    }

    /// Requests the next batch again, after a missing batch was completed or a batch was received.
    pub fn retry(&mut self, accelerator: u32, queues: &[Queue], effects: &mut dyn Effects) {
        self.request_batch(accelerator, queues[accelerator as usize].next_batch(), queues, effects);
    }
}

/// Records the last claim of each accelerator's loader, and frees unused memory of the counters.
pub fn close_epoch(queues: &[Queue], accelerators: &mut [AcceleratorEpoch]) {
    for (epoch, queue) in accelerators.iter_mut().zip(queues) {
        epoch.io.compact();
        if let Some((claimed_ns, bytes)) = queue.last_claim() {
            epoch.last_read_start_ns = Some(claimed_ns);
            epoch.last_read_start_bytes = bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader;

    /// A driver whose workers are still being started.
    struct StartingWorkers;

    impl Effects for StartingWorkers {
        fn wake(&mut self, _: u32, _: WakeTarget) {}
        fn compute(&mut self, _: u32, _: u64, _: u64) {}
        fn start(&mut self, _: u32, _: u64) -> bool {
            true
        }
        fn receive(&mut self, _: u32, _: CompleteBatch) -> Option<[u64; 2]> {
            None
        }
        fn barrier(&mut self) -> bool {
            true
        }
    }

    #[test]
    fn an_epoch_that_ends_while_workers_start_has_no_last_claim() {
        let queues = [Queue::new(1, 1, 2, 4, 2, [0, 0])];
        let mut epoch = AcceleratorEpoch::default();
        queues[0].publish(2);
        queues[0].add_read_bytes(7);
        queues[0].count_claim(5, 1);
        close_epoch(&queues, std::slice::from_mut(&mut epoch));
        assert_eq!((epoch.last_read_start_ns, epoch.last_read_start_bytes), (Some(5), 7));
        let conductor = Conductor::new(loader::find("pytorch").unwrap(), 1);
        conductor.publish(2, &queues, &mut StartingWorkers);
        let mut epoch = AcceleratorEpoch::default();
        close_epoch(&queues, std::slice::from_mut(&mut epoch));
        assert_eq!((epoch.last_read_start_ns, queues[0].read_bytes()), (None, 0));
    }
}
