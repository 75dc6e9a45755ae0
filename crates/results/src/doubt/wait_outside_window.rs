//! Most of the waiting is where au_windowed does not look.

use super::{Check, Doubt, Severity, found};
use feedrate_spec::units;

/// Of the waiting, in percent.
const OUTSIDE_MIN_PERCENT: f64 = 25.0;
/// Of the time, in percent.
const WAITED_MIN_PERCENT: f64 = 5.0;

pub(super) static DOUBT: Doubt = Doubt {
    name: "wait_outside_window",
    severity: Severity::Warning,
    meaning: "A quarter or more of the time that accelerators waited for data lies in the steps that au_windowed leaves out, and several times what these steps are of all steps.",
    check: Check::OfRun(|loaded| {
        let run = loaded.run;
        let (outside, waited) = (run.step_times.excluded_percent?, run.step_times.load_percent?);
        let metric = &loaded.record.plan.metric;
        let excluded = metric.exclude_start_steps;
        let share = excluded as f64 / run.steps.max(1) as f64 * 100.0;
        if outside < OUTSIDE_MIN_PERCENT || outside < 2.0 * share || waited < WAITED_MIN_PERCENT {
            return None;
        }
        found(
            format!(
                "{outside:.1} % of the waiting for data is in the {} left out of {} ({waited:.1} % of the time was waited)",
                units::counted(excluded, "step"),
                run.steps
            ),
            "believe au_all_steps; run more steps, so that one cold step weighs little",
        )
    }),
};
