//! O_DIRECT was asked for, and the device was not read.

use super::{Doubt, Severity, found};
use feedrate_spec::units;

/// Whole blocks make the device give rather more than less.
const CACHED_SHARE_MAX: f64 = 0.1;

pub(super) static DOUBT: Doubt = Doubt {
    name: "direct_not_in_effect",
    severity: Severity::Warning,
    meaning: "Reads were to go past the page cache (O_DIRECT), and fewer bytes came from the device: the file system takes no notice, or lies in memory.",
    check: |facts| {
        let direct = facts.record.plan.storage.engine.as_deref() == Some("direct");
        facts.cached_share().filter(|&share| direct && CACHED_SHARE_MAX < share)?;
        found(
            format!(
                "{} were read and {} came from the device",
                units::bytes(facts.logical_bytes),
                units::bytes(facts.device_bytes.unwrap_or(0)),
            ),
            "point `--data` at a file system on a device, or use `storage.engine=psync` with `--cold`",
        )
    },
};
