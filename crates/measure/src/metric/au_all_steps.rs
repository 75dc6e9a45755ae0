//! Accelerator utilisation over all steps.

use super::sums::Portion;
use super::{Basis, COMPOSED, Formula, Metric, MetricId, Unit};
use crate::record::AcceleratorEpoch;

/// The metric.
pub static AU_ALL_STEPS: Metric = Metric {
    id: MetricId("au_all_steps_percent"),
    label: "au_all_steps",
    title: "utilisation over all steps",
    axis: "AU, all steps",
    unit: Unit::Percent,
    definition: "Compute time of all steps ÷ length of their blocks, nothing excluded, totals over accelerators and epochs",
    path: "au.all_steps_percent",
    basis: &[Basis::Steps],
    added_as: Some(("train_au_all_steps_percentage", 1.0)),
    formula: Formula::Percent(compute_portion),
    ..COMPOSED
};

fn compute_portion(accelerator: &AcceleratorEpoch) -> Option<Portion> {
    let mut part_ns = 0;
    let mut whole_ns = 0;
    for block in accelerator.blocks.iter().filter(|block| block.steps() > 0) {
        part_ns += block.compute_ns.iter().sum::<u64>();
        whole_ns += block.end_ns.checked_sub(block.start_ns)?;
    }
    (whole_ns > 0).then_some(Portion { part_ns, whole_ns })
}
