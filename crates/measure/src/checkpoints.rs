//! Durations, rates and stalls of a record's checkpoints, separately for saved and loaded ones.

use crate::file_system::is_in_memory;
use crate::metric::{mean, stdev};
use crate::record::{CheckpointKind, CheckpointRecord, RankCheckpoint, Record};
use crate::window::seconds;
use feedrate_spec::names;
use feedrate_spec::units::GIB;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

names! {
    /// Where checkpoints were when they counted as written, or were when they were read.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum CheckpointMedium {
        /// On the storage.
        Storage = "storage",
        /// In the page cache, at least half of the bytes.
        PageCache = "page_cache",
        /// In a store of objects.
        Store = "store",
        /// In a file system that keeps its files in memory.
        MemoryFileSystem = "memory_file_system",
        /// Unknown, because the kernel does not count the bytes from the device, or the record does not have the file system.
        Unknown = "unknown",
    }
}

impl CheckpointMedium {
    /// Whether rates of this medium are those of the storage.
    pub fn is_storage(self) -> bool {
        matches!(self, CheckpointMedium::Storage | CheckpointMedium::Store)
    }
}

/// Share of the bytes from the page cache above which the rate is not that of the storage.
const CACHED_SHARE_MAX: f64 = 0.5;

/// The rank that needs most time for its part of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SlowestRank {
    /// Number of the rank.
    pub rank: u64,
    /// Its mean time for a checkpoint.
    pub duration_s: f64,
    /// Its bytes ÷ its time.
    pub bytes_per_second: Option<f64>,
    /// Mean time of all ranks for a checkpoint.
    pub all_ranks_duration_s: f64,
}

/// All checkpoints of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CheckpointSummary {
    /// Checkpoints that were saved; `null` if there were none.
    pub save: Option<Checkpoints>,
    /// Checkpoints that were loaded; `null` if there were none.
    pub load: Option<Checkpoints>,
}

/// Checkpoints of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Checkpoints {
    /// Number of checkpoints.
    pub count: u64,
    /// Bytes of one checkpoint.
    pub bytes: u64,
    /// Mean duration. A checkpoint lasts until its last rank is done.
    pub duration_s: Option<f64>,
    /// Longest duration.
    pub duration_max_s: Option<f64>,
    /// Bytes of all checkpoints ÷ their total duration.
    pub bytes_per_second: Option<f64>,
    /// Where the checkpoints were when they counted as written, or were when they were read.
    pub medium: CheckpointMedium,
    /// Whether a checkpoint survives a power failure once it counts as written, because it was synced; `null` for loaded checkpoints, and if their file system
    /// is unknown.
    pub is_durable: Option<bool>,
    /// Bytes of loaded checkpoints that came from the device; `null` for saved checkpoints, and if the kernel does not count them.
    pub device_bytes: Option<u64>,
    /// The slowest rank; `null` if fewer than two ranks took part.
    pub slowest_rank: Option<SlowestRank>,
    /// Mean of bytes ÷ duration.
    pub gib_per_second: Option<f64>,
    /// Mean over ranks of a rank's bytes ÷ its time.
    pub rank_gib_per_second: Option<f64>,
    /// Total time that training waited for checkpoints.
    pub stall_s: f64,
    /// Share of the checkpoint time that was spent in `fsync`, 0 to 1; includes the syncs of folders and manifests.
    pub fsync_share: Option<f64>,
}

impl CheckpointSummary {
    /// Summarises the checkpoints of a record; `None` if it has none.
    pub fn new(record: &Record) -> Option<Self> {
        let save = Checkpoints::new(record, CheckpointKind::Save);
        let load = Checkpoints::new(record, CheckpointKind::Load);
        (save.is_some() || load.is_some()).then_some(CheckpointSummary { save, load })
    }

    /// Whether all rates are those of the storage.
    pub fn are_rates_of_storage(&self) -> bool {
        let mut all = [self.save, self.load].into_iter().flatten();
        all.all(|checkpoints| checkpoints.medium.is_storage())
    }
}

