//! The same work, and utilisations far apart.

use super::{Check, Doubt, Severity, found};
use feedrate_measure::metric::AU_ALL_STEPS;

/// Percentage points.
const APART_MAX: f64 = 5.0;

pub(super) static DOUBT: Doubt = Doubt {
    name: "ranks_disagree",
    severity: Severity::Warning,
    meaning: "au_windowed of single ranks differs by over five points: the window leaves out how long a rank waited for its own first batch, but not how long it then waited for the others', so that the mean measures their times.",
    check: Check::OfRun(|loaded| {
        if loaded.imported?.times_of_rank_0.is_some() {
            return None;
        }
        let times = &loaded.run.step_times;
        let (lowest, highest) = (times.windowed_lowest_percent?, times.windowed_highest_percent?);
        if highest - lowest <= APART_MAX {
            return None;
        }
        let all_steps = loaded.run.metric(&AU_ALL_STEPS);
        let all_steps =
            all_steps.map_or(String::new(), |au| format!("; over all steps it is {au:.1} %"));
        found(
            format!(
                "{lowest:.1} % to {highest:.1} % of ranks with the same steps, whose loading and computing differ by {:.1} %{all_steps}",
                times.own_time_percent?
            ),
            "believe au_all_steps, which is the same for all ranks that wait for each other",
        )
    }),
};
