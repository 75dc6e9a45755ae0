//! A study put the run aside.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "put_aside",
        severity: Severity::Note,
        meaning: "A study put the run aside, as incomplete or superseded by a later one: it is no replicate.",
        evidence: "it lies in a folder `{folder}`",
        advice: "nothing: it is shown, and counts for nothing",
    },
    check: Check::OfRun(|run| Some(Facts::new().with("folder", run.put_aside.as_deref()?))),
    #[cfg(test)]
    fires: |root| drop(tests::good().write(root, "w/4/superseded/a")),
};
