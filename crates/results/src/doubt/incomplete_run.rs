//! A run of which not all is there, and no step.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "incomplete_run",
        severity: Severity::Invalid,
        meaning: "The run was interrupted or failed, or its results were not all copied: what is there is no result.",
        evidence: "{missing}",
        advice: "run again to the end, or copy the folder again",
    },
    // With steps it is a doubt of their record.
    check: Check::OfImport(|_, imported| match imported.record {
        Some(_) => None,
        None => Facts::listed("missing", imported.missing.clone()),
    }),
    #[cfg(test)]
    fires: |root| {
        let run = tests::good().write(root, "w/4/a");
        (0..4).for_each(|rank| {
            std::fs::remove_file(run.join(format!("{rank}_output.json"))).unwrap()
        });
        std::fs::remove_file(run.join("summary.json")).unwrap();
    },
};
