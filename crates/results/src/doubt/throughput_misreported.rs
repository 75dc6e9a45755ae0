//! The throughput in `summary.json` does not follow from the ranks' files.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};

/// Maximum relative difference from the block rates in the ranks' files, from which DLIO computes the summary, and from the rates that follow from
/// rank 0's blocks.
const BLOCKS_DIFFERENCE_MAX: f64 = 0.005;
/// Maximum relative difference from the rates recomputed from steps. Some releases end a block twice and count time that is in no file.
const STEPS_DIFFERENCE_MAX: f64 = 0.1;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "throughput_misreported",
        severity: Severity::Warning,
        bias: Bias::Either,
        meaning: "The throughput in `summary.json` differs by more than half a percent from the block rates in the ranks' files, or by more than 10 % from the rate that each release of DLIO computes from their steps. If files of ranks are missing, it differs from each rate that follows from the number of steps, the duration of rank 0's blocks, the utilisation and the compute time.",
        evidence: "{reported_samples_per_second:.2} samples/s are reported[, but {blocks_samples_per_second:.2} follow from the block rates in the ranks' files][, but {steps_samples_per_second:.2} follow from the steps][, but the nearest rate that fits the number of steps and the duration of rank 0's blocks is {totals_samples_per_second:.2}]",
        advice: "use the rates recomputed from steps; the summary may belong to another run",
    },
    check: Check::Import(|run, imported| {
        let reported = run.reported_samples_per_second()?;
        let listed = imported.reported.as_ref()?.list("train_throughput_samples_per_second");
        let is_complete = listed.is_none_or(|list| list.len() == imported.epochs().len())
            && imported.ranks_missing().is_empty();
        let differs = |rate: &f64, share_max: f64| {
            share_max * reported.abs().max(rate.abs()) < (reported - rate).abs()
        };
        let from_blocks = imported
            .samples_per_second_of_blocks()
            .filter(|rate| differs(rate, BLOCKS_DIFFERENCE_MAX));
        let from_steps = imported
            .samples_per_second_of_steps()
            .into_iter()
            .min_by(|a, b| (a - reported).abs().total_cmp(&(b - reported).abs()))
            .filter(|rate| differs(rate, STEPS_DIFFERENCE_MAX));
        let from_totals = imported
            .totals
            .as_ref()
            .and_then(|totals| Some(reported * totals.plausible_rate_ratio?))
            .filter(|rate| differs(rate, BLOCKS_DIFFERENCE_MAX));
        let [from_blocks, from_steps] =
            [from_blocks, from_steps].map(|rate| rate.filter(|_| is_complete));
        let facts = Facts::new()
            .with("reported_samples_per_second", reported)
            .with_known("blocks_samples_per_second", from_blocks)
            .with_known("steps_samples_per_second", from_steps)
            .with_known("totals_samples_per_second", from_totals);
        from_blocks.or(from_steps).or(from_totals).map(|_| facts)
    }),
    #[cfg(test)]
    fires: |root| {
        tests::edit_cold_run(
            root,
            "summary.json",
            "mean_samples_per_second\": ",
            "mean_samples_per_second\": 9",
        )
    },
};
