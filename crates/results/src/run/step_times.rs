//! How accelerators spent the time of their steps, and how far they differ: numbers of a run that are no metric.

use feedrate_measure::metric::AU_WINDOWED;
use feedrate_measure::record::{EpochRecord, Record};
use feedrate_measure::stats::mean;
use feedrate_measure::window::{Scope, seconds};
use std::ops::Range;

/// Over all steps of all accelerators, in the mean.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepTimeSummary {
    /// Waiting for the data of a step.
    pub load_s_per_step: Option<f64>,
    /// Computing a step.
    pub compute_s_per_step: Option<f64>,
    /// Waiting for data, of the time of the blocks.
    pub load_percent: Option<f64>,
    /// Loading and computing of the first step of a block, which au_windowed leaves out.
    pub first_step_s: Option<f64>,
    /// Part of the waiting in steps that au_windowed leaves out.
    pub excluded_percent: Option<f64>,
    /// Rest of the time of the blocks: neither loading nor computing, so barrier and bookkeeping.
    pub barrier_percent: Option<f64>,
    /// The lowest au_windowed of an accelerator, mean over epochs.
    pub windowed_lowest_percent: Option<f64>,
    /// The highest.
    pub windowed_highest_percent: Option<f64>,
    /// Longest ÷ shortest sum of loading and computing of an accelerator, less 1.
    pub own_time_percent: Option<f64>,
    /// Computing of loading and computing, by epoch: the first step of each block.
    pub first_au_percent: Vec<Option<f64>>,
    /// The same of all later steps.
    pub later_au_percent: Vec<Option<f64>>,
}

impl StepTimeSummary {
    pub(super) fn new(record: &Record) -> Self {
        let excluded = record.plan.metric.exclude_start_steps as usize;
        let (mut steps, mut load_ns, mut compute_ns) = (0, 0, 0);
        let (mut excluded_ns, mut length_ns, mut first_s) = (0, 0, Vec::new());
        let accelerators = Scope::all(record).flat_map(|scope| &scope.epoch.accelerators);
        for block in accelerators.flat_map(|one| &one.blocks) {
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

fn ratio(part: f64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part / whole as f64)
}

fn percent(part: u64, whole: u64) -> Option<f64> {
    ratio(part as f64, whole).map(|share| share * 100.0)
}

/// Computing of loading and computing, of those steps of each block.
fn au(epoch: &EpochRecord, steps: Range<usize>) -> Option<f64> {
    let (mut load_ns, mut compute_ns) = (0, 0);
    for block in epoch.accelerators.iter().flat_map(|accelerator| &accelerator.blocks) {
        let steps = steps.start.min(block.steps())..steps.end.min(block.steps());
        load_ns += block.load_ns[steps.clone()].iter().sum::<u64>();
        compute_ns += block.compute_ns[steps].iter().sum::<u64>();
    }
    percent(compute_ns, load_ns + compute_ns)
}

fn skew(record: &Record) -> StepTimeSummary {
    let count = Scope::all(record).map(|scope| scope.epoch.accelerators.len()).min().unwrap_or(0);
    let (mut windowed, mut own_s): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    for rank in 0..count {
        let (mut of_epochs, mut rank_s) = (Vec::new(), 0.0);
        for scope in Scope::all(record) {
            let one = &scope.epoch.accelerators[rank];
            of_epochs.extend(AU_WINDOWED.accelerator_value(scope, one));
            rank_s += seconds(one.busy_ns());
        }
        windowed.extend(mean(&of_epochs));
        own_s.push(rank_s);
    }
    let longest_to_shortest = least(&own_s).zip(most(&own_s)).filter(|(least, _)| *least > 0.0);
    StepTimeSummary {
        windowed_lowest_percent: least(&windowed),
        windowed_highest_percent: most(&windowed),
        own_time_percent: longest_to_shortest.map(|(least, most)| (most / least - 1.0) * 100.0),
        ..StepTimeSummary::default()
    }
}

fn least(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::min)
}

fn most(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}
