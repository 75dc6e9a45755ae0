//! Warnings of the program itself that no other doubt stands for.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "warned",
        severity: Severity::Note,
        meaning: "DLIO's log has warnings of its own, which its results do not repeat.",
        evidence: "its log warns: {warnings}",
        advice: "read them beside the numbers; of a dataset smaller than memory, use a larger one",
    },
    check: Check::OfImport(|_, imported| Facts::listed("warnings", imported.log.warnings.clone())),
    #[cfg(test)]
    fires: |root| {
        let warning = "[WARNING] Number of files for training in data/train (830) is more than requested (500). A subset of files will be used\n";
        tests::warn_good(root, warning);
    },
};
