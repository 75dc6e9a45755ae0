//! Training waits for checkpoints: a disk of each machine's own takes them sooner than a storage that all share.

use super::case::CheckpointStall;
use super::{Case, Cost, Proposal, Risk, Rule};
use feedrate_measure::answer::AnswerKind;

pub(super) static RULE: Rule = Rule {
    name: "rank_local_checkpoints",
    source: "SCR and VELOC: checkpoints to local disks first; CheckFreq (FAST'21)",
    answers: &[AnswerKind::Yes, AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::checkpoint_storm,
};

fn propose(case: &Case) -> Option<Proposal> {
    let stall = CheckpointStall::new(case)?;
    let proposal = RULE.proposal(&[], stall.all_s, stall.evidence);
    Some(Proposal { cost: Cost::LocalDisk, risk: Risk::LostWithMachine, ..proposal })
}
