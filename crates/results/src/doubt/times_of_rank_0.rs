//! Blocks of all ranks are timed by rank 0.

use super::{Check, Doubt, Severity, found};

pub(super) static DOUBT: Doubt = Doubt {
    name: "times_of_rank_0",
    severity: Severity::Note,
    meaning: "Older DLIO writes when blocks began and ended of rank 0 only, and so does its log: AU of the other ranks is of that time, which holds for them only as far as ranks wait for each other.",
    check: Check::OfRun(|loaded| {
        let file = loaded.imported?.times_of_rank_0?;
        found(
            format!(
                "`{file}` has the times of rank 0's blocks, which stand for those of all {} ranks",
                loaded.imported?.ranks.len()
            ),
            "say nothing of single ranks; for times of each, use a DLIO that writes `<rank>_per_epoch_stats.json`",
        )
    }),
};
