//! The utilisation that the pipeline can sustain: the rate of reading relative to the rate that full utilisation needs.
//!
//! Batches that are loaded in advance during step 1 do not count, nor does their consumption at the end. Pauses between blocks are excluded.

use super::{Basis, COMPOSED, Fold, Formula, Metric, MetricId, Unit};
use crate::record::AcceleratorEpoch;
use crate::window::{Scope, seconds, step_end_ns};
use feedrate_spec::plan::Plan;

/// The metric.
pub static AU_SUSTAINED: Metric = Metric {
    id: MetricId("au_sustained_percent"),
    label: "au_sustained",
    title: "sustained utilisation",
    axis: "AU, sustained",
    unit: Unit::Percent,
    definition: "min(1, batches read per second by all loaders × mean compute time ÷ accelerators), measured from the end of the excluded \
                 steps to the last step that ends before the loaders start their last read, without pauses between blocks; mean over the epochs that have enough steps",
    path: "au.sustained_percent",
    basis: &[Basis::Steps, Basis::Reads],
    added_as: Some(("train_au_sustained_percentage", 1.0)),
    formula: Formula::PerEpoch(|scope| sustained_percent(scope).ok(), Fold::Mean),
    ..COMPOSED
};

/// Reason why the sustained utilisation of an epoch is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotMeasurable {
    /// The epoch has fewer steps than [`sustained_needs_steps`].
    TooFewSteps,
    /// The reads are unknown, as in a watched training loop.
    ReadsUnknown,
    /// The loaders read no bytes.
    NothingRead,
    /// Reading ended before the excluded steps did.
    NoWindow,
}

/// Number of steps that an epoch needs for [`AU_SUSTAINED`]: four times the batches that the loader reads in advance.
pub fn sustained_needs_steps(plan: &Plan) -> u64 {
    plan.stock_batches().saturating_mul(4).max(plan.metric.exclude_start_steps.saturating_add(2))
}

/// Computes the sustained utilisation of one epoch, in percent.
///
/// # Errors
/// The reason why it cannot be measured.
pub fn sustained_percent(scope: Scope) -> Result<f64, NotMeasurable> {
    let accelerators = &scope.epoch.accelerators;
    if scope.is_watched {
        return Err(NotMeasurable::ReadsUnknown);
    }
    let mut sum = 0.0;
    for accelerator in accelerators {
        sum += uncapped_utilisation(scope, accelerator)?;
    }
    match accelerators.len() {
        0 => Err(NotMeasurable::TooFewSteps),
        _ if !scope.is_whole() => Err(NotMeasurable::NoWindow),
        count => Ok((sum / count as f64).min(1.0) * 100.0),
    }
}

/// Batches read per second × mean compute time. It may exceed 1: in the mean, fast loaders make up for slow loaders.
fn uncapped_utilisation(
    scope: Scope,
    accelerator: &AcceleratorEpoch,
) -> Result<f64, NotMeasurable> {
    let steps = accelerator.steps();
    if steps < sustained_needs_steps(scope.plan) {
        return Err(NotMeasurable::TooFewSteps);
    }
    let io = &accelerator.io;
    // Samples served from memory do not show what the storage can sustain.
    if io.read_bytes == 0 || io.samples == 0 || io.memory_bytes > 0 {
        return Err(NotMeasurable::NothingRead);
    }
    let window = steady_reads(scope, accelerator).ok_or(NotMeasurable::NoWindow)?;
    let batches = accelerator.io.samples as f64 / scope.plan.loader.batch_size as f64;
    let batches_read = window.bytes as f64 * batches / io.read_bytes as f64;
    let compute_ns: u64 = accelerator.blocks.iter().flat_map(|block| &block.compute_ns).sum();
    Ok(batches_read / seconds(window.ns) * seconds(compute_ns) / steps as f64)
}

/// Steps, bytes and duration without pauses of the part of an epoch in which reading is steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SteadyReads {
    pub(crate) steps: u64,
    pub(crate) bytes: u64,
    pub(crate) ns: u64,
}

/// Returns the reads within the window of the sustained utilisation.
///
/// The window starts and ends at the end of a step. An unfinished read is therefore missing at both ends, and these errors cancel. They
/// would not cancel if the window ended at the start of the last read.
pub(crate) fn steady_reads(scope: Scope, accelerator: &AcceleratorEpoch) -> Option<SteadyReads> {
    let last_read_ns = accelerator.last_read_start_ns?;
    let mut steps_to_exclude = scope.plan.metric.exclude_start_steps;
    let mut pauses_ns = 0;
    let mut steps = 0;
    let mut previous_end_ns = None;
    let mut start: Option<StepEnd> = None;
    let mut end: Option<StepEnd> = None;
    for block in &accelerator.blocks {
        pauses_ns += previous_end_ns.map_or(0, |end_ns| block.start_ns.saturating_sub(end_ns));
        previous_end_ns = Some(block.end_ns);
        let mut now_ns = step_end_ns(block, 0);
        if steps_to_exclude == 0 && start.is_none() {
            start = Some(StepEnd { steps, ns: now_ns - pauses_ns, bytes: 0 });
        }
        let times = block.load_ns.iter().zip(&block.compute_ns).zip(&block.barrier_ns);
        for (((load, compute), barrier), &bytes) in times.zip(&block.read_bytes) {
            now_ns += load + compute + barrier;
            steps += 1;
            let step_end = StepEnd { steps, ns: now_ns.saturating_sub(pauses_ns), bytes };
            match steps_to_exclude {
                0 if now_ns <= last_read_ns => end = Some(step_end),
                1 => start = Some(step_end),
                _ => {}
            }
            steps_to_exclude = steps_to_exclude.saturating_sub(1);
        }
    }
    let start = start?;
    let end = end?;
    let ns = end.ns.checked_sub(start.ns).filter(|&ns| ns > 0)?;
    // Steps without reads, as of samples from one long read, do not show what the storage can sustain.
    let bytes = end.bytes.checked_sub(start.bytes).filter(|bytes| *bytes > 0)?;
    Some(SteadyReads { steps: end.steps - start.steps, bytes, ns })
}

/// The end of a step: steps so far, time without pauses, and bytes read so far.
#[derive(Clone, Copy)]
struct StepEnd {
    steps: u64,
    ns: u64,
    bytes: u64,
}
