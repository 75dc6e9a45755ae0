//! The dataset was read from memory instead of the storage.

use super::{DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;

/// Largest cached share of the bytes that causes no doubt. Reads are rounded to pages, so the device usually returns slightly more than
/// the run read.
const CACHED_SHARE_MAX: f64 = 0.01;

/// Name of the doubt.
pub const NAME: &str = "page_cache";

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: NAME,
        severity: Severity::Warning,
        meaning: "Part of the dataset was read from the page cache, not from the storage: rates can exceed what the storage can do.",
        evidence: "{read_bytes} were read[ and {device_bytes} came from the device ({from_memory_percent:.0} % from memory)|, and how much of it came from the device is unknown]; [about {resident_bytes} of its files were in the page cache when an epoch began|how much of its files was in the page cache is unknown]",
        advice: "use `--cold`, or a dataset of at least five times the memory",
    },
    needs_loader: false,
    check: Some(|derived| {
        let share = derived.cached_share();
        share.or(derived.cached_share_max()).filter(|&share| CACHED_SHARE_MAX < share)?;
        let facts = Facts::new()
            .with("read_bytes", derived.io.read_bytes)
            .with_known("device_bytes", derived.device_bytes)
            .with_known("from_memory_percent", share.map(|share| share * 100.0))
            .with_known("resident_bytes", derived.resident_bytes())
            .with("dataset_bytes", derived.dataset_bytes);
        Some(facts)
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires(
            "240 MB were read and 200 MB came from the device (17 % from memory)",
            |r| set_bytes_from_device(r, 40_000_000),
        ),
        super::tests::silent(|r| set_bytes_from_device(r, 79_000_000)),
        super::tests::silent(|r| set_bytes_from_device(r, 90_000_000)),
        super::tests::fires("100 % from memory", super::tests::nothing_from_device),
        super::tests::silent(|r| {
            super::tests::nothing_from_device(r);
            r.plan.storage.throttle_bytes_per_second = Some(1e6);
        }),
        super::tests::fires("100 % from memory", |r| {
            super::tests::nothing_from_device(r);
            r.plan.storage.throttle_bytes_per_second = Some(1e13);
        }),
        super::tests::silent(set_device_bytes_unknown),
        super::tests::fires(
            "240 MB were read, and how much of it came from the device is unknown; about 80 MB of its files",
            |r| {
                set_device_bytes_unknown(r);
                r.epochs[2].host.resident_before_bytes = Some(80_000_000);
            },
        ),
        super::tests::fires(
            "is unknown; how much of its files was in the page cache is unknown",
            |r| {
                set_device_bytes_unknown(r);
                set_residency_unknown(r);
            },
        ),
        super::tests::fires("100 % from memory); how much of its files", |r| {
            super::tests::nothing_from_device(r);
            set_residency_unknown(r);
        }),
        super::tests::silent(set_residency_unknown),
        super::tests::silent(|r| {
            super::tests::nothing_from_device(r);
            set_residency_unknown(r);
            r.epochs.iter_mut().for_each(|e| e.host.resident_sampled_share = 0.0);
        }),
    ],
};

#[cfg(test)]
fn set_bytes_from_device(record: &mut crate::record::Record, bytes: u64) {
    record.epochs[1].host.process_device_read_bytes = Some(bytes);
    record.epochs[1].host.device_read_bytes = Some(bytes);
}

#[cfg(test)]
fn set_device_bytes_unknown(record: &mut crate::record::Record) {
    record.epochs.iter_mut().for_each(|epoch| epoch.host.process_device_read_bytes = None);
}

/// Residency was sampled, but the kernel did not report it.
#[cfg(test)]
fn set_residency_unknown(record: &mut crate::record::Record) {
    record.epochs.iter_mut().for_each(|epoch| epoch.host.resident_before_bytes = None);
}
