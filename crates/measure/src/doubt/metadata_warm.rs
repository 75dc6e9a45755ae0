//! The metadata of files was already in memory, because files had been opened before.

use super::{Bias, DoubtKind, RecordDoubt, Severity};
use crate::facts::Facts;
use crate::record::EpochRecord;
#[cfg(test)]
use crate::record::Record;

/// Largest share of previously opened training files that causes no doubt.
const OPENED_SHARE_MAX: f64 = 0.01;

pub(super) static DOUBT: RecordDoubt = RecordDoubt {
    kind: DoubtKind {
        name: "metadata_warm",
        severity: Severity::Note,
        bias: Bias::Raised,
        meaning: "Files had been opened or created on this machine since it last dropped dentries and inodes: opening them again can be faster than the storage is.",
        evidence: "when epoch {epoch} began, {opened_files:.0} of {dataset_files} ({opened_percent:.1} %) or more had been opened or created on a machine since its dentries and inodes were last dropped[; `--cold` was not allowed to drop them before {not_dropped_epochs}]",
        advice: "use `--cold` where the process may write /proc/sys/vm/drop_caches, as root may",
    },
    needs_loader: false,
    check: Some(|derived| {
        let files = derived.record.plan.dataset.files_train;
        if derived.opens_are_emulated() || files == 0 {
            return None;
        }
        let epochs = &derived.record.epochs;
        let opened_share = |opened: u64| opened as f64 / files as f64;
        let (epoch, opened) = epochs.iter().find_map(|epoch| {
            let opened = epoch.host.metadata_opened_files?;
            (opened_share(opened) > OPENED_SHARE_MAX).then_some((epoch.number, opened))
        })?;
        let is_refused = |epoch: &&EpochRecord| epoch.host.metadata_dropped == Some(false);
        let refused = epochs.iter().filter(is_refused).count() as u64;
        let facts = Facts::new()
            .with("epoch", u64::from(epoch))
            .with("opened_files", opened)
            .with("dataset_files", files)
            .with("opened_percent", opened_share(opened) * 100.0)
            .with_known("not_dropped_epochs", (refused > 0).then_some(refused));
        Some(facts)
    }),
    #[cfg(test)]
    cases: &[
        super::tests::fires("when epoch 1 began, 4 of 80 files (5.0 %) or more had been", |r| {
            set_opened_files(r, &[Some(4), Some(80), Some(80)]);
        }),
        super::tests::fires("when epoch 2 began, 80 of 80 files (100.0 %)", |r| {
            set_opened_files(r, &[None, Some(80), Some(80)]);
        }),
        super::tests::fires("was not allowed to drop them before 2 epochs", |r| {
            set_opened_files(r, &[Some(0), Some(80), Some(80)]);
            r.epochs[1].host.metadata_dropped = Some(false);
            r.epochs[2].host.metadata_dropped = Some(false);
        }),
        super::tests::silent(|r| set_opened_files(r, &[Some(0), Some(0), None])),
        super::tests::silent(|r| {
            r.plan.dataset.files_train *= 10;
            set_opened_files(r, &[Some(8), Some(8), Some(8)]);
        }),
        super::tests::silent(|r| {
            set_opened_files(r, &[Some(80), Some(80), Some(80)]);
            r.plan.storage.throttle_bytes_per_second = Some(1e6);
        }),
    ],
};

#[cfg(test)]
fn set_opened_files(record: &mut Record, files: &[Option<u64>]) {
    for (epoch, &opened) in record.epochs.iter_mut().zip(files) {
        epoch.host.metadata_opened_files = opened;
    }
}
