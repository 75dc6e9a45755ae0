//! The waits or device steps that stand for compute were longer than asked for.

use super::{Doubt, Severity, found};
use feedrate_spec::units;
use feedrate_spec::workload::TimeSpec;

/// Share of the configured time.
const OVERSHOOT_MAX: f64 = 0.01;

pub(super) static DOUBT: Doubt = Doubt {
    name: "compute_overshoot",
    severity: Severity::Warning,
    meaning: "Steps' compute lasted more than one percent longer than configured: the accelerators asked for less data than they should have.",
    check: |facts| {
        // A drawn time has no configured value to compare with.
        let TimeSpec::Constant { mean: configured_s } = facts.record.plan.train.compute else {
            return None;
        };
        let steps: u64 = facts
            .record
            .epochs
            .iter()
            .filter_map(|e| e.accelerators.first())
            .map(|a| a.steps())
            .sum();
        if steps == 0 || configured_s <= 0.0 {
            return None;
        }
        let lasted_s = facts.time.compute_s? / steps as f64;
        if lasted_s <= configured_s * (1.0 + OVERSHOOT_MAX) {
            return None;
        }
        found(
            format!(
                "a step's compute lasted {} in the mean, {} is configured",
                units::seconds(lasted_s),
                units::seconds(configured_s)
            ),
            match facts.record.plan.train.on_devices {
                None => {
                    "leave a core idle: use fewer accelerators or workers on this machine, or stop other programs"
                }
                Some(_) => {
                    "a step lasts at least as long as the copy of its batch: use smaller batches, longer steps, or a device for each accelerator"
                }
            },
        )
    },
};
