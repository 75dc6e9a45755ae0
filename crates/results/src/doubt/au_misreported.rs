//! The utilisation in `summary.json` does not follow from the steps.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::import::Imported;
use crate::run::{AU_MISREPORTED, Run};
use feedrate_measure::metric::{AU_ALL_STEPS, AU_WINDOWED};
use feedrate_measure::stats::mean;
use feedrate_measure::window::Scope;

/// Maximum difference between the reported and the recomputed utilisation, in percentage points.
const DIFFERENCE_MAX_POINTS: f64 = 0.5;
/// The same if only rank 0 has steps and throughputs do not depend on utilisation. The first steps of other ranks may be shorter or longer.
const RANK_0_DIFFERENCE_MAX_POINTS: f64 = 2.0;
/// Maximum relative difference from a utilisation that follows from totals.
const TOTALS_DIFFERENCE_MAX: f64 = 0.02;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: AU_MISREPORTED,
        severity: Severity::Warning,
        bias: Bias::Either,
        meaning: "The utilisation in `summary.json` differs by more than half a point from DLIO's own formula over the steps in the same folder. If files of ranks are missing: it differs by more than 2 % from the one that follows from the reported throughput and the measured compute time, or from the lowest that the durations of blocks allow.",
        evidence: "{reported_percent:.2} % is reported, but [{au_windowed_percent:.2} % follows from the steps|{au_from_rate_percent:.2} % follows from the reported throughput and the compute time|at least {au_lowest_percent:.2} % follows from the steps and the durations of their blocks][ ({au_all_steps_percent:.2} % over all steps)]",
        advice: "use the recomputed utilisation; some versions of DLIO measure a block's end twice",
    },
    check: Check::Import(|run, imported| {
        let reported = run.reported_au_percent()?;
        let from_steps = windowed_percent(run, imported).filter(|windowed| {
            let difference_max = if imported.ranks_missing().is_empty() {
                DIFFERENCE_MAX_POINTS
            } else {
                RANK_0_DIFFERENCE_MAX_POINTS
            };
            difference_max < (windowed - reported).abs()
        });
        let totals = imported.totals.as_ref();
        let from_rate = totals.and_then(|totals| totals.au_from_rate_percent);
        let from_rate =
            from_rate.filter(|percent| TOTALS_DIFFERENCE_MAX < (reported / percent - 1.0).abs());
        let lowest = totals.and_then(|totals| totals.au_to_lowest);
        let lowest = lowest.filter(|ratio| *ratio < 1.0 - TOTALS_DIFFERENCE_MAX);
        let facts = Facts::new()
            .with("reported_percent", reported)
            .with_known("au_windowed_percent", from_steps)
            .with_known("au_from_rate_percent", from_rate)
            .with_known("au_lowest_percent", lowest.map(|ratio| reported / ratio))
            .with_known("au_all_steps_percent", run.metric(&AU_ALL_STEPS));
        from_steps.or(from_rate).or(lowest).map(|_| facts)
    }),
    #[cfg(test)]
    fires: |root| {
        tests::edit_cold_run(root, "summary.json", "_mean_percentage\": ", "_mean_percentage\": 1")
    },
};

/// Returns the utilisation that follows from the steps of all ranks, or of rank 0 of an older version of DLIO. `None` if rank 0's block times do not
/// hold for the other ranks.
fn windowed_percent(run: &Run, imported: &Imported) -> Option<f64> {
    if imported.ranks_missing().is_empty() {
        let is_shared = imported.shared_times_file.is_some();
        let fits = imported.epochs().iter().flat_map(|epoch| &epoch.accelerators).all(|rank| {
            rank.blocks
                .iter()
                .all(|block| block.busy_ns() <= block.end_ns.saturating_sub(block.start_ns))
        });
        return run.metric(&AU_WINDOWED).filter(|_| !is_shared || fits);
    }
    let is_older = imported.totals.as_ref().is_some_and(|totals| totals.is_older);
    let has_rank_0 = imported.ranks.first() == Some(&0);
    let record = imported.record.as_ref().filter(|_| is_older && has_rank_0)?;
    let epochs = Scope::whole_epochs(record)
        .map(|scope| AU_WINDOWED.accelerator_value(scope, scope.epoch.accelerators.first()?));
    mean(&epochs.collect::<Option<Vec<f64>>>()?)
}
