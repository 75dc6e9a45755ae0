//! The kernel did not report how many bytes came from the device, and nothing suggests that memory served them.

use super::{Bias, DoubtKind, RecordDoubt, Severity, page_cache};
use crate::data_origin::DataOrigin;
use crate::facts::Facts;

/// Name of the doubt.
pub(super) const NAME: &str = "device_bytes_unknown";

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: NAME,
        severity: Severity::Warning,
        bias: Bias::Raised,
        meaning: "How many bytes came from the device is unknown: a cache below the file system may have served them, and then rates exceed what the device can do.",
        evidence: "{read_bytes} were read, and how much of it came from the device is unknown[: the kernel does not count reads of {file_system}|, as the counters of the process cannot be read]",
        advice: "compare with the counters of the storage, or use a dataset of at least five times the memory of the machines that serve it",
    },
    needs_loader: false,
    check: Some(|derived| {
        let is_direct = derived.record.plan.storage_of_steps().passes_page_cache;
        let DataOrigin::Uncounted { cached_share_max, memory_share_max } = derived.data_origin()?
        else {
            return None;
        };
        // Otherwise the doubt about the page cache says it.
        let is_uncached = cached_share_max <= page_cache::CACHED_SHARE_MAX;
        let is_from_device = is_direct && memory_share_max <= page_cache::CACHED_SHARE_MAX;
        (is_uncached && !is_from_device).then(|| {
            Facts::new()
                .with("read_bytes", derived.io.read_bytes)
                .with_known("file_system", derived.record.uncounted_file_system())
        })
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires(
            "240 MB were read, and how much of it came from the device is unknown, as the counters",
            super::tests::set_device_bytes_unknown,
        ),
        super::tests::fires("unknown: the kernel does not count reads of fuse.bindfs", |r| {
            super::tests::set_device_bytes_unknown(r);
            r.system.data_mount.as_mut().unwrap().file_system = "fuse.bindfs".into();
        }),
        super::tests::silent(|r| {
            super::tests::set_device_bytes_unknown(r);
            r.plan.storage.passes_page_cache = true;
        }),
        super::tests::fires("unknown: the kernel does not count reads of fuse.bindfs", |r| {
            super::tests::set_device_bytes_unknown(r);
            r.system.data_mount.as_mut().unwrap().file_system = "fuse.bindfs".into();
            r.plan.storage.passes_page_cache = true;
        }),
        super::tests::silent(|r| {
            super::tests::set_device_bytes_unknown(r);
            r.plan.storage.throttle_bytes_per_second = Some(1e6);
        }),
    ],
};
