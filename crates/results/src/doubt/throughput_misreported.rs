//! The reported throughput is not that of the ranks.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};

/// The two come of the same numbers.
const DIFFERENCE_MAX_SHARE: f64 = 0.005;
/// Some releases end a block twice, and count time that no file has.
const OF_STEPS_MAX_SHARE: f64 = 0.1;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "throughput_misreported",
        severity: Severity::Warning,
        meaning: "The throughput in `summary.json` differs by more than half a percent from what DLIO makes of the rates of blocks that its ranks wrote in the same folder, or by more than a tenth from what any release of DLIO makes of their steps.",
        evidence: "{reported_samples_per_second:.2} samples/s are reported[, the rates of blocks in the ranks' files come to {blocks_samples_per_second:.2}][, the steps make {steps_samples_per_second:.2}]",
        advice: "use the recomputed rates, which are of the steps; the summary may be of another run",
    },
    check: Check::OfImport(|run, imported| {
        let reported = run.reported_samples_per_second()?;
        let listed = imported.reported.as_ref()?.list("train_throughput_samples_per_second");
        let is_whole = listed.is_none_or(|list| list.len() == imported.epochs().len())
            && imported.ranks_missing().is_empty();
        let is_other =
            |rate: &f64, most: f64| most * reported.abs().max(rate.abs()) < (reported - rate).abs();
        let of_blocks = imported.samples_per_second_of_blocks();
        let of_blocks = of_blocks.filter(|rate| is_other(rate, DIFFERENCE_MAX_SHARE));
        let of_steps = imported.samples_per_second_of_steps();
        let nearest = of_steps
            .into_iter()
            .min_by(|a, b| (a - reported).abs().total_cmp(&(b - reported).abs()));
        let of_steps = nearest.filter(|rate| is_other(rate, OF_STEPS_MAX_SHARE));
        let facts = Facts::new().with("reported_samples_per_second", reported);
        let facts = facts.with_known("blocks_samples_per_second", of_blocks);
        let facts = facts.with_known("steps_samples_per_second", of_steps);
        (is_whole && (of_blocks.is_some() || of_steps.is_some())).then_some(facts)
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
