//! The first epoch is unlike the rest.

use super::{Doubt, Severity, found};
use crate::metric::{SAMPLES_WHOLE, mean};

/// Share of the rest's rate.
const DIFFERENCE_MAX: f64 = 0.05;

pub(super) static DOUBT: Doubt = Doubt {
    name: "first_epoch_differs",
    severity: Severity::Note,
    meaning: "The first epoch's rate differs from that of the others by more than 5 %: a cache filled, or something started up.",
    check: |facts| {
        let rates = SAMPLES_WHOLE.of_epochs(facts.record);
        let (first, rest) = rates.split_first()?;
        let (first, rest) = ((*first)?, mean(&rest.iter().copied().flatten().collect::<Vec<_>>())?);
        if (first - rest).abs() <= DIFFERENCE_MAX * rest {
            return None;
        }
        found(
            format!("{first:.1} samples/s in the first epoch, {rest:.1} in the others"),
            "look at the epochs one by one; with `--cold` all are alike if the page cache was the cause",
        )
    },
};
