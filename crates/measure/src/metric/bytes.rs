//! Bytes that training read, and bytes that the device gave for it.

use super::{Metric, sum_over_accelerators, sum_over_epochs};

/// What read calls returned.
pub static LOGICAL_BYTES: Metric = Metric {
    name: "logical_bytes",
    unit: "bytes",
    definition: "Bytes that the loaders' read calls returned, over accelerators and epochs (feedrate).",
    of_accelerator: |_, accelerator| Some(accelerator.io.read_bytes as f64),
    of_epoch: |scope| sum_over_accelerators(scope, LOGICAL_BYTES.of_accelerator),
    of_run: |record| sum_over_epochs(record, LOGICAL_BYTES.of_epoch),
};

/// What came from storage. Unknown where the kernel does not say.
pub static DEVICE_BYTES: Metric = Metric {
    name: "device_bytes",
    unit: "bytes",
    definition: "Bytes that this process caused to be fetched from storage during the epochs, readahead included (read_bytes of /proc/self/io, proc(5)).",
    of_accelerator: |_, _| None,
    of_epoch: |scope| {
        let bytes = scope.epoch.host.process_device_read_bytes.filter(|_| scope.is_whole());
        bytes.map(|bytes| bytes as f64)
    },
    of_run: |record| sum_over_epochs(record, DEVICE_BYTES.of_epoch),
};
