//! Not all ranks have left their files.

use super::{Check, Doubt, Severity, found, some_of};

pub(super) static DOUBT: Doubt = Doubt {
    name: "missing_ranks",
    severity: Severity::Invalid,
    meaning: "Files of some ranks are not there or cannot be read: utilisation is of the others, and rates are not known.",
    check: Check::OfRun(|loaded| {
        let imported = loaded.imported?;
        let missing = imported.ranks_missing();
        if missing.is_empty() || !imported.trains() {
            return None;
        }
        let names: Vec<String> = missing.iter().map(u32::to_string).collect();
        found(
            format!(
                "steps of {} of {} ranks are missing: {}",
                missing.len(),
                imported.ranks_expected.unwrap_or_default(),
                some_of(&names, 8)
            ),
            "copy the folder again from where it was written; ranks that crossed a second at the start write into a folder of their own",
        )
    }),
};
