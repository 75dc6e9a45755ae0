//! Result files are damaged.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "unreadable_files",
        severity: Severity::Invalid,
        bias: Bias::Either,
        meaning: "Result files are empty, cut short or damaged: their contents are missing from the numbers.",
        evidence: "{unreadable:.4}",
        advice: "copy the folder again from where it was written, or run again",
    },
    check: Check::Import(|_, imported| Facts::from_list("unreadable", imported.unreadable.clone())),
    #[cfg(test)]
    fires: |root| {
        std::fs::write(tests::good_run().write(root, "w/4/a").join("1_output.json"), "").unwrap()
    },
};
