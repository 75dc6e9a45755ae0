//! Advises another run if this one does not show whether the storage feeds the accelerators.

use super::{Case, Cost, Proposal, Rule};
use crate::answer::AnswerKind;
use feedrate_measure::doubt::Doubt;

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
    let causes = case.answer.causes_of_unknown(case.doubts);
    let first = causes.iter().find(|doubt| !doubt.advice.is_empty())?;
    let join = |text: fn(&Doubt) -> &str| {
        let mut texts: Vec<&str> = causes.iter().map(|doubt| text(doubt)).collect();
        texts.dedup();
        texts.join("; ")
    };
    let evidence = first
        .facts
        .clone()
        .with("why", join(|doubt| &doubt.evidence))
        .with("remedy", join(|doubt| &doubt.advice));
    Some(Proposal { lost_s: None, cost: Cost::Run, ..RULE.proposal(&[], 0.0, evidence) })
}
