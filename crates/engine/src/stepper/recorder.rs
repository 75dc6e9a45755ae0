//! Writes down every step's times into memory that was there before. No clock of its own.

use crate::loader::ReadTimes;
use feedrate_measure::record::{AcceleratorEpoch, Block, Stall, StepCauses};

/// The steps of all accelerators of a process, for one epoch.
pub struct Recorder {
    accelerators: Vec<AcceleratorTimes>,
    causes: StepCauses,
    totals: StepTotals,
}

/// Sums over accelerators and steps of an epoch, for the live line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepTotals {
    /// Waiting for batches.
    pub load_ns: u64,
    /// Computing.
    pub compute_ns: u64,
    /// Waiting for the others.
    pub barrier_ns: u64,
}

#[derive(Default)]
struct AcceleratorTimes {
    epoch: AcceleratorEpoch,
    block: Block,
    /// In the current step.
    stall: Stall,
    /// Since all last waited for each other.
    waited: Stall,
    /// When the state it is in began.
    since_ns: u64,
}

impl Recorder {
    /// For `accelerators` accelerators.
    pub fn new(accelerators: u32) -> Self {
        Recorder {
            accelerators: (0..accelerators).map(|_| AcceleratorTimes::default()).collect(),
            causes: StepCauses::default(),
            totals: StepTotals::default(),
        }
    }

    /// Reserve for `steps` steps, and as many times that all wait for each other as `barriers` says.
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

    /// End the block; another begins, of at most `steps` steps.
    pub fn end_block(&mut self, steps: u64) {
        for lane in &mut self.accelerators {
            let block = std::mem::replace(&mut lane.block, empty_block(steps));
            lane.epoch.blocks.push(block);
        }
    }

    /// All accelerators begin.
    pub fn start(&mut self, now_ns: u64) {
        for lane in &mut self.accelerators {
            lane.block.start_ns = now_ns;
            lane.since_ns = now_ns;
        }
    }

    /// A batch has come; where the wait for it went follows from what its worker did.
    pub fn loaded(&mut self, accelerator: u32, now_ns: u64, times: ReadTimes) {
        let lane = &mut self.accelerators[accelerator as usize];
        let (asked_ns, load_ns) = (lane.since_ns, lane.lap(now_ns));
        lane.stall = split_stall(asked_ns, load_ns, times);
        lane.epoch.io.receive_ns += times.start_ns + times.receive_ns;
        lane.waited.add(&lane.stall);
        self.totals.load_ns += load_ns;
        lane.block.load_ns.push(load_ns);
    }

    /// The wait of compute is over.
    pub fn computed(&mut self, accelerator: u32, now_ns: u64) {
        let lane = &mut self.accelerators[accelerator as usize];
        let compute_ns = lane.lap(now_ns);
        self.totals.compute_ns += compute_ns;
        lane.block.compute_ns.push(compute_ns);
    }

    /// All have arrived, and the barrier opens now: whoever came last is what the others waited for.
    pub fn met(&mut self, now_ns: u64) {
        let lanes = &self.accelerators;
        let late = (0..lanes.len()).rev().max_by_key(|lane| lanes[*lane].since_ns);
        let Some(last) = late else { return };
        let waits_ns = lanes.iter().map(|lane| lane.waited.total_ns() + now_ns - lane.since_ns);
        self.causes.push(last as u32, lanes[last].waited, waits_ns);
        for lane in &mut self.accelerators {
            lane.waited = Stall::default();
        }
    }

    /// The barrier has opened.
    pub fn released(&mut self, accelerator: u32, now_ns: u64, read_bytes: u64) {
        let lane = &mut self.accelerators[accelerator as usize];
        let barrier_ns = lane.lap(now_ns);
        self.totals.barrier_ns += barrier_ns;
        lane.block.barrier_ns.push(barrier_ns);
        lane.block.read_bytes.push(read_bytes);
        lane.epoch.stall.add(&std::mem::take(&mut lane.stall));
        lane.block.end_ns = now_ns;
    }

