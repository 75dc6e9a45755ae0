//! Causes of waits in each step. By the critical path, the waits of all accelerators are attributed to what the last accelerator of the
//! step waited for.

use super::{AcceleratorEpoch, EpochRecord};
use serde::{Deserialize, Serialize};

/// Time that an accelerator waited for batches, by what the worker of the batch was doing. The parts add up to the sum of `load_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// The worker was opening or closing files or querying their lengths.
    pub open_ns: u64,
    /// The worker was reading.
    pub read_ns: u64,
    /// The worker was decoding or checking.
    pub decode_ns: u64,
    /// The worker or the training process did the client's work.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub client_ns: u64,
    /// No worker had started the batch, or the worker waited for something else.
    pub queue_ns: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

impl Stall {
    /// Adds the times of `other`.
    pub fn add(&mut self, other: &Stall) {
        self.open_ns += other.open_ns;
        self.read_ns += other.read_ns;
        self.decode_ns += other.decode_ns;
        self.client_ns += other.client_ns;
        self.queue_ns += other.queue_ns;
    }

    /// The total waiting time.
    pub fn total_ns(&self) -> u64 {
        self.open_ns + self.read_ns + self.decode_ns + self.client_ns + self.queue_ns
    }

    /// Divides `ns` in the proportions of this stall. The remainder from rounding counts as queueing.
    pub fn scale_to(&self, ns: u64) -> Stall {
        let total_ns = u128::from(self.total_ns().max(1));
        let scaled = |part_ns: u64| (u128::from(ns) * u128::from(part_ns) / total_ns) as u64;
        let mut stall = Stall {
            open_ns: scaled(self.open_ns),
            read_ns: scaled(self.read_ns),
            decode_ns: scaled(self.decode_ns),
            client_ns: scaled(self.client_ns),
            queue_ns: 0,
        };
        stall.queue_ns = ns - stall.total_ns();
        stall
    }
}

/// The last accelerator of each step and the causes of all accelerators' waits, for batches and for others.
///
/// A wait is charged to what the last accelerator waited for. The part that exceeds the last accelerator's own wait is charged to skew. The
/// causes of a step add up to `load_ns` and `barrier_ns` of all accelerators. An evaluation has a single entry, as its accelerators meet
/// only at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepCauses {
    /// Number of the last accelerator of each step.
    pub last: Vec<u32>,
    /// Waits while the worker of its batch was opening or closing files or querying their lengths.
    pub open_ns: Vec<u64>,
    /// Waits while the worker was reading.
    pub read_ns: Vec<u64>,
    /// Waits while the worker was decoding or checking.
    pub decode_ns: Vec<u64>,
    /// Waits while the worker or the training process did the client's work; empty if no step has such a wait.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_ns: Vec<u64>,
    /// Waits while no worker had started its batch, or the worker waited for something else.
    pub queue_ns: Vec<u64>,
    /// Waits while it had its batch and computed, or while the processes synchronised.
    pub skew_ns: Vec<u64>,
}

impl StepCauses {
    /// Creates empty causes with memory for `steps` steps.
    pub fn with_capacity(steps: usize) -> Self {
        let column = || Vec::with_capacity(steps);
        StepCauses {
            last: Vec::with_capacity(steps),
            open_ns: column(),
            read_ns: column(),
            decode_ns: column(),
            client_ns: column(),
            queue_ns: column(),
            skew_ns: column(),
        }
    }

    /// Number of steps.
    pub fn steps(&self) -> usize {
        self.last.len()
    }

    /// Whether all columns have an entry for each step.
    pub fn is_rectangular(&self) -> bool {
        let steps = self.steps();
        let have_all_steps = self.columns().iter().all(|column| column.len() == steps);
        have_all_steps && [0, steps].contains(&self.client_ns.len())
    }

    /// Appends a step. `stall` is the wait for data of the last accelerator, and `waits_ns` are the total waits of all accelerators.
    pub fn push(&mut self, last: u32, stall: Stall, waits_ns: impl Iterator<Item = u64>) {
        let last_ns = stall.total_ns();
        let mut charged_ns = 0;
        let mut skew_ns = 0;
        for wait_ns in waits_ns {
            charged_ns += wait_ns.min(last_ns);
            skew_ns += wait_ns.saturating_sub(last_ns);
        }
        let charged = stall.scale_to(charged_ns);
        self.last.push(last);
        self.open_ns.push(charged.open_ns);
        self.read_ns.push(charged.read_ns);
        self.decode_ns.push(charged.decode_ns);
        if charged.client_ns > 0 || !self.client_ns.is_empty() {
            self.client_ns.resize(self.last.len() - 1, 0);
            self.client_ns.push(charged.client_ns);
        }
        self.queue_ns.push(charged.queue_ns);
        self.skew_ns.push(skew_ns);
    }

