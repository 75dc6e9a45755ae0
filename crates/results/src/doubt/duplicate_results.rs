//! The same results twice.

use super::{Check, Doubt, Severity, found};

pub(super) static DOUBT: Doubt = Doubt {
    name: "duplicate_results",
    severity: Severity::Invalid,
    meaning: "All times of all steps are those of another folder, to the nanosecond: it is a copy, not a replicate.",
    check: Check::OfSet(|relations, index| {
        let first = relations.copy_of(index)?;
        found(
            format!(
                "all times of its {} steps an epoch are those of `{}`",
                first.steps,
                first.short_path()
            ),
            "leave one of them out",
        )
    }),
};
