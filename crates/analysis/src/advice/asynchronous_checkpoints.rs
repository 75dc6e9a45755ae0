//! Training waits for checkpoints.

use super::{Case, Proposal, Risk, Rule};
use feedrate_measure::answer::AnswerKind;
use feedrate_measure::checkpoints::CheckpointSummary;
use feedrate_measure::facts::Facts;

/// Share of the run.
const STALL_SHARE_MIN: f64 = 0.1;

pub(super) static RULE: Rule = Rule {
    name: "asynchronous_checkpoints",
    source: "I/O analysis of l2hmc with Darshan; CheckFreq (FAST'21)",
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
    let proposal = RULE.proposal(&overrides, stall.hidden_s, evidence);
    Some(Proposal { risk: Risk::LaterCheckpoint, ..proposal })
}

/// Training that waits for checkpoints for a large part of a run.
pub(super) struct CheckpointStall {
    pub(super) all_s: f64,
    /// As much of it as training meanwhile would take.
    hidden_s: f64,
    pub(super) evidence: Facts,
}

impl CheckpointStall {
    pub(super) fn new(case: &Case) -> Option<Self> {
        let record = case.derived.record;
        let saved = CheckpointSummary::new(record)?.save?;
        let ends = record
            .epochs
            .iter()
            .flat_map(|epoch| epoch.checkpoints.iter().map(|one| one.end_ns).chain([epoch.end_ns]));
        let all_ns = ends.max()?.checked_sub(record.epochs.first()?.start_ns)?;
        let run_s = all_ns as f64 / 1e9;
        let trains_s = (run_s - saved.stall_s).max(0.0);
        let evidence = Facts::new()
            .with("checkpoints", saved.count)
            .with("checkpoint_bytes", saved.bytes)
            .with("stall_s", saved.stall_s)
            .with("run_percent", 100.0 * saved.stall_s / run_s)
            .with("trains_s", trains_s / saved.count as f64)
            .with_known("duration_s", saved.duration_s)
            .with_known("sync_percent", saved.fsync_share.map(|share| 100.0 * share));
        let hidden_s = saved.stall_s.min(trains_s);
        let stall = CheckpointStall { all_s: saved.stall_s, hidden_s, evidence };
        (STALL_SHARE_MIN * run_s <= saved.stall_s).then_some(stall)
    }
}
