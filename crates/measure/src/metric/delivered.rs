//! Bytes per second that read calls returned.

use super::{Basis, COMPOSED, Fold, Formula, Metric, MetricId, Unit};
use crate::record::AcceleratorEpoch;
use crate::window::{Scope, per_second};
use feedrate_spec::units::MIB;

/// Read rate in the window.
pub static DELIVERED_WINDOWED: Metric = Metric {
    id: MetricId("delivered_bytes_per_second_windowed"),
    title: "throughput in the window",
    definition: "Bytes that read calls returned between the end of the last step before the window and the end of its last step ÷ that time, \
                 summed over accelerators; mean over the epochs that read in this time",
    path: "throughput.delivered_bytes_per_second.windowed",
    // DLIO's MB are MiB.
    added_as: Some(("train_io_delivered_mean_MB_per_second", MIB)),
    formula: Formula::PerAccelerator(windowed, Fold::Sum, Fold::Mean),
    ..DELIVERED
};

/// Read rate over whole epochs.
pub static DELIVERED_WHOLE: Metric = Metric {
    id: MetricId("delivered_bytes_per_second"),
    title: "throughput",
    axis: "Throughput",
    definition: "Bytes that read calls of all accelerators returned ÷ length of the epochs",
    path: "throughput.delivered_bytes_per_second.whole",
    formula: Formula::PerSecond(|_, accelerator| accelerator.io.read_bytes as f64),
    ..DELIVERED
};

const DELIVERED: Metric =
    Metric { unit: Unit::BytesPerSecond, basis: &[Basis::Steps, Basis::Reads], ..COMPOSED };

/// An accelerator without reads has the rate 0, but if no accelerator reads, the window shows nothing about the storage.
fn windowed(scope: Scope, accelerator: &AcceleratorEpoch) -> Option<f64> {
    let (bytes, ns) = bytes_and_ns(scope, accelerator);
    let reads = |other| bytes_and_ns(scope, other).0 > 0;
    if bytes == 0 && !scope.epoch.accelerators.iter().any(reads) {
        return None;
    }
    per_second(bytes, ns)
}

/// Bytes read in the windows of an accelerator, and their duration in nanoseconds.
fn bytes_and_ns(scope: Scope, accelerator: &AcceleratorEpoch) -> (u64, u64) {
    let mut bytes = 0;
    let mut ns = 0;
    let mut bytes_before_block = 0;
    for (window, block) in scope.windows(accelerator).zip(&accelerator.blocks) {
        if let Some((read_bytes, read_ns)) = window.bytes_and_ns(bytes_before_block) {
            bytes += read_bytes;
            ns += read_ns;
        }
        bytes_before_block = block.read_bytes.last().copied().unwrap_or(bytes_before_block);
    }
    (bytes, ns)
}
