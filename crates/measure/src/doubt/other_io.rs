//! Somebody else used the device.

use super::{Doubt, Severity, found};
use crate::record::CheckpointKind;
use feedrate_spec::units;

/// Less than this is the system's own.
const OTHERS_MIN_BYTES: u64 = 16 << 20;
/// Share of what the device moved in all.
const OTHERS_SHARE_MAX: f64 = 0.1;

pub(super) static DOUBT: Doubt = Doubt {
    name: "other_io",
    severity: Severity::Warning,
    meaning: "The device under the dataset moved many bytes for others during the epochs: the rates are lower than the storage's.",
    check: |facts| {
        let ours = facts.device_bytes?;
        let read = facts.sum_of_host(|host| host.device_read_bytes)?;
        let written = facts.sum_of_host(|host| host.device_write_bytes).unwrap_or(0);
        let saves = facts.record.checkpoints_of(CheckpointKind::Save);
        let saved: u64 = saves.map(|checkpoint| checkpoint.bytes).sum();
        // A file system writes a little more than it was given.
        let written = written.saturating_sub(saved + saved / 10);
        let read_by_others = read.saturating_sub(ours);
        let others = read_by_others + written;
        let all = ours + others;
        if others < OTHERS_MIN_BYTES || others as f64 <= OTHERS_SHARE_MAX * all as f64 {
            return None;
        }
        found(
            format!(
                "besides the {} of this run, the device read {} and wrote {} during the epochs",
                units::bytes(ours),
                units::bytes(read_by_others),
                units::bytes(written)
            ),
            "wait until other jobs, and the writeback of freshly generated files (`sync`), are done; then run again",
        )
    },
};
