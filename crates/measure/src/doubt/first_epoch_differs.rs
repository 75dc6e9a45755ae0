//! The rate of the first epoch differs from the rate of the other epochs.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use crate::metric::{SAMPLES_WHOLE, mean};

/// Largest difference that causes no doubt, as a share of the rate of the other epochs.
const DIFFERENCE_MAX: f64 = 0.05;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "first_epoch_differs",
        severity: Severity::Note,
        bias: Bias::Unaffected,
        meaning: "The rate of the first epoch differs from the rate of the other epochs by more than 5 %: a cache filled, or something started up.",
        evidence: "{first_samples_per_second} in the first epoch, {others_samples_per_second:.1} in the others",
        advice: "look at each epoch; with `--cold`, all epochs have the same rate if the page cache was the cause",
    },
    needs_loader: false,
    check: Some(|derived| {
        let rates = SAMPLES_WHOLE.epoch_values(derived.record);
        let (first, others) = rates.split_first()?;
        let first_rate = (*first)?;
        let other_rates: Vec<f64> = others.iter().copied().flatten().collect();
        let others_rate = mean(&other_rates)?;
        if (first_rate - others_rate).abs() <= DIFFERENCE_MAX * others_rate {
            return None;
        }
        let facts = Facts::new().with("first_samples_per_second", first_rate);
        Some(facts.with("others_samples_per_second", others_rate))
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
