//! Where the accelerators' time went: loading, computing, waiting for each other.

use super::{
    Basis, Better, METRIC, Metric, MetricId, Shown, Unit, mean_over_accelerators, sum_over_epochs,
};
use crate::record::{AcceleratorEpoch, Block};
use crate::window::seconds;

/// Waiting for data.
pub static LOAD_S: Metric = Metric {
    id: MetricId("load_s"),
    title: "time waiting for data",
    unit: Unit::Seconds,
    better: Better::Lower,
    definition: "Time from asking for batches to having them, summed over steps and epochs, mean over accelerators",
    source: "feedrate; the steps are DLIO's `load`",
    path: "time.load_s",
    basis: &[Basis::Steps],
    shown: Shown::Composed,
    of_accelerator: |_, accelerator| sum_s(accelerator, |block| &block.load_ns),
    of_epoch: |scope| mean_over_accelerators(scope, LOAD_S.of_accelerator),
    of_run: |record| sum_over_epochs(record, LOAD_S.of_epoch),
    ..METRIC
};

/// Computing.
pub static COMPUTE_S: Metric = Metric {
    id: MetricId("compute_s"),
    title: "compute time",
    unit: Unit::Seconds,
    better: Better::Lower,
    definition: "Time of the compute waits as they really lasted, summed over steps and epochs, mean over accelerators",
    source: "feedrate; the steps are DLIO's `compute`",
    path: "time.compute_s",
    basis: &[Basis::Steps],
    shown: Shown::Composed,
    of_accelerator: |_, accelerator| sum_s(accelerator, |block| &block.compute_ns),
    of_epoch: |scope| mean_over_accelerators(scope, COMPUTE_S.of_accelerator),
    of_run: |record| sum_over_epochs(record, COMPUTE_S.of_epoch),
    ..METRIC
};

/// Waiting for the other accelerators.
pub static BARRIER_S: Metric = Metric {
    id: MetricId("barrier_s"),
    title: "time waiting for others",
    unit: Unit::Seconds,
    better: Better::Lower,
    definition: "Time from the end of compute to the opening of the barrier, summed over steps and epochs, mean over accelerators",
    source: "feedrate; in none of DLIO's lists",
    path: "time.barrier_s",
    basis: &[Basis::Steps, Basis::Barriers],
    shown: Shown::Composed,
    of_accelerator: |_, accelerator| sum_s(accelerator, |block| &block.barrier_ns),
    of_epoch: |scope| mean_over_accelerators(scope, BARRIER_S.of_accelerator),
    of_run: |record| sum_over_epochs(record, BARRIER_S.of_epoch),
    ..METRIC
};

fn sum_s(accelerator: &AcceleratorEpoch, times: fn(&Block) -> &[u64]) -> Option<f64> {
    Some(seconds(accelerator.blocks.iter().flat_map(times).sum()))
}
