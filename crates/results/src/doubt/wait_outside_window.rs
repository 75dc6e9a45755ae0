//! Most of the waiting is where au_windowed does not look.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};

/// Share of the waiting.
const OUTSIDE_MIN_PERCENT: f64 = 25.0;
/// Share of the time.
const WAITED_MIN_PERCENT: f64 = 5.0;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "wait_outside_window",
        severity: Severity::Warning,
        meaning: "A quarter or more of the time that accelerators waited for data lies in the steps that au_windowed leaves out, and several times what these steps are of all steps.",
        evidence: "{outside_percent} of the waiting for data is in the {excluded_steps} left out of {steps:.0} ({waited_percent} of the time was waited)",
        advice: "run more steps, so that one cold step weighs little; until then, believe au_all_steps",
    },
    check: Check::OfSteps(|run, record| {
        let (outside, waited) = (run.step_times.excluded_percent?, run.step_times.load_percent?);
        let excluded = record.plan.metric.exclude_start_steps;
        let share_percent = excluded as f64 / run.steps.max(1) as f64 * 100.0;
        let is_much = OUTSIDE_MIN_PERCENT <= outside && 2.0 * share_percent <= outside;
        let facts = Facts::new().with("outside_percent", outside).with("waited_percent", waited);
        let facts = facts.with("excluded_steps", excluded).with("steps", run.steps);
        (is_much && WAITED_MIN_PERCENT <= waited).then_some(facts)
    }),
    #[cfg(test)]
    fires: |root| drop(tests::cold(root)),
};
