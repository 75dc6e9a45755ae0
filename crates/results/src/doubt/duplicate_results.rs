//! The same results twice.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "duplicate_results",
        severity: Severity::Invalid,
        meaning: "All times of all steps are those of another folder, to the nanosecond: it is a copy, not a replicate.",
        evidence: "all times of its {epoch_steps} an epoch are those of `{original}`",
        advice: "keep one of the copies",
    },
    check: Check::AmongRuns(|relations, index| {
        let first = relations.copy_of(index)?;
        Some(Facts::new().with("epoch_steps", first.steps).with("original", first.short_path()))
    }),
    #[cfg(test)]
    fires: |root| {
        tests::good().write(root, "w/4/a");
        tests::good().write(root, "w/4/b");
    },
};
