//! A copy of the dataset that was read instead of it, and what it cost to make it. Beside the epochs: no metric of training has it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Over all machines, each of which has its copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagingRecord {
    /// The copy's folder on the first machine.
    pub folder: String,
    /// Time of copying, before training; `None` in records of earlier versions that copied during training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_training: Option<StagingSpan>,
    /// Files that were copied.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that a run before had copied.
    pub kept_files: u64,
    /// Their bytes.
    pub kept_bytes: u64,
}

/// From the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct StagingSpan {
    pub start_ns: u64,
    pub end_ns: u64,
}

/// The same for people and programs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "as in `StagingRecord`")]
pub struct StagingSummary {
    pub folder: String,
    /// How long training waited for it to begin with; `null` where it did not.
    pub copy_s: Option<f64>,
    /// Copied bytes by that time.
    pub bytes_per_second: Option<f64>,
    pub files: u64,
    pub bytes: u64,
    pub kept_files: u64,
    pub kept_bytes: u64,
}

impl StagingRecord {
    /// Add what another process tells.
    #[must_use]
    pub fn with(self, other: &StagingRecord) -> Self {
        StagingRecord {
            files: self.files + other.files,
            bytes: self.bytes + other.bytes,
            kept_files: self.kept_files + other.kept_files,
            kept_bytes: self.kept_bytes + other.kept_bytes,
            ..self
        }
    }

    /// How long training waited for the copy.
    pub fn copy_s(&self) -> Option<f64> {
        let span = self.before_training?;
        Some(span.end_ns.saturating_sub(span.start_ns) as f64 / 1e9)
    }
}

impl StagingSummary {
    /// Sum up.
    pub fn new(record: &StagingRecord) -> Self {
        let copy_s = record.copy_s();
        let rate = copy_s.filter(|&s| s > 0.0 && record.bytes > 0);
        StagingSummary {
            folder: record.folder.clone(),
            copy_s,
            bytes_per_second: rate.map(|s| record.bytes as f64 / s),
            files: record.files,
            bytes: record.bytes,
            kept_files: record.kept_files,
            kept_bytes: record.kept_bytes,
        }
    }

    /// Epochs after which the copy has paid for itself, where an epoch took `original_s` before and takes `staged_s` with it; `None`
    /// where it never does, or where nothing, or not all of it, was copied in this run before training.
    pub fn break_even_epochs(&self, original_s: f64, staged_s: f64) -> Option<f64> {
        let (copy_s, saved_s) = (self.copy_s?, original_s - staged_s);
        (self.kept_files == 0 && saved_s > 0.0).then(|| copy_s / saved_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_pays_for_itself_where_epochs_become_shorter() {
        let span = StagingSpan { start_ns: 1_000_000_000, end_ns: 4_000_000_000 };
        let staging =
            StagingRecord { before_training: Some(span), bytes: 600, ..StagingRecord::default() };
        assert_eq!(StagingSummary::new(&staging).break_even_epochs(2.5, 1.0), Some(2.0));
        assert_eq!(
            StagingSummary::new(&staging).break_even_epochs(1.0, 1.0),
            None,
            "nothing is saved"
        );
        assert_eq!(StagingSummary::new(&staging).break_even_epochs(1.0, 2.0), None);
        assert_eq!(StagingSummary::new(&staging).bytes_per_second, Some(200.0));
        let kept = StagingRecord { kept_files: 1, ..staging.clone() };
        assert_eq!(
            StagingSummary::new(&kept).break_even_epochs(2.5, 1.0),
            None,
            "what it cost is another run's"
        );
    }
}