impl Checkpoints {
    fn new(record: &Record, kind: CheckpointKind) -> Option<Self> {
        let all: Vec<&CheckpointRecord> = record.checkpoints_of(kind).collect();
        let first = all.first()?;
        let durations: Vec<f64> = all.iter().map(|checkpoint| checkpoint.duration_s()).collect();
        let rates: Vec<f64> =
            all.iter().filter_map(|checkpoint| checkpoint.gib_per_second()).collect();
        let ranks: Vec<&RankCheckpoint> =
            all.iter().flat_map(|checkpoint| &checkpoint.ranks).collect();
        let rank_rates: Vec<f64> = ranks.iter().filter_map(|rank| rank_rate(rank)).collect();
        let ranks_ns: u64 = ranks.iter().map(|rank| rank.duration_ns()).sum();
        let sync_ns: u64 = ranks.iter().map(|rank| rank.sync_ns).sum();
        // Older records do not have this time; their share covers the syncs of ranks only.
        let folder_sync_ns: u64 =
            all.iter().filter_map(|checkpoint| checkpoint.folder_sync_ns).sum();
        let total_s: f64 = durations.iter().sum();
        let total_bytes: u64 = all.iter().map(|checkpoint| checkpoint.bytes).sum();
        let is_synced = record.plan.checkpoint.as_ref().is_some_and(|plan| plan.fsync);
        let device_bytes = match kind {
            CheckpointKind::Save => None,
            CheckpointKind::Load => device_bytes(&all),
        };
        let medium = match kind {
            _ if is_in_store(record) => CheckpointMedium::Store,
            _ if checkpoints_are_in_memory(record) => CheckpointMedium::MemoryFileSystem,
            CheckpointKind::Save if !is_synced => CheckpointMedium::PageCache,
            // The file system of checkpoints beside a training is not recorded.
            CheckpointKind::Save if !record.plan.is_checkpoint_only() => CheckpointMedium::Unknown,
            CheckpointKind::Save => CheckpointMedium::Storage,
            CheckpointKind::Load => read_medium(device_bytes, total_bytes),
        };
        Some(Checkpoints {
            count: all.len() as u64,
            bytes: first.bytes,
            bytes_per_second: (total_s > 0.0).then(|| total_bytes as f64 / total_s),
            medium,
            is_durable: match (kind, medium) {
                (CheckpointKind::Load, _) | (_, CheckpointMedium::Unknown) => None,
                (CheckpointKind::Save, medium) => Some(medium.is_storage()),
            },
            device_bytes,
            slowest_rank: slowest_rank(&ranks),
            duration_s: mean(&durations),
            duration_max_s: durations.iter().copied().reduce(f64::max),
            gib_per_second: mean(&rates),
            rank_gib_per_second: mean(&rank_rates),
            stall_s: all.iter().map(|checkpoint| seconds(checkpoint.stall_ns())).sum(),
            fsync_share: (ranks_ns > 0)
                .then(|| (sync_ns + folder_sync_ns) as f64 / (ranks_ns + folder_sync_ns) as f64),
        })
    }
}

/// Whether the checkpoints of a run are in a store of objects.
pub(crate) fn is_in_store(record: &Record) -> bool {
    record.plan.checkpoint.as_ref().is_some_and(|plan| plan.is_in_store())
}

/// Whether the file system of the checkpoints keeps its files in memory. It is known for runs that only write or read checkpoints.
fn checkpoints_are_in_memory(record: &Record) -> bool {
    let mount = record.system.data_mount.as_ref();
    let mount = mount.filter(|_| record.plan.is_checkpoint_only());
    mount.is_some_and(|mount| is_in_memory(&mount.file_system))
}

/// Bytes of loaded checkpoints that came from the device. Readahead may fetch more than a checkpoint.
fn device_bytes(loads: &[&CheckpointRecord]) -> Option<u64> {
    loads.iter().map(|load| Some(load.process_device_read_bytes?.min(load.bytes))).sum()
}

fn read_medium(device_bytes: Option<u64>, bytes: u64) -> CheckpointMedium {
    let cached_share = device_bytes
        .filter(|_| bytes > 0)
        .map(|device_bytes| 1.0 - device_bytes as f64 / bytes as f64);
    match cached_share {
        None => CheckpointMedium::Unknown,
        Some(share) if CACHED_SHARE_MAX < share => CheckpointMedium::PageCache,
        Some(_) => CheckpointMedium::Storage,
    }
}