    /// Sums of the epoch so far.
    pub fn totals(&self) -> StepTotals {
        self.totals
    }

    /// The waits of all accelerators in the epoch.
    pub fn take_causes(&mut self) -> StepCauses {
        std::mem::take(&mut self.causes)
    }

    /// The epoch as it was; steps that not all accelerators finished are left out.
    pub fn finish(&mut self) -> Vec<AcceleratorEpoch> {
        self.accelerators
            .iter_mut()
            .map(|lane| {
                let mut block = std::mem::take(&mut lane.block);
                let whole = block.barrier_ns.len();
                block.load_ns.truncate(whole);
                block.compute_ns.truncate(whole);
                let mut epoch = std::mem::take(&mut lane.epoch);
                // A block that was stopped in its first step shows nothing.
                if whole > 0 || epoch.blocks.is_empty() {
                    epoch.blocks.push(block);
                }
                epoch
            })
            .collect()
    }
}

impl AcceleratorTimes {
    /// Time in the state that ends now.
    fn lap(&mut self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(std::mem::replace(&mut self.since_ns, now_ns))
    }
}

/// With memory for `steps` steps.
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

/// A wait begins with starting workers and ends with taking the batch over: the training's own process, which is the client's work. Of
/// what lies between, the time before the first batch that was awaited was begun, and longer than workers worked on them, is queueing;
/// the rest is shared out as the workers spent their time. So no part is longer than they took for it.
fn split_stall(asked_ns: u64, load_ns: u64, times: ReadTimes) -> Stall {
    let worked = Stall {
        open_ns: times.open_ns,
        read_ns: times.read_ns,
        decode_ns: times.decode_ns,
        client_ns: times.client_ns,
        queue_ns: 0,
    };
    let of_training_ns = (times.start_ns + times.receive_ns).min(load_ns);
    let load_ns = load_ns - of_training_ns;
    let queued_ns = times.begun_ns.saturating_sub(asked_ns + times.start_ns).min(load_ns);
    let worked_ns = (load_ns - queued_ns).min(worked.total_ns());
    let mut stall = worked.scaled_to(worked_ns);
    stall.queue_ns += load_ns - worked_ns;
    stall.client_ns += of_training_ns;
    stall
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(asked_ns: u64, load_ns: u64, times: ReadTimes, expected: [u64; 4]) {
        let stall = split_stall(asked_ns, load_ns, times);
        assert_eq!([stall.open_ns, stall.read_ns, stall.decode_ns, stall.queue_ns], expected);
    }

    #[test]
    fn a_stall_is_split_by_what_the_worker_did() {
        let times = ReadTimes {
            begun_ns: 150,
            open_ns: 10,
            read_ns: 30,
            decode_ns: 10,
            ..ReadTimes::default()
        };
        check(200, 50, times, [10, 30, 10, 0]);
        check(200, 25, times, [5, 15, 5, 0]);
        check(140, 50, times, [8, 24, 8, 10]);
        // They did nothing for it most of the time.
        check(100, 150, times, [10, 30, 10, 100]);
        check(100, 0, times, [0, 0, 0, 0]);
        check(100, 70, ReadTimes { begun_ns: 500, ..ReadTimes::default() }, [0, 0, 0, 70]);
        // It was whole before it was asked for: the wait is for the training's own process.
        let handed = ReadTimes { receive_ns: 20, ..times };
        check(200, 20, handed, [0, 0, 0, 0]);
        assert_eq!(split_stall(200, 20, handed).client_ns, 20);
        let worked = ReadTimes { client_ns: 50, ..handed };
        check(200, 70, worked, [5, 15, 5, 0]);
        assert_eq!(split_stall(200, 70, worked).client_ns, 45);
        // Begun when the workers had been started.
        let started = ReadTimes { start_ns: 50, ..handed };
        check(100, 120, started, [10, 30, 10, 0]);
        assert_eq!(split_stall(100, 120, started).client_ns, 70);
    }
}
