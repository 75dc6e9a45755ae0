//! A study put the run aside.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, RunDoubt, Severity};
use feedrate_measure::facts::Facts;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "put_aside",
        severity: Severity::Note,
        meaning: "A study put the run aside, as incomplete or superseded by a later one: it is no replicate.",
        evidence: "it lies in a folder `{folder}`",
        advice: "nothing: it is shown, and counts for nothing",
    },
    check: Check::OfRun(|loaded| {
        Some(Facts::new().with("folder", loaded.run.put_aside.as_deref()?))
    }),
    #[cfg(test)]
    fires: |root| drop(tests::good().write(root, "w/4/superseded/a")),
};
