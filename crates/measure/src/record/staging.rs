//! The copy of a dataset that was read instead of the original, and the cost of making it. No metric of training includes this cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Copies of the dataset. Each machine has one; counts are sums over machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagingRecord {
    /// Folder of the copy on the first machine.
    pub folder: String,
    /// Time span of copying, before training; `None` in records of earlier versions, which copied during training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_training: Option<StagingSpan>,
    /// Number of copied files.
    pub files: u64,
    /// Bytes of the copied files.
    pub bytes: u64,
    /// Number of files that an earlier run had copied.
    pub kept_files: u64,
    /// Bytes of the files that an earlier run had copied.
    pub kept_bytes: u64,
}

/// Time span of copying, in nanoseconds from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct StagingSpan {
    pub start_ns: u64,
    pub end_ns: u64,
}

/// Summary of a [`StagingRecord`].
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "as in `StagingRecord`")]
pub struct StagingSummary {
    pub folder: String,
    /// Time that training waited for the copy; `null` if it did not wait.
    pub copy_s: Option<f64>,
    /// Copied bytes ÷ `copy_s`.
    pub bytes_per_second: Option<f64>,
    pub files: u64,
    pub bytes: u64,
    pub kept_files: u64,
    pub kept_bytes: u64,
}

impl StagingRecord {
    /// Returns this record with the counts of another process added.
    #[must_use]
    pub fn with_counts_of(self, other: &StagingRecord) -> Self {
        StagingRecord {
            files: self.files + other.files,
            bytes: self.bytes + other.bytes,
            kept_files: self.kept_files + other.kept_files,
            kept_bytes: self.kept_bytes + other.kept_bytes,
            ..self
        }
    }

    /// Time that training waited for the copy, in seconds.
    pub fn copy_s(&self) -> Option<f64> {
        let span = self.before_training?;
        Some(span.end_ns.saturating_sub(span.start_ns) as f64 / 1e9)
    }
}

impl StagingSummary {
    /// Summarises a record of staging.
    pub fn new(record: &StagingRecord) -> Self {
        let copy_s = record.copy_s();
        let measured_s = copy_s.filter(|&copy_s| copy_s > 0.0 && record.bytes > 0);
        StagingSummary {
            folder: record.folder.clone(),
            copy_s,
            bytes_per_second: measured_s.map(|copy_s| record.bytes as f64 / copy_s),
            files: record.files,
            bytes: record.bytes,
            kept_files: record.kept_files,
            kept_bytes: record.kept_bytes,
        }
    }

    /// Number of epochs after which the copy has saved as much time as copying took. An epoch takes `original_s` without the copy and
    /// `staged_s` with the copy.
    /// `None` if no time is saved, or if this run did not copy the whole dataset before training.
    pub fn break_even_epochs(&self, original_s: f64, staged_s: f64) -> Option<f64> {
        let copy_s = self.copy_s?;
        let saved_s = original_s - staged_s;
        (self.kept_files == 0 && saved_s > 0.0).then(|| copy_s / saved_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copying_time_is_saved_after_some_epochs() {
        let span = StagingSpan { start_ns: 1_000_000_000, end_ns: 4_000_000_000 };
        let staging =
            StagingRecord { before_training: Some(span), bytes: 600, ..StagingRecord::default() };
        assert_eq!(StagingSummary::new(&staging).break_even_epochs(2.5, 1.0), Some(2.0));
        assert_eq!(
            StagingSummary::new(&staging).break_even_epochs(1.0, 1.0),
            None,
            "no time is saved"
        );
        assert_eq!(StagingSummary::new(&staging).break_even_epochs(1.0, 2.0), None);
        assert_eq!(StagingSummary::new(&staging).bytes_per_second, Some(200.0));
        let kept = StagingRecord { kept_files: 1, ..staging.clone() };
        assert_eq!(
            StagingSummary::new(&kept).break_even_epochs(2.5, 1.0),
            None,
            "another run copied a part"
        );
    }
}
