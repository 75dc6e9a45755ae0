//! Where the waits for data went, by what the worker of the awaited batch did meanwhile. The parts sum up to `load_s`.

use super::{Metric, mean_over_accelerators, sum_over_epochs};
use crate::window::seconds;

/// Metadata.
pub static STALL_OPEN: Metric = Metric {
    name: "stall_open_s",
    unit: "s",
    definition: "Part of load_s in which the batch's worker was opening, asking lengths or closing (feedrate).",
    of_accelerator: |_, accelerator| Some(seconds(accelerator.stall.open_ns)),
    of_epoch: |scope| mean_over_accelerators(scope, STALL_OPEN.of_accelerator),
    of_run: |record| sum_over_epochs(record, STALL_OPEN.of_epoch),
};

/// Storage.
pub static STALL_READ: Metric = Metric {
    name: "stall_read_s",
    unit: "s",
    definition: "Part of load_s in which the batch's worker was in read calls (feedrate).",
    of_accelerator: |_, accelerator| Some(seconds(accelerator.stall.read_ns)),
    of_epoch: |scope| mean_over_accelerators(scope, STALL_READ.of_accelerator),
    of_run: |record| sum_over_epochs(record, STALL_READ.of_epoch),
};

/// This machine's processors.
pub static STALL_DECODE: Metric = Metric {
    name: "stall_decode_s",
    unit: "s",
    definition: "Part of load_s in which the batch's worker was checking, decoding or unpacking (feedrate).",
    of_accelerator: |_, accelerator| Some(seconds(accelerator.stall.decode_ns)),
    of_epoch: |scope| mean_over_accelerators(scope, STALL_DECODE.of_accelerator),
    of_run: |record| sum_over_epochs(record, STALL_DECODE.of_epoch),
};

/// Too few workers, or all of them behind.
pub static STALL_QUEUE: Metric = Metric {
    name: "stall_queue_s",
    unit: "s",
    definition: "Part of load_s in which no worker had begun the batch, or its worker waited for something else (feedrate).",
    of_accelerator: |_, accelerator| Some(seconds(accelerator.stall.queue_ns)),
    of_epoch: |scope| mean_over_accelerators(scope, STALL_QUEUE.of_accelerator),
    of_run: |record| sum_over_epochs(record, STALL_QUEUE.of_epoch),
};
