//! The process of a watched loop has not closed its record, so it may have been killed between two epochs.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use crate::window::Scope;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "watch_not_closed",
        severity: Severity::Warning,
        bias: Bias::Either,
        meaning: "The process of a watched loop closes its record when it ends; it was killed before that, or is still running: later epochs may be missing.",
        evidence: "the record ends after {recorded_epochs}, and its process has not closed it: it was killed, or is still running",
        advice: "let the process end, or call `close()` on the object that `feedrate.watch` returned",
    },
    needs_loader: false,
    check: Some(|derived| {
        let record = derived.record;
        // An incomplete record has a doubt of its own.
        let is_open = record.complete && record.watched.as_ref()?.closed == Some(false);
        let epochs = Scope::whole_epochs(record).count();
        is_open.then(|| Facts::new().with("recorded_epochs", epochs))
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires("the record ends after 3 epochs, and its process", |r| {
            r.watched = Some(crate::record::Watched { closed: Some(false), ..Default::default() });
        }),
        super::tests::silent(|_| {}),
    ],
};
