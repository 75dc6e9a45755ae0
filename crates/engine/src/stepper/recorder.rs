//! Records the times of every step into memory that is allocated before the epoch. Times are arguments.

use crate::loader::ReadTimes;
use feedrate_measure::record::{AcceleratorEpoch, Block, Stall, StepCauses};

/// Records the steps of all accelerators of a process in one epoch.
pub struct Recorder {
    accelerators: Vec<AcceleratorRecorder>,
    causes: StepCauses,
    totals: StepTotals,
}

/// Sums over accelerators and steps of an epoch, for the progress display.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepTotals {
    /// Time waiting for batches.
    pub load_ns: u64,
    /// Time computing.
    pub compute_ns: u64,
    /// Time waiting at barriers.
    pub barrier_ns: u64,
}

#[derive(Default)]
struct AcceleratorRecorder {
    epoch: AcceleratorEpoch,
    block: Block,
    /// Stall of the current step.
    stall: Stall,
    stall_since_barrier: Stall,
    /// Start of the current state: loading, computing or waiting.
    state_start_ns: u64,
}

impl Recorder {
    /// Creates a recorder for a number of accelerators.
    pub fn new(accelerators: u32) -> Self {
        Recorder {
            accelerators: (0..accelerators).map(|_| AcceleratorRecorder::default()).collect(),
            causes: StepCauses::default(),
            totals: StepTotals::default(),
        }
    }

    /// Begins an epoch and reserves memory for its steps and barriers.
    pub fn prepare(&mut self, steps: u64, barriers: u64) {
        self.totals = StepTotals::default();
        self.causes = StepCauses::with_capacity(barriers as usize);
        for recorder in &mut self.accelerators {
            recorder.epoch = AcceleratorEpoch::default();
            recorder.stall = Stall::default();
            recorder.stall_since_barrier = Stall::default();
            recorder.block = empty_block(steps);
        }
    }

    /// Ends the block and begins another of at most `steps` steps.
    pub fn end_block(&mut self, steps: u64) {
        for recorder in &mut self.accelerators {
            let block = std::mem::replace(&mut recorder.block, empty_block(steps));
            recorder.epoch.blocks.push(block);
        }
    }

    /// Records that all accelerators start.
    pub fn start(&mut self, now_ns: u64) {
        for recorder in &mut self.accelerators {
            recorder.block.start_ns = now_ns;
            recorder.state_start_ns = now_ns;
        }
    }

    /// Records that a batch was received. The wait for the batch is divided among the activities of the workers that read it.
    pub fn end_load(&mut self, accelerator: u32, now_ns: u64, times: ReadTimes) {
        let recorder = &mut self.accelerators[accelerator as usize];
        let requested_ns = recorder.state_start_ns;
        let load_ns = recorder.lap(now_ns);
        recorder.stall = split_stall(requested_ns, load_ns, times);
        recorder.epoch.io.receive_ns += times.start_ns + times.receive_ns;
        recorder.stall_since_barrier.add(&recorder.stall);
        self.totals.load_ns += load_ns;
        recorder.block.load_ns.push(load_ns);
    }

    /// Records that compute has ended.
    pub fn end_compute(&mut self, accelerator: u32, now_ns: u64) {
        let recorder = &mut self.accelerators[accelerator as usize];
        let compute_ns = recorder.lap(now_ns);
        self.totals.compute_ns += compute_ns;
        recorder.block.compute_ns.push(compute_ns);
    }

    /// Records that all accelerators have arrived at a barrier. All waits are attributed to the causes that delayed the last accelerator.
    pub fn end_barrier(&mut self, now_ns: u64) {
        let recorders = &self.accelerators;
        let Some(last) =
            (0..recorders.len()).rev().max_by_key(|index| recorders[*index].state_start_ns)
        else {
            return;
        };
        let waits_ns = recorders.iter().map(|recorder| {
            recorder.stall_since_barrier.total_ns() + now_ns - recorder.state_start_ns
        });
        self.causes.push(last as u32, recorders[last].stall_since_barrier, waits_ns);
        for recorder in &mut self.accelerators {
            recorder.stall_since_barrier = Stall::default();
        }
    }

    /// Records that an accelerator continues after a barrier.
    pub fn resume(&mut self, accelerator: u32, now_ns: u64, read_bytes: u64) {
        let recorder = &mut self.accelerators[accelerator as usize];
        let barrier_ns = recorder.lap(now_ns);
        self.totals.barrier_ns += barrier_ns;
        recorder.block.barrier_ns.push(barrier_ns);
        recorder.block.read_bytes.push(read_bytes);
        recorder.epoch.stall.add(&std::mem::take(&mut recorder.stall));
        recorder.block.end_ns = now_ns;
    }

