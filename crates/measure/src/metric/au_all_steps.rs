//! Accelerator utilisation over all steps.

use super::{Basis, COMPOSED, Fold, Formula, Metric, MetricId, Unit};
use crate::record::AcceleratorEpoch;
use crate::window::Scope;

/// The metric.
pub static AU_ALL_STEPS: Metric = Metric {
    id: MetricId("au_all_steps_percent"),
    label: "au_all_steps",
    title: "utilisation over all steps",
    axis: "AU, all steps",
    unit: Unit::Percent,
    definition: "Compute time of all steps ÷ length of their blocks, nothing excluded, mean over accelerators and epochs",
    path: "au.all_steps_percent",
    basis: &[Basis::Steps],
    added_as: Some(("train_au_all_steps_percentage", 1.0)),
    formula: Formula::PerAccelerator(utilisation_percent, Fold::Mean, Fold::Mean),
    ..COMPOSED
};

fn utilisation_percent(_: Scope, accelerator: &AcceleratorEpoch) -> Option<f64> {
    let mut compute_ns = 0u64;
    let mut length_ns = 0u64;
    for block in accelerator.blocks.iter().filter(|block| block.steps() > 0) {
        compute_ns += block.compute_ns.iter().sum::<u64>();
        length_ns += block.end_ns.checked_sub(block.start_ns)?;
    }
    (length_ns > 0).then(|| compute_ns as f64 / length_ns as f64 * 100.0)
}
