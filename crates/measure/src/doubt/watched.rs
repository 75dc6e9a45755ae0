//! The record is from a watched training loop, so only the times between its batches are known.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "watched",
        severity: Severity::Note,
        bias: Bias::Unaffected,
        meaning: "The training loop was not feedrate's and was only watched: load and compute time of its steps are measured; files, reads and decoding are unknown.",
        evidence: "batches of `{loader}` were timed; all time between two of them counts as compute[, of the {unsynchronised}|]",
        advice: "to learn what the loader waits for, run a similar workload: `feedrate run`",
    },
    needs_loader: false,
    check: Some(|derived| {
        let watched = derived.record.watched.as_ref()?;
        let is_ahead = watched.synchronised == Some(false);
        let unsynchronised = is_ahead.then_some("processor alone, which may be ahead of its GPU");
        let facts = Facts::new().with("loader", watched.loader.as_str());
        Some(facts.with_known("unsynchronised", unsynchronised))
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires(
            "`DataLoader` were timed; all time between two of them counts as compute",
            |r| r.watched = Some(watched(None)),
        ),
        super::tests::fires("counts as compute, of the processor alone", |r| {
            r.watched = Some(watched(Some(false)));
        }),
        super::tests::silent(|_| {}),
    ],
};

#[cfg(test)]
fn watched(synchronised: Option<bool>) -> crate::record::Watched {
    crate::record::Watched { loader: "DataLoader".into(), synchronised, ..Default::default() }
}
