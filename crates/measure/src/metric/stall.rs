//! Where the waits for data went, by what the worker of the awaited batch did meanwhile. The parts sum up to `load_s`.

use super::{
    BARRIER_S, Basis, Better, COMPOSED, COMPUTE_S, Figure, Fold, LOAD_S, Metric, MetricId, Unit,
};
use crate::window::seconds;

/// The share of an accelerator's time.
pub static STALL_PERCENT: Metric = Metric {
    id: MetricId("stall_percent"),
    title: "stall",
    axis: "Stall",
    unit: Unit::Percent,
    better: Better::Lower,
    definition: "load_s ÷ (load_s + compute_s + barrier_s)",
    path: "stall.percent",
    basis: &[Basis::Steps, Basis::Barriers],
    figure: Figure::Derived(|_, value| {
        let load_s = value(&LOAD_S)?;
        let all_s = load_s + value(&COMPUTE_S)? + value(&BARRIER_S)?;
        (all_s > 0.0).then(|| 100.0 * load_s / all_s)
    }),
    ..COMPOSED
};

/// Metadata.
pub static STALL_OPEN: Metric = Metric {
    id: MetricId("stall_open_s"),
    title: "stall on metadata",
    definition: "Part of load_s in which the batch's worker was opening, asking lengths or closing",
    path: "stall.open_s",
    figure: Figure::OfAccelerators(
        |_, accelerator| Some(seconds(accelerator.stall.open_ns)),
        Fold::Mean,
        Fold::Sum,
    ),
    ..STALL
};

/// Storage.
pub static STALL_READ: Metric = Metric {
    id: MetricId("stall_read_s"),
    title: "stall on reads",
    definition: "Part of load_s in which the batch's worker was in read calls",
    path: "stall.read_s",
    figure: Figure::OfAccelerators(
        |_, accelerator| Some(seconds(accelerator.stall.read_ns)),
        Fold::Mean,
        Fold::Sum,
    ),
    ..STALL
};

/// This machine's processors.
pub static STALL_DECODE: Metric = Metric {
    id: MetricId("stall_decode_s"),
    title: "stall on decoding",
    definition: "Part of load_s in which the batch's worker was checking, decoding or unpacking",
    path: "stall.decode_s",
    figure: Figure::OfAccelerators(
        |_, accelerator| Some(seconds(accelerator.stall.decode_ns)),
        Fold::Mean,
        Fold::Sum,
    ),
    ..STALL
};

/// Too few workers, or all of them behind.
pub static STALL_QUEUE: Metric = Metric {
    id: MetricId("stall_queue_s"),
    title: "stall in the queue",
    definition: "Part of load_s in which no worker had begun the batch, or its worker waited for something else",
    path: "stall.queue_s",
    figure: Figure::OfAccelerators(
        |_, accelerator| Some(seconds(accelerator.stall.queue_ns)),
        Fold::Mean,
        Fold::Sum,
    ),
    ..STALL
};

const STALL: Metric =
    Metric { unit: Unit::Seconds, better: Better::Lower, basis: &[Basis::Reads], ..COMPOSED };