    /// Returns the sums of the epoch so far.
    pub fn totals(&self) -> StepTotals {
        self.totals
    }

    /// Takes the causes of the waits of all accelerators in the epoch.
    pub fn take_causes(&mut self) -> StepCauses {
        std::mem::take(&mut self.causes)
    }

    /// Takes the record of the epoch. Steps that were not finished are left out.
    pub fn finish(&mut self) -> Vec<AcceleratorEpoch> {
        self.accelerators
            .iter_mut()
            .map(|recorder| {
                let mut block = std::mem::take(&mut recorder.block);
                let finished_steps = block.barrier_ns.len();
                block.load_ns.truncate(finished_steps);
                block.compute_ns.truncate(finished_steps);
                let mut epoch = std::mem::take(&mut recorder.epoch);
                // A block without a finished step is kept only if it is the first.
                if finished_steps > 0 || epoch.blocks.is_empty() {
                    epoch.blocks.push(block);
                }
                epoch
            })
            .collect()
    }
}

impl AcceleratorRecorder {
    /// Ends the current state and returns the time spent in it.
    fn lap(&mut self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(std::mem::replace(&mut self.state_start_ns, now_ns))
    }
}

/// Creates a block with memory for `steps` steps.
fn empty_block(steps: u64) -> Block {
    let steps = steps as usize;
    Block {
        load_ns: Vec::with_capacity(steps),
        compute_ns: Vec::with_capacity(steps),
        barrier_ns: Vec::with_capacity(steps),
        read_bytes: Vec::with_capacity(steps),
        ..Block::default()
    }
}

/// Splits a wait for a batch into its causes.
///
/// Starting the workers and receiving the batch are work of the training process and count as client work. Of the remaining
/// wait, the time before the awaited batches were started and the time in excess of the workers' activities count as queueing. The rest is
/// divided in proportion to these activities, so that no cause gets more time than the workers spent on it.
fn split_stall(requested_ns: u64, load_ns: u64, times: ReadTimes) -> Stall {
    let worked = Stall {
        open_ns: times.open_ns,
        read_ns: times.read_ns,
        decode_ns: times.decode_ns,
        client_ns: times.client_ns,
        queue_ns: 0,
    };
    let training_ns = (times.start_ns + times.receive_ns).min(load_ns);
    let wait_ns = load_ns - training_ns;
    let queued_ns = times.task_start_ns.saturating_sub(requested_ns + times.start_ns).min(wait_ns);
    let worked_ns = (wait_ns - queued_ns).min(worked.total_ns());
    let mut stall = worked.scale_to(worked_ns);
    stall.queue_ns += wait_ns - worked_ns;
    stall.client_ns += training_ns;
    stall
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(requested_ns: u64, load_ns: u64, times: ReadTimes, expected: [u64; 4]) {
        let stall = split_stall(requested_ns, load_ns, times);
        assert_eq!([stall.open_ns, stall.read_ns, stall.decode_ns, stall.queue_ns], expected);
    }

    #[test]
    fn a_stall_is_divided_among_the_activities_of_workers() {
        let times = ReadTimes {
            task_start_ns: 150,
            open_ns: 10,
            read_ns: 30,
            decode_ns: 10,
            ..ReadTimes::default()
        };
        check(200, 50, times, [10, 30, 10, 0]);
        check(200, 25, times, [5, 15, 5, 0]);
        check(140, 50, times, [8, 24, 8, 10]);
        // The workers were busy with the batch during only a part of the wait.
        check(100, 150, times, [10, 30, 10, 100]);
        check(100, 0, times, [0, 0, 0, 0]);
        check(100, 70, ReadTimes { task_start_ns: 500, ..ReadTimes::default() }, [0, 0, 0, 70]);
        // The batch was complete before it was requested, so the wait is for the training process.
        let received = ReadTimes { receive_ns: 20, ..times };
        check(200, 20, received, [0, 0, 0, 0]);
        assert_eq!(split_stall(200, 20, received).client_ns, 20);
        let worked = ReadTimes { client_ns: 50, ..received };
        check(200, 70, worked, [5, 15, 5, 0]);
        assert_eq!(split_stall(200, 70, worked).client_ns, 45);
        // The batch was begun after the workers were started.
        let started = ReadTimes { start_ns: 50, ..received };
        check(100, 120, started, [10, 30, 10, 0]);
        assert_eq!(split_stall(100, 120, started).client_ns, 70);
    }
}
