//! The utilisation in `summary.json` does not follow from the steps.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::import::Imported;
use crate::run::Run;
use feedrate_measure::metric::{AU_ALL_STEPS, AU_WINDOWED};
use feedrate_measure::stats::mean;
use feedrate_measure::window::Scope;

/// Maximum difference between the reported and the recomputed utilisation, in percentage points.
const DIFFERENCE_MAX_POINTS: f64 = 0.5;
/// The same if only rank 0 has steps and block times. The others wait for the slowest rank, so that their utilisation is similar.
const RANK_0_DIFFERENCE_MAX_POINTS: f64 = 2.0;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "au_misreported",
        severity: Severity::Warning,
        meaning: "The utilisation in `summary.json` differs by more than half a point from DLIO's own formula over the steps in the same folder, or by more than two points if only rank 0 has steps and block times.",
        evidence: "{reported_percent:.2} % is reported, but {au_windowed_percent:.2} % follows from the steps ({au_all_steps_percent:.2} % over all steps)",
        advice: "use the recomputed utilisation; some versions of DLIO measure a block's end twice",
    },
    check: Check::Import(|run, imported| {
        let reported = run.reported_au_percent()?;
        let (windowed, difference_max) = windowed_percent(run, imported)?;
        let facts = Facts::new()
            .with("reported_percent", reported)
            .with("au_windowed_percent", windowed)
            .with("au_all_steps_percent", run.metric(&AU_ALL_STEPS)?);
        (difference_max < (windowed - reported).abs()).then_some(facts)
    }),
    #[cfg(test)]
    fires: |root| {
        tests::edit_cold_run(root, "summary.json", "_mean_percentage\": ", "_mean_percentage\": 1")
    },
};

/// Returns the utilisation that follows from the steps, and the maximum difference from the reported one.
fn windowed_percent(run: &Run, imported: &Imported) -> Option<(f64, f64)> {
    if imported.ranks_missing().is_empty() && imported.shared_times_file.is_none() {
        return Some((run.metric(&AU_WINDOWED)?, DIFFERENCE_MAX_POINTS));
    }
    let record = imported.record.as_ref().filter(|_| imported.ranks.first() == Some(&0))?;
    let epochs = Scope::whole_epochs(record)
        .map(|scope| AU_WINDOWED.accelerator_value(scope, scope.epoch.accelerators.first()?));
    Some((mean(&epochs.collect::<Option<Vec<f64>>>()?)?, RANK_0_DIFFERENCE_MAX_POINTS))
}
