//! One run shows no spread.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use std::path::Path;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "no_replicates",
        severity: Severity::Note,
        meaning: "The experiment was run once: how far runs vary is not known. Epochs of one run are no replicates, and DLIO's ± is over epochs.",
        evidence: "one run of {experiment} is there; a deviation over its {epochs} is not one over runs",
        advice: "run each experiment at least five times, in random order",
    },
    check: Check::AmongRuns(|relations, index| {
        let run = &relations.runs[index];
        // Nobody looked beside one that was named by itself.
        if run.path == Path::new(&run.source) {
            return None;
        }
        // A copy is no replicate.
        let is_copy = relations.copy_of(index).is_some();
        let mut others = relations.replicates(index).iter().filter(|other| **other != index);
        if !run.is_result() || (!is_copy && others.any(|at| relations.copy_of(*at).is_none())) {
            return None;
        }
        Some(Facts::new().with("experiment", run.experiment()).with("epochs", run.epochs))
    }),
    #[cfg(test)]
    fires: |root| drop(tests::good().write(root, "w/4/a")),
};
