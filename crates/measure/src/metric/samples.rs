//! Samples trained on per second.

use super::{
    Basis, Better, METRIC, Metric, MetricId, Shown, Unit, mean_over_epochs, rate,
    sum_over_accelerators,
};
use crate::record::AcceleratorEpoch;
use crate::window::{Scope, Window, seconds};

/// DLIO's `train_throughput_samples_per_second`, with the steps counted right.
pub static SAMPLES_WINDOWED: Metric = Metric {
    id: MetricId("samples_per_second_windowed"),
    title: "samples per second in the window",
    unit: Unit::SamplesPerSecond,
    better: Better::Higher,
    definition: "Steps in the window × batch size ÷ (length of the block − load and compute time of the steps left out), blocks weighted by \
                 their steps, summed over accelerators, mean over epochs",
    source: "DLIO's definition; DLIO counts two steps too few, whatever is left out",
    path: "throughput.samples_per_second.windowed",
    basis: &[Basis::Steps, Basis::AllRanks, Basis::BatchSize],
    shown: Shown::Composed,
    reported_as: Some(("train_throughput_mean_samples_per_second", 1.0)),
    of_accelerator: windowed,
    of_epoch: |scope| sum_over_accelerators(scope, windowed),
    of_run: |record| mean_over_epochs(record, SAMPLES_WINDOWED.of_epoch),
    ..METRIC
};

/// Over whole epochs.
pub static SAMPLES_WHOLE: Metric = Metric {
    id: MetricId("samples_per_second"),
    label: "samples_per_second_whole",
    title: "samples per second",
    unit: Unit::SamplesPerSecond,
    better: Better::Higher,
    definition: "Samples of all finished steps of all accelerators ÷ length of the epochs",
    path: "throughput.samples_per_second.whole",
    basis: &[Basis::Steps, Basis::AllRanks, Basis::BatchSize],
    shown: Shown::Composed,
    of_totals: |epochs| rate(epochs, |epoch| epoch.samples),
    of_accelerator: whole,
    of_epoch: |scope| sum_over_accelerators(scope, whole),
    of_run: |record| {
        let (mut all_samples, mut wall_s) = (0.0, 0.0);
        for scope in Scope::all(record) {
            all_samples += scope.epoch.accelerators.iter().map(|a| samples(scope, a)).sum::<f64>();
            wall_s += scope.wall_s().unwrap_or(0.0);
        }
        (wall_s > 0.0).then(|| all_samples / wall_s)
    },
    ..METRIC
};

/// Rate of one block; `None` if no step is in its window.
pub fn block_samples_per_second(scope: Scope, window: Window) -> Option<f64> {
    Some(window.steps() as f64 / seconds(window.time_ns()?) * scope.plan.loader.batch_size as f64)
}

/// Blocks without a window have no say.
fn windowed(scope: Scope, accelerator: &AcceleratorEpoch) -> Option<f64> {
    let (mut weighted, mut steps) = (0.0, 0.0);
    for window in scope.windows(accelerator) {
        if let Some(rate) = block_samples_per_second(scope, window) {
            weighted += rate * window.block_steps() as f64;
            steps += window.block_steps() as f64;
        }
    }
    (steps > 0.0).then(|| weighted / steps)
}

fn whole(scope: Scope, accelerator: &AcceleratorEpoch) -> Option<f64> {
    Some(samples(scope, accelerator) / scope.wall_s()?)
}

fn samples(scope: Scope, accelerator: &AcceleratorEpoch) -> f64 {
    (accelerator.steps() * scope.plan.loader.batch_size) as f64
}
