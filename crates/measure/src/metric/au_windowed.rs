//! DLIO's and MLPerf Storage's accelerator utilisation: the steps in the window only.

use super::{
    Basis, Better, METRIC, Metric, MetricId, Shown, Unit, mean_over_accelerators, mean_over_epochs,
};
use crate::record::AcceleratorEpoch;
use crate::window::{Scope, Window};

/// The metric.
pub static AU_WINDOWED: Metric = Metric {
    id: MetricId("au_windowed_percent"),
    label: "au_windowed",
    title: "windowed utilisation",
    unit: Unit::Percent,
    better: Better::Higher,
    definition: "Compute time of the steps in the window ÷ (length of the block − load and compute time of the steps left out), blocks \
                 weighted by their steps, mean over accelerators and epochs",
    source: "DLIO, statscounter.py; MLPerf Storage's AU",
    path: "au.windowed_percent",
    basis: &[Basis::Steps],
    shown: Shown::Composed,
    reported_as: Some(("train_au_mean_percentage", 1.0)),
    of_accelerator,
    of_epoch: |scope| mean_over_accelerators(scope, of_accelerator),
    of_run: |record| mean_over_epochs(record, AU_WINDOWED.of_epoch),
    ..METRIC
};

/// Utilisation of one block; `None` if no step is in its window.
pub fn block_au_percent(window: Window) -> Option<f64> {
    Some(window.compute_ns() as f64 / window.time_ns()? as f64 * 100.0)
}

/// Blocks without a window have no say.
fn of_accelerator(scope: Scope, accelerator: &AcceleratorEpoch) -> Option<f64> {
    let (mut weighted, mut steps) = (0.0, 0.0);
    for window in scope.windows(accelerator) {
        if let Some(au) = block_au_percent(window) {
            weighted += au * window.block_steps() as f64;
            steps += window.block_steps() as f64;
        }
    }
    (steps > 0.0).then(|| weighted / steps)
}
