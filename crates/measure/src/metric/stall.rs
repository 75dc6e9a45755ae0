//! Where the waits for data went, by what the worker of the awaited batch did meanwhile. The parts sum up to `load_s`.

use super::{
    BARRIER_S, Basis, Better, COMPUTE_S, LOAD_S, METRIC, Metric, MetricId, Shown, Unit,
    mean_over_accelerators, sum_over_epochs,
};
use crate::window::seconds;

/// The share of an accelerator's time.
pub static STALL_PERCENT: Metric = Metric {
    id: MetricId("stall_percent"),
    title: "stall",
    unit: Unit::Percent,
    better: Better::Lower,
    definition: "load_s ÷ (load_s + compute_s + barrier_s)",
    path: "stall.percent",
    basis: &[Basis::Steps, Basis::Barriers],
    shown: Shown::Composed,
    of_accelerator: |scope, accelerator| percent(|part| (part.of_accelerator)(scope, accelerator)),
    of_epoch: |scope| percent(|part| (part.of_epoch)(scope)),
    of_run: |record| percent(|part| (part.of_run)(record)),
    ..METRIC
};

fn percent(value: impl Fn(&Metric) -> Option<f64>) -> Option<f64> {
    let load_s = value(&LOAD_S)?;
    let all_s = load_s + value(&COMPUTE_S)? + value(&BARRIER_S)?;
    (all_s > 0.0).then(|| 100.0 * load_s / all_s)
}

/// Metadata.
pub static STALL_OPEN: Metric = Metric {
    id: MetricId("stall_open_s"),
    title: "stall on metadata",
    unit: Unit::Seconds,
    better: Better::Lower,
    definition: "Part of load_s in which the batch's worker was opening, asking lengths or closing",
    path: "stall.open_s",
    basis: &[Basis::Reads],
    shown: Shown::Composed,
    of_accelerator: |_, accelerator| Some(seconds(accelerator.stall.open_ns)),
    of_epoch: |scope| mean_over_accelerators(scope, STALL_OPEN.of_accelerator),
    of_run: |record| sum_over_epochs(record, STALL_OPEN.of_epoch),
    ..METRIC
};

/// Storage.
pub static STALL_READ: Metric = Metric {
    id: MetricId("stall_read_s"),
    title: "stall on reads",
    unit: Unit::Seconds,
    better: Better::Lower,
    definition: "Part of load_s in which the batch's worker was in read calls",
    path: "stall.read_s",
    basis: &[Basis::Reads],
    shown: Shown::Composed,
    of_accelerator: |_, accelerator| Some(seconds(accelerator.stall.read_ns)),
    of_epoch: |scope| mean_over_accelerators(scope, STALL_READ.of_accelerator),
    of_run: |record| sum_over_epochs(record, STALL_READ.of_epoch),
    ..METRIC
};

/// This machine's processors.
pub static STALL_DECODE: Metric = Metric {
    id: MetricId("stall_decode_s"),
    title: "stall on decoding",
    unit: Unit::Seconds,
    better: Better::Lower,
    definition: "Part of load_s in which the batch's worker was checking, decoding or unpacking",
    path: "stall.decode_s",
    basis: &[Basis::Reads],
    shown: Shown::Composed,
    of_accelerator: |_, accelerator| Some(seconds(accelerator.stall.decode_ns)),
    of_epoch: |scope| mean_over_accelerators(scope, STALL_DECODE.of_accelerator),
    of_run: |record| sum_over_epochs(record, STALL_DECODE.of_epoch),
    ..METRIC
};

/// Too few workers, or all of them behind.
pub static STALL_QUEUE: Metric = Metric {
    id: MetricId("stall_queue_s"),
    title: "stall in the queue",
    unit: Unit::Seconds,
    better: Better::Lower,
    definition: "Part of load_s in which no worker had begun the batch, or its worker waited for something else",
    path: "stall.queue_s",
    basis: &[Basis::Reads],
    shown: Shown::Composed,
    of_accelerator: |_, accelerator| Some(seconds(accelerator.stall.queue_ns)),
    of_epoch: |scope| mean_over_accelerators(scope, STALL_QUEUE.of_accelerator),
    of_run: |record| sum_over_epochs(record, STALL_QUEUE.of_epoch),
    ..METRIC
};
