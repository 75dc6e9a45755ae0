//! The steps of a run, and what all of its accelerators waited for in each: the critical path.

use super::{AcceleratorEpoch, EpochRecord};
use serde::{Deserialize, Serialize};

/// Where the time that an accelerator waited for batches went. The sum is the sum of its `load_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// The batch's worker was opening, asking lengths or closing.
    pub open_ns: u64,
    /// Its worker was reading.
    pub read_ns: u64,
    /// Its worker was decoding or checking.
    pub decode_ns: u64,
    /// Its worker, or the training's own process, did the client's work.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub client_ns: u64,
    /// No worker had begun it, or its worker waited for something else.
    pub queue_ns: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

impl Stall {
    /// Count what `other` counted too.
    pub fn add(&mut self, other: &Stall) {
        self.open_ns += other.open_ns;
        self.read_ns += other.read_ns;
        self.decode_ns += other.decode_ns;
        self.client_ns += other.client_ns;
        self.queue_ns += other.queue_ns;
    }

    /// The wait as a whole.
    pub fn total_ns(&self) -> u64 {
        self.open_ns + self.read_ns + self.decode_ns + self.client_ns + self.queue_ns
    }

    /// `ns` in the same proportions; what is left over by rounding is queueing.
    pub fn shared_out(&self, ns: u64) -> Stall {
        let all = u128::from(self.total_ns().max(1));
        let [open_ns, read_ns, decode_ns, client_ns] =
            [self.open_ns, self.read_ns, self.decode_ns, self.client_ns]
                .map(|part_ns| (u128::from(ns) * u128::from(part_ns) / all) as u64);
        let queue_ns = ns - open_ns - read_ns - decode_ns - client_ns;
        Stall { open_ns, read_ns, decode_ns, client_ns, queue_ns }
    }
}

/// For each time that all accelerators waited for the last of them (after each step; of evaluations, at their end) who that was, and
/// what their waits, for batches and for others, are charged to. A wait is charged to what the last waited for meanwhile, and what is
/// longer than its wait to the skew. In each step the sum is that of `load_ns` and `barrier_ns` over all accelerators.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepCauses {
    /// Number of the last accelerator.
    pub last: Vec<u32>,
    /// Its worker was opening, asking lengths or closing.
    pub open_ns: Vec<u64>,
    /// Its worker was reading.
    pub read_ns: Vec<u64>,
    /// Its worker was decoding or checking.
    pub decode_ns: Vec<u64>,
    /// Its worker, or the training's own process, did the client's work; empty before the first step of which that is so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_ns: Vec<u64>,
    /// No worker had begun its batch, or its worker waited for something else.
    pub queue_ns: Vec<u64>,
    /// It had its batch and computed longer, or the processes took time to meet.
    pub skew_ns: Vec<u64>,
}

impl StepCauses {
    /// With memory for `steps` steps.
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

    /// Steps.
    pub fn steps(&self) -> usize {
        self.last.len()
    }

    /// Whether each step has all its figures.
    pub fn is_even(&self) -> bool {
        let columns = self.columns();
        let whole = columns.iter().all(|column| column.len() == self.steps());
        whole && [0, self.steps()].contains(&self.client_ns.len())
    }

