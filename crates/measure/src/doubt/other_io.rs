//! Other processes used the device.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::derived::Derived;
use crate::facts::Facts;
use crate::record::CheckpointKind;

/// Smallest number of bytes of other processes that causes a doubt; fewer bytes are attributed to the operating system.
const OTHERS_MIN_BYTES: u64 = 16 << 20;
/// Largest share of other processes in the transferred bytes that causes no doubt.
const OTHERS_SHARE_MAX: f64 = 0.1;

/// Name of the doubt.
pub const NAME: &str = "other_io";

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: NAME,
        severity: Severity::Warning,
        bias: Bias::Lowered,
        meaning: "The device under the dataset transferred many bytes for other processes during the epochs: the measured rates are lower than the storage allows.",
        evidence: "besides the {own_bytes} of this run, the device read {others_read_bytes} and wrote {others_written_bytes} during the epochs",
        advice: "wait until other jobs and the writeback of newly generated files (`sync`) are done, then run again",
    },
    needs_loader: false,
    check: Some(check),
    #[cfg(test)]
    cases: &[
        super::tests::fires("the device read 40 MB and wrote 0 B", |r| {
            r.epochs[0].host.device_read_bytes = Some(120_000_000);
        }),
        super::tests::fires("read 0 B and wrote 50 MB", |r| {
            r.epochs[2].host.device_write_bytes = Some(50_000_000);
        }),
        super::tests::silent(|r| r.epochs[0].host.device_read_bytes = Some(81_000_000)),
        super::tests::silent(|r| r.epochs[0].host.device_read_bytes = None),
        // These reads do not wait for the device.
        super::tests::silent(|r| {
            r.epochs[0].host.device_read_bytes = Some(120_000_000);
            r.plan.storage.has_no_device = true;
        }),
        super::tests::silent(|r| {
            r.epochs[0].host.device_read_bytes = Some(120_000_000);
            r.plan.storage.throttle_bytes_per_second = Some(1e6);
        }),
        super::tests::silent(|r| r.epochs[0].host.device_write_bytes = Some(20_000_000)),
        super::tests::silent(|r| {
            r.epochs[0].host.device_write_bytes = Some(210_000_000);
            let saved = r#"{"start_ns": 0, "end_ns": 1, "bytes": 200000000}"#;
            r.epochs[0].checkpoints = vec![serde_json::from_str(saved).unwrap()];
        }),
    ],
};

fn check(derived: &Derived) -> Option<Facts> {
    let has_device = !derived.record.plan.storage_of_steps().has_no_device;
    if !has_device || derived.reads_are_emulated() {
        return None;
    }
    let own_bytes = derived.device_bytes?;
    let read_bytes = derived.sum_over_epochs(|host| host.device_read_bytes)?;
    let written_bytes = derived.sum_over_epochs(|host| host.device_write_bytes).unwrap_or(0);
    let saves = derived.record.checkpoints_of(CheckpointKind::Save);
    let saved_bytes: u64 = saves.map(|checkpoint| checkpoint.bytes).sum();
    // A file system writes slightly more than the bytes passed to it.
    let others_written_bytes = written_bytes.saturating_sub(saved_bytes + saved_bytes / 10);
    let others_read_bytes = read_bytes.saturating_sub(own_bytes);
    let others_bytes = others_read_bytes + others_written_bytes;
    let total_bytes = own_bytes + others_bytes;
    let is_small = others_bytes < OTHERS_MIN_BYTES
        || others_bytes as f64 <= OTHERS_SHARE_MAX * total_bytes as f64;
    if is_small {
        return None;
    }
    let facts = Facts::new()
        .with("own_bytes", own_bytes)
        .with("others_read_bytes", others_read_bytes)
        .with("others_written_bytes", others_written_bytes);
    Some(facts)
}
