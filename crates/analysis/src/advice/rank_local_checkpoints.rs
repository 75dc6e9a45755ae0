//! Training waits for checkpoints: a disk of each machine's own takes them sooner than a storage that all share.

use super::case::CheckpointStall;
use super::{Case, Cost, Proposal, Risk, Rule};
use crate::answer::AnswerKind;

pub(super) static RULE: Rule = Rule {
    name: "rank_local_checkpoints",
    source: "SCR and VELOC: checkpoints to local disks first; CheckFreq (FAST'21)",
    answers: &[AnswerKind::Yes, AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::long_checkpoints,
};

fn propose(case: &Case) -> Option<Proposal> {
    let stall = CheckpointStall::new(case)?;
    // One machine shares its storage with nobody that is known: there it is for what training cannot hide.
    let is_shared = 1 < case.derived.record.machines().len();
    let lost_s = if is_shared { stall.all_s } else { stall.all_s - stall.hidden_s };
    if lost_s <= 0.0 {
        return None;
    }
    let proposal = RULE.proposal(&[], lost_s, stall.evidence);
    Some(Proposal { cost: Cost::LocalDisk, risk: Risk::LostWithMachine, ..proposal })
}
