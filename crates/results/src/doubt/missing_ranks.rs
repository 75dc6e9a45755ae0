//! Not all ranks have left their files.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::import::begun_with;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "missing_ranks",
        severity: Severity::Invalid,
        meaning: "Files of some ranks are not there or cannot be read: utilisation is of the others, and rates are not known. Those that submitters of MLPerf Storage leave out are `no_step_files`.",
        evidence: "steps of {missing_ranks:.0} of {expected_ranks} are missing: {missing:.8}[; `{beside}`, which was begun with it, has some]",
        advice: "copy the folder again from where it was written; where another folder has the rest, put the files of all ranks into one",
    },
    check: Check::OfImport(|run, imported| {
        let missing = imported.ranks_missing();
        if missing.is_empty() || !imported.trains() || imported.totals.is_some() {
            return None;
        }
        let facts = Facts::new().with("missing_ranks", missing.len());
        let facts = facts.with("expected_ranks", imported.ranks_expected.unwrap_or_default());
        let facts = facts.with_known("beside", begun_with(&run.path, &missing));
        Some(facts.with("missing", missing.iter().map(u32::to_string).collect::<Vec<_>>()))
    }),
    #[cfg(test)]
    fires: |root| tests::remove_good(root, "3_output.json"),
};
