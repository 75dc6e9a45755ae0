//! Files that are there and tell nothing.

use super::{Check, Doubt, Severity, found, some_of};

pub(super) static DOUBT: Doubt = Doubt {
    name: "unreadable_files",
    severity: Severity::Invalid,
    meaning: "Result files are empty, cut short or damaged: what they held is missing from the numbers.",
    check: Check::OfRun(|loaded| {
        let unreadable = &loaded.imported?.unreadable;
        if unreadable.is_empty() {
            return None;
        }
        found(
            some_of(unreadable, 4),
            "copy the folder again from where it was written, or run again",
        )
    }),
};
