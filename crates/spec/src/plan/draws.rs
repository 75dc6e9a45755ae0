//! Seeds of drawn times: each accelerator and each worker draws a sequence of its own.

use super::order::mix;
use super::{LoaderPlan, TrainPlan};
use crate::workload::TimeSpec;

impl TrainPlan {
    /// Seed of the compute times that `accelerator` draws.
    pub fn compute_seed_of(&self, accelerator: u32) -> u64 {
        mix(self.compute_seed, accelerator.into())
    }

    /// Factor of the compute times of `accelerator`.
    pub fn compute_factor_of(&self, accelerator: u32) -> f64 {
        let slow = self.slow_accelerators.iter().find(|slow| slow.0 == accelerator);
        slow.map_or(1.0, |slow| slow.1)
    }

    /// Compute time of a step in the mean over accelerators, where it is always the same and so told before the run.
    pub fn constant_compute_s(&self, accelerators: u32) -> Option<f64> {
        let TimeSpec::Constant { mean } = self.compute else { return None };
        let slower: f64 = self.slow_accelerators.iter().map(|slow| slow.1 - 1.0).sum();
        Some(mean * (1.0 + slower / f64::from(accelerators.max(1))))
    }

    /// Mean compute time of a step of the slowest accelerator, for which all wait.
    pub fn slowest_compute_s(&self) -> f64 {
        let factors = self.slow_accelerators.iter().map(|slow| slow.1);
        self.compute.mean_s() * factors.fold(1.0, f64::max)
    }
}

impl LoaderPlan {
    /// Seed of the preprocessing times that `worker`, counted over the process, draws.
    pub fn preprocess_seed_of(&self, worker: u64) -> u64 {
        // Apart from the accelerators' sequences where both seeds are the same.
        mix(self.preprocess_seed, worker | 1 << 63)
    }
}
