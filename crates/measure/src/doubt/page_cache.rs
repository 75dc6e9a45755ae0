//! Memory served what storage should have.

use super::{Doubt, Severity, found};
use feedrate_spec::units;

/// Share of the bytes; reads are rounded to pages, so that the device gives rather more than less.
const CACHED_SHARE_MAX: f64 = 0.01;

pub(super) static DOUBT: Doubt = Doubt {
    name: "page_cache",
    severity: Severity::Warning,
    meaning: "Part of the dataset was read from the page cache, not from the storage: rates can exceed what the storage can do.",
    check: |facts| {
        let share = facts.cached_share().filter(|&share| CACHED_SHARE_MAX < share)?;
        let resident = facts.resident_bytes().unwrap_or(0);
        found(
            format!(
                "{} were read and {} came from the device ({:.0} % from memory); {} of the dataset's {} were in the page cache when an epoch began",
                units::bytes(facts.logical_bytes),
                units::bytes(facts.device_bytes.unwrap_or(0)),
                share * 100.0,
                units::bytes(resident),
                units::bytes(facts.dataset_bytes),
            ),
            "use `--cold`, or a dataset of at least five times the memory",
        )
    },
};
