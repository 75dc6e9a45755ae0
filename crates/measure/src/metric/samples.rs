//! Samples per second of training.

use super::{Basis, COMPOSED, Fold, Formula, Metric, MetricId, Unit};
use crate::record::AcceleratorEpoch;
use crate::window::{Scope, Window, seconds};

/// DLIO's `train_throughput_samples_per_second`, with a corrected number of steps.
pub static SAMPLES_WINDOWED: Metric = Metric {
    id: MetricId("samples_per_second_windowed"),
    title: "throughput in the window",
    definition: "Steps in the window × batch size ÷ (length of the block − load and compute time of the excluded steps), blocks weighted by \
                 their steps, summed over accelerators, mean over epochs",
    source: "DLIO's definition; DLIO always counts two steps less than the block has, regardless of the excluded steps",
    path: "throughput.samples_per_second.windowed",
    reported_as: Some(("train_throughput_mean_samples_per_second", 1.0)),
    formula: Formula::PerAccelerator(windowed, Fold::Sum, Fold::Mean),
    ..SAMPLES
};

/// Rate over whole epochs.
pub static SAMPLES_WHOLE: Metric = Metric {
    id: MetricId("samples_per_second"),
    title: "throughput",
    axis: "Throughput",
    definition: "Samples of all finished steps of all accelerators ÷ length of the epochs",
    path: "throughput.samples_per_second.whole",
    formula: Formula::PerSecond(|scope, accelerator| {
        (accelerator.steps() * scope.plan.loader.batch_size) as f64
    }),
    ..SAMPLES
};

const SAMPLES: Metric = Metric {
    unit: Unit::SamplesPerSecond,
    basis: &[Basis::Steps, Basis::AllRanks, Basis::BatchSize],
    ..COMPOSED
};

/// Computes the rate of one block; `None` if its window is empty.
pub fn block_samples_per_second(scope: Scope, window: Window) -> Option<f64> {
    Some(window.steps() as f64 / seconds(window.time_ns()?) * scope.plan.loader.batch_size as f64)
}

/// Blocks with an empty window do not count.
fn windowed(scope: Scope, accelerator: &AcceleratorEpoch) -> Option<f64> {
    scope.mean_weighted_by_steps(accelerator, |window| block_samples_per_second(scope, window))
}
