//! The training loop of all accelerators of a process: load, compute, barrier, next step.
//!
//! A state machine without clock, thread or I/O: it takes events with their time and returns actions.

mod recorder;

pub use recorder::{Recorder, StepTotals};

use crate::durations::Durations;
use crate::loader::{Queue, ReadTimes};
use feedrate_measure::record::{AcceleratorEpoch, StepCauses};
use feedrate_spec::plan::{Barrier, Plan};
use std::collections::VecDeque;
use std::ops::Range;

/// Something that happened.
#[derive(Clone, Copy, Debug)]
pub enum StepEvent {
    /// An accelerator has the batch it asked for.
    BatchReady(u32, ReadTimes),
    /// Its wait is over.
    ComputeDone(u32),
    /// Every process has arrived.
    BarrierOpen,
    /// An epoch begins, or a pause in it is over: all accelerators start.
    Started,
}

/// Something to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepAction {
    /// Ask the accelerator's loader for this batch (counted over the run).
    Ask(u32, u64),
    /// Come back with [`StepEvent::ComputeDone`] at this time.
    ComputeUntil(u32, u64),
    /// All accelerators here have arrived: wait for the other processes.
    Barrier,
    /// The epoch is over, or a checkpoint is due: nothing is asked for until [`StepEvent::Started`].
    BlockDone,
}

/// The loop over the steps of an epoch.
pub struct Stepper {
    computes: Vec<Durations>,
    recorder: Recorder,
    /// Steps of a block; `None` makes an epoch one block.
    block_steps: Option<u64>,
    barrier: Barrier,
    first_batch: u64,
    steps: u64,
    step: u64,
    /// Steps that each has finished by itself; zeros where all wait for each other after each.
    own_steps: Vec<u64>,
    arrived: u32,
}

impl Stepper {
    /// For the accelerators of `plan` that are `own`; here they are counted from 0.
    pub fn new(plan: &Plan, own: Range<u32>) -> Self {
        let (train, accelerators) = (&plan.train, own.len() as u32);
        Stepper {
            computes: own
                .map(|a| {
                    Durations::new(train.compute, train.compute_seed(a))
                        .times(train.compute_factor(a))
                })
                .collect(),
            recorder: Recorder::new(accelerators),
            block_steps: plan.checkpoint.as_ref().and_then(|checkpoint| checkpoint.steps_between),
            barrier: train.barrier,
            first_batch: 0,
            steps: 0,
            step: 0,
            own_steps: vec![0; accelerators as usize],
            arrived: 0,
        }
    }

    /// Prepare for an epoch of `steps` steps. Allocates, so that the loop need not.
    pub fn prepare(&mut self, steps: u64) {
        self.first_batch += self.steps;
        (self.steps, self.step, self.arrived) = (steps, 0, 0);
        self.own_steps.fill(0);
        self.recorder.prepare(steps, if self.barrier == Barrier::EachStep { steps } else { 1 });
    }

    /// Put what follows from `event` at `now_ns` into `actions`. The queues tell what each accelerator has read so far.
    pub fn on(
        &mut self,
        event: StepEvent,
        now_ns: u64,
        queues: &[Queue],
        actions: &mut VecDeque<StepAction>,
    ) {
        match event {
            StepEvent::Started => {
                self.recorder.start(now_ns);
                self.ask_all(actions);
            }
            StepEvent::BatchReady(accelerator, times) => {
                self.recorder.loaded(accelerator, now_ns, times);
                let wait_ns = self.computes[accelerator as usize].next_ns();
                let until_ns = now_ns.saturating_add(wait_ns);
                actions.push_back(StepAction::ComputeUntil(accelerator, until_ns));
            }
            StepEvent::ComputeDone(accelerator) => {
                self.recorder.computed(accelerator, now_ns);
                if self.goes_on_alone(accelerator) {
                    self.release(accelerator, now_ns, queues);
                    let step = self.own_steps[accelerator as usize];
                    actions.push_back(StepAction::Ask(accelerator, self.first_batch + step));
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
                self.recorder.met(now_ns);
                for accelerator in 0..self.accelerators() {
                    self.release(accelerator, now_ns, queues);
                }
                let is_over = self.step >= self.steps;
                if !is_over
                    && !self.block_steps.is_some_and(|steps| self.step.is_multiple_of(steps))
                {
                    return self.ask_all(actions);
                }
                if !is_over {
                    self.recorder.end_block(self.steps - self.step);
                }
                actions.push_back(StepAction::BlockDone);
            }
        }
    }

    /// Steps that all accelerators have finished in this epoch; where each goes on alone, that the first has.
    pub fn steps_done(&self) -> u64 {
        self.own_steps.first().map_or(self.step, |&own| self.step.max(own))
    }

    /// Whether a step is over with `event`; where each accelerator goes on alone, a step of the first.
    pub fn ends_step(&self, event: StepEvent) -> bool {
        match event {
            StepEvent::BarrierOpen => true,
            StepEvent::ComputeDone(0) => self.barrier == Barrier::AtEnd,
            _ => false,
        }
    }

    /// Times summed over accelerators since the epoch began.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// The waits of all accelerators in the epoch so far.
    pub fn take_causes(&mut self) -> StepCauses {
        self.recorder.take_causes()
    }

    /// The epoch so far.
    pub fn finish(&mut self) -> Vec<AcceleratorEpoch> {
        self.recorder.finish()
    }

    /// Whether an accelerator that has computed need not wait for the others.
    fn goes_on_alone(&mut self, accelerator: u32) -> bool {
        if self.barrier == Barrier::EachStep {
            return false;
        }
        let done = &mut self.own_steps[accelerator as usize];
        *done += 1;
        *done < self.steps
    }

    fn release(&mut self, accelerator: u32, now_ns: u64, queues: &[Queue]) {
        self.recorder.released(accelerator, now_ns, queues[accelerator as usize].read_bytes());
    }

    fn ask_all(&self, actions: &mut VecDeque<StepAction>) {
        for accelerator in 0..self.accelerators() {
            actions.push_back(StepAction::Ask(accelerator, self.first_batch + self.step));
        }
    }

    fn accelerators(&self) -> u32 {
        self.computes.len() as u32
    }
}
