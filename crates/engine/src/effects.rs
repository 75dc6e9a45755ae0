//! Turns the stepper's actions into calls on queues, timers and workers, whatever the driver.

use crate::loader::{Loader, Queue, ReadTimes, Wakes};
use crate::stepper::{StepAction, StepEvent, Stepper};
use feedrate_measure::record::AcceleratorEpoch;
use std::collections::VecDeque;

/// The part that each driver does its own way.
pub trait Effects {
    /// Workers of an accelerator may have work.
    fn wake(&mut self, accelerator: u32, wakes: Wakes);
    /// Say when a step that begins at `now_ns` is over: at `at_ns`, or when a device has carried it out.
    fn compute(&mut self, accelerator: u32, now_ns: u64, at_ns: u64);
    /// Start the workers of an accelerator for an epoch of `steps` steps. True: that takes time, and its queue is opened after it.
    fn start(&mut self, accelerator: u32, steps: u64) -> bool;
    /// Let the training's process take `batch` over, of which `bytes` were read: how long starting workers took since the last, and how
    /// long this did. `None`: it has begun, and whoever is told of its end asks again.
    fn receive(&mut self, accelerator: u32, batch: u64, bytes: u64) -> Option<[u64; 2]>;
    /// Wait for the other processes. False: one of them will not come, and the run has failed.
    fn barrier(&mut self) -> bool;
}

/// Events that wait to be handled, and what is done about them.
pub struct Conductor {
    loader: &'static dyn Loader,
    events: VecDeque<(StepEvent, Option<u64>)>,
    actions: VecDeque<StepAction>,
}

impl Conductor {
    /// With memory for as many events as `accelerators` have at a time.
    pub fn new(loader: &'static dyn Loader, accelerators: u32) -> Self {
        let at_once = 2 * accelerators as usize + 2;
        Conductor {
            loader,
            events: VecDeque::with_capacity(at_once),
            actions: VecDeque::with_capacity(at_once),
        }
    }

    /// Something happened that is to be handled.
    pub fn push(&mut self, event: StepEvent) {
        self.events.push_back((event, None));
    }

    /// The next event to be handled, with its time where that is not the present.
    pub fn pop(&mut self) -> Option<(StepEvent, Option<u64>)> {
        self.events.pop_front()
    }

    /// Whether nothing waits to be handled.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Open the next epoch's batches on all queues, and wake their workers.
    pub fn publish(&self, steps: u64, queues: &[Queue], effects: &mut dyn Effects) {
        for (accelerator, queue) in queues.iter().enumerate() {
            queue.begin_epoch();
            if !effects.start(accelerator as u32, steps) {
                queue.publish(steps);
                effects.wake(accelerator as u32, Wakes::Any);
            }
        }
    }

    /// Do all that follows from `event` at `now_ns`. True when the block is over, and with the last the epoch.
    pub fn handle(
        &mut self,
        event: StepEvent,
        now_ns: u64,
        stepper: &mut Stepper,
        queues: &[Queue],
        effects: &mut dyn Effects,
    ) -> bool {
        stepper.on(event, now_ns, queues, &mut self.actions);
        let mut is_over = false;
        while let Some(action) = self.actions.pop_front() {
            match action {
                StepAction::Ask(accelerator, batch) => {
                    self.ask(accelerator, batch, queues, effects);
                }
                // A step without compute ends when it begins.
                StepAction::ComputeUntil(accelerator, at_ns) if at_ns <= now_ns => {
                    self.events.push_back((StepEvent::ComputeDone(accelerator), Some(now_ns)));
                }
                StepAction::ComputeUntil(accelerator, at_ns) => {
                    effects.compute(accelerator, now_ns, at_ns);
                }
                StepAction::Barrier => {
                    if effects.barrier() {
                        self.push(StepEvent::BarrierOpen);
                    }
                }
                StepAction::BlockDone => is_over = true,
            }
        }
        is_over
    }

    /// Take the batch if it is whole, and let its place be filled; else wait for it.
    fn ask(&mut self, accelerator: u32, batch: u64, queues: &[Queue], effects: &mut dyn Effects) {
        let queue = &queues[accelerator as usize];
        if queue.ask(batch) {
            let bytes = queue.bytes_of(batch);
            let received = effects.receive(accelerator, batch, bytes);
            let Some([start_ns, receive_ns]) = received else { return };
            let (times, opened) = queue.take(batch);
            let times = ReadTimes { start_ns, receive_ns, ..times };
            if let Some(opened) = opened {
                effects.wake(accelerator, queue.wakes(self.loader, opened));
            }
            self.push(StepEvent::BatchReady(accelerator, times));
        } else if queue.reads_when_asked() {
            effects.wake(accelerator, queue.wakes(self.loader, batch));
        }
    }

    /// A batch that was missing is there, or was taken over: take the one asked for, if no other is missing.
    pub fn retry(&mut self, accelerator: u32, queues: &[Queue], effects: &mut dyn Effects) {
        self.ask(accelerator, queues[accelerator as usize].next_batch(), queues, effects);
    }
}

/// Write down when each accelerator's loader claimed its last work, and keep no more memory than its counts need.
pub fn close_epoch(queues: &[Queue], accelerators: &mut [AcceleratorEpoch]) {
    for (epoch, queue) in accelerators.iter_mut().zip(queues) {
        epoch.io.compact();
        if let Some((at_ns, bytes)) = queue.last_claim() {
            epoch.last_read_start_ns = Some(at_ns);
            epoch.last_read_start_bytes = bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader;

    /// Workers that are being started.
    struct Starting;

    impl Effects for Starting {
        fn wake(&mut self, _: u32, _: Wakes) {}
        fn compute(&mut self, _: u32, _: u64, _: u64) {}
        fn start(&mut self, _: u32, _: u64) -> bool {
            true
        }
        fn receive(&mut self, _: u32, _: u64, _: u64) -> Option<[u64; 2]> {
            None
        }
        fn barrier(&mut self) -> bool {
            true
        }
    }

    #[test]
    fn an_epoch_that_ends_while_workers_start_has_claimed_nothing() {
        let queues = [Queue::new(1, 1, 2, 4, 2, [0, 0])];
        let mut epoch = AcceleratorEpoch::default();
        queues[0].publish(2);
        queues[0].add_read_bytes(7);
        queues[0].claimed(5, 1);
        close_epoch(&queues, std::slice::from_mut(&mut epoch));
        assert_eq!((epoch.last_read_start_ns, epoch.last_read_start_bytes), (Some(5), 7));
        let conductor = Conductor::new(loader::find("pytorch").unwrap(), 1);
        conductor.publish(2, &queues, &mut Starting);
        let mut epoch = AcceleratorEpoch::default();
        close_epoch(&queues, std::slice::from_mut(&mut epoch));
        assert_eq!((epoch.last_read_start_ns, queues[0].read_bytes()), (None, 0));
    }
}