/// The rank with the longest time over all checkpoints.
fn slowest_rank(parts: &[&RankCheckpoint]) -> Option<SlowestRank> {
    let mut by_rank: BTreeMap<u64, Vec<&RankCheckpoint>> = BTreeMap::new();
    for part in parts {
        by_rank.entry(part.rank).or_default().push(part);
    }
    let mean_s = |parts: &[&RankCheckpoint]| {
        mean(&parts.iter().map(|part| seconds(part.duration_ns())).collect::<Vec<f64>>())
    };
    let durations: Vec<(u64, f64)> =
        by_rank.iter().filter_map(|(rank, parts)| Some((*rank, mean_s(parts)?))).collect();
    let (rank, duration_s) = durations.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let bytes: u64 = by_rank[&rank].iter().map(|part| part.bytes).sum();
    let total_s = duration_s * by_rank[&rank].len() as f64;
    Some(SlowestRank {
        rank,
        duration_s,
        bytes_per_second: (total_s > 0.0).then(|| bytes as f64 / total_s),
        all_ranks_duration_s: mean_s(parts)?,
    })
    .filter(|_| 1 < by_rank.len())
}

/// The four figures of checkpoints in DLIO's `summary.json`. Deviations are population standard deviations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DlioFigures {
    pub(crate) gib_per_second: Option<f64>,
    pub(crate) gib_per_second_stdev: Option<f64>,
    pub(crate) duration_s: Option<f64>,
    pub(crate) duration_stdev_s: Option<f64>,
}

/// Computes DLIO's figures over all checkpoints of a kind.
pub(crate) fn dlio_figures(record: &Record, kind: CheckpointKind) -> DlioFigures {
    let all: Vec<&CheckpointRecord> = record.checkpoints_of(kind).collect();
    let rates: Vec<f64> = all.iter().filter_map(|checkpoint| checkpoint.gib_per_second()).collect();
    let durations: Vec<f64> = all.iter().map(|checkpoint| checkpoint.duration_s()).collect();
    DlioFigures {
        gib_per_second: mean(&rates),
        gib_per_second_stdev: stdev(&rates),
        duration_s: mean(&durations),
        duration_stdev_s: stdev(&durations),
    }
}

