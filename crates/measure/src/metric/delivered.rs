//! Bytes per second that read calls really returned.

use super::{
    Basis, Better, METRIC, Metric, MetricId, Shown, Unit, counters_of_run, mean_over_epochs, rate,
    sum_over_accelerators,
};
use crate::record::AcceleratorEpoch;
use crate::window::{Scope, seconds};
use feedrate_spec::units::MIB;

/// In the window.
pub static DELIVERED_WINDOWED: Metric = Metric {
    id: MetricId("delivered_bytes_per_second_windowed"),
    title: "throughput in the window",
    unit: Unit::BytesPerSecond,
    better: Better::Higher,
    definition: "Bytes that read calls returned between the end of the last step before the window and the end of its last step ÷ that time, \
                 summed over accelerators, mean over epochs",
    path: "throughput.delivered_bytes_per_second.windowed",
    basis: &[Basis::Steps, Basis::Reads],
    shown: Shown::Composed,
    // DLIO's MB are MiB.
    added_as: Some(("train_io_delivered_mean_MB_per_second", MIB)),
    of_accelerator: windowed,
    of_epoch: |scope| sum_over_accelerators(scope, windowed),
    of_run: |record| mean_over_epochs(record, DELIVERED_WINDOWED.of_epoch),
    ..METRIC
};

/// Over whole epochs.
pub static DELIVERED_WHOLE: Metric = Metric {
    id: MetricId("delivered_bytes_per_second"),
    label: "delivered_bytes_per_second_whole",
    title: "throughput",
    unit: Unit::BytesPerSecond,
    better: Better::Higher,
    definition: "Bytes that read calls of all accelerators returned ÷ length of the epochs",
    path: "throughput.delivered_bytes_per_second.whole",
    basis: &[Basis::Steps, Basis::Reads],
    shown: Shown::Composed,
    of_totals: |epochs| rate(epochs, |epoch| epoch.read_bytes),
    of_accelerator: whole,
    of_epoch: |scope| sum_over_accelerators(scope, whole),
    of_run: |record| {
        let wall_s: f64 = Scope::all(record).filter_map(Scope::wall_s).sum();
        (wall_s > 0.0).then(|| counters_of_run(record).read_bytes as f64 / wall_s)
    },
    ..METRIC
};

fn windowed(scope: Scope, accelerator: &AcceleratorEpoch) -> Option<f64> {
    let (mut bytes, mut ns, mut before_bytes) = (0, 0, 0);
    for (window, block) in scope.windows(accelerator).zip(&accelerator.blocks) {
        if let Some((read_bytes, read_ns)) = window.read(before_bytes) {
            bytes += read_bytes;
            ns += read_ns;
        }
        before_bytes = block.read_bytes.last().copied().unwrap_or(before_bytes);
    }
    (ns > 0).then(|| bytes as f64 / seconds(ns))
}

fn whole(scope: Scope, accelerator: &AcceleratorEpoch) -> Option<f64> {
    Some(accelerator.io.read_bytes as f64 / scope.wall_s()?)
}
