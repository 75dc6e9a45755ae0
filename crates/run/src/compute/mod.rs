//! What a step costs an accelerator: one file per kind, one row in [`COMPUTES`].
//!
//! A kind draws the length of each step's wait before or between steps; the driver waits. To add one:
//! copy `sleep.rs`, implement [`Compute`], add its `mod` line and its row.

mod none;
mod sleep;

use feedrate_spec::catalog::Member;
use feedrate_spec::plan::{LoaderPlan, TrainPlan};
use feedrate_spec::workload::TimeSpec;

/// The lengths of one accelerator's steps.
pub trait Compute: Send {
    /// Nanoseconds of the next step.
    fn next_ns(&mut self) -> u64;
}

/// Every kind, in the order docs show them.
pub static COMPUTES: &[&Member] = &[&none::MEMBER, &sleep::MEMBER];

/// The compute of accelerator `accelerator` under `plan`.
pub fn of(plan: &TrainPlan, accelerator: u32) -> Box<dyn Compute> {
    drawn(plan.compute, plan.compute_seed, u64::from(accelerator))
}

/// The preprocessing of worker `worker`, counted over the process.
pub fn preprocess(plan: &LoaderPlan, worker: u64) -> Box<dyn Compute> {
    // Beside the accelerators' streams of the same seed.
    drawn(plan.preprocess, plan.preprocess_seed, worker | 1 << 63)
}

fn drawn(spec: TimeSpec, seed: u64, stream: u64) -> Box<dyn Compute> {
    match spec {
        TimeSpec::None => Box::new(none::NoCompute),
        spec => Box::new(sleep::Sleep::new(spec, seed, stream)),
    }
}
