//! Checkpoints of a run without training were written into memory instead of the storage.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::checkpoints::CheckpointSummary;
use crate::facts::Facts;
#[cfg(test)]
use crate::record::Record;

/// Name of the doubt.
pub const NAME: &str = "checkpoints_not_synced";

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: NAME,
        severity: Severity::Warning,
        bias: Bias::Checkpoints,
        meaning: "Checkpoints counted as written when they were in memory, not on the storage: rates of writing can exceed what the storage can do.",
        evidence: "{written_bytes} of checkpoints were written [to {memory_file_system}, which keeps all files in memory|without `fsync`, into the page cache][; the disk wrote {disk_bytes} for all processes until the end of the run]",
        advice: "[write the checkpoints to the storage that you want to measure, since {memory_file_system} is memory|use `checkpoint.fsync=true`]",
    },
    needs_loader: false,
    check: Some(|derived| {
        let record = derived.record;
        let save = CheckpointSummary::new(record)?.save?;
        let is_in_memory = !save.medium.is_storage();
        let facts = Facts::new()
            .with("written_bytes", save.bytes * save.count)
            .with_known("memory_file_system", derived.memory_file_system())
            .with_known("disk_bytes", derived.sum_over_epochs(|host| host.device_write_bytes));
        (record.plan.is_checkpoint_only() && is_in_memory).then_some(facts)
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires(
            "2 GB of checkpoints were written without `fsync`, into the page cache; the disk wrote 500 MB",
            |r| {
                set_saves(r, false);
                r.epochs[0].host.device_write_bytes = Some(500_000_000);
            },
        ),
        super::tests::fires("written to tmpfs, which keeps all files in memory", |r| {
            set_saves(r, true);
            r.system.data_mount.as_mut().unwrap().file_system = "tmpfs".into();
        }),
        super::tests::silent(|r| set_saves(r, true)),
        super::tests::silent(|r| {
            set_saves(r, false);
            r.plan.checkpoint.as_mut().unwrap().folder = "s3://bucket/checkpoints".into();
        }),
        super::tests::silent(|r| {
            set_saves(r, false);
            // The time of training is not measured by the rate of its checkpoints.
            r.plan.checkpoint.as_mut().unwrap().alone = None;
        }),
    ],
};

/// Sets two written checkpoints of 1 GB each in a run without training.
#[cfg(test)]
fn set_saves(record: &mut Record, fsync: bool) {
    record.plan.checkpoint = crate::example::checkpoint_only_record(0).plan.checkpoint;
    record.plan.checkpoint.as_mut().unwrap().fsync = fsync;
    record.epochs[0].checkpoints = vec![crate::example::checkpoint(0, 1000, 1_000_000_000, 0); 2];
}
