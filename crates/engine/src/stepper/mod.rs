//! The training loop of all accelerators of a process: load, compute, barrier, next step.
//!
//! The stepper is a state machine without clock, threads or I/O. It takes events with their times and returns actions.

mod recorder;

pub use recorder::{Recorder, StepTotals};

use crate::durations::Durations;
use crate::loader::{Queue, ReadTimes};
use feedrate_measure::record::{AcceleratorEpoch, StepCauses};
use feedrate_spec::plan::{Barrier, Plan};
use std::collections::VecDeque;
use std::ops::Range;

/// An input of the stepper.
#[derive(Clone, Copy, Debug)]
pub enum StepEvent {
    /// An accelerator has received the batch it requested.
    BatchReady(u32, ReadTimes),
    /// An accelerator has finished its compute.
    ComputeDone(u32),
    /// All processes have arrived at the barrier.
    BarrierOpen,
    /// All accelerators begin, at the start of an epoch or after a pause within it.
    Started,
}

/// An output of the stepper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepAction {
    /// Request a batch, numbered over the run, for an accelerator.
    RequestBatch(u32, u64),
    /// Report [`StepEvent::ComputeDone`] at this time.
    ComputeUntil(u32, u64),
    /// Wait for the other processes. All accelerators of this process have arrived.
    Barrier,
    /// The epoch has ended or a checkpoint is due. No action follows until [`StepEvent::Started`].
    BlockDone,
}

/// The loop over the steps of an epoch.
pub struct Stepper {
    computes: Vec<Durations>,
    recorder: Recorder,
    /// Steps of a block; `None` if an epoch is one block.
    block_steps: Option<u64>,
    barrier: Barrier,
    first_batch: u64,
    steps: u64,
    step: u64,
    /// Finished steps of each accelerator, if there is a barrier only at the end of the epoch; otherwise 0.
    independent_steps: Vec<u64>,
    arrived: u32,
}

impl Stepper {
    /// Creates the stepper of the accelerators `local` of `plan`. In events and actions they are numbered from 0.
    pub fn new(plan: &Plan, local: Range<u32>) -> Self {
        let train = &plan.train;
        let accelerators = local.len() as u32;
        Stepper {
            computes: local
                .map(|accelerator| {
                    Durations::new(train.compute, train.compute_seed(accelerator))
                        .with_factor(train.compute_factor(accelerator))
                })
                .collect(),
            recorder: Recorder::new(accelerators),
            block_steps: plan.checkpoint.as_ref().and_then(|checkpoint| checkpoint.steps_between),
            barrier: train.barrier,
            first_batch: 0,
            steps: 0,
            step: 0,
            independent_steps: vec![0; accelerators as usize],
            arrived: 0,
        }
    }

    /// Prepares for an epoch of `steps` steps. Allocates all memory, so that the loop allocates none.
    pub fn prepare(&mut self, steps: u64) {
        self.first_batch += self.steps;
        self.steps = steps;
        self.step = 0;
        self.arrived = 0;
        self.independent_steps.fill(0);
        self.recorder.prepare(steps, if self.barrier == Barrier::EachStep { steps } else { 1 });
    }

    /// Handles `event` at `now_ns` and adds the resulting actions. The queues give the bytes that each accelerator has read so far.
    pub fn handle(
        &mut self,
        event: StepEvent,
        now_ns: u64,
        queues: &[Queue],
        actions: &mut VecDeque<StepAction>,
    ) {
        match event {
            StepEvent::Started => {
                self.recorder.start(now_ns);
                self.request_all(actions);
            }
            StepEvent::BatchReady(accelerator, times) => {
                self.recorder.end_load(accelerator, now_ns, times);
                let wait_ns = self.computes[accelerator as usize].next_ns();
                let until_ns = now_ns.saturating_add(wait_ns);
                actions.push_back(StepAction::ComputeUntil(accelerator, until_ns));
            }
            StepEvent::ComputeDone(accelerator) => {
                self.recorder.end_compute(accelerator, now_ns);
                if self.finish_independent_step(accelerator) {
                    self.release(accelerator, now_ns, queues);
                    let step = self.independent_steps[accelerator as usize];
                    actions
                        .push_back(StepAction::RequestBatch(accelerator, self.first_batch + step));
                    return;
                }
                self.arrived += 1;
                if self.arrived == self.accelerators() {
                    actions.push_back(StepAction::Barrier);
                }
            }
            StepEvent::BarrierOpen => {
                self.arrived = 0;
                self.step = match self.barrier {
                    Barrier::EachStep => self.step + 1,
                    Barrier::AtEnd => self.steps,
                };
                self.recorder.end_barrier(now_ns);
                for accelerator in 0..self.accelerators() {
                    self.release(accelerator, now_ns, queues);
                }
                let epoch_ended = self.step >= self.steps;
                if !epoch_ended
                    && !self.block_steps.is_some_and(|steps| self.step.is_multiple_of(steps))
                {
                    return self.request_all(actions);
                }
                if !epoch_ended {
                    self.recorder.end_block(self.steps - self.step);
                }
                actions.push_back(StepAction::BlockDone);
            }
        }
    }

    /// Returns the number of steps that all accelerators have finished in this epoch. Without a barrier after each step, returns the number
    /// of steps that the first accelerator has finished.
    pub fn steps_done(&self) -> u64 {
        self.independent_steps.first().map_or(self.step, |&steps| self.step.max(steps))
    }

    /// Whether `event` ends a step. Without a barrier after each step, only steps of the first accelerator count.
    pub fn ends_step(&self, event: StepEvent) -> bool {
        match event {
            StepEvent::BarrierOpen => true,
            StepEvent::ComputeDone(0) => self.barrier == Barrier::AtEnd,
            _ => false,
        }
    }

    /// Returns the recorder of the epoch.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Takes the causes of the waits of all accelerators in the epoch so far.
    pub fn take_causes(&mut self) -> StepCauses {
        self.recorder.take_causes()
    }

    /// Takes the record of the epoch so far.
    pub fn finish(&mut self) -> Vec<AcceleratorEpoch> {
        self.recorder.finish()
    }

    /// Counts a finished step. Returns true if the accelerator continues without waiting for the other accelerators.
    fn finish_independent_step(&mut self, accelerator: u32) -> bool {
        if self.barrier == Barrier::EachStep {
            return false;
        }
        let done = &mut self.independent_steps[accelerator as usize];
        *done += 1;
        *done < self.steps
    }

    /// Records that the accelerator continues with its next step.
    fn release(&mut self, accelerator: u32, now_ns: u64, queues: &[Queue]) {
        self.recorder.resume(accelerator, now_ns, queues[accelerator as usize].read_bytes());
    }

    fn request_all(&self, actions: &mut VecDeque<StepAction>) {
        let batch = self.first_batch + self.step;
        for accelerator in 0..self.accelerators() {
            actions.push_back(StepAction::RequestBatch(accelerator, batch));
        }
    }

    fn accelerators(&self) -> u32 {
        self.computes.len() as u32
    }
}
