//! The reported throughput is not that of the ranks.

use super::{Check, Doubt, Severity, found};

/// Share. The two come of the same numbers.
const DIFFERENCE_MAX: f64 = 0.005;

pub(super) static DOUBT: Doubt = Doubt {
    name: "throughput_misreported",
    severity: Severity::Warning,
    meaning: "The throughput in `summary.json` differs by more than half a percent from what DLIO makes of the rates of blocks that its ranks wrote in the same folder.",
    check: Check::OfRun(|loaded| {
        let imported = loaded.imported?;
        let reported = loaded.run.reported_samples_per_second()?;
        let of_blocks = imported.samples_per_second_of_blocks?;
        let listed = imported.reported.as_ref()?.list("train_throughput_samples_per_second");
        let is_whole = listed.is_none_or(|list| list.len() == imported.record.epochs.len());
        let most = reported.abs().max(of_blocks.abs());
        if !imported.ranks_missing().is_empty()
            || !is_whole
            || (reported - of_blocks).abs() <= DIFFERENCE_MAX * most
        {
            return None;
        }
        found(
            format!(
                "{reported:.2} samples/s are reported, the rates of blocks in the ranks' files come to {of_blocks:.2}"
            ),
            "use the recomputed rates, which are of the steps; the summary may be of another run",
        )
    }),
};
