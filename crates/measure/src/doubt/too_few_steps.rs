//! Epochs have too few steps for a steady state.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use crate::metric::sustained_needs_steps;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "too_few_steps",
        severity: Severity::Warning,
        bias: Bias::Lowered,
        meaning: "An epoch has fewer steps than four times the batches in flight: au_sustained is not measurable, and the other figures include the start-up.",
        evidence: "{epoch_steps} an epoch, and at least {steps_needed} are needed to reach a steady state",
        advice: "use more files (a larger `--scale`, or `dataset.num_files_train`), a smaller batch, or fewer reading threads",
    },
    needs_loader: true,
    check: Some(|derived| {
        let needed = sustained_needs_steps(&derived.record.plan);
        // Records of watched loops never have au_sustained.
        if derived.record.watched.is_some() {
            return None;
        }
        if derived.steps == 0 || needed <= derived.steps {
            return None;
        }
        Some(Facts::new().with("epoch_steps", derived.steps).with("steps_needed", needed))
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires("40 steps an epoch, and at least 44", |r| {
            r.plan.loader.batches_in_flight = 11;
        }),
        super::tests::silent(|r| r.plan.loader.batches_in_flight = 10),
    ],
};
