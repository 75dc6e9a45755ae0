//! Where the accelerators' time went: loading, computing, waiting for each other.

use super::{Metric, mean_over_accelerators, sum_over_epochs};
use crate::record::{AcceleratorEpoch, Block};
use crate::window::seconds;

/// Waiting for data.
pub static LOAD_S: Metric = Metric {
    name: "load_s",
    unit: "s",
    definition: "Time from asking for batches to having them, summed over steps and epochs, mean over accelerators (feedrate; the steps are DLIO's `load`).",
    of_accelerator: |_, accelerator| sum_s(accelerator, |block| &block.load_ns),
    of_epoch: |scope| mean_over_accelerators(scope, LOAD_S.of_accelerator),
    of_run: |record| sum_over_epochs(record, LOAD_S.of_epoch),
};

/// Computing.
pub static COMPUTE_S: Metric = Metric {
    name: "compute_s",
    unit: "s",
    definition: "Time of the compute waits as they really lasted, summed over steps and epochs, mean over accelerators (feedrate; the steps are DLIO's `compute`).",
    of_accelerator: |_, accelerator| sum_s(accelerator, |block| &block.compute_ns),
    of_epoch: |scope| mean_over_accelerators(scope, COMPUTE_S.of_accelerator),
    of_run: |record| sum_over_epochs(record, COMPUTE_S.of_epoch),
};

/// Waiting for the other accelerators.
pub static BARRIER_S: Metric = Metric {
    name: "barrier_s",
    unit: "s",
    definition: "Time from the end of compute to the opening of the barrier, summed over steps and epochs, mean over accelerators (feedrate; in none of DLIO's lists).",
    of_accelerator: |_, accelerator| sum_s(accelerator, |block| &block.barrier_ns),
    of_epoch: |scope| mean_over_accelerators(scope, BARRIER_S.of_accelerator),
    of_run: |record| sum_over_epochs(record, BARRIER_S.of_epoch),
};

fn sum_s(accelerator: &AcceleratorEpoch, times: fn(&Block) -> &[u64]) -> Option<f64> {
    Some(seconds(accelerator.blocks.iter().flat_map(times).sum()))
}
