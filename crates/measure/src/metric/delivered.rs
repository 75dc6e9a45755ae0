//! Bytes per second that read calls returned.

use super::{Basis, COMPOSED, Figure, Fold, Metric, MetricId, Unit};
use crate::record::AcceleratorEpoch;
use crate::window::{Scope, per_second};
use feedrate_spec::units::MIB;

/// In the window.
pub static DELIVERED_WINDOWED: Metric = Metric {
    id: MetricId("delivered_bytes_per_second_windowed"),
    title: "bandwidth in the window",
    definition: "Bytes that read calls returned between the end of the last step before the window and the end of its last step ÷ that time, \
                 summed over accelerators, mean over epochs",
    path: "throughput.delivered_bytes_per_second.windowed",
    // DLIO's MB are MiB.
    added_as: Some(("train_io_delivered_mean_MB_per_second", MIB)),
    figure: Figure::PerAccelerator(windowed, Fold::Sum, Fold::Mean),
    ..DELIVERED
};

/// Over whole epochs.
pub static DELIVERED_WHOLE: Metric = Metric {
    id: MetricId("delivered_bytes_per_second"),
    label: "delivered_bytes_per_second_whole",
    title: "throughput",
    axis: "Throughput",
    definition: "Bytes that read calls of all accelerators returned ÷ length of the epochs",
    path: "throughput.delivered_bytes_per_second.whole",
    figure: Figure::PerSecond(|_, accelerator| accelerator.io.read_bytes as f64),
    ..DELIVERED
};

const DELIVERED: Metric =
    Metric { unit: Unit::BytesPerSecond, basis: &[Basis::Steps, Basis::Reads], ..COMPOSED };

fn windowed(scope: Scope, accelerator: &AcceleratorEpoch) -> Option<f64> {
    let mut bytes = 0;
    let mut ns = 0;
    let mut before_bytes = 0;
    for (window, block) in scope.windows(accelerator).zip(&accelerator.blocks) {
        if let Some((read_bytes, read_ns)) = window.read(before_bytes) {
            bytes += read_bytes;
            ns += read_ns;
        }
        before_bytes = block.read_bytes.last().copied().unwrap_or(before_bytes);
    }
    per_second(bytes, ns)
}
