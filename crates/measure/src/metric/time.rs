//! Time that accelerators spend loading, computing and waiting for each other.

use super::{Basis, Better, COMPOSED, Fold, Formula, Metric, MetricId, Unit};
use crate::record::{AcceleratorEpoch, Block};
use crate::window::{Scope, seconds};

/// Time spent waiting for data.
pub static LOAD_S: Metric = Metric {
    id: MetricId("load_s"),
    title: "time waiting for data",
    definition: "Time from requesting batches to receiving them, summed over steps and epochs, mean over accelerators",
    source: "feedrate; the steps are DLIO's `load`",
    path: "time.load_s",
    formula: sum_of_means(|_, accelerator| sum_s(accelerator, |block| &block.load_ns)),
    ..TIME
};

/// Time spent computing.
pub static COMPUTE_S: Metric = Metric {
    id: MetricId("compute_s"),
    title: "compute time",
    definition: "Actual duration of the emulated compute steps, summed over steps and epochs, mean over accelerators",
    source: "feedrate; the steps are DLIO's `compute`",
    path: "time.compute_s",
    formula: sum_of_means(|_, accelerator| sum_s(accelerator, |block| &block.compute_ns)),
    ..TIME
};

/// Time spent waiting for other accelerators.
pub static BARRIER_S: Metric = Metric {
    id: MetricId("barrier_s"),
    title: "time waiting for others",
    definition: "Time from the end of compute to the opening of the barrier, summed over steps and epochs, mean over accelerators",
    source: "feedrate; DLIO does not report it",
    path: "time.barrier_s",
    basis: &[Basis::Steps, Basis::Barriers],
    formula: sum_of_means(|_, accelerator| sum_s(accelerator, |block| &block.barrier_ns)),
    ..TIME
};

const TIME: Metric =
    Metric { unit: Unit::Seconds, better: Better::Lower, basis: &[Basis::Steps], ..COMPOSED };

/// The mean over accelerators, summed over epochs.
const fn sum_of_means(value: fn(Scope, &AcceleratorEpoch) -> Option<f64>) -> Formula {
    Formula::PerAccelerator(value, Fold::Mean, Fold::Sum)
}

fn sum_s(accelerator: &AcceleratorEpoch, times: fn(&Block) -> &[u64]) -> Option<f64> {
    Some(seconds(accelerator.blocks.iter().flat_map(times).sum()))
}
