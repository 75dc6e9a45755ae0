//! Bytes that training read, and bytes that the device gave for it.

use super::{
    Basis, Better, METRIC, Metric, MetricId, Shown, Unit, sum_over_accelerators, sum_over_epochs,
};

/// Bytes that read calls returned.
pub static LOGICAL_BYTES: Metric = Metric {
    id: MetricId("logical_bytes"),
    title: "bytes read",
    unit: Unit::Bytes,
    better: Better::Lower,
    definition: "Bytes that the loaders' read calls returned, over accelerators and epochs",
    path: "bytes.logical",
    basis: &[Basis::Reads],
    shown: Shown::Composed,
    of_accelerator: |_, accelerator| Some(accelerator.io.read_bytes as f64),
    of_epoch: |scope| sum_over_accelerators(scope, LOGICAL_BYTES.of_accelerator),
    of_run: |record| sum_over_epochs(record, LOGICAL_BYTES.of_epoch),
    ..METRIC
};

/// Bytes that came from storage. Unknown where the kernel does not say.
pub static DEVICE_BYTES: Metric = Metric {
    id: MetricId("device_bytes"),
    title: "bytes from the device",
    unit: Unit::Bytes,
    better: Better::Lower,
    definition: "Bytes that this process caused to be fetched from storage during the epochs, readahead included",
    source: "read_bytes of /proc/self/io, proc(5)",
    path: "bytes.device",
    basis: &[Basis::Host],
    shown: Shown::Composed,
    of_epoch: |scope| {
        let bytes = scope.epoch.host.process_device_read_bytes?;
        scope.is_whole().then_some(bytes as f64)
    },
    of_run: |record| sum_over_epochs(record, DEVICE_BYTES.of_epoch),
    ..METRIC
};
