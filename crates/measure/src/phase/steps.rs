//! The steps of a record within a time span. Steps that reach beyond the span count by the share of their time within it.

use super::{TimeRange, epochs_and_evaluations, overlap_ns};
use crate::record::{AcceleratorEpoch, EpochRecord, Record};
use crate::stats::mean;
use crate::window::share;

/// Figures of the steps within a phase.
pub(super) struct PhaseSteps {
    /// Whole steps of the accelerator with the fewest.
    pub(super) count: u64,
    /// Steps with the shares of those that reach beyond the phase, mean over accelerators.
    pub(super) shared_count: f64,
    /// Steps per second of all accelerators together; `None` if an accelerator has no step.
    pub(super) per_second: Option<f64>,
    pub(super) au_percent: Option<f64>,
    pub(super) stall_share: Option<f64>,
}

impl PhaseSteps {
    pub(super) fn new(record: &Record, span: TimeRange) -> Self {
        let mut load_ns = 0;
        let mut block_ns = 0;
        let mut counts = Vec::new();
        let mut shared_counts = Vec::new();
        let mut rates = Vec::new();
        let mut utilisations = Vec::new();
        // Batches of evaluations have a different size, so the rate is unknown.
        let has_evaluation = record.evaluations.iter().any(|evaluation| overlaps(evaluation, span));
        for accelerator in accelerators_in(record, span) {
            let mut count = 0;
            let mut shared_count = 0.0;
            let mut compute_ns = 0;
            let mut steps_ns = 0;
            for step in overlapping_steps(accelerator, span) {
                let step_range = step.time_range();
                let within_ns = overlap_ns(step_range, span);
                load_ns += overlap_ns(step.load_range(), span);
                block_ns += within_ns;
                compute_ns += overlap_ns(step.compute_range(), span);
                steps_ns += within_ns;
                shared_count += share(within_ns, step_range.duration_ns()).unwrap_or(0.0);
                count += u64::from(step.is_within(span));
            }
            counts.push(count);
            shared_counts.push(shared_count);
            rates.push((steps_ns > 0).then(|| shared_count * 1e9 / steps_ns as f64));
            utilisations.extend(share(compute_ns, steps_ns));
        }
        PhaseSteps {
            count: counts.into_iter().min().unwrap_or(0),
            shared_count: mean(&shared_counts).unwrap_or(0.0),
            per_second: rates
                .into_iter()
                .sum::<Option<f64>>()
                .filter(|rate| *rate > 0.0 && !has_evaluation),
            au_percent: mean(&utilisations).map(|au| 100.0 * au),
            stall_share: share(load_ns, block_ns),
        }
    }
}

/// Start of the last `count` whole steps of an interval, of the accelerator where it is earliest; 0 if there are fewer steps.
pub(super) fn last_steps_start_ns(record: &Record, interval: TimeRange, count: u64) -> u64 {
    let starts = accelerators_in(record, interval).map(|accelerator| {
        let steps: Vec<TimedStep> = whole_steps(accelerator, interval).collect();
        let first = steps.len().checked_sub(count as usize);
        first.and_then(|first| steps.get(first)).map_or(0, |step| step.start_ns)
    });
    starts.min().unwrap_or(0)
}

/// End of the first `count` whole steps of an interval, of the accelerator where it is latest; [`u64::MAX`] if there are fewer steps.
pub(super) fn first_steps_end_ns(record: &Record, interval: TimeRange, count: u64) -> u64 {
    let ends = accelerators_in(record, interval).map(|accelerator| {
        let last = whole_steps(accelerator, interval).nth((count as usize).saturating_sub(1));
        last.map_or(u64::MAX, |step| step.time_range().end_ns)
    });
    ends.max().unwrap_or(u64::MAX)
}

fn accelerators_in(record: &Record, span: TimeRange) -> impl Iterator<Item = &AcceleratorEpoch> {
    let overlapping = epochs_and_evaluations(record).filter(move |epoch| overlaps(epoch, span));
    overlapping.flat_map(|epoch| &epoch.accelerators)
}

fn overlaps(epoch: &EpochRecord, span: TimeRange) -> bool {
    epoch.start_ns < span.end_ns && span.start_ns < epoch.end_ns
}

/// One step of one accelerator.
#[derive(Clone, Copy)]
pub(super) struct TimedStep {
    start_ns: u64,
    load_ns: u64,
    compute_ns: u64,
    barrier_ns: u64,
}

impl TimedStep {
    pub(super) fn time_range(self) -> TimeRange {
        let ns = self.load_ns + self.compute_ns + self.barrier_ns;
        TimeRange { start_ns: self.start_ns, end_ns: self.start_ns + ns }
    }

    pub(super) fn load_range(self) -> TimeRange {
        TimeRange { start_ns: self.start_ns, end_ns: self.start_ns + self.load_ns }
    }

    fn compute_range(self) -> TimeRange {
        let start_ns = self.load_range().end_ns;
        TimeRange { start_ns, end_ns: start_ns + self.compute_ns }
    }

    fn is_within(self, span: TimeRange) -> bool {
        span.start_ns <= self.start_ns && self.time_range().end_ns <= span.end_ns
    }
}

fn whole_steps(accelerator: &AcceleratorEpoch, span: TimeRange) -> impl Iterator<Item = TimedStep> {
    overlapping_steps(accelerator, span).filter(move |step| step.is_within(span))
}

/// Steps of an accelerator that start before the end of `span`, in the blocks that overlap the span.
pub(super) fn overlapping_steps(
    accelerator: &AcceleratorEpoch,
    span: TimeRange,
) -> impl Iterator<Item = TimedStep> {
    let blocks = accelerator.blocks.iter();
    let overlapping =
        blocks.filter(move |block| block.start_ns < span.end_ns && span.start_ns < block.end_ns);
    overlapping.flat_map(move |block| {
        let mut start_ns = block.start_ns;
        let steps = (0..block.steps()).map(move |i| {
            let step = TimedStep {
                start_ns,
                load_ns: block.load_ns[i],
                compute_ns: block.compute_ns[i],
                barrier_ns: block.barrier_ns[i],
            };
            start_ns = step.time_range().end_ns;
            step
        });
        steps.take_while(move |step| step.start_ns < span.end_ns)
    })
}