fn rank_rate(rank: &RankCheckpoint) -> Option<f64> {
    let duration_s = seconds(rank.duration_ns());
    (duration_s > 0.0).then(|| rank.bytes as f64 / GIB / duration_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{checkpoint_only_record, simple};
    use crate::record::Mount;

    const S: u64 = 1_000_000_000;

    fn checkpoint(
        kind: CheckpointKind,
        start_s: u64,
        end_s: u64,
        stall: Option<u64>,
    ) -> CheckpointRecord {
        let rank = |rank, end_s: u64, sync_s: u64| RankCheckpoint {
            rank,
            start_ns: start_s * S,
            end_ns: end_s * S,
            bytes: 4 << 30,
            sync_ns: sync_s * S,
        };
        CheckpointRecord {
            kind,
            start_ns: start_s * S,
            end_ns: end_s * S,
            bytes: 8 << 30,
            after_step: 1,
            stall_ns: stall.map(|s| s * S),
            folder_sync_ns: stall.map(|_| 2 * S),
            process_device_read_bytes: None,
            optimizer_ns: None,
            ranks: vec![rank(0, start_s + 1, 1), rank(1, end_s, 0)],
        }
    }

    #[test]
    fn saves_and_loads_are_summarised_separately() {
        let mut record = simple(&[(10, 5, 1, 100)]);
        assert_eq!(CheckpointSummary::new(&record), None);
        record.epochs[0].checkpoints = vec![
            checkpoint(CheckpointKind::Save, 10, 12, None),
            checkpoint(CheckpointKind::Save, 20, 24, Some(1)),
            checkpoint(CheckpointKind::Load, 30, 31, None),
        ];
        let CheckpointSummary { save: Some(save), load: Some(load) } =
            CheckpointSummary::new(&record).unwrap()
        else {
            panic!("saves or loads are missing");
        };
        assert_eq!((save.count, save.bytes), (2, 8 << 30));
        assert_eq!((save.duration_s, save.duration_max_s), (Some(3.0), Some(4.0)));
        assert_eq!(save.gib_per_second, Some((4.0 + 2.0) / 2.0));
        assert_eq!(save.bytes_per_second, Some((16u64 << 30) as f64 / 6.0));
        // Rank 1 takes 2 and 4 s for 4 GiB each, rank 0 takes a second each.
        let slowest = SlowestRank {
            rank: 1,
            duration_s: 3.0,
            bytes_per_second: Some((8u64 << 30) as f64 / 6.0),
            all_ranks_duration_s: 2.0,
        };
        assert_eq!(save.slowest_rank, Some(slowest));
        assert_eq!(save.rank_gib_per_second, Some((4.0 + 2.0 + 4.0 + 1.0) / 4.0));
        assert_eq!(save.stall_s, 2.0 + 1.0);
        assert_eq!(save.fsync_share, Some((2.0 + 2.0) / (1.0 + 2.0 + 1.0 + 4.0 + 2.0)));
        assert_eq!((load.count, load.duration_s), (1, Some(1.0)));
        let expected = DlioFigures {
            gib_per_second: Some(3.0),
            gib_per_second_stdev: Some(1.0),
            duration_s: Some(3.0),
            duration_stdev_s: Some(1.0),
        };
        assert_eq!(dlio_figures(&record, CheckpointKind::Save), expected);
    }

    /// Checks the media of two checkpoints of 8 GiB that were written and one that was read.
    #[track_caller]
    fn check_media(change: impl Fn(&mut Record), save: CheckpointMedium, load: CheckpointMedium) {
        let mut record = checkpoint_only_record(3);
        change(&mut record);
        let found = CheckpointSummary::new(&record).unwrap();
        let media = [found.save, found.load].map(|found| found.map(|found| found.medium));
        assert_eq!(media, [Some(save), Some(load)]);
        let is_durable = [found.save, found.load].map(|found| found.and_then(|f| f.is_durable));
        assert_eq!(is_durable, [Some(save == CheckpointMedium::Storage), None]);
        let are_both = [save, load] == [CheckpointMedium::Storage; 2];
        assert_eq!(found.are_rates_of_storage(), are_both);
    }

    #[test]
    fn rates_are_those_of_the_storage_if_it_had_the_bytes() {
        use CheckpointMedium::{MemoryFileSystem, PageCache, Storage, Unknown};
        let set = |record: &mut Record, fsync: bool, device_bytes: Option<u64>| {
            record.plan.checkpoint.as_mut().unwrap().fsync = fsync;
            record.epochs[0].checkpoints[2].process_device_read_bytes = device_bytes;
        };
        check_media(|_| {}, PageCache, Unknown);
        check_media(|r| set(r, true, Some(1 << 30)), Storage, Storage);
        check_media(|r| set(r, true, Some(1 << 40)), Storage, Storage);
        check_media(|r| set(r, true, Some(1 << 29)), Storage, Storage);
        check_media(|r| set(r, true, Some((1 << 29) - 1)), Storage, PageCache);
        check_media(|r| set(r, false, Some(0)), PageCache, PageCache);
        let in_memory = |r: &mut Record| {
            set(r, true, Some(0));
            r.system.data_mount = Some(Mount { file_system: "tmpfs".into(), ..Mount::default() });
        };
        check_media(in_memory, MemoryFileSystem, MemoryFileSystem);
    }

    #[test]
    fn records_without_ranks_have_no_rank_figures() {
        let mut record = simple(&[(10, 5, 1, 100)]);
        let without_ranks = r#"{"start_ns": 0, "end_ns": 2000000000, "bytes": 1073741824}"#;
        record.epochs[0].checkpoints = vec![serde_json::from_str(without_ranks).unwrap()];
        let save = CheckpointSummary::new(&record).unwrap().save.unwrap();
        assert_eq!((save.gib_per_second, save.stall_s), (Some(0.5), 2.0));
        assert_eq!((save.rank_gib_per_second, save.fsync_share), (None, None));
    }
}
