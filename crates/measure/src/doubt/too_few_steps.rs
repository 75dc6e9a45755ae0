//! No steady state can be seen in so few steps.

use super::{Doubt, Severity, found};
use feedrate_spec::units;

pub(super) static DOUBT: Doubt = Doubt {
    name: "too_few_steps",
    severity: Severity::Warning,
    meaning: "An epoch has fewer steps than four times the batches in flight: au_sustained is not measurable, and start-up weighs on the other figures.",
    check: |facts| {
        let needed = facts.sustained_needs_steps;
        if facts.steps == 0 || needed <= facts.steps {
            return None;
        }
        found(
            format!(
                "{} an epoch, and at least {needed} are needed to see a steady state",
                units::counted(facts.steps, "step")
            ),
            "use more files (a larger `--scale`, or `dataset.num_files_train`), a smaller batch, or fewer reading threads",
        )
    },
};
