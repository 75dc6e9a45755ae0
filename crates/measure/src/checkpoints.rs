//! Durations, rates and stalls of a record's checkpoints, separately for saved and loaded ones.

use crate::metric::{mean, stdev};
use crate::record::{CheckpointKind, CheckpointRecord, RankCheckpoint, Record};
use crate::window::seconds;
use feedrate_spec::units::GIB;
use schemars::JsonSchema;
use serde::Serialize;

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
        Some(Checkpoints {
            count: all.len() as u64,
            bytes: first.bytes,
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
    use crate::example::simple;

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
