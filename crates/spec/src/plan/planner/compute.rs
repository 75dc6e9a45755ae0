//! Plans the compute of steps, and checks that this machine has the devices for it.

use super::{Builder, Context};
use crate::catalog::Ability;
use crate::plan::TrainPlan;
use crate::workload::TimeSpec;

impl Builder<'_> {
    /// Adds the configured compute to `train`.
    pub(super) fn compute(&mut self, train: TrainPlan, context: Context) -> TrainPlan {
        let Some(name) = self.w.compute.as_deref() else { return train };
        let Some(member) = self.catalog.compute(name) else {
            self.refuse_unknown_member(
                "compute",
                "compute",
                name,
                self.catalog.computes.iter().copied(),
            );
            return train;
        };
        if !member.has(Ability::NeedsDevices) || !self.trains() {
            return train;
        }
        if let Err(reason) = context.devices.unwrap_or(Err("its devices were not detected")) {
            self.error(
                "compute",
                format!("`{name}` cannot be used: {reason}"),
                "run on a machine with a GPU and its driver, or leave `compute` out, so that steps are waits",
            );
        }
        if train.compute == TimeSpec::None {
            self.error(
                "compute",
                format!("`{name}` would execute steps that take no time"),
                "give `train.computation_time`, or leave `compute` out",
            );
        }
        TrainPlan { on_devices: Some(name.to_string()), ..train }
    }

    /// Returns the factors for slow accelerators. Refuses accelerators that do not exist.
    pub(super) fn slow_accelerators(&mut self, accelerators: u32) -> Vec<(u32, f64)> {
        let slow = self.w.train_slow_accelerators.clone();
        if let Some((unknown, _)) = slow.iter().find(|slow| accelerators <= slow.0) {
            self.error(
                "train.slow_accelerators",
                format!("there is no accelerator `{unknown}` among {accelerators}"),
                "accelerators are numbered from 0",
            );
        }
        slow
    }

    /// Returns the compute time of a step: `configured`, unless the configured compute takes no time.
    pub(super) fn step_time(&self, configured: TimeSpec) -> TimeSpec {
        let member = self.w.compute.as_deref().and_then(|name| self.catalog.compute(name));
        match member {
            Some(member) if member.has(Ability::TakesNoTime) => TimeSpec::None,
            _ => configured,
        }
    }
}
