//! Blocks of all ranks are timed by rank 0.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "times_of_rank_0",
        severity: Severity::Note,
        meaning: "Older DLIO writes when blocks began and ended of rank 0 only, and so does its log: AU of the other ranks is of that time, which holds for them only as far as ranks wait for each other.",
        evidence: "`{file}` has the times of rank 0's blocks, which stand for those of all {ranks}",
        advice: "say nothing of single ranks; for times of each, use a DLIO that writes `<rank>_per_epoch_stats.json`",
    },
    check: Check::OfImport(|_, imported| {
        let facts = Facts::new().with("ranks", imported.ranks.len());
        Some(facts.with("file", imported.times_of_rank_0?))
    }),
    #[cfg(test)]
    fires: |root| {
        let run = tests::good().write(root, "w/4/a");
        for rank in 0..4 {
            std::fs::remove_file(run.join(format!("{rank}_per_epoch_stats.json"))).unwrap();
        }
    },
};
