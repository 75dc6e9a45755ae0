//! Advises another run if this one does not show whether the storage feeds the accelerators.

use super::{Case, Cost, Proposal, Rule};
use crate::answer::{AnswerKind, UnknownBecause};
use feedrate_measure::doubt::{CPU_SATURATED, Doubt, Severity, find_origin_doubt};

pub(super) static RULE: Rule = Rule {
    name: "run_again",
    source: "feedrate; MLPerf Storage's rule of five times the memory",
    sees: "memory served the bytes, or the run is invalid or incomplete",
    proposes: "`--cold`, or a larger dataset",
    change: "{remedy}",
    why: "{why}",
    answers: &[AnswerKind::Unknown],
    propose,
    #[cfg(test)]
    fires: super::tests::served_from_memory,
};

fn propose(case: &Case) -> Option<Proposal> {
    let find = |is_cause: &dyn Fn(&&Doubt) -> bool| case.doubts.iter().find(is_cause);
    let cause = match case.answer.unknown_because {
        Some(UnknownBecause::CacheFed) => find_origin_doubt(case.doubts),
        Some(UnknownBecause::CpuSaturated) => find(&|doubt| doubt.name == CPU_SATURATED),
        _ => find(&|doubt| doubt.severity == Severity::Invalid),
    };
    cause.filter(|doubt| !doubt.advice.is_empty()).map(|doubt| {
        let evidence = doubt
            .facts
            .clone()
            .with("why", doubt.evidence.as_str())
            .with("remedy", doubt.advice.as_str());
        Proposal { lost_s: None, cost: Cost::Run, ..RULE.proposal(&[], 0.0, evidence) }
    })
}
