//! Records the times of every step into memory that is allocated before the epoch. Times are arguments.

use crate::loader::ReadTimes;
use feedrate_measure::record::{AcceleratorEpoch, Block, Stall, StepCauses};

/// Records the steps of all accelerators of a process in one epoch.
pub struct Recorder {
    accelerators: Vec<AcceleratorTimes>,
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
struct AcceleratorTimes {
    epoch: AcceleratorEpoch,
    block: Block,
    /// Stall of the current step.
    stall: Stall,
    /// Stalls since the last barrier.
    waited: Stall,
    /// When the current state (loading, computing or waiting) began.
    since_ns: u64,
}

impl Recorder {
    /// Creates a recorder for a number of accelerators.
    pub fn new(accelerators: u32) -> Self {
        Recorder {
            accelerators: (0..accelerators).map(|_| AcceleratorTimes::default()).collect(),
            causes: StepCauses::default(),
            totals: StepTotals::default(),
        }
    }

    /// Begins an epoch and reserves memory for its steps and barriers.
    pub fn prepare(&mut self, steps: u64, barriers: u64) {
        self.totals = StepTotals::default();
        self.causes = StepCauses::with_capacity(barriers as usize);
        for lane in &mut self.accelerators {
            lane.epoch = AcceleratorEpoch::default();
            lane.stall = Stall::default();
            lane.waited = Stall::default();
            lane.block = empty_block(steps);
        }
    }

    /// Ends the block and begins another of at most `steps` steps.
    pub fn end_block(&mut self, steps: u64) {
        for lane in &mut self.accelerators {
            let block = std::mem::replace(&mut lane.block, empty_block(steps));
            lane.epoch.blocks.push(block);
        }
    }

    /// Records that all accelerators start.
    pub fn start(&mut self, now_ns: u64) {
        for lane in &mut self.accelerators {
            lane.block.start_ns = now_ns;
            lane.since_ns = now_ns;
        }
    }

    /// Records that a batch was received. The wait for it is split by what its workers did.
    pub fn end_load(&mut self, accelerator: u32, now_ns: u64, times: ReadTimes) {
        let lane = &mut self.accelerators[accelerator as usize];
        let requested_ns = lane.since_ns;
        let load_ns = lane.lap(now_ns);
        lane.stall = split_stall(requested_ns, load_ns, times);
        lane.epoch.io.receive_ns += times.start_ns + times.receive_ns;
        lane.waited.add(&lane.stall);
        self.totals.load_ns += load_ns;
        lane.block.load_ns.push(load_ns);
    }

    /// Records that compute has ended.
    pub fn end_compute(&mut self, accelerator: u32, now_ns: u64) {
        let lane = &mut self.accelerators[accelerator as usize];
        let compute_ns = lane.lap(now_ns);
        self.totals.compute_ns += compute_ns;
        lane.block.compute_ns.push(compute_ns);
    }

    /// Records that all accelerators have arrived at a barrier. The waits are charged to what the last one waited for.
    pub fn end_barrier(&mut self, now_ns: u64) {
        let lanes = &self.accelerators;
        let Some(last) = (0..lanes.len()).rev().max_by_key(|lane| lanes[*lane].since_ns) else {
            return;
        };
        let waits_ns = lanes.iter().map(|lane| lane.waited.total_ns() + now_ns - lane.since_ns);
        self.causes.push(last as u32, lanes[last].waited, waits_ns);
        for lane in &mut self.accelerators {
            lane.waited = Stall::default();
        }
    }

    /// Records that an accelerator continues after a barrier.
    pub fn resume(&mut self, accelerator: u32, now_ns: u64, read_bytes: u64) {
        let lane = &mut self.accelerators[accelerator as usize];
        let barrier_ns = lane.lap(now_ns);
        self.totals.barrier_ns += barrier_ns;
        lane.block.barrier_ns.push(barrier_ns);
        lane.block.read_bytes.push(read_bytes);
        lane.epoch.stall.add(&std::mem::take(&mut lane.stall));
        lane.block.end_ns = now_ns;
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
            .map(|lane| {
                let mut block = std::mem::take(&mut lane.block);
                let finished_steps = block.barrier_ns.len();
                block.load_ns.truncate(finished_steps);
                block.compute_ns.truncate(finished_steps);
                let mut epoch = std::mem::take(&mut lane.epoch);
                // A further block without a finished step is dropped.
                if finished_steps > 0 || epoch.blocks.is_empty() {
                    epoch.blocks.push(block);
                }
                epoch
            })
            .collect()
    }
}

impl AcceleratorTimes {
    /// Ends the current state and returns the time spent in it.
    fn lap(&mut self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(std::mem::replace(&mut self.since_ns, now_ns))
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
/// Starting the workers and receiving the batch are work of the training process and count as client work. Of the remaining wait, the
/// time before the awaited batches were started, and the time that exceeds the workers' activity, is queueing. The rest is divided in
/// proportion to the workers' activities, so that no part exceeds the time the workers actually spent on it.
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
    let mut stall = worked.scaled_to(worked_ns);
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
    fn a_stall_is_split_by_what_the_worker_did() {
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
        // The workers were busy with it only for a part of the wait.
        check(100, 150, times, [10, 30, 10, 100]);
        check(100, 0, times, [0, 0, 0, 0]);
        check(100, 70, ReadTimes { task_start_ns: 500, ..ReadTimes::default() }, [0, 0, 0, 70]);
        // The batch was complete before it was requested, so the wait is for the training process.
        let handed = ReadTimes { receive_ns: 20, ..times };
        check(200, 20, handed, [0, 0, 0, 0]);
        assert_eq!(split_stall(200, 20, handed).client_ns, 20);
        let worked = ReadTimes { client_ns: 50, ..handed };
        check(200, 70, worked, [5, 15, 5, 0]);
        assert_eq!(split_stall(200, 70, worked).client_ns, 45);
        // The batch was begun after the workers were started.
        let started = ReadTimes { start_ns: 50, ..handed };
        check(100, 120, started, [10, 30, 10, 0]);
        assert_eq!(split_stall(100, 120, started).client_ns, 70);
    }
}
