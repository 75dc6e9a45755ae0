//! O_DIRECT was requested, but reads did not come from the device.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;

/// Largest share of cached bytes that causes no doubt.
const CACHED_SHARE_MAX: f64 = 0.1;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "direct_not_in_effect",
        severity: Severity::Warning,
        bias: Bias::Raised,
        meaning: "Reads should have bypassed the page cache (O_DIRECT), but fewer bytes came from the device: the file system ignores the flag, or is in memory.",
        evidence: "{read_bytes} were read and {device_bytes} came from the device",
        advice: "[point `--data` at a file system on a device, since {memory_file_system} is memory|point `--data` at a file system on a device, or use `storage.engine=psync` with `--cold`]",
    },
    needs_loader: false,
    check: Some(|derived| {
        let is_direct = derived.record.plan.storage.passes_page_cache;
        if !is_direct || derived.cached_share()? <= CACHED_SHARE_MAX {
            return None;
        }
        let facts = Facts::new().with("read_bytes", derived.io.read_bytes);
        Some(
            facts
                .with("device_bytes", derived.device_bytes?)
                .with_known("memory_file_system", derived.memory_file_system()),
        )
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires("240 MB were read and 0 B came from the device", |r| {
            super::tests::nothing_from_device(r);
            r.plan.storage.passes_page_cache = true;
        }),
        super::tests::silent(|r| r.plan.storage.passes_page_cache = true),
    ],
};
