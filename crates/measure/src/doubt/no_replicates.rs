//! One measurement has no spread.

use super::{Doubt, Severity, found};

const EPOCHS_MIN: usize = 3;

pub(super) static DOUBT: Doubt = Doubt {
    name: "no_replicates",
    severity: Severity::Note,
    meaning: "A single run of fewer than three epochs does not show how far its numbers vary from one time to the next.",
    check: |facts| {
        let epochs = facts.record.epochs.len();
        if epochs == 0 || EPOCHS_MIN <= epochs {
            return None;
        }
        found(
            format!("one run of {epochs} epoch{}", if epochs == 1 { "" } else { "s" }),
            "repeat it, three times at least, before comparing it with another",
        )
    },
};
