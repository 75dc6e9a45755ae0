//! An older record does not contain the causes of waits at the barrier.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use crate::window::Scope;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "no_step_causes",
        severity: Severity::Note,
        bias: Bias::Unaffected,
        meaning: "The record does not contain which accelerator came last in each step and why: waits for other accelerators count as skew, although the last accelerator may have waited for data.",
        evidence: "an older feedrate wrote the record, without the causes of the waits of {steps}",
        advice: "run again to learn the causes of waits at the barrier",
    },
    needs_loader: false,
    check: Some(|derived| {
        // Records created from another program's files are not from an older version.
        let is_ours = derived.record.watched.is_none();
        if !(is_ours && derived.record.program.starts_with("feedrate")) {
            return None;
        }
        let without_causes =
            Scope::all_epochs(derived.record).filter(|scope| scope.epoch.causes.is_none());
        let steps: u64 = without_causes.map(Scope::steps).sum();
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
