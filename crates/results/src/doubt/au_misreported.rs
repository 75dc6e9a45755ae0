//! The reported utilisation does not follow from the steps.

use super::{Check, Doubt, Severity, found};
use feedrate_measure::metric::{AU_ALL_STEPS, AU_WINDOWED};

/// Percentage points.
const DIFFERENCE_MAX: f64 = 0.5;

pub(super) static DOUBT: Doubt = Doubt {
    name: "au_misreported",
    severity: Severity::Warning,
    meaning: "The utilisation in `summary.json` differs by more than half a point from DLIO's own formula over the steps in the same folder.",
    check: Check::OfRun(|loaded| {
        let imported = loaded.imported?;
        let reported = loaded.run.reported_au_percent()?;
        let all_steps = loaded.run.metric(&AU_ALL_STEPS)?;
        if !imported.ranks_missing().is_empty() || imported.times_of_rank_0.is_some() {
            return None;
        }
        let windowed = loaded.run.metric(&AU_WINDOWED)?;
        if (windowed - reported).abs() <= DIFFERENCE_MAX {
            return None;
        }
        found(
            format!(
                "{reported:.2} % is reported, {windowed:.2} % follows from the steps, {all_steps:.2} % of all of them"
            ),
            "use the recomputed figures; some versions of DLIO measure a block's end twice",
        )
    }),
};
