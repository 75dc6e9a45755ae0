//! Approximate duration of a run, for time limits of schedulers. [`super::Estimate`] has the exact numbers of a plan.

use super::{Estimate, Plan, TrainPlan};
use serde::Serialize;

/// Approximate duration of each phase of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Duration {
    /// Generating the files.
    pub generation_s: f64,
    /// All epochs.
    pub training_s: f64,
    /// All evaluations.
    pub evaluation_s: f64,
    /// All checkpoints, written and read.
    pub checkpoints_s: f64,
}

impl Duration {
    /// Returns the duration of all phases.
    pub fn total_s(&self) -> f64 {
        self.generation_s + self.training_s + self.evaluation_s + self.checkpoints_s
    }
}

/// Estimates the duration of `plan` on a storage that transfers `bytes_per_second` for all accelerators together.
pub fn duration(plan: &Plan, estimate: &Estimate, bytes_per_second: f64) -> Duration {
    let throttle = plan.storage.throttle_bytes_per_second.unwrap_or(f64::INFINITY);
    let read_rate = bytes_per_second.min(throttle);
    let mut phases = Duration::default();
    if !plan.is_checkpoint_only() {
        phases.generation_s = estimate.file_bytes as f64 / bytes_per_second;
        phases.training_s = steps_s(plan, estimate, &plan.train, read_rate);
    }
    if let Some(evaluations) = plan.evaluation_plan() {
        phases.evaluation_s = steps_s(&evaluations, estimate, &evaluations.train, read_rate);
    }
    if let Some(checkpoint) = &plan.checkpoint {
        let alone = checkpoint.alone.as_ref();
        let (reads, wait_s) = alone.map_or((0, 0.0), |alone| (alone.reads, alone.wait_s));
        let checkpoint_s = wait_s + checkpoint.total_bytes as f64 / bytes_per_second;
        phases.checkpoints_s = (checkpoint.count(&plan.train) + reads) as f64 * checkpoint_s;
    }
    phases
}

/// Estimates the duration of all steps. A step takes the maximum of compute, reading and preprocessing.
fn steps_s(plan: &Plan, estimate: &Estimate, train: &TrainPlan, read_rate: f64) -> f64 {
    let loader = &plan.loader;
    let samples = loader.batch_size as f64;
    let bytes = samples * estimate.sample_read_bytes_mean * f64::from(plan.readers());
    let preprocess_s = samples * loader.preprocess.mean_s() / f64::from(loader.workers.max(1));
    let step_s = train.compute.mean_s().max(bytes / read_rate).max(preprocess_s);
    train.steps() as f64 * step_s
}
