//! Number of steps in each epoch and in the run.

use super::{DatasetPlan, FileAccess, LoaderPlan, TrainPlan};

/// Returns the number of steps in a complete training epoch. Files that two accelerators read count twice.
pub fn steps_of_training(dataset: &DatasetPlan, loader: &LoaderPlan, accelerators: u32) -> u64 {
    let sharing_accelerators =
        if loader.file_access == FileAccess::Same { 1 } else { accelerators };
    let samples = samples_of_epoch(dataset, loader, accelerators);
    steps_per_epoch(samples, loader.batch_size, sharing_accelerators)
}

/// Returns the number of samples that the accelerators read in an epoch. Samples that two accelerators read count twice.
pub fn samples_of_epoch(dataset: &DatasetPlan, loader: &LoaderPlan, accelerators: u32) -> u64 {
    match loader.files_per_accelerator(dataset.files_train, accelerators) {
        Some(files) => {
            files.saturating_mul(accelerators.into()).saturating_mul(dataset.samples_per_file)
        }
        None => dataset.samples_train(),
    }
}

/// Returns the number of steps in a complete epoch. Each accelerator has the same number of full batches.
pub fn steps_per_epoch(samples: u64, batch_size: u64, accelerators: u32) -> u64 {
    match batch_size.checked_mul(u64::from(accelerators)) {
        Some(0) | None => 0,
        Some(step_samples) => samples / step_samples,
    }
}

impl TrainPlan {
    /// Returns the number of steps in epoch `epoch`, counted from 1. `total_steps` limits the steps of the whole run.
    pub fn steps_in_epoch(&self, epoch: u32) -> u64 {
        let before = self.steps_per_epoch.saturating_mul(u64::from(epoch) - 1);
        let remaining = self.total_steps.map_or(u64::MAX, |total| total.saturating_sub(before));
        remaining.min(self.steps_per_epoch)
    }

    /// Returns the number of epochs with at least one step.
    pub fn epochs_run(&self) -> u32 {
        if self.steps_per_epoch == 0 {
            return 0;
        }
        let epochs =
            self.total_steps.map_or(u64::MAX, |total| total.div_ceil(self.steps_per_epoch));
        epochs.min(u64::from(self.epochs)) as u32
    }

    /// Returns the number of steps in the run.
    pub fn steps(&self) -> u64 {
        let all = self.steps_per_epoch.saturating_mul(u64::from(self.epochs));
        self.total_steps.map_or(all, |total| total.min(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Barrier, Cache};
    use crate::workload::TimeSpec;

    fn check(epochs: u32, per_epoch: u64, total: Option<u64>, expected: &[u64]) {
        let plan = TrainPlan {
            epochs,
            steps_per_epoch: per_epoch,
            total_steps: total,
            compute: TimeSpec::None,
            compute_seed: 0,
            slow_accelerators: vec![],
            on_devices: None,
            cache: Cache::AsIs,
            barrier: Barrier::EachStep,
        };
        let steps: Vec<u64> = (1..=plan.epochs_run()).map(|e| plan.steps_in_epoch(e)).collect();
        assert_eq!(steps, expected);
        assert_eq!(plan.steps(), expected.iter().sum::<u64>());
    }

    #[test]
    fn total_steps_limit_the_run() {
        check(3, 2, None, &[2, 2, 2]);
        check(3, 2, Some(3), &[2, 1]);
        check(3, 2, Some(100), &[2, 2, 2]);
        check(3, 1000, Some(2), &[2]);
    }

    #[test]
    fn partial_batches_are_dropped() {
        assert_eq!(steps_per_epoch(168, 7, 2), 12);
        assert_eq!(steps_per_epoch(10, 2, 4), 1);
        assert_eq!(steps_per_epoch(1024 * 1251, 400, 8), 400);
        assert_eq!(steps_per_epoch(3, 4, 1), 0);
    }
}
