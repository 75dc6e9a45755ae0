//! A run's place in its study, as reported by the process that started it. This crate only stores it.

use feedrate_spec::plan::PlanDoubt;
use serde::{Deserialize, Serialize};

/// A run's place in its study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StudyRun {
    /// The CSV of the study.
    pub study: String,
    /// Identity of the study. It stays the same when the folder is moved; `None` in records of versions before 0.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Key of the row: rows with the same key request the same run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Name of the bundled workload, or the file that was used; `None` in records of versions before 0.3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Name shared by replicates, such as `4_batch_size_1`.
    pub experiment: String,
    /// Overrides that the row sets in addition to its columns, verbatim.
    pub overrides: Vec<String>,
    /// Number of the replicate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicate: Option<u32>,
    /// Block of the design that the run belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<u32>,
    /// Position in the order of execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<u32>,
    /// Number of runs of the study started so far, including this one.
    pub attempt: u64,
    /// The author's note.
    pub note: String,
    /// State of the machine before the run.
    pub environment: serde_json::Value,
    /// Doubts about the circumstances of the run.
    pub doubts: Vec<PlanDoubt>,
}