    /// A step of which `last` waited for its batch as `stall` says, and each accelerator as long as `waits_ns` says.
    pub fn push(&mut self, last: u32, stall: Stall, waits_ns: impl Iterator<Item = u64>) {
        let last_ns = stall.total_ns();
        let (mut charged_ns, mut skew_ns) = (0, 0);
        for wait_ns in waits_ns {
            charged_ns += wait_ns.min(last_ns);
            skew_ns += wait_ns.saturating_sub(last_ns);
        }
        let charged = stall.shared_out(charged_ns);
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

    /// Sums over all steps: the waits of all accelerators by what the last waited for, and the skew.
    pub fn totals_ns(&self) -> (Stall, u64) {
        let [open_ns, read_ns, decode_ns, queue_ns, skew_ns] =
            self.columns().map(|column| column.iter().sum());
        let client_ns = self.client_ns.iter().sum();
        (Stall { open_ns, read_ns, decode_ns, client_ns, queue_ns }, skew_ns)
    }

    /// Put together a run of several processes, each of which wrote down its own accelerators. Whoever waited least for the others was last:
    /// no clock need be compared. `None` where one does not tell.
    pub(super) fn of_processes(parts: &[EpochRecord]) -> Option<Self> {
        let causes = parts.iter().map(|part| part.causes.as_ref());
        let causes = causes.collect::<Option<Vec<_>>>()?;
        let steps = causes.iter().map(|own| own.steps()).min()?;
        let mut lanes: Vec<Vec<StepWait>> = Vec::new();
        let mut firsts = Vec::new();
        for part in parts {
            firsts.push(lanes.len() as u32);
            lanes.extend(part.accelerators.iter().map(|own| waits(own, steps)));
        }
        let mut all = StepCauses::with_capacity(steps);
        for step in 0..steps {
            let last_of = |process: usize| firsts[process] + causes[process].last[step];
            let wait_of = |last: u32| lanes[last as usize][step];
            let process =
                (0..parts.len()).min_by_key(|process| wait_of(last_of(*process)).barrier_ns)?;
            let last = last_of(process);
            let stall = causes[process].stall(step).shared_out(wait_of(last).load_ns);
            all.push(last, stall, lanes.iter().map(|lane| lane[step].total_ns()));
        }
        Some(all)
    }

    /// Those that every record has.
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

/// Waits of an accelerator until all met.
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

/// Those of the `steps` times that all met. Where that was at the end only, what came before is one wait.
fn waits(accelerator: &AcceleratorEpoch, steps: usize) -> Vec<StepWait> {
    let blocks = accelerator.blocks.iter();
    let times = blocks.flat_map(|block| block.load_ns.iter().zip(&block.barrier_ns));
    let mut met = vec![StepWait::default(); steps];
    for (at, (load_ns, barrier_ns)) in times.enumerate() {
        if let Some(wait) = met.get_mut(if accelerator.steps() == steps as u64 { at } else { 0 }) {
            wait.load_ns += load_ns;
            wait.barrier_ns += barrier_ns;
        }
    }
    met
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
    fn a_wait_for_the_last_is_charged_to_what_the_last_waited_for() {
        let mut causes = StepCauses::default();
        // All compute alike: each waits as long as the last, wherever.
        causes.push(1, stall([10, 80, 10, 0]), [100, 100, 100].into_iter());
        assert_eq!(row(&causes, 0), (1, [30, 240, 30, 0, 0]));
        // The last waited for 10, and computed longer than the others by 90 and 95.
        causes.push(2, stall([0, 10, 0, 0]), [100, 105, 10].into_iter());
        assert_eq!(row(&causes, 1), (2, [0, 30, 0, 0, 185]));
        // One that computes for long does not wait for all that the last waits for.
        causes.push(0, stall([0, 0, 60, 0]), [60, 10].into_iter());
        assert_eq!(row(&causes, 2), (0, [0, 0, 70, 0, 0]));
        causes.push(0, stall([0; 4]), [0, 0].into_iter());
        assert_eq!(row(&causes, 3), (0, [0; 5]));
        assert!(causes.is_even() && causes.steps() == 4);
        assert_eq!(causes.totals_ns(), (stall([30, 270, 100, 0]), 185));
    }

    /// Records of runs without a client have no column of it.
    #[test]
    fn a_client_is_told_from_its_first_step_on() {
        let mut causes = StepCauses::default();
        causes.push(0, stall([0, 10, 0, 0]), [10, 20].into_iter());
        assert!(causes.client_ns.is_empty() && causes.is_even());
        let own = Stall { read_ns: 10, client_ns: 30, ..Stall::default() };
        causes.push(0, own, [40, 80].into_iter());
        causes.push(0, stall([0, 5, 0, 0]), [5, 5].into_iter());
        assert_eq!((causes.client_ns.as_slice(), causes.skew_ns[1]), ([0, 60, 0].as_slice(), 40));
        assert_eq!((causes.totals_ns().0.client_ns, causes.is_even()), (60, true));
        causes.client_ns.pop();
        assert!(!causes.is_even());
    }

    #[test]
    fn what_is_left_over_by_rounding_is_queueing() {
        assert_eq!(stall([1, 1, 1, 0]).shared_out(10), stall([3, 3, 3, 1]));
        assert_eq!(stall([0; 4]).shared_out(7), stall([0, 0, 0, 7]));
        assert_eq!(stall([0, u64::MAX / 2, 0, 0]).shared_out(u64::MAX).read_ns, u64::MAX);
    }

    /// An accelerator of steps (load, compute, barrier) in milliseconds.
    fn lane(steps: &[(u64, u64, u64)]) -> AcceleratorEpoch {
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

    /// Two accelerators in one process, one in the other: step 0 waits for a read of the other, step 1 for the first's compute.
    #[test]
    fn of_several_processes_the_last_is_who_waited_least_for_the_others() {
        let mut first = StepCauses::default();
        first.push(1, ms([0, 0, 20, 0]), [100, 100].map(|ms| ms * 1_000_000).into_iter());
        first.push(0, ms([0, 5, 0, 0]), [5, 65].map(|ms| ms * 1_000_000).into_iter());
        let mut second = StepCauses::default();
        second.push(0, ms([25, 75, 0, 0]), [100].map(|ms| ms * 1_000_000).into_iter());
        second.push(0, ms([0, 60, 0, 0]), [65].map(|ms| ms * 1_000_000).into_iter());
        let here = vec![lane(&[(10, 50, 90), (5, 110, 0)]), lane(&[(20, 50, 80), (60, 50, 5)])];
        let there = vec![lane(&[(100, 50, 0), (60, 50, 5)])];
        let parts = [part(here, first), part(there, second)];
        let all = StepCauses::of_processes(&parts).unwrap();
        assert_eq!(row(&all, 0), (2, [75, 225, 0, 0, 0].map(|ms| ms * 1_000_000)));
        assert_eq!(row(&all, 1), (0, [0, 15, 0, 0, 120].map(|ms| ms * 1_000_000)));
        let (waited, skew_ns) = all.totals_ns();
        assert_eq!(waited.total_ns() + skew_ns, 435_000_000, "all loads and barriers");
        let mut silent = parts.clone();
        silent[1].causes = None;
        assert_eq!(StepCauses::of_processes(&silent), None);
    }

    /// As in evaluations.
    #[test]
    fn who_meets_at_the_end_only_has_one_wait() {
        let mut first = StepCauses::default();
        first.push(0, ms([0, 30, 0, 0]), std::iter::once(45_000_000));
        let mut second = StepCauses::default();
        second.push(0, ms([0, 0, 40, 0]), std::iter::once(40_000_000));
        let parts = [
            part(vec![lane(&[(10, 50, 0), (20, 50, 15)])], first),
            part(vec![lane(&[(20, 50, 0), (20, 55, 0)])], second),
        ];
        let all = StepCauses::of_processes(&parts).unwrap();
        assert_eq!((all.steps(), row(&all, 0)), (1, (1, [0, 0, 80_000_000, 0, 5_000_000])));
    }
}
