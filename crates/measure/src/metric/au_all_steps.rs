//! Accelerator utilisation over every step: what really happened.

use super::{Metric, mean_over_accelerators, mean_over_epochs};
use crate::record::AcceleratorEpoch;
use crate::window::Scope;

/// The metric.
pub static AU_ALL_STEPS: Metric = Metric {
    name: "au_all_steps",
    unit: "percent",
    definition: "Compute time of all steps ÷ length of their blocks, nothing excluded, mean over accelerators and epochs (feedrate).",
    of_accelerator,
    of_epoch: |scope| mean_over_accelerators(scope, of_accelerator),
    of_run: |record| mean_over_epochs(record, AU_ALL_STEPS.of_epoch),
};

fn of_accelerator(_: Scope, accelerator: &AcceleratorEpoch) -> Option<f64> {
    let (mut compute_ns, mut length_ns) = (0u64, 0u64);
    for block in accelerator.blocks.iter().filter(|block| block.steps() > 0) {
        compute_ns += block.compute_ns.iter().sum::<u64>();
        length_ns += block.end_ns.checked_sub(block.start_ns)?;
    }
    (length_ns > 0).then(|| compute_ns as f64 / length_ns as f64 * 100.0)
}
