//! Names the accelerators that compute longer than the others and make them wait.

use super::{Case, Cost, Proposal, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::waits::WaitCause;
use feedrate_measure::window::Scope;
use std::collections::BTreeMap;

/// Minimum share of the steps in which a slow accelerator finishes last, as a multiple of an equal share of all accelerators.
const EXCESS_MIN: f64 = 1.5;

pub(super) static RULE: Rule = Rule {
    name: "slow_accelerator",
    source: "drishti P18, shared-file straggler; Darshan's slowest rank",
    sees: "one accelerator comes last far more often than the others",
    proposes: "look at that accelerator, which is named",
    change: "look at accelerator[s {accelerators}| {accelerator}]",
    why: "accelerator[s {accelerators}| {accelerator}] came last in {last_percent:.0} % of the steps[: a step computes for {compute_s}, and for {others_compute_s} on the others]",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::one_slow_accelerator,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case.lost_s(&[WaitCause::Skew])?;
    let record = case.derived.record;
    let mut steps_last = BTreeMap::new();
    for causes in record.epochs.iter().filter_map(|epoch| epoch.causes.as_ref()) {
        for accelerator in &causes.last {
            *steps_last.entry(*accelerator).or_insert(0_u64) += 1;
        }
    }
    let steps: u64 = steps_last.values().sum();
    let (&slowest, &last_steps) = steps_last.iter().max_by_key(|(_, steps)| **steps)?;
    let equal_share = 1.0 / f64::from(record.plan.accelerators.max(1));
    let last_share = last_steps as f64 / steps as f64;
    if last_share < EXCESS_MIN * equal_share {
        return None;
    }
    // Several slow accelerators take turns in being the last.
    let steps_min = (EXCESS_MIN * equal_share).max(last_share / 2.0) * steps as f64;
    let slow: BTreeMap<usize, u64> = steps_last
        .iter()
        .filter(|(_, last_steps)| steps_min <= **last_steps as f64)
        .map(|(&accelerator, &last_steps)| (accelerator as usize, last_steps))
        .collect();
    let names: Vec<String> = slow.keys().map(usize::to_string).collect();
    let several = match &names[..] {
        [] | [_] => None,
        [rest @ .., last] => Some(format!("{} and {last}", rest.join(", "))),
    };
    let slow_share = slow.values().sum::<u64>() as f64 / steps as f64;
    let is_slow = |accelerator: usize| slow.contains_key(&accelerator);
    let evidence = Facts::new()
        .with("accelerator", slowest)
        .with_known("accelerators", several)
        .with("last_percent", 100.0 * slow_share)
        .with("waited_s", lost_s)
        .with_known("compute_s", mean_step_compute_s(case, is_slow))
        .with_known("others_compute_s", mean_step_compute_s(case, |index| !is_slow(index)));
    Some(Proposal { cost: Cost::Attention, ..RULE.proposal(&[], lost_s, evidence) })
}

/// Mean compute time of a step over the included accelerators.
fn mean_step_compute_s(case: &Case, is_included: impl Fn(usize) -> bool) -> Option<f64> {
    let mut compute_ns = 0_u64;
    let mut steps = 0_usize;
    for scope in Scope::whole_epochs(case.derived.record) {
        for (index, accelerator) in scope.epoch.accelerators.iter().enumerate() {
            if !is_included(index) {
                continue;
            }
            for block in &accelerator.blocks {
                compute_ns += block.compute_ns.iter().sum::<u64>();
                steps += block.compute_ns.len();
            }
        }
    }
    (steps > 0).then(|| compute_ns as f64 / 1e9 / steps as f64)
}
