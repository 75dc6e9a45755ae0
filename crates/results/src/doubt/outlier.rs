//! The run is far from all other runs of its experiment.

#[cfg(test)]
use super::tests;
use super::{Bias, Check, DoubtKind, Facts, RunDoubt, Severity};
use crate::relations::Relations;
use feedrate_measure::metric::SAMPLES_WHOLE;
use feedrate_measure::stats::median;

/// Smallest number of other runs. The range of fewer is small by chance.
const OTHERS_MIN: usize = 3;
/// Smallest relative distance from the median of the other runs.
const DISTANCE_MIN: f64 = 0.05;
/// Smallest ratio of that distance to the range of the other runs.
const RANGES_MIN: f64 = 5.0;

pub(super) static DOUBT: RunDoubt = RunDoubt {
    kind: DoubtKind {
        name: "outlier",
        severity: Severity::Warning,
        bias: Bias::Either,
        meaning: "The throughput of the run differs by more than 5 % from the other runs of the experiment, and by more than five times the range of those: something was different in this run.",
        evidence: "{samples_per_second:.2} samples/s; the {others} other runs of {experiment} have {lowest_samples_per_second:.2} to {highest_samples_per_second:.2}",
        advice: "look for the reason, such as a cold cache or another job; report the median, or the runs without this one and why",
    },
    check: Check::Set(|relations, index| {
        let run = &relations.runs[index];
        let rate = run.metric(&SAMPLES_WHOLE).filter(|_| run.is_result())?;
        let others = other_rates(relations, index);
        let middle = median(&others).filter(|_| OTHERS_MIN <= others.len())?;
        let lowest = others.iter().copied().reduce(f64::min)?;
        let highest = others.iter().copied().reduce(f64::max)?;
        let distance = (rate - middle).abs();
        let is_outlier =
            DISTANCE_MIN * middle < distance && RANGES_MIN * (highest - lowest) < distance;
        let facts = Facts::new()
            .with("samples_per_second", rate)
            .with("others", others.len())
            .with("experiment", run.experiment())
            .with("lowest_samples_per_second", lowest)
            .with("highest_samples_per_second", highest);
        is_outlier.then_some(facts)
    }),
    #[cfg(test)]
    fires: |root| tests::write_replicates(root, 1.5),
};

/// Returns the throughputs of the other runs of the experiment, except for copies and invalid runs.
fn other_rates(relations: &Relations, index: usize) -> Vec<f64> {
    let others = relations.replicates(index).iter().filter(|other| **other != index);
    let usable = others.filter(|other| {
        let doubts = &relations.runs[**other].doubts;
        let is_invalid = doubts.iter().any(|doubt| doubt.severity == Severity::Invalid);
        !is_invalid && relations.original_of(**other).is_none()
    });
    usable.filter_map(|other| relations.runs[*other].metric(&SAMPLES_WHOLE)).collect()
}