    /// Waits for data of all accelerators over all steps, by cause.
    pub fn total_stall(&self) -> Stall {
        let sum = |column: &[u64]| column.iter().sum();
        Stall {
            open_ns: sum(&self.open_ns),
            read_ns: sum(&self.read_ns),
            decode_ns: sum(&self.decode_ns),
            client_ns: sum(&self.client_ns),
            queue_ns: sum(&self.queue_ns),
        }
    }

    /// Waits for slower accelerators of all accelerators over all steps.
    pub fn total_skew_ns(&self) -> u64 {
        self.skew_ns.iter().sum()
    }

    /// Combines the causes recorded by several processes, each for its own accelerators. The last accelerator of a step
    /// has the shortest wait at the barrier, so clocks of processes need not be compared. `None` if a process has no causes.
    pub(super) fn from_processes(parts: &[EpochRecord]) -> Option<Self> {
        let causes: Vec<&StepCauses> =
            parts.iter().map(|part| part.causes.as_ref()).collect::<Option<_>>()?;
        let steps = causes.iter().map(|causes| causes.steps()).min()?;
        let mut waits: Vec<Vec<StepWait>> = Vec::new();
        let mut first_accelerators = Vec::new();
        for part in parts {
            first_accelerators.push(waits.len() as u32);
            waits.extend(part.accelerators.iter().map(|row| step_waits(row, steps)));
        }
        let mut combined = StepCauses::with_capacity(steps);
        for step in 0..steps {
            let last_of = |process: usize| first_accelerators[process] + causes[process].last[step];
            let wait_of = |accelerator: u32| waits[accelerator as usize][step];
            let process =
                (0..parts.len()).min_by_key(|process| wait_of(last_of(*process)).barrier_ns)?;
            let last = last_of(process);
            let stall = causes[process].stall(step).scale_to(wait_of(last).load_ns);
            combined.push(last, stall, waits.iter().map(|waits| waits[step].total_ns()));
        }
        Some(combined)
    }

    /// The columns that are present in every record.
    fn columns(&self) -> [&Vec<u64>; 5] {
        [&self.open_ns, &self.read_ns, &self.decode_ns, &self.queue_ns, &self.skew_ns]
    }

    fn stall(&self, step: usize) -> Stall {
        Stall {
            open_ns: self.open_ns[step],
            read_ns: self.read_ns[step],
            decode_ns: self.decode_ns[step],
            client_ns: self.client_ns.get(step).copied().unwrap_or_default(),
            queue_ns: self.queue_ns[step],
        }
    }
}

/// Waits of an accelerator in one step.
#[derive(Clone, Copy, Default)]
struct StepWait {
    load_ns: u64,
    barrier_ns: u64,
}

impl StepWait {
    fn total_ns(self) -> u64 {
        self.load_ns + self.barrier_ns
    }
}

