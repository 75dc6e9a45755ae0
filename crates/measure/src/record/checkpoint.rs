//! Checkpoints of a record: how long each took, and each rank's part of it.

use super::{EpochRecord, Record};
use feedrate_spec::names;
use feedrate_spec::units::GIB;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One checkpoint that was written or read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointRecord {
    /// Written, or read.
    #[serde(default)]
    pub kind: CheckpointKind,
    /// From the start of the run.
    pub start_ns: u64,
    /// From the start of the run.
    pub end_ns: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Steps of the epoch that were done by then.
    #[serde(default)]
    pub after_step: u64,
    /// How long training waited for it, where that was not all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_ns: Option<u64>,
    /// How long it waited for syncs of folders and manifest, which no rank makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder_sync_ns: Option<u64>,
    /// `read_bytes` of `/proc/self/io` over all processes while it was read; of one that was written there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_device_read_bytes: Option<u64>,
    /// Part of rank 0's time that it took for files of the optimizer, where it had those of a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimizer_ns: Option<u64>,
    /// Each rank that took part, in their order; empty in records that do not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankCheckpoint>,
}

names! {
    /// Direction of a checkpoint.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum CheckpointKind {
        /// Written.
        #[default]
        Save = "save",
        /// Read.
        Load = "load",
    }
}

/// A rank's part of a checkpoint. A record holds thousands, so its file has five numbers for each:
/// rank, start, end, bytes, sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[u64; 5]", into = "[u64; 5]")]
pub struct RankCheckpoint {
    /// Its number.
    pub rank: u64,
    /// From the start of the run.
    pub start_ns: u64,
    /// From the start of the run.
    pub end_ns: u64,
    /// Bytes of its files, headers and all.
    pub bytes: u64,
    /// Part of that time that it waited for syncs.
    pub sync_ns: u64,
}

impl RankCheckpoint {
    /// Time for all its files.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

impl From<[u64; 5]> for RankCheckpoint {
    fn from([rank, start_ns, end_ns, bytes, sync_ns]: [u64; 5]) -> Self {
        RankCheckpoint { rank, start_ns, end_ns, bytes, sync_ns }
    }
}

impl From<RankCheckpoint> for [u64; 5] {
    fn from(of: RankCheckpoint) -> Self {
        [of.rank, of.start_ns, of.end_ns, of.bytes, of.sync_ns]
    }
}

impl Record {
    /// Checkpoints of one kind, in order.
    pub fn checkpoints_of(&self, kind: CheckpointKind) -> impl Iterator<Item = &CheckpointRecord> {
        self.epochs.iter().flat_map(move |epoch| epoch.checkpoints_of(kind))
    }
}

impl EpochRecord {
    /// Checkpoints of one kind, in order.
    pub fn checkpoints_of(
        &self,
        kind: CheckpointKind,
    ) -> impl DoubleEndedIterator<Item = &CheckpointRecord> {
        self.checkpoints.iter().filter(move |checkpoint| checkpoint.kind == kind)
    }
}

impl CheckpointRecord {
    /// From its start until it was whole.
    pub fn duration_s(&self) -> f64 {
        self.end_ns.saturating_sub(self.start_ns) as f64 / 1e9
    }

    /// How long training waited for it.
    pub fn stall_ns(&self) -> u64 {
        self.stall_ns.unwrap_or(self.end_ns.saturating_sub(self.start_ns))
    }

    /// 2^30 bytes a second; `None` of nothing.
    pub fn gib_per_second(&self) -> Option<f64> {
        let duration_s = self.duration_s();
        (duration_s > 0.0).then(|| self.bytes as f64 / GIB / duration_s)
    }
}
