//! Where the waits went, for data and for others, by what the last accelerator of each step waited for. The parts sum up to `load_s` and
//! `barrier_s`; of records that do not tell who was last, each accelerator's own wait for data is split, and they sum up to `load_s`.

use super::{
    BARRIER_S, Basis, Better, COMPOSED, COMPUTE_S, Figure, Fold, LOAD_S, Metric, MetricId, Unit,
};
use crate::record::Stall;
use crate::window::{Scope, seconds};

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
    definition: "Part of load_s and barrier_s in which the last accelerator of the step waited for opening, asking lengths or closing",
    path: "stall.open_s",
    figure: Figure::OfEpochs(|scope| part_s(scope, |stall| stall.open_ns), Fold::Sum),
    ..STALL
};

/// Storage.
pub static STALL_READ: Metric = Metric {
    id: MetricId("stall_read_s"),
    title: "stall on reads",
    definition: "Part of load_s and barrier_s in which the last accelerator of the step waited for read calls",
    path: "stall.read_s",
    figure: Figure::OfEpochs(|scope| part_s(scope, |stall| stall.read_ns), Fold::Sum),
    ..STALL
};

/// This machine's processors.
pub static STALL_DECODE: Metric = Metric {
    id: MetricId("stall_decode_s"),
    title: "stall on decoding",
    definition: "Part of load_s and barrier_s in which the last accelerator of the step waited for checking, decoding or unpacking",
    path: "stall.decode_s",
    figure: Figure::OfEpochs(|scope| part_s(scope, |stall| stall.decode_ns), Fold::Sum),
    ..STALL
};

/// The job's own code.
pub static STALL_CLIENT: Metric = Metric {
    id: MetricId("stall_client_s"),
    title: "stall on the client",
    definition: "Part of load_s and barrier_s in which the last accelerator of the step waited for the client's own work; where the workload gives it none, there is no value",
    path: "stall.client_s",
    figure: Figure::OfEpochs(
        |scope| {
            scope.plan.loader.client.as_ref()?;
            part_s(scope, |stall| stall.client_ns)
        },
        Fold::Sum,
    ),
    ..STALL
};

/// Too few workers, or all of them behind.
pub static STALL_QUEUE: Metric = Metric {
    id: MetricId("stall_queue_s"),
    title: "stall in the queue",
    definition: "Part of load_s and barrier_s in which no worker had begun the batch of the step's last accelerator, or its worker waited for something else",
    path: "stall.queue_s",
    figure: Figure::OfEpochs(|scope| part_s(scope, |stall| stall.queue_ns), Fold::Sum),
    ..STALL
};

/// The others.
pub static STALL_SKEW: Metric = Metric {
    id: MetricId("stall_skew_s"),
    title: "stall on slower accelerators",
    definition: "Part of load_s and barrier_s in which the last accelerator of the step had its batch: it computed longer, or the processes took time to meet",
    path: "stall.skew_s",
    figure: Figure::OfEpochs(
        |scope| mean_s(scope, scope.epoch.causes.as_ref()?.totals_ns().1),
        Fold::Sum,
    ),
    ..STALL
};

const STALL: Metric =
    Metric { unit: Unit::Seconds, better: Better::Lower, basis: &[Basis::Reads], ..COMPOSED };

fn part_s(scope: Scope, part: fn(&Stall) -> u64) -> Option<f64> {
    let own = scope.epoch.accelerators.iter().map(|accelerator| part(&accelerator.stall));
    let causes = scope.epoch.causes.as_ref();
    mean_s(scope, causes.map_or_else(|| own.sum(), |causes| part(&causes.totals_ns().0)))
}

/// The mean of an accelerator, where all together waited for `ns`.
fn mean_s(scope: Scope, ns: u64) -> Option<f64> {
    let accelerators = scope.epoch.accelerators.len();
    (accelerators > 0).then(|| seconds(ns) / accelerators as f64)
}
