//! The first epoch is unlike the rest.

use super::{DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use crate::metric::{SAMPLES_WHOLE, mean};

/// Share of the rest's rate.
const DIFFERENCE_MAX: f64 = 0.05;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "first_epoch_differs",
        severity: Severity::Note,
        meaning: "The first epoch's rate differs from that of the others by more than 5 %: a cache filled, or something started up.",
        evidence: "{first_samples_per_second} in the first epoch, {others_samples_per_second:.1} in the others",
        advice: "look at the epochs one by one; with `--cold` all are alike if the page cache was the cause",
    },
    needs_loader: false,
    check: Some(|derived| {
        let rates = SAMPLES_WHOLE.of_epochs(derived.record);
        let (first, rest) = rates.split_first()?;
        let (first, rest) = ((*first)?, mean(&rest.iter().copied().flatten().collect::<Vec<_>>())?);
        if (first - rest).abs() <= DIFFERENCE_MAX * rest {
            return None;
        }
        let facts = Facts::new().with("first_samples_per_second", first);
        Some(facts.with("others_samples_per_second", rest))
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires("1.9 samples/s in the first epoch, 2.0 in the others", |r| {
            r.epochs[0].end_ns += 3_000_000_000;
        }),
        super::tests::silent(|r| r.epochs[0].end_ns += 1_000_000_000),
        super::tests::silent(|r| r.epochs[1].end_ns += 1_000_000_000),
    ],
};
