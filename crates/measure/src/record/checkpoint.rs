//! Checkpoints of a record, with the share of each rank.

use super::{EpochRecord, Record};
use feedrate_spec::names;
use feedrate_spec::units::GIB;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One checkpoint that was written or read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointRecord {
    /// Whether the checkpoint was written or read.
    #[serde(default)]
    pub kind: CheckpointKind,
    /// Start, counted from the start of the run.
    pub start_ns: u64,
    /// End, counted from the start of the run.
    pub end_ns: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Steps of the epoch that were done before the checkpoint.
    #[serde(default)]
    pub after_step: u64,
    /// Time that training waited for the checkpoint; `None` if it waited until the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_ns: Option<u64>,
    /// Time spent in syncs of folders and the manifest. The times of ranks do not include it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder_sync_ns: Option<u64>,
    /// Increase of `read_bytes` of `/proc/self/io` over all processes while the checkpoint was read; `None` if it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_device_read_bytes: Option<u64>,
    /// Time that rank 0 spent on optimizer files; `None` if it had no model files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimizer_ns: Option<u64>,
    /// Participating ranks in order; empty if the record does not list ranks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankCheckpoint>,
}

names! {
    /// Direction of a checkpoint.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum CheckpointKind {
        /// The checkpoint was written.
        #[default]
        Save = "save",
        /// The checkpoint was read.
        Load = "load",
    }
}

/// The share of a rank in a checkpoint. A record may have thousands, so it is serialized as five numbers: rank, start, end, bytes, sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[u64; 5]", into = "[u64; 5]")]
pub struct RankCheckpoint {
    /// Number of the rank.
    pub rank: u64,
    /// Start, counted from the start of the run.
    pub start_ns: u64,
    /// End, counted from the start of the run.
    pub end_ns: u64,
    /// Size of the rank's files, including headers.
    pub bytes: u64,
    /// Time that the rank spent in syncs.
    pub sync_ns: u64,
}

impl RankCheckpoint {
    /// Time from start to end.
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
    fn from(share: RankCheckpoint) -> Self {
        [share.rank, share.start_ns, share.end_ns, share.bytes, share.sync_ns]
    }
}

impl Record {
    /// Checkpoints of a kind, in order.
    pub fn checkpoints_of(&self, kind: CheckpointKind) -> impl Iterator<Item = &CheckpointRecord> {
        self.epochs.iter().flat_map(move |epoch| epoch.checkpoints_of(kind))
    }
}

impl EpochRecord {
    /// Checkpoints of a kind, in order.
    pub fn checkpoints_of(
        &self,
        kind: CheckpointKind,
    ) -> impl DoubleEndedIterator<Item = &CheckpointRecord> {
        self.checkpoints.iter().filter(move |checkpoint| checkpoint.kind == kind)
    }
}

impl CheckpointRecord {
    /// Duration in seconds, until the checkpoint was complete.
    pub fn duration_s(&self) -> f64 {
        self.end_ns.saturating_sub(self.start_ns) as f64 / 1e9
    }

    /// Time that training waited for the checkpoint.
    pub fn stall_ns(&self) -> u64 {
        self.stall_ns.unwrap_or(self.end_ns.saturating_sub(self.start_ns))
    }

    /// Rate in bytes per second; `None` if the checkpoint took no time.
    pub fn bytes_per_second(&self) -> Option<f64> {
        let duration_s = self.duration_s();
        (duration_s > 0.0).then(|| self.bytes as f64 / duration_s)
    }

    /// Rate in GiB per second; `None` if the checkpoint took no time.
    pub fn gib_per_second(&self) -> Option<f64> {
        self.bytes_per_second().map(|rate| rate / GIB)
    }
}
