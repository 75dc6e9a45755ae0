//! The utilisation in `summary.json` does not follow from the steps.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use feedrate_measure::metric::{AU_ALL_STEPS, AU_WINDOWED};

/// Maximum difference between the reported and the recomputed utilisation, in percentage points.
const DIFFERENCE_MAX_POINTS: f64 = 0.5;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "au_misreported",
        severity: Severity::Warning,
        meaning: "The utilisation in `summary.json` differs by more than half a point from DLIO's own formula over the steps in the same folder.",
        evidence: "{reported_percent:.2} % is reported, but {au_windowed_percent:.2} % follows from the steps ({au_all_steps_percent:.2} % over all steps)",
        advice: "use the recomputed utilisation; some versions of DLIO measure a block's end twice",
    },
    check: Check::Import(|run, imported| {
        if !imported.ranks_missing().is_empty() || imported.shared_times_file.is_some() {
            return None;
        }
        let reported = run.reported_au_percent()?;
        let windowed = run.metric(&AU_WINDOWED)?;
        let facts = Facts::new()
            .with("reported_percent", reported)
            .with("au_windowed_percent", windowed)
            .with("au_all_steps_percent", run.metric(&AU_ALL_STEPS)?);
        (DIFFERENCE_MAX_POINTS < (windowed - reported).abs()).then_some(facts)
    }),
    #[cfg(test)]
    fires: |root| {
        tests::edit_cold_run(root, "summary.json", "_mean_percentage\": ", "_mean_percentage\": 1")
    },
};
