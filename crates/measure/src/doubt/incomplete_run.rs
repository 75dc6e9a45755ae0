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
        evidence: "[{checkpoints} were written and read|{epochs_done} of {epochs_planned} epochs are complete|steps of {begun_epochs} are recorded]: {why}",
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
    let done = Scope::whole_epochs(record).count();
    if record.watched.is_some() {
        // The planned number of epochs of a watched loop is unknown.
        return Some(facts.with("begun_epochs", done));
    }
    Some(facts.with("epochs_done", done).with("epochs_planned", record.plan.train.epochs_run()))
}
