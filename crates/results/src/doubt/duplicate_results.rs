//! The results are a copy of another run's results.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "duplicate_results",
        severity: Severity::Invalid,
        bias: Bias::Either,
        meaning: "All step times equal those in another folder to the nanosecond: the run is a copy, not a replicate.",
        evidence: "the times of all steps, {epoch_steps} per epoch, equal the times in `{original}`",
        advice: "keep one of the copies",
    },
    check: Check::Set(|relations, index| {
        let original = relations.original_of(index)?;
        let facts = Facts::new().with("epoch_steps", original.steps);
        Some(facts.with("original", original.short_path()))
    }),
    #[cfg(test)]
    fires: |root| {
        tests::good_run().write(root, "w/4/a");
        tests::good_run().write(root, "w/4/b");
    },
};
