//! Advises asynchronous checkpoints if training waits while they are written.

use super::case::CheckpointStall;
use super::{Case, Proposal, Risk, Rule};
use crate::answer::AnswerKind;

pub(super) static RULE: Rule = Rule {
    name: "asynchronous_checkpoints",
    source: "I/O analysis of l2hmc with Darshan; CheckFreq (FAST'21)",
    sees: "training waits a tenth of the run for checkpoints",
    proposes: "`checkpoint.asynchronous`",
    change: "",
    why: "training waited {stall_s} for {checkpoints} of {checkpoint_bytes}, {run_percent:.0} % of the run[; {sync_percent:.0} % of the writing was sync]",
    answers: &[AnswerKind::Yes, AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::checkpoint_storm,
};

fn propose(case: &Case) -> Option<Proposal> {
    let plan = case.plan().checkpoint.as_ref().filter(|plan| !plan.asynchronous)?;
    let stall = CheckpointStall::new(case)?;
    let overrides = ["checkpoint.asynchronous=true".into()];
    let evidence = stall.evidence.with("folder", plan.folder.as_str());
    let proposal = RULE.proposal(&overrides, stall.hideable_s, evidence);
    Some(Proposal { risk: Risk::LaterCheckpoint, ..proposal })
}
