//! The loop was somebody's own: what it did besides asking for batches is not known.

use super::{DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "watched",
        severity: Severity::Note,
        meaning: "A loop of somebody's own was watched: load and compute of its steps are measured, files, reads and decoding are not known.",
        evidence: "batches of `{loader}` were timed; all that lies between two of them counts as compute[, of the {unsynchronised}|]",
        advice: "to learn what the loader waits for, run a workload like it: `feedrate run`",
    },
    needs_loader: false,
    check: Some(|derived| {
        let watched = derived.record.watched.as_ref()?;
        let is_ahead = watched.synchronised == Some(false);
        let host = is_ahead.then_some("processor alone, which may be ahead of its GPU");
        Some(
            Facts::new().with("loader", watched.loader.as_str()).with_known("unsynchronised", host),
        )
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires(
            "`DataLoader` were timed; all that lies between two of them counts as compute",
            |r| {
                r.watched = Some(of(None));
            },
        ),
        super::tests::fires("counts as compute, of the processor alone", |r| {
            r.watched = Some(of(Some(false)));
        }),
        super::tests::silent(|_| {}),
    ],
};

#[cfg(test)]
fn of(synchronised: Option<bool>) -> crate::record::Watched {
    crate::record::Watched { loader: "DataLoader".into(), synchronised, ..Default::default() }
}
