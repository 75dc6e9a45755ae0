//! A run's place in its study, as whoever started it tells it. Nothing is computed from it here.

use feedrate_spec::plan::PlanDoubt;
use serde::{Deserialize, Serialize};

/// A run's place in its study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StudyRun {
    /// The CSV of the study.
    pub study: String,
    /// Its identity, which it keeps when it is moved; not told before version 0.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The key of its row: rows with the same key ask for the same run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Name that its replicates have in common: `4_batch_size_1`.
    pub experiment: String,
    /// Overrides that its row sets beside its columns, as it was written.
    pub overrides: Vec<String>,
    /// Number among replicates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicate: Option<u32>,
    /// The block of runs it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<u32>,
    /// Its place in the order of running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<u32>,
    /// Starts of runs of the study so far, this one among them.
    pub attempt: u64,
    /// The author's words.
    pub note: String,
    /// The machine as it was before the run.
    pub environment: serde_json::Value,
    /// Doubts about what was around the run.
    pub doubts: Vec<PlanDoubt>,
}
