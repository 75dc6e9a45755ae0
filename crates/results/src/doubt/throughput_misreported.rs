//! The reported throughput is not that of the ranks.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};

/// The two come of the same numbers.
const DIFFERENCE_MAX_SHARE: f64 = 0.005;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "throughput_misreported",
        severity: Severity::Warning,
        meaning: "The throughput in `summary.json` differs by more than half a percent from what DLIO makes of the rates of blocks that its ranks wrote in the same folder.",
        evidence: "{reported_samples_per_second:.2} samples/s are reported, the rates of blocks in the ranks' files come to {blocks_samples_per_second:.2}",
        advice: "use the recomputed rates, which are of the steps; the summary may be of another run",
    },
    check: Check::OfImport(|run, imported| {
        let reported = run.reported_samples_per_second()?;
        let of_blocks = imported.samples_per_second_of_blocks()?;
        let listed = imported.reported.as_ref()?.list("train_throughput_samples_per_second");
        let is_whole = listed.is_none_or(|list| list.len() == imported.epochs().len())
            && imported.ranks_missing().is_empty();
        let most = reported.abs().max(of_blocks.abs());
        let facts = Facts::new().with("reported_samples_per_second", reported);
        let facts = facts.with("blocks_samples_per_second", of_blocks);
        let is_other = DIFFERENCE_MAX_SHARE * most < (reported - of_blocks).abs();
        (is_whole && is_other).then_some(facts)
    }),
    #[cfg(test)]
    fires: |root| {
        tests::edit_cold(
            root,
            "summary.json",
            "mean_samples_per_second\": ",
            "mean_samples_per_second\": 9",
        )
    },
};
