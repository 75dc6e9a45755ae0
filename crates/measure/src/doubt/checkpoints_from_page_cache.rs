//! Checkpoints were loaded from memory instead of the storage.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::checkpoints::is_in_store;
use crate::facts::Facts;
use crate::record::CheckpointKind;
#[cfg(test)]
use crate::record::{CheckpointRecord, Record};
use feedrate_spec::plan::Cache;

/// Largest cached share of the bytes that causes no doubt, as the kernel may keep a few pages.
const CACHED_SHARE_MAX: f64 = 0.01;

/// Name of the doubt.
pub const NAME: &str = "checkpoints_from_page_cache";

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: NAME,
        severity: Severity::Warning,
        bias: Bias::Checkpoints,
        meaning: "Part of the checkpoints was read from the page cache, not from the storage, or may have been: rates of loading can exceed what the storage can do.",
        evidence: "{read_bytes} of checkpoints were read[ and {device_bytes} came from the device ({from_memory_percent:.0} % from memory)|, and how much of it came from the device is unknown][; the file system {memory_file_system} keeps all files in memory]",
        advice: "[write the checkpoints to the storage that you want to measure, since {memory_file_system} is memory|write the checkpoints to a device whose reads the kernel counts, since {used_option} was not enough|use `--cold`, which removes each checkpoint from the page cache before it is read]",
    },
    needs_loader: false,
    check: Some(|derived| {
        let loads = || derived.record.checkpoints_of(CheckpointKind::Load);
        let read_bytes: u64 = loads().map(|load| load.bytes).sum();
        // Readahead may fetch more than the checkpoint.
        let from_device = loads().map(|load| Some(load.process_device_read_bytes?.min(load.bytes)));
        let device_bytes: Option<u64> = from_device.sum();
        let share = device_bytes.map(|bytes| 1.0 - bytes as f64 / read_bytes as f64);
        let is_doubtful = share.is_none_or(|share| CACHED_SHARE_MAX < share);
        let is_cold = derived.record.plan.train.cache == Cache::Cold;
        // The mount is that of the checkpoints only if there is no dataset.
        let is_alone = derived.record.plan.is_checkpoint_only();
        let memory_file_system = derived.memory_file_system().filter(|_| is_alone);
        let facts = Facts::new()
            .with("read_bytes", read_bytes)
            .with_known("device_bytes", device_bytes)
            .with_known("from_memory_percent", share.map(|share| share * 100.0))
            .with_known("memory_file_system", memory_file_system)
            .with_known("used_option", is_cold.then_some("`--cold`"));
        (read_bytes > 0 && is_doubtful && !is_in_store(derived.record)).then_some(facts)
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires(
            "2 GB of checkpoints were read and 1.9 GB came from the device (5 % from memory)",
            |r| set_loads(r, &[Some(900_000_000), Some(1_100_000_000)]),
        ),
        super::tests::fires("0 B came from the device (100 % from memory)", |r| {
            set_loads(r, &[Some(0)])
        }),
        super::tests::silent(|r| set_loads(r, &[Some(991_000_000), Some(990_000_000)])),
        super::tests::fires("2 GB of checkpoints were read, and how much of it came from", |r| {
            set_loads(r, &[Some(0), None])
        }),
        super::tests::silent(|r| {
            set_loads(r, &[None]);
            r.plan.checkpoint = crate::example::checkpoint_only_record(0).plan.checkpoint;
            r.plan.checkpoint.as_mut().unwrap().folder = "s3://bucket/checkpoints".into();
        }),
        super::tests::silent(|r| {
            set_loads(r, &[Some(0)]);
            r.epochs[0].checkpoints[0].kind = CheckpointKind::Save;
        }),
    ],
};

/// Sets loads of 1 GB each, with the bytes that came from the device.
#[cfg(test)]
fn set_loads(record: &mut Record, from_device: &[Option<u64>]) {
    let load = crate::example::checkpoint(0, 1000, 1_000_000_000, 0);
    let loads = from_device.iter().map(|&process_device_read_bytes| CheckpointRecord {
        kind: CheckpointKind::Load,
        process_device_read_bytes,
        ..load.clone()
    });
    record.epochs[0].checkpoints = loads.collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derived::Derived;
    use crate::doubt::doubts;
    use crate::record::Mount;

    fn check(file_system: &str, cache: Cache, expected: &str) {
        let mut record = crate::example::checkpoint_only_record(3);
        record.epochs[0].checkpoints[2].process_device_read_bytes = Some(0);
        record.system.data_mount =
            Some(Mount { file_system: file_system.into(), ..Mount::default() });
        record.plan.train.cache = cache;
        let found = doubts(&Derived::new(&record));
        let doubt = found.iter().find(|doubt| doubt.name == NAME).unwrap();
        assert!(doubt.advice.starts_with(expected), "{}", doubt.advice);
    }

    #[test]
    fn the_option_cold_is_advised_only_where_it_helps() {
        check("ext4", Cache::AsIs, "use `--cold`");
        check("ext4", Cache::Cold, "write the checkpoints to a device whose reads");
        let elsewhere =
            "write the checkpoints to the storage that you want to measure, since tmpfs is memory";
        check("tmpfs", Cache::AsIs, elsewhere);
        check("tmpfs", Cache::Cold, elsewhere);
    }
}
