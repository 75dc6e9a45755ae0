//! One accelerator, or a few, compute longer than the others, which wait for them.

use super::{Case, Cost, Proposal, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::facts::Facts;
use feedrate_measure::waits::WaitCause;
use feedrate_measure::window::Scope;
use std::collections::BTreeMap;

/// By how much more than its share of the steps it comes last.
const OFTENER_MIN: f64 = 1.5;

pub(super) static RULE: Rule = Rule {
    name: "slow_accelerator",
    source: "drishti P18, shared-file straggler; Darshan's slowest rank",
    answers: &[AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::one_is_slow,
};

fn propose(case: &Case) -> Option<Proposal> {
    let lost_s = case.lost_s(&[WaitCause::Skew])?;
    let record = case.derived.record;
    let mut steps_last = BTreeMap::new();
    for last in
        record.epochs.iter().filter_map(|epoch| epoch.causes.as_ref()).flat_map(|of| &of.last)
    {
        *steps_last.entry(*last).or_insert(0_u64) += 1;
    }
    let steps: u64 = steps_last.values().sum();
    let (&slowest, &last) = steps_last.iter().max_by_key(|of| of.1)?;
    let own_share = 1.0 / f64::from(record.plan.accelerators.max(1));
    let last_share = last as f64 / steps as f64;
    if last_share < OFTENER_MIN * own_share {
        return None;
    }
    // Several that are slow come last in turns.
    let least = (OFTENER_MIN * own_share).max(last_share / 2.0) * steps as f64;
    let slow = steps_last.iter().filter(|of| least <= *of.1 as f64);
    let slow: BTreeMap<usize, u64> = slow.map(|(&at, &last)| (at as usize, last)).collect();
    let names: Vec<String> = slow.keys().map(usize::to_string).collect();
    let several = names.split_last().filter(|(_, rest)| !rest.is_empty());
    let several = several.map(|(last, rest)| format!("{} and {last}", rest.join(", ")));
    let all_last = slow.values().sum::<u64>() as f64 / steps as f64;
    let evidence = Facts::new()
        .with("accelerator", slowest)
        .with_known("accelerators", several)
        .with("last_percent", 100.0 * all_last)
        .with("waited_s", lost_s)
        .with_known("compute_s", compute_of_step_s(case, |at| slow.contains_key(&at)))
        .with_known("others_compute_s", compute_of_step_s(case, |at| !slow.contains_key(&at)));
    Some(Proposal { cost: Cost::Attention, ..RULE.proposal(&[], lost_s, evidence) })
}

/// Mean compute of a step of some accelerators.
fn compute_of_step_s(case: &Case, is_one: impl Fn(usize) -> bool) -> Option<f64> {
    let (mut ns, mut steps) = (0_u64, 0_usize);
    for scope in Scope::all(case.derived.record) {
        let those = scope.epoch.accelerators.iter().enumerate().filter(|(at, _)| is_one(*at));
        for block in those.flat_map(|(_, accelerator)| &accelerator.blocks) {
            ns += block.compute_ns.iter().sum::<u64>();
            steps += block.compute_ns.len();
        }
    }
    (steps > 0).then(|| ns as f64 / 1e9 / steps as f64)
}
