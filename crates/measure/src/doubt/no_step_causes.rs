//! An older record: what accelerators waited for in the barrier is not known.

use super::{DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use crate::window::Scope;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "no_step_causes",
        severity: Severity::Note,
        meaning: "The record does not tell who came last in each step and why: waits for others are taken for skew, though the last may have waited for data.",
        evidence: "an older feedrate wrote the record, without the causes of the waits of {steps}",
        advice: "run again to learn what was waited for in the barrier",
    },
    needs_loader: false,
    check: Some(|derived| {
        // Records that are made of another program's files are no older ones.
        let is_ours = derived.record.watched.is_none();
        if !(is_ours && derived.record.program.starts_with("feedrate")) {
            return None;
        }
        let silent = Scope::each(derived.record).filter(|scope| scope.epoch.causes.is_none());
        let steps: u64 = silent.map(Scope::steps).sum();
        (steps > 0).then(|| Facts::new().with("steps", steps))
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires("without the causes of the waits of 80 steps", |r| {
            r.epochs[..2].iter_mut().for_each(|epoch| epoch.causes = None);
        }),
        super::tests::silent(|_| {}),
        super::tests::silent(|r| {
            r.program = "DLIO".into();
            r.epochs.iter_mut().for_each(|epoch| epoch.causes = None);
        }),
    ],
};
