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
    let record = case.derived.record;
    let checkpoint = record.plan.checkpoint.as_ref().filter(|plan| !plan.asynchronous)?;
    let saved = CheckpointSummary::new(record)?.save?;
    let ends = record
        .epochs
        .iter()
        .flat_map(|epoch| epoch.checkpoints.iter().map(|one| one.end_ns).chain([epoch.end_ns]));
    let all_ns = ends.max()?.checked_sub(record.epochs.first()?.start_ns)?;
    let percent = 100.0 * saved.stall_s / (all_ns as f64 / 1e9);
    (100.0 * STALL_SHARE_MIN <= percent).then(|| {
        let evidence = Facts::new()
            .with("checkpoints", saved.count)
            .with("checkpoint_bytes", saved.bytes)
            .with("folder", checkpoint.folder.as_str())
            .with("stall_s", saved.stall_s)
            .with("run_percent", percent)
            .with_known("sync_percent", saved.fsync_share.map(|share| 100.0 * share));
        let overrides = ["checkpoint.asynchronous=true".into()];
        let proposal = RULE.proposal(&overrides, saved.stall_s, evidence);
        Proposal { risk: Risk::LaterCheckpoint, ..proposal }
    })
}
