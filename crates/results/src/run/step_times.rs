//! Times that accelerators spent in their steps, and differences between accelerators. These numbers of a run are not metrics.

use feedrate_measure::metric::AU_WINDOWED;
use feedrate_measure::record::{EpochRecord, Record};
use feedrate_measure::stats::mean;
use feedrate_measure::window::{Scope, seconds};
use std::ops::Range;

/// Means over all steps of all accelerators.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepTimeSummary {
    /// Time waiting for the data of a step.
    pub load_s_per_step: Option<f64>,
    /// Compute time of a step.
    pub compute_s_per_step: Option<f64>,
    /// Time waiting for data, as a share of the duration of blocks.
    pub load_percent: Option<f64>,
    /// Load and compute time of the first step of a block, which au_windowed leaves out.
    pub first_step_s: Option<f64>,
    /// Share of the waiting time that is in steps left out by au_windowed.
    pub excluded_percent: Option<f64>,
    /// Share of the duration of blocks that is neither load nor compute time: barriers and bookkeeping.
    pub barrier_percent: Option<f64>,
    /// Lowest au_windowed of an accelerator, averaged over epochs.
    pub windowed_lowest_percent: Option<f64>,
    /// Highest au_windowed of an accelerator, averaged over epochs.
    pub windowed_highest_percent: Option<f64>,
    /// Ratio of the longest to the shortest load and compute time of an accelerator, minus 1.
    pub own_time_percent: Option<f64>,
    /// Compute time as a share of load and compute time in the first steps of blocks, by epoch.
    pub first_au_percent: Vec<Option<f64>>,
    /// The same share in all later steps.
    pub later_au_percent: Vec<Option<f64>>,
}

impl StepTimeSummary {
    pub(super) fn new(record: &Record) -> Self {
        let excluded = record.plan.metric.exclude_start_steps as usize;
        let mut steps = 0;
        let mut load_ns = 0;
        let mut compute_ns = 0;
        let mut excluded_ns = 0;
        let mut length_ns = 0;
        let mut first_s = Vec::new();
        let accelerators = Scope::whole_epochs(record).flat_map(|scope| &scope.epoch.accelerators);
        for block in accelerators.flat_map(|accelerator| &accelerator.blocks) {
            steps += block.steps() as u64;
            load_ns += block.load_ns.iter().sum::<u64>();
            compute_ns += block.compute_ns.iter().sum::<u64>();
            excluded_ns += block.load_ns.iter().take(excluded).sum::<u64>();
            let first = block.load_ns.first().zip(block.compute_ns.first());
            first_s.extend(first.map(|(load_ns, compute_ns)| seconds(load_ns + compute_ns)));
            length_ns += block.end_ns.saturating_sub(block.start_ns);
        }
        let rest_ns = length_ns.checked_sub(load_ns + compute_ns);
        StepTimeSummary {
            load_s_per_step: ratio(seconds(load_ns), steps),
            compute_s_per_step: ratio(seconds(compute_ns), steps),
            first_step_s: mean(&first_s),
            load_percent: percent(load_ns, length_ns),
            excluded_percent: percent(excluded_ns, load_ns),
            barrier_percent: rest_ns.and_then(|rest_ns| percent(rest_ns, length_ns)),
            first_au_percent: record.epochs.iter().map(|epoch| au(epoch, 0..1)).collect(),
            later_au_percent: record.epochs.iter().map(|epoch| au(epoch, 1..usize::MAX)).collect(),
            ..skew(record)
        }
    }
}

fn ratio(part: f64, total: u64) -> Option<f64> {
    (total > 0).then(|| part / total as f64)
}

fn percent(part: u64, total: u64) -> Option<f64> {
    ratio(part as f64, total).map(|share| share * 100.0)
}

/// Returns compute time as a share of load and compute time, in the given steps of each block.
fn au(epoch: &EpochRecord, range: Range<usize>) -> Option<f64> {
    let mut load_ns = 0;
    let mut compute_ns = 0;
    for block in epoch.accelerators.iter().flat_map(|accelerator| &accelerator.blocks) {
        let steps = range.start.min(block.steps())..range.end.min(block.steps());
        load_ns += block.load_ns[steps.clone()].iter().sum::<u64>();
        compute_ns += block.compute_ns[steps].iter().sum::<u64>();
    }
    percent(compute_ns, load_ns + compute_ns)
}

/// Computes the differences between accelerators.
fn skew(record: &Record) -> StepTimeSummary {
    let count =
        Scope::whole_epochs(record).map(|scope| scope.epoch.accelerators.len()).min().unwrap_or(0);
    let mut windowed: Vec<f64> = Vec::new();
    let mut busy_s: Vec<f64> = Vec::new();
    for rank in 0..count {
        let mut epochs = Vec::new();
        let mut rank_busy_s = 0.0;
        for scope in Scope::whole_epochs(record) {
            let accelerator = &scope.epoch.accelerators[rank];
            epochs.extend(AU_WINDOWED.accelerator_value(scope, accelerator));
            rank_busy_s += seconds(accelerator.busy_ns());
        }
        windowed.extend(mean(&epochs));
        busy_s.push(rank_busy_s);
    }
    let extremes = min(&busy_s).zip(max(&busy_s)).filter(|(shortest, _)| *shortest > 0.0);
    StepTimeSummary {
        windowed_lowest_percent: min(&windowed),
        windowed_highest_percent: max(&windowed),
        own_time_percent: extremes.map(|(shortest, longest)| (longest / shortest - 1.0) * 100.0),
        ..StepTimeSummary::default()
    }
}

fn min(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::min)
}

fn max(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}
