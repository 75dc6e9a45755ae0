//! The run did not reach its end.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::derived::Derived;
use crate::facts::Facts;
use crate::window::Scope;

/// Name of the doubt.
pub const NAME: &str = "incomplete_run";

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: NAME,
        severity: Severity::Invalid,
        bias: Bias::Either,
        meaning: "The run was interrupted or failed: its measurements are kept, but they are no result.",
        evidence: "[{checkpoints} were written and read|{epochs_done} of {epochs_planned} epochs are complete, and epoch {stopped_epoch} up to step {stopped_step} of {last_step}|{epochs_done} of {epochs_planned} epochs are complete|steps of {begun_epochs} are recorded]: {why}",
        advice: "run again to the end",
    },
    needs_loader: false,
    check: Some(check),
    #[cfg(test)]
    cases: &[
        super::tests::fires("3 of 5 epochs are complete: interrupted", |r| {
            (r.complete, r.plan.train.epochs, r.stopped_because) =
                (false, 5, Some("interrupted".into()));
        }),
        super::tests::fires("2 of 3 epochs are complete, and epoch 3 up to step ", |r| {
            (r.complete, r.plan.train.epochs) = (false, 3);
            for accelerator in &mut r.epochs[2].accelerators {
                accelerator.blocks[0].barrier_ns.pop();
            }
        }),
        super::tests::fires("steps of 3 epochs are recorded: it was killed", |r| {
            (r.complete, r.watched) = (false, Some(crate::record::Watched::default()));
        }),
        super::tests::silent(|r| r.stopped_because = Some("interrupted".into())),
    ],
};

fn check(derived: &Derived) -> Option<Facts> {
    let record = derived.record;
    if record.complete {
        return None;
    }
    let reason = record.stopped_because.as_deref().unwrap_or("it was killed, or is still going on");
    let facts = Facts::new().with("why", reason);
    if record.plan.is_checkpoint_only() {
        let done: usize = record.epochs.iter().map(|epoch| epoch.checkpoints.len()).sum();
        return Some(facts.with("checkpoints", done));
    }
    let begun = Scope::whole_epochs(record);
    if record.watched.is_some() {
        // The planned number of epochs of a watched loop is unknown.
        return Some(facts.with("begun_epochs", begun.count()));
    }
    let train = &record.plan.train;
    let last_step = |scope: &Scope| train.steps_in_epoch(scope.epoch.number.max(1));
    let (done, stopped): (Vec<_>, Vec<_>) =
        begun.partition(|scope| last_step(scope) <= scope.steps());
    let facts = facts.with("epochs_done", done.len()).with("epochs_planned", train.epochs_run());
    Some(match stopped.last() {
        Some(scope) => facts
            .with("stopped_epoch", scope.epoch.number)
            .with("stopped_step", scope.steps())
            .with("last_step", last_step(scope)),
        None => facts,
    })
}
