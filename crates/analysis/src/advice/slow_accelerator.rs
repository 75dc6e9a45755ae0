//! Names the accelerators that compute longer than the others and make them wait.

use super::{Case, Cost, Proposal, Rule};
use crate::answer::AnswerKind;
use crate::predict::PipelineChange;
use feedrate_measure::slow_accelerators::SlowAccelerators;
use feedrate_measure::waits::WaitCause;

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
    let slow = SlowAccelerators::new(case.derived.record)?;
    let evidence = slow.facts().with("waited_s", lost_s);
    let is_emulated = !case.plan().train.slow_accelerators.is_empty();
    let changes = if is_emulated { vec![PipelineChange::EqualAccelerators] } else { Vec::new() };
    Some(Proposal { changes, cost: Cost::Attention, ..RULE.proposal(&[], lost_s, evidence) })
}
