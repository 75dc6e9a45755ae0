//! Files of some ranks are missing.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::import::sibling_with_ranks;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "missing_ranks",
        severity: Severity::Invalid,
        bias: Bias::Either,
        meaning: "Files of some ranks are missing or unreadable: utilisation describes the other ranks only, and rates are unknown. Files that submitters to MLPerf Storage leave out are reported as `no_step_files` instead.",
        evidence: "steps of {missing_ranks:.0} of {expected_ranks} are missing: {missing:.8}[; `{beside}`, which started at the same time, has some]",
        advice: "copy the folder again from where it was written; if another folder has the missing files, put the files of all ranks into one folder",
    },
    check: Check::Import(|run, imported| {
        let missing = imported.ranks_missing();
        if missing.is_empty() || !imported.trains() || imported.totals.is_some() {
            return None;
        }
        let facts = Facts::new()
            .with("missing_ranks", missing.len())
            .with("expected_ranks", imported.ranks_expected.unwrap_or_default())
            .with_known("beside", sibling_with_ranks(&run.path, &missing))
            .with("missing", missing.iter().map(u32::to_string).collect::<Vec<_>>());
        Some(facts)
    }),
    #[cfg(test)]
    fires: |root| tests::remove_from_good_run(root, "3_output.json"),
};
