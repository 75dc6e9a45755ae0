//! Accelerator utilisation by the definition of DLIO and MLPerf Storage: only the steps in the window count.

use super::{Basis, COMPOSED, Fold, Formula, Metric, MetricId, Unit};
use crate::record::AcceleratorEpoch;
use crate::window::{Scope, Window};

/// The metric.
pub static AU_WINDOWED: Metric = Metric {
    id: MetricId("au_windowed_percent"),
    label: "au_windowed",
    title: "windowed utilisation",
    axis: "AU, windowed",
    unit: Unit::Percent,
    definition: "Compute time of the steps in the window ÷ (length of the block − load and compute time of the excluded steps), blocks \
                 weighted by their steps, mean over accelerators and epochs",
    source: "DLIO, statscounter.py; MLPerf Storage's AU",
    path: "au.windowed_percent",
    basis: &[Basis::Steps],
    reported_as: Some(("train_au_mean_percentage", 1.0)),
    formula: Formula::PerAccelerator(utilisation_percent, Fold::Mean, Fold::Mean),
    ..COMPOSED
};

/// Computes the utilisation of one block in percent; `None` if its window is empty.
pub fn block_au_percent(window: Window) -> Option<f64> {
    Some(window.compute_ns() as f64 / window.time_ns()? as f64 * 100.0)
}

/// Blocks with an empty window do not count.
fn utilisation_percent(scope: Scope, accelerator: &AcceleratorEpoch) -> Option<f64> {
    scope.mean_weighted_by_steps(accelerator, block_au_percent)
}
