//! Bytes that training read, and bytes that came from the device.

use super::{Basis, Better, COMPOSED, Fold, Formula, Metric, MetricId, Unit};

/// Bytes that read calls returned.
pub static LOGICAL_BYTES: Metric = Metric {
    id: MetricId("logical_bytes"),
    title: "bytes read",
    definition: "Bytes that the loaders' read calls returned, over accelerators and epochs",
    path: "bytes.logical",
    basis: &[Basis::Reads],
    formula: Formula::PerAccelerator(
        |_, accelerator| Some(accelerator.io.read_bytes as f64),
        Fold::Sum,
        Fold::Sum,
    ),
    ..BYTES
};

/// Bytes that came from storage. Unknown if the kernel does not report them.
pub static DEVICE_BYTES: Metric = Metric {
    id: MetricId("device_bytes"),
    title: "bytes from the device",
    definition: "Bytes that this process caused to be fetched from storage during the epochs, readahead included",
    source: "read_bytes of /proc/self/io, proc(5)",
    path: "bytes.device",
    basis: &[Basis::Host],
    formula: Formula::PerEpoch(
        |scope| Some(scope.epoch.host.process_device_read_bytes? as f64),
        Fold::Sum,
    ),
    ..BYTES
};

const BYTES: Metric = Metric { unit: Unit::Bytes, better: Better::Lower, ..COMPOSED };
