//! The experiment has a single run.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};
use std::path::Path;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "no_replicates",
        severity: Severity::Note,
        bias: Bias::Unaffected,
        meaning: "The experiment was run once, so the variation between runs is unknown. Epochs of one run are not replicates; the deviation (±) that DLIO reports is over epochs.",
        evidence: "there is one run of {experiment}; the deviation over its {epochs} is not a deviation over runs",
        advice: "run each experiment at least five times, in random order",
    },
    check: Check::Set(|relations, index| {
        let run = &relations.runs[index];
        // For a run that the user named alone, the folders next to it were not searched.
        if run.path == Path::new(&run.source) {
            return None;
        }
        // A copy is not a replicate.
        let is_copy = |index: usize| relations.original_of(index).is_some();
        let mut others = relations.replicates(index).iter().filter(|other| **other != index);
        if !run.is_result() || (!is_copy(index) && others.any(|other| !is_copy(*other))) {
            return None;
        }
        Some(Facts::new().with("experiment", run.experiment()).with("epochs", run.epochs))
    }),
    #[cfg(test)]
    fires: |root| drop(tests::good_run().write(root, "w/4/a")),
};
