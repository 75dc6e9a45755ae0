//! The same work, and utilisations far apart.

#[cfg(test)]
use super::tests;
use super::{Check, DoubtKind, Facts, RunDoubt, Severity};
use feedrate_measure::metric::AU_ALL_STEPS;

const APART_MAX_POINTS: f64 = 5.0;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "ranks_disagree",
        severity: Severity::Warning,
        meaning: "au_windowed of single ranks differs by over five points: the window leaves out how long a rank waited for its own first batch, but not how long it then waited for the others', so that the mean measures their skew.",
        evidence: "{lowest_percent} to {highest_percent} of ranks with the same steps, whose loading and computing differ by {own_time_percent}[; over all steps it is {au_all_steps_percent}]",
        advice: "believe au_all_steps, which is the same for all ranks that wait for each other",
    },
    check: Check::OfImport(|run, imported| {
        if imported.times_of_rank_0.is_some() {
            return None;
        }
        let times = &run.step_times;
        let (lowest, highest) = (times.windowed_lowest_percent?, times.windowed_highest_percent?);
        let facts = Facts::new().with("lowest_percent", lowest).with("highest_percent", highest);
        let facts = facts.with("own_time_percent", times.own_time_percent?);
        let facts = facts.with_known("au_all_steps_percent", run.metric(&AU_ALL_STEPS));
        (APART_MAX_POINTS < highest - lowest).then_some(facts)
    }),
    #[cfg(test)]
    fires: |root| drop(tests::cold(root)),
};
