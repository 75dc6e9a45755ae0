//! Factors and seeds for the drawn compute times of accelerators and preprocessing times of workers. Each accelerator and each worker
//! draws from a separate sequence.

use super::order::mix;
use super::{LoaderPlan, TrainPlan};
use crate::workload::TimeSpec;

impl TrainPlan {
    /// Returns the seed for the compute times of `accelerator`.
    pub fn compute_seed(&self, accelerator: u32) -> u64 {
        mix(self.compute_seed, accelerator.into())
    }

    /// Returns the factor for the compute times of `accelerator`.
    pub fn compute_factor(&self, accelerator: u32) -> f64 {
        let slow = self.slow_accelerators.iter().find(|slow| slow.0 == accelerator);
        slow.map_or(1.0, |slow| slow.1)
    }

    /// Returns the mean compute time of a step over all accelerators; `None` if it is not constant and thus unknown before the run.
    pub fn constant_compute_s(&self, accelerators: u32) -> Option<f64> {
        let TimeSpec::Constant { mean } = self.compute else { return None };
        let slower: f64 = self.slow_accelerators.iter().map(|slow| slow.1 - 1.0).sum();
        Some(mean * (1.0 + slower / f64::from(accelerators.max(1))))
    }

    /// Returns the mean compute time of a step on the slowest accelerator, for which all other accelerators wait.
    pub fn slowest_compute_s(&self) -> f64 {
        let factors = self.slow_accelerators.iter().map(|slow| slow.1);
        self.compute.mean_s() * factors.fold(1.0, f64::max)
    }
}

impl LoaderPlan {
    /// Returns the seed for the preprocessing times of `worker`, numbered over all accelerators of the process.
    pub fn worker_preprocess_seed(&self, worker: u64) -> u64 {
        // The highest bit distinguishes workers from accelerators if both seeds are the same.
        mix(self.preprocess_seed, worker | 1 << 63)
    }
}
