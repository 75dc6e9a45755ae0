//! Metrics: one file a metric, one row (or one for each variant) in [`METRICS`]. A metric reads a record and nothing else.
//!
//! To add one: write its file with a `pub static` [`Metric`], add its `mod` line and row here, and its entry in
//! docs/guide/numbers.md. `feedrate list`, `describe` and the contract tests read the table.

mod au_windowed;
mod au_all_steps;
mod au_sustained;
mod samples;
mod delivered;
mod nominal;
mod time;
mod stall;
mod latency;
mod bytes;
mod access;
#[cfg(test)]
mod tests;

pub use access::{AMPLIFICATION, CONSECUTIVE, FILES, SEQUENTIAL};
pub(crate) use access::{most_files, of_run as access_of_run};
pub use au_all_steps::AU_ALL_STEPS;
pub use au_sustained::{AU_SUSTAINED, NotMeasurable, sustained, sustained_needs_steps};
pub use au_windowed::{AU_WINDOWED, block_au_percent};
pub use bytes::{DEVICE_BYTES, LOGICAL_BYTES};
pub use delivered::{DELIVERED_WHOLE, DELIVERED_WINDOWED};
pub use latency::{OPEN_LATENCY, Quantiles, READ_LATENCY, SAMPLE_LATENCY};
pub use nominal::{NOMINAL_WHOLE, NOMINAL_WINDOWED};
pub use samples::{SAMPLES_WHOLE, SAMPLES_WINDOWED, block_samples_per_second};
pub use stall::{STALL_DECODE, STALL_OPEN, STALL_QUEUE, STALL_READ};
pub use time::{BARRIER_S, COMPUTE_S, LOAD_S};

pub use crate::stats::mean;

use crate::record::{AcceleratorEpoch, Record};
use crate::window::Scope;

/// Every metric, in the order the docs show them.
pub static METRICS: &[&Metric] = &[
    &AU_ALL_STEPS,
    &AU_WINDOWED,
    &AU_SUSTAINED,
    &SAMPLES_WINDOWED,
    &SAMPLES_WHOLE,
    &DELIVERED_WINDOWED,
    &DELIVERED_WHOLE,
    &NOMINAL_WINDOWED,
    &NOMINAL_WHOLE,
    &LOAD_S,
    &COMPUTE_S,
    &BARRIER_S,
    &STALL_OPEN,
    &STALL_READ,
    &STALL_DECODE,
    &STALL_QUEUE,
    &OPEN_LATENCY.metric,
    &READ_LATENCY.metric,
    &SAMPLE_LATENCY.metric,
    &LOGICAL_BYTES,
    &DEVICE_BYTES,
    &SEQUENTIAL,
    &CONSECUTIVE,
    &AMPLIFICATION,
    &FILES,
];

/// A number that follows from a record. `None` is "cannot be known", and never stands for 0.
pub struct Metric {
    /// Stable name in snake_case.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// One sentence, with its source.
    pub definition: &'static str,
    /// Of one accelerator in one epoch.
    pub of_accelerator: fn(Scope, &AcceleratorEpoch) -> Option<f64>,
    /// Of one epoch, over its accelerators; `None` where not all have told.
    pub of_epoch: fn(Scope) -> Option<f64>,
    /// Of the run, over the epochs of which all accelerators have told.
    pub of_run: fn(&Record) -> Option<f64>,
}

impl Metric {
    /// The value of each epoch of which all accelerators have told.
    pub fn of_epochs(&self, record: &Record) -> Vec<Option<f64>> {
        Scope::all(record).map(self.of_epoch).collect()
    }

    /// Population deviation over the epochs that have a value.
    pub fn stdev_over_epochs(&self, record: &Record) -> Option<f64> {
        stdev(&self.of_epochs(record).into_iter().flatten().collect::<Vec<_>>())
    }
}

/// The metric of a name.
pub fn find(name: &str) -> Option<&'static Metric> {
    METRICS.iter().copied().find(|metric| metric.name == name)
}

/// Population standard deviation, as `numpy.std`; `None` of nothing.
pub fn stdev(values: &[f64]) -> Option<f64> {
    let mean_value = mean(values)?;
    let squares: Vec<f64> = values.iter().map(|value| (value - mean_value).powi(2)).collect();
    mean(&squares).map(f64::sqrt)
}

/// Mean over the epochs that have a value.
fn mean_over_epochs(record: &Record, of_epoch: fn(Scope) -> Option<f64>) -> Option<f64> {
    mean(&Scope::all(record).filter_map(of_epoch).collect::<Vec<_>>())
}

/// Sum over epochs, if each has a value.
fn sum_over_epochs(record: &Record, of_epoch: fn(Scope) -> Option<f64>) -> Option<f64> {
    sum(&Scope::all(record).map(of_epoch).collect::<Option<Vec<_>>>()?)
}

/// Mean over accelerators, if each has a value.
fn mean_over_accelerators(
    scope: Scope,
    of_accelerator: fn(Scope, &AcceleratorEpoch) -> Option<f64>,
) -> Option<f64> {
    mean(&each_accelerator(scope, of_accelerator)?)
}

/// Sum over accelerators, if each has a value.
fn sum_over_accelerators(
    scope: Scope,
    of_accelerator: fn(Scope, &AcceleratorEpoch) -> Option<f64>,
) -> Option<f64> {
    sum(&each_accelerator(scope, of_accelerator)?)
}

fn each_accelerator(
    scope: Scope,
    of_accelerator: fn(Scope, &AcceleratorEpoch) -> Option<f64>,
) -> Option<Vec<f64>> {
    let accelerators = scope.is_whole().then_some(&scope.epoch.accelerators)?;
    accelerators.iter().map(|accelerator| of_accelerator(scope, accelerator)).collect()
}

fn sum(values: &[f64]) -> Option<f64> {
    if values.is_empty() { None } else { Some(values.iter().sum()) }
}
