//! The dataset was read from memory instead of the storage.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use feedrate_spec::plan::Cache;

/// Largest cached share of the bytes that causes no doubt. Reads are rounded to pages, so the device usually returns slightly more than
/// the run read.
pub(super) const CACHED_SHARE_MAX: f64 = 0.01;

/// Name of the doubt.
pub(super) const NAME: &str = "page_cache";

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: NAME,
        severity: Severity::Warning,
        bias: Bias::Raised,
        meaning: "Part of the dataset was read from the page cache, not from the storage: rates can exceed what the storage can do.",
        evidence: "{read_bytes} were read[ and {device_bytes} came from the device ({from_memory_percent:.0} % from memory)|, and how much of it came from the device is unknown][; the disk delivered {disk_bytes} to all processes|]; [the file system {memory_file_system} keeps all files in memory|about {resident_bytes} of its files were in the page cache when an epoch began|how much of its files was in the page cache is unknown]",
        advice: "[put the dataset on the storage that you want to measure, since {memory_file_system} is memory|use a dataset of at least five times the memory, since {used_option} was not enough|use `--cold` (in a study, `--cache cold`), or a dataset of at least five times the memory]",
    },
    needs_loader: false,
    check: Some(|derived| {
        derived.data_origin().filter(|origin| CACHED_SHARE_MAX < origin.cached_share_max())?;
        let share = derived.cached_share();
        let disk_bytes = derived.disk_bytes().filter(|bytes| *bytes < derived.io.read_bytes);
        let is_cold = derived.record.plan.train.cache == Cache::Cold;
        let facts = Facts::new()
            .with("read_bytes", derived.io.read_bytes)
            .with_known("device_bytes", derived.device_bytes)
            .with_known("disk_bytes", disk_bytes.filter(|_| share.is_none()))
            .with_known("memory_file_system", derived.memory_file_system())
            .with_known("used_option", is_cold.then_some("`--cold`"))
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
        super::tests::fires(
            "240 MB were read, and how much of it came from the device is unknown; about 80 MB of its files",
            |r| {
                super::tests::set_device_bytes_unknown(r);
                r.epochs[2].host.resident_before_bytes = Some(80_000_000);
            },
        ),
        super::tests::fires(
            "is unknown; how much of its files was in the page cache is unknown",
            |r| {
                super::tests::set_device_bytes_unknown(r);
                set_residency_unknown(r);
            },
        ),
        super::tests::fires(
            "is unknown; the disk delivered 40 MB to all processes; about 0 B",
            |r| {
                super::tests::set_device_bytes_unknown(r);
                r.epochs.iter_mut().for_each(|e| e.host.device_read_bytes = Some(0));
                r.epochs[0].host.device_read_bytes = Some(40_000_000);
            },
        ),
        super::tests::fires("100 % from memory); the file system tmpfs keeps", |r| {
            super::tests::nothing_from_device(r);
            r.system.data_mount.as_mut().unwrap().file_system = "tmpfs".into();
        }),
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

/// Residency was sampled, but the kernel did not report it.
#[cfg(test)]
fn set_residency_unknown(record: &mut crate::record::Record) {
    record.epochs.iter_mut().for_each(|epoch| epoch.host.resident_before_bytes = None);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derived::Derived;
    use crate::doubt::doubts;
    use crate::example::simple;
    use crate::record::Mount;

    /// The advice for a run that memory served, on a file system and with a setting of the page cache.
    fn check(file_system: &str, cache: Cache, expected: &str) {
        let mut record = simple(&vec![(500, 500, 0, 1_000_000); 20]);
        let host = &mut record.epochs[0].host;
        (host.process_device_read_bytes, host.resident_before_bytes) = (Some(0), Some(20_000_000));
        record.system.data_mount =
            Some(Mount { file_system: file_system.into(), ..Mount::default() });
        record.plan.train.cache = cache;
        let found = doubts(&Derived::new(&record));
        let doubt = found.iter().find(|doubt| doubt.name == NAME).unwrap();
        assert_eq!(doubt.advice, expected);
    }

    #[test]
    fn the_option_cold_is_advised_only_where_it_helps() {
        let larger = "a dataset of at least five times the memory";
        check(
            "ext4",
            Cache::AsIs,
            &format!("use `--cold` (in a study, `--cache cold`), or {larger}"),
        );
        check("ext4", Cache::Cold, &format!("use {larger}, since `--cold` was not enough"));
        let elsewhere =
            "put the dataset on the storage that you want to measure, since tmpfs is memory";
        check("tmpfs", Cache::AsIs, elsewhere);
        check("tmpfs", Cache::Cold, elsewhere);
    }
}
