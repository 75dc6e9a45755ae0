//! The run is incomplete and has no steps.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "incomplete_run",
        severity: Severity::Invalid,
        bias: Bias::Either,
        meaning: "The run was interrupted or failed, or its results were only partly copied, so that it has no result.",
        evidence: "{missing}",
        advice: "run again to the end, or copy the folder again",
    },
    // For runs with steps, the doubt of records with the same name applies.
    check: Check::Import(|_, imported| match imported.record {
        Some(_) => None,
        None => Facts::from_list("missing", imported.missing.clone()),
    }),
    #[cfg(test)]
    fires: |root| {
        let run = tests::good_run().write(root, "w/4/a");
        (0..4).for_each(|rank| {
            std::fs::remove_file(run.join(format!("{rank}_output.json"))).unwrap()
        });
        std::fs::remove_file(run.join("summary.json")).unwrap();
    },
};
