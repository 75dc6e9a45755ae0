//! The training loop of all accelerators of a process: load, compute, barrier, next step.
//!
//! A state machine without clock, thread or I/O: it takes events with their time and returns actions.

use super::recorder::Recorder;
use crate::compute::{self, Compute};
use crate::loader::Delivered;
use feedrate_measure::record::AcceleratorEpoch;
use feedrate_spec::plan::{Barrier, Plan};
use std::ops::Range;

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// The loaders were told; all accelerators start.
    EpochStarted,
    /// An accelerator has the batch it asked for.
    BatchReady(u32, Delivered),
    /// Its wait is over.
    ComputeDone(u32),
    /// Every process has arrived.
    BarrierOpen,
    /// The pause is over; all accelerators go on.
    BlockStarted,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask the accelerator's loader for this batch (counted over the run).
    Ask(u32, u64),
    /// Come back with [`Event::ComputeDone`] at this time.
    ComputeUntil(u32, u64),
    /// All accelerators here have arrived: wait for the other processes.
    Barrier,
    /// A checkpoint is due: nothing is asked for until [`Event::BlockStarted`].
    BlockDone,
    /// The epoch is over.
    EpochDone,
}

/// The loop over the steps of an epoch.
pub struct Training {
    computes: Vec<Box<dyn Compute>>,
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

impl Training {
    /// For the accelerators of `plan` that are `own`; here they are counted from 0.
    pub fn new(plan: &Plan, own: Range<u32>) -> Self {
        let accelerators = own.len() as u32;
        Training {
            computes: own.map(|a| compute::of(&plan.train, a)).collect(),
            recorder: Recorder::new(accelerators),
            block_steps: plan.checkpoint.as_ref().and_then(|checkpoint| checkpoint.steps_between),
            barrier: plan.train.barrier,
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
        self.recorder.prepare(steps);
    }

    /// What follows from `event` at `now_ns`. `read_bytes` tells what an accelerator's loader has read so far.
    pub fn on(
        &mut self,
        event: Event,
        now_ns: u64,
        read_bytes: impl Fn(u32) -> u64,
        mut act: impl FnMut(Action),
    ) {
        match event {
            Event::EpochStarted | Event::BlockStarted => {
                self.recorder.start(now_ns);
                self.ask_all(&mut act);
            }
            Event::BatchReady(accelerator, delivered) => {
                self.recorder.loaded(accelerator, now_ns, delivered);
                let wait_ns = self.computes[accelerator as usize].next_ns();
                act(Action::ComputeUntil(accelerator, now_ns.saturating_add(wait_ns)));
            }
            Event::ComputeDone(accelerator) => {
                self.recorder.computed(accelerator, now_ns);
                if self.goes_on_alone(accelerator) {
                    self.recorder.released(accelerator, now_ns, read_bytes(accelerator));
                    let step = self.own_steps[accelerator as usize];
                    return act(Action::Ask(accelerator, self.first_batch + step));
                }
                self.arrived += 1;
                if self.arrived == self.computes.len() as u32 {
                    act(Action::Barrier);
                }
            }
            Event::BarrierOpen => {
                self.arrived = 0;
                self.step = match self.barrier {
                    Barrier::EachStep => self.step + 1,
                    Barrier::AtEnd => self.steps,
                };
                for accelerator in 0..self.computes.len() as u32 {
                    self.recorder.released(accelerator, now_ns, read_bytes(accelerator));
                }
                if self.step >= self.steps {
                    act(Action::EpochDone);
                } else if self.block_steps.is_some_and(|steps| self.step.is_multiple_of(steps)) {
                    self.recorder.end_block(self.steps - self.step);
                    act(Action::BlockDone);
                } else {
                    self.ask_all(&mut act);
                }
            }
        }
    }

    /// Steps that all accelerators have finished in this epoch; where each goes on alone, that the first has.
    pub fn steps_done(&self) -> u64 {
        self.own_steps.first().map_or(self.step, |&own| self.step.max(own))
    }

    /// Whether a step is over with `event`; where each accelerator goes on alone, a step of the first.
    pub fn ends_step(&self, event: Event) -> bool {
        match event {
            Event::BarrierOpen => true,
            Event::ComputeDone(0) => self.barrier == Barrier::AtEnd,
            _ => false,
        }
    }

    /// Times summed over accelerators since the epoch began.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// What the epoch was, so far.
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

    fn ask_all(&self, act: &mut impl FnMut(Action)) {
        for accelerator in 0..self.computes.len() as u32 {
            act(Action::Ask(accelerator, self.first_batch + self.step));
        }
    }
}
