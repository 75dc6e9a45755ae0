//! The compute of a plan, and whether this machine has the devices for it.

use super::{Builder, Context};
use crate::catalog::Ability;
use crate::plan::TrainPlan;
use crate::workload::TimeSpec;

impl Builder<'_> {
    /// `train`, with the compute that is asked for.
    pub(super) fn compute(&mut self, train: TrainPlan, context: Context) -> TrainPlan {
        let Some(name) = self.w.compute.as_deref() else { return train };
        let Some(member) = self.catalog.compute(name) else {
            self.no_member("compute", "compute", name, self.catalog.computes.iter().copied());
            return train;
        };
        if !member.has(Ability::NeedsDevices) || !self.trains() {
            return train;
        }
        if let Err(why) = context.devices.unwrap_or(Err("no device was looked for")) {
            self.error(
                "compute",
                format!("`{name}` cannot be used: {why}"),
                "run where a GPU and its driver are, or leave `compute` out: steps are waits then",
            );
        }
        if train.compute == TimeSpec::None {
            self.error(
                "compute",
                format!("`{name}` is to carry out steps that take no time"),
                "give `train.computation_time`, or leave `compute` out",
            );
        }
        TrainPlan { on_devices: Some(name.to_string()), ..train }
    }

    /// Factors of accelerators that are there.
    pub(super) fn slow_accelerators(&mut self, accelerators: u32) -> Vec<(u32, f64)> {
        let slow = self.w.train_slow_accelerators.clone();
        if let Some((unknown, _)) = slow.iter().find(|slow| accelerators <= slow.0) {
            self.error(
                "train.slow_accelerators",
                format!("there is no accelerator `{unknown}` of {accelerators}"),
                "they are counted from 0",
            );
        }
        slow
    }

    /// The time of steps for which `asked` is given.
    pub(super) fn step_time(&self, asked: TimeSpec) -> TimeSpec {
        let member = self.w.compute.as_deref().and_then(|name| self.catalog.compute(name));
        match member {
            Some(member) if member.has(Ability::TakesNoTime) => TimeSpec::None,
            _ => asked,
        }
    }
}
