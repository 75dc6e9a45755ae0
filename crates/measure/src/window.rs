//! Access to the measured steps: epochs as [`Scope`], and DLIO's window of a block (`statscounter.py:compute_metrics_train`), which
//! excludes steps at its start and end. Metrics compute their values from the counts and sums in this module.

use crate::record::timeline::Timeline;
use crate::record::{AcceleratorEpoch, Block, EpochRecord, Record};
use feedrate_spec::plan::Plan;

/// An epoch or evaluation with its plan.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The plan of the run.
    pub plan: &'a Plan,
    /// The epoch.
    pub epoch: &'a EpochRecord,
    /// The timeline of the whole run, if the record has one.
    pub timeline: Option<&'a Timeline>,
    /// Whether the record is from a watched training loop, so only the times between batches are known.
    pub is_watched: bool,
}

impl<'a> Scope<'a> {
    /// The scope of an epoch or evaluation of a record.
    pub fn new(record: &'a Record, epoch: &'a EpochRecord) -> Self {
        let is_watched = record.watched.is_some();
        Scope { plan: &record.plan, epoch, timeline: record.timeline.as_ref(), is_watched }
    }

    /// The whole epochs of a record (see [`Scope::is_whole`]). Metrics cover only these.
    pub fn whole_epochs(record: &'a Record) -> impl Iterator<Item = Scope<'a>> {
        Scope::all_epochs(record).filter(|scope| scope.is_whole())
    }

    /// All epochs of a record, including incomplete ones.
    pub fn all_epochs(record: &'a Record) -> impl Iterator<Item = Scope<'a>> {
        record.epochs.iter().map(|epoch| Scope::new(record, epoch))
    }

    /// Whether the record has every accelerator of the epoch. If a run of several processes is interrupted, its record has only the
    /// accelerators of rank 0, which do not represent the run.
    pub fn is_whole(self) -> bool {
        self.plan.accelerators as usize <= self.epoch.accelerators.len()
    }

    /// Duration of the epoch in seconds; `None` if it is zero.
    pub fn wall_s(self) -> Option<f64> {
        non_zero(self.epoch.end_ns.checked_sub(self.epoch.start_ns)?).map(seconds)
    }

    /// Number of steps that every accelerator finished.
    pub fn steps(self) -> u64 {
        self.epoch.accelerators.iter().map(AcceleratorEpoch::steps).min().unwrap_or(0)
    }

    /// Mean of a value over the windows with a known value, weighted by the number of steps of the block, as in DLIO.
    pub(crate) fn mean_weighted_by_steps(
        self,
        accelerator: &'a AcceleratorEpoch,
        value: impl Fn(Window<'a>) -> Option<f64>,
    ) -> Option<f64> {
        let mut weighted = 0.0;
        let mut steps = 0.0;
        for window in self.windows(accelerator) {
            if let Some(value) = value(window) {
                weighted += value * window.block_steps() as f64;
                steps += window.block_steps() as f64;
            }
        }
        (steps > 0.0).then(|| weighted / steps)
    }

    /// The window of each block of an accelerator.
    pub fn windows(self, accelerator: &'a AcceleratorEpoch) -> impl Iterator<Item = Window<'a>> {
        accelerator.blocks.iter().map(move |block| Window::new(self, block))
    }
}

impl Block {
    /// Load and compute time of all steps.
    pub fn busy_ns(&self) -> u64 {
        self.load_ns.iter().chain(&self.compute_ns).sum()
    }
}

impl AcceleratorEpoch {
    /// Load and compute time of all steps.
    pub fn busy_ns(&self) -> u64 {
        self.blocks.iter().map(Block::busy_ns).sum()
    }

    /// Number of steps in all blocks.
    pub fn steps(&self) -> u64 {
        self.blocks.iter().map(|block| block.steps() as u64).sum()
    }
}

/// The measured steps of one block: `first..end`, counted from the block's first step.
///
/// As in DLIO, steps excluded at the end are counted back from the epoch's last planned step. Only the block with these steps is shortened.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    block: &'a Block,
    first: usize,
    end: usize,
}

impl<'a> Window<'a> {
    fn new(scope: Scope, block: &'a Block) -> Self {
        let metric = &scope.plan.metric;
        let planned = scope.plan.train.steps_in_epoch(scope.epoch.number.max(1));
        let end_of_epoch = usize::try_from(planned.saturating_sub(metric.exclude_end_steps));
        let end = block.steps().min(end_of_epoch.unwrap_or(usize::MAX));
        let first = usize::try_from(metric.exclude_start_steps).unwrap_or(usize::MAX);
        Window { block, first: first.min(end), end }
    }

    /// Number of steps in the window.
    pub fn steps(self) -> usize {
        self.end - self.first
    }

    /// Number of steps in the whole block, by which DLIO weights the block.
    pub fn block_steps(self) -> usize {
        self.block.steps()
    }

    /// Total compute time of the steps in the window.
    pub fn compute_ns(self) -> u64 {
        self.block.compute_ns[self.first..self.end].iter().sum()
    }

    /// Compute time of each step in the window.
    pub fn computes_ns(self) -> &'a [u64] {
        &self.block.compute_ns[self.first..self.end]
    }

    /// Duration of the block minus load and compute time of the steps outside the window. `None` if the window is empty or no time remains.
    pub fn time_ns(self) -> Option<u64> {
        if self.steps() == 0 {
            return None;
        }
        let length_ns = self.block.end_ns.checked_sub(self.block.start_ns)?;
        let times = [&self.block.load_ns, &self.block.compute_ns];
        let outside =
            times.iter().flat_map(|times| times[..self.first].iter().chain(&times[self.end..]));
        let outside_ns: u64 = outside.sum();
        non_zero(length_ns.checked_sub(outside_ns)?)
    }

    /// Bytes read from the end of the step before the window to the end of the window, and the duration in nanoseconds. `bytes_before_block`
    /// is the number of bytes read before the block. `None` if the window is empty.
    pub fn bytes_and_ns(self, bytes_before_block: u64) -> Option<(u64, u64)> {
        let read_bytes = &self.block.read_bytes;
        let last_bytes = read_bytes[self.first..self.end].last()?;
        let first_bytes =
            self.first.checked_sub(1).map_or(bytes_before_block, |step| read_bytes[step]);
        let bytes = last_bytes.checked_sub(first_bytes)?;
        let ns =
            step_end_ns(self.block, self.end).checked_sub(step_end_ns(self.block, self.first))?;
        Some((bytes, non_zero(ns)?))
    }
}

/// End of the first `steps` steps of a block, in nanoseconds from the start of the run.
pub fn step_end_ns(block: &Block, steps: usize) -> u64 {
    let times = [&block.load_ns, &block.compute_ns, &block.barrier_ns];
    block.start_ns + times.iter().flat_map(|times| times.iter().take(steps)).sum::<u64>()
}

/// Converts nanoseconds to seconds.
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// `part` ÷ `total`; `None` if the total is 0.
pub(crate) fn share(part: u64, total: u64) -> Option<f64> {
    (total > 0).then(|| part as f64 / total as f64)
}

/// `amount` per second; `None` if no time passed.
pub(crate) fn per_second(amount: u64, ns: u64) -> Option<f64> {
    Some(amount as f64 / seconds(non_zero(ns)?))
}

fn non_zero(ns: u64) -> Option<u64> {
    (ns > 0).then_some(ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{block, epoch, plan};

    /// `planned` is the number of steps of the epoch, `steps` the number of steps of the block. `excluded` are the numbers of steps excluded at
    /// the start and the end, `expected` the first step and the end of the window.
    fn check(planned: u64, steps: usize, excluded: (u64, u64), expected: (usize, usize)) {
        let mut plan = plan(1, planned);
        (plan.metric.exclude_start_steps, plan.metric.exclude_end_steps) = excluded;
        let epoch = epoch(1, vec![vec![block(0, &vec![(1, 1, 1, 1); steps])]]);
        let scope = Scope { plan: &plan, epoch: &epoch, timeline: None, is_watched: false };
        let window = scope.windows(&epoch.accelerators[0]).next().unwrap();
        assert_eq!((window.first, window.end), expected);
        assert_eq!(window.time_ns().is_some(), window.steps() > 0);
        assert_eq!(window.bytes_and_ns(0).is_some(), window.steps() > 0);
    }

    #[test]
    fn steps_at_the_end_are_counted_back_from_the_epochs_last_step() {
        check(6, 6, (1, 0), (1, 6));
        check(6, 6, (1, 2), (1, 4));
        check(6, 3, (1, 2), (1, 3));
        check(6, 6, (0, 0), (0, 6));
        check(6, 1, (1, 0), (1, 1));
        check(6, 0, (1, 0), (0, 0));
        check(6, 6, (9, 0), (6, 6));
        check(6, 6, (1, u64::MAX), (0, 0));
    }
}