/// Waits of an accelerator in each of `steps` steps. If accelerators met only at the end, the first entry is the sum of all waits.
fn step_waits(accelerator: &AcceleratorEpoch, steps: usize) -> Vec<StepWait> {
    let blocks = accelerator.blocks.iter();
    let times = blocks.flat_map(|block| block.load_ns.iter().zip(&block.barrier_ns));
    let meets_each_step = accelerator.steps() == steps as u64;
    let mut waits = vec![StepWait::default(); steps];
    for (i, (load_ns, barrier_ns)) in times.enumerate() {
        if let Some(wait) = waits.get_mut(if meets_each_step { i } else { 0 }) {
            wait.load_ns += load_ns;
            wait.barrier_ns += barrier_ns;
        }
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{accelerator, block};

    fn stall(parts_ns: [u64; 4]) -> Stall {
        let [open_ns, read_ns, decode_ns, queue_ns] = parts_ns;
        Stall { open_ns, read_ns, decode_ns, queue_ns, ..Stall::default() }
    }

    fn row(causes: &StepCauses, step: usize) -> (u32, [u64; 5]) {
        (causes.last[step], causes.columns().map(|column| column[step]))
    }

    #[test]
    fn waits_are_charged_to_what_the_last_accelerator_waited_for() {
        let mut causes = StepCauses::default();
        // With equal compute times, every accelerator waits as long as the last one.
        causes.push(1, stall([10, 80, 10, 0]), [100, 100, 100].into_iter());
        assert_eq!(row(&causes, 0), (1, [30, 240, 30, 0, 0]));
        // The last accelerator waits for 10 ns and computes 90 and 95 ns longer than the others.
        causes.push(2, stall([0, 10, 0, 0]), [100, 105, 10].into_iter());
        assert_eq!(row(&causes, 1), (2, [0, 30, 0, 0, 185]));
        // An accelerator with a longer compute time waits less than the last one.
        causes.push(0, stall([0, 0, 60, 0]), [60, 10].into_iter());
        assert_eq!(row(&causes, 2), (0, [0, 0, 70, 0, 0]));
        causes.push(0, stall([0; 4]), [0, 0].into_iter());
        assert_eq!(row(&causes, 3), (0, [0; 5]));
        assert!(causes.is_rectangular() && causes.steps() == 4);
        assert_eq!((causes.total_stall(), causes.total_skew_ns()), (stall([30, 270, 100, 0]), 185));
    }

    /// The column is missing without a client.
    #[test]
    fn client_waits_before_the_first_are_zero() {
        let mut causes = StepCauses::default();
        causes.push(0, stall([0, 10, 0, 0]), [10, 20].into_iter());
        assert!(causes.client_ns.is_empty() && causes.is_rectangular());
        let with_client = Stall { read_ns: 10, client_ns: 30, ..Stall::default() };
        causes.push(0, with_client, [40, 80].into_iter());
        causes.push(0, stall([0, 5, 0, 0]), [5, 5].into_iter());
        assert_eq!((causes.client_ns.as_slice(), causes.skew_ns[1]), ([0, 60, 0].as_slice(), 40));
        assert_eq!((causes.total_stall().client_ns, causes.is_rectangular()), (60, true));
        causes.client_ns.pop();
        assert!(!causes.is_rectangular());
    }

    #[test]
    fn the_remainder_from_rounding_is_queueing() {
        assert_eq!(stall([1, 1, 1, 0]).scale_to(10), stall([3, 3, 3, 1]));
        assert_eq!(stall([0; 4]).scale_to(7), stall([0, 0, 0, 7]));
        assert_eq!(stall([0, u64::MAX / 2, 0, 0]).scale_to(u64::MAX).read_ns, u64::MAX);
    }

    /// An accelerator with steps of (load, compute, barrier) in milliseconds.
    fn with_steps(steps: &[(u64, u64, u64)]) -> AcceleratorEpoch {
        let steps: Vec<_> =
            steps.iter().map(|(load, compute, barrier)| (*load, *compute, *barrier, 0)).collect();
        accelerator(vec![block(0, &steps)])
    }

    fn part(accelerators: Vec<AcceleratorEpoch>, causes: StepCauses) -> EpochRecord {
        EpochRecord { accelerators, causes: Some(causes), ..EpochRecord::default() }
    }

    fn ms(parts_ms: [u64; 4]) -> Stall {
        stall(parts_ms.map(|part_ms| part_ms * 1_000_000))
    }

    /// The first process has two accelerators, the second has one. Step 0 waits for a read of the second process, step 1 for the compute
    /// time of the first accelerator.
    #[test]
    fn the_last_accelerator_of_several_processes_waited_least_at_the_barrier() {
        let mut first = StepCauses::default();
        first.push(1, ms([0, 0, 20, 0]), [100, 100].map(|ms| ms * 1_000_000).into_iter());
        first.push(0, ms([0, 5, 0, 0]), [5, 65].map(|ms| ms * 1_000_000).into_iter());
        let mut second = StepCauses::default();
        second.push(0, ms([25, 75, 0, 0]), [100].map(|ms| ms * 1_000_000).into_iter());
        second.push(0, ms([0, 60, 0, 0]), [65].map(|ms| ms * 1_000_000).into_iter());
        let first_accelerators = vec![
            with_steps(&[(10, 50, 90), (5, 110, 0)]),
            with_steps(&[(20, 50, 80), (60, 50, 5)]),
        ];
        let second_accelerators = vec![with_steps(&[(100, 50, 0), (60, 50, 5)])];
        let parts = [part(first_accelerators, first), part(second_accelerators, second)];
        let all = StepCauses::from_processes(&parts).unwrap();
        assert_eq!(row(&all, 0), (2, [75, 225, 0, 0, 0].map(|ms| ms * 1_000_000)));
        assert_eq!(row(&all, 1), (0, [0, 15, 0, 0, 120].map(|ms| ms * 1_000_000)));
        let total_ns = all.total_stall().total_ns() + all.total_skew_ns();
        assert_eq!(total_ns, 435_000_000, "all loads and barriers");
        let mut incomplete = parts.clone();
        incomplete[1].causes = None;
        assert_eq!(StepCauses::from_processes(&incomplete), None);
    }

    /// This is the case in evaluations.
    #[test]
    fn accelerators_that_meet_only_at_the_end_have_one_wait() {
        let mut first = StepCauses::default();
        first.push(0, ms([0, 30, 0, 0]), std::iter::once(45_000_000));
        let mut second = StepCauses::default();
        second.push(0, ms([0, 0, 40, 0]), std::iter::once(40_000_000));
        let parts = [
            part(vec![with_steps(&[(10, 50, 0), (20, 50, 15)])], first),
            part(vec![with_steps(&[(20, 50, 0), (20, 55, 0)])], second),
        ];
        let all = StepCauses::from_processes(&parts).unwrap();
        assert_eq!((all.steps(), row(&all, 0)), (1, (1, [0, 0, 80_000_000, 0, 5_000_000])));
    }
}
