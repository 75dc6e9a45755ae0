//! Waiting time by cause. In each step, all waits for data and for other accelerators are attributed to what the last accelerator waited
//! for, so the causes add up to `load_s + barrier_s`. If a record does not name the last accelerators, only each accelerator's own wait for
//! data is split, and the causes add up to `load_s`.

use super::{
    BARRIER_S, Basis, Better, COMPOSED, COMPUTE_S, Fold, Formula, LOAD_S, Metric, MetricId, Unit,
};
use crate::record::{IoCounters, Stall};
use crate::window::{Scope, seconds};
use feedrate_spec::plan::LoaderPlan;

/// Share of an accelerator's time spent waiting for data.
pub static STALL_PERCENT: Metric = Metric {
    id: MetricId("stall_percent"),
    title: "stall",
    axis: "Stall",
    unit: Unit::Percent,
    better: Better::Lower,
    definition: "load_s ÷ (load_s + compute_s + barrier_s)",
    path: "stall.percent",
    basis: &[Basis::Steps, Basis::Barriers],
    formula: Formula::FromMetrics(|_, value| {
        let load_s = value(&LOAD_S)?;
        let total_s = load_s + value(&COMPUTE_S)? + value(&BARRIER_S)?;
        (total_s > 0.0).then(|| 100.0 * load_s / total_s)
    }),
    ..COMPOSED
};

/// Waits for metadata operations.
pub static STALL_OPEN: Metric = Metric {
    id: MetricId("stall_open_s"),
    title: "stall on metadata",
    definition: "Part of load_s and barrier_s in which the last accelerator of the step waited for opening or closing files or querying their lengths",
    path: "stall.open_s",
    formula: Formula::PerEpoch(|scope| cause_s(scope, |stall| stall.open_ns), Fold::Sum),
    ..STALL
};

/// Waits for reads.
pub static STALL_READ: Metric = Metric {
    id: MetricId("stall_read_s"),
    title: "stall on reads",
    definition: "Part of load_s and barrier_s in which the last accelerator of the step waited for read calls",
    path: "stall.read_s",
    formula: Formula::PerEpoch(|scope| cause_s(scope, |stall| stall.read_ns), Fold::Sum),
    ..STALL
};

/// Waits for decoding by this machine's processors.
pub static STALL_DECODE: Metric = Metric {
    id: MetricId("stall_decode_s"),
    title: "stall on decoding",
    definition: "Part of load_s and barrier_s in which the last accelerator of the step waited for checking, decoding or unpacking, other than the client's",
    path: "stall.decode_s",
    formula: Formula::PerEpoch(
        |scope| {
            let decode_s = cause_s(scope, |stall| stall.decode_ns)?;
            Some(decode_s * (1.0 - client_share_in_epoch(scope)))
        },
        Fold::Sum,
    ),
    ..STALL
};

/// Waits for the client, which is the job's own code.
pub static STALL_CLIENT: Metric = Metric {
    id: MetricId("stall_client_s"),
    title: "stall on the client",
    definition: "Part of load_s and barrier_s in which the last accelerator of the step waited for the client's own work, including its decoding; no value if the workload configures none",
    path: "stall.client_s",
    formula: Formula::PerEpoch(
        |scope| {
            scope.plan.loader.client.as_ref()?;
            let decode_s = cause_s(scope, |stall| stall.decode_ns)?;
            let client_s = cause_s(scope, |stall| stall.client_ns)?;
            Some(client_s + decode_s * client_share_in_epoch(scope))
        },
        Fold::Sum,
    ),
    ..STALL
};

/// Waits for a free worker.
pub static STALL_QUEUE: Metric = Metric {
    id: MetricId("stall_queue_s"),
    title: "stall in the queue",
    definition: "Part of load_s and barrier_s in which no worker had begun the batch of the step's last accelerator, or its worker waited for something else",
    path: "stall.queue_s",
    formula: Formula::PerEpoch(|scope| cause_s(scope, |stall| stall.queue_ns), Fold::Sum),
    ..STALL
};

/// Waits for slower accelerators.
pub static STALL_SKEW: Metric = Metric {
    id: MetricId("stall_skew_s"),
    title: "stall on slower accelerators",
    definition: "Part of load_s and barrier_s in which the last accelerator of the step had its batch: it computed longer, or the processes took time to meet",
    path: "stall.skew_s",
    formula: Formula::PerEpoch(
        |scope| mean_s(scope, scope.epoch.causes.as_ref()?.total_skew_ns()),
        Fold::Sum,
    ),
    ..STALL
};

const STALL: Metric =
    Metric { unit: Unit::Seconds, better: Better::Lower, basis: &[Basis::Reads], ..COMPOSED };

/// Share of the decoding time that counts as the client's work: decoding within the processor time that the emulated client takes for the
/// samples. `sum` adds up a counter.
pub(crate) fn client_share_of_decoding(
    loader: &LoaderPlan,
    sum: impl Fn(fn(&IoCounters) -> u64) -> u64,
) -> f64 {
    let Some(client) = &loader.client else { return 0.0 };
    let samples = sum(|io| io.samples) as f64;
    let batches = samples / loader.batch_size.max(1) as f64;
    let planned_ns = 1e9 * client.worker_s(samples, batches, sum(|io| io.read_bytes) as f64);
    let own_ns = planned_ns.min(sum(|io| io.client_own_ns) as f64);
    (own_ns / sum(|io| io.decode_ns).max(1) as f64).min(1.0)
}

fn client_share_in_epoch(scope: Scope) -> f64 {
    let rows = &scope.epoch.accelerators;
    client_share_of_decoding(&scope.plan.loader, |count| {
        rows.iter().map(|row| count(&row.io)).sum()
    })
}

/// Waiting time of one cause, mean over accelerators.
fn cause_s(scope: Scope, cause_ns: fn(&Stall) -> u64) -> Option<f64> {
    let total_ns = match &scope.epoch.causes {
        Some(causes) => cause_ns(&causes.total_stall()),
        None => scope.epoch.accelerators.iter().map(|row| cause_ns(&row.stall)).sum(),
    };
    mean_s(scope, total_ns)
}

/// Converts a sum over accelerators to a mean in seconds.
fn mean_s(scope: Scope, ns: u64) -> Option<f64> {
    let accelerators = scope.epoch.accelerators.len();
    (accelerators > 0).then(|| seconds(ns) / accelerators as f64)
}
