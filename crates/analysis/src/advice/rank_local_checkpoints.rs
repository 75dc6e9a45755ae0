//! Advises checkpoints on a local disk of each machine, if training waits for checkpoints on shared storage.

use super::case::CheckpointStall;
use super::{Case, Cost, Proposal, Risk, Rule};
use crate::answer::AnswerKind;

pub(super) static RULE: Rule = Rule {
    name: "rank_local_checkpoints",
    source: "SCR and VELOC: checkpoints to local disks first; CheckFreq (FAST'21)",
    sees: "training waits for checkpoints on several machines, or where steps are too short to hide the writing",
    proposes: "`checkpoint.checkpoint_folder=DIR` on a local disk",
    change: "checkpoint.checkpoint_folder=DIR, on a[ disk of each of the {machines} machines| faster disk]",
    why: "training waited {stall_s}, {run_percent:.0} % of the run, for {checkpoints} of {checkpoint_bytes}[; each takes {duration_s}, and the training between them {trains_s}][; asynchronous writing could hide {hideable_s} of the wait]",
    answers: &[AnswerKind::Yes, AnswerKind::No],
    propose,
    #[cfg(test)]
    fires: super::tests::long_checkpoints,
};

fn propose(case: &Case) -> Option<Proposal> {
    let stall = CheckpointStall::new(case)?;
    // The storage of a single machine may not be shared. Then only the wait that asynchronous checkpoints could not hide counts.
    let machines = case.derived.record.machines().len();
    let is_shared = 1 < machines;
    let lost_s = if is_shared { stall.total_s } else { stall.total_s - stall.hideable_s };
    if lost_s <= 0.0 {
        return None;
    }
    let evidence = stall
        .evidence
        .with_known("machines", is_shared.then_some(machines))
        .with_known("hideable_s", (!is_shared).then_some(stall.hideable_s));
    let proposal = RULE.proposal(&[], lost_s, evidence);
    if !is_shared {
        return Some(Proposal { cost: Cost::Hardware, ..proposal });
    }
    Some(Proposal { cost: Cost::LocalDisk, risk: Risk::LostWithMachine, ..proposal })
}
