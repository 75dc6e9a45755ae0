//! Reasons that a dataset cannot be made, read, verified or removed.

use crate::format::FormatError;
use crate::storage::StorageError;
use crate::walk::FileShare;
use feedrate_spec::{escape, units};

/// A dataset that cannot be made, read, verified or removed.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The plan names a format that is not built in.
    #[error("there is no format `{0}`")]
    NoFormat(String),
    /// The storage refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The manifest is none.
    #[error("`manifest.json` cannot be read as a manifest: {}", escape::one_line(.reason))]
    BrokenManifest {
        /// The error, a lowercase fragment.
        reason: String,
    },
    /// Another dataset lies there.
    #[error("a dataset of other settings lies there:\n  {}", .differences.join("\n  "))]
    OtherDataset {
        /// The differences, one line a setting.
        differences: Vec<String>,
    },
    /// Its files were made by another version of their format.
    #[error("only the feedrate that made it can compare its files: {0}")]
    OtherVersion(String),
    /// Not all files of an older version of their format are there: this one would make others beside them.
    #[error("`{}` is missing or not as long as it was made, and an older feedrate made the dataset", escape::one_line(.path))]
    OlderIncomplete {
        /// Relative to the dataset's folder.
        path: String,
    },
    /// Files lie there that this tool did not make.
    #[error("`{}` lies there, and no manifest says that feedrate made it", escape::one_line(.path))]
    Strangers {
        /// One of them, relative to the dataset's folder.
        path: String,
    },
    /// A file of a dataset that was whole has changed.
    #[error("`{path}` is not the file that was generated ({what}): it is not written over")]
    Altered {
        /// Relative to the dataset's folder.
        path: String,
        /// The difference, a lowercase fragment.
        what: String,
    },
    /// The device is too small.
    #[error("the dataset needs {}, but only {} are free", units::bytes(*.needed_bytes), units::bytes(*.free_bytes))]
    NoSpace {
        /// Still to be written.
        needed_bytes: u64,
        /// Bytes free on the device.
        free_bytes: u64,
    },
    /// Somebody else has its lock, and nobody wanted to wait any longer.
    #[error("interrupted while waiting for the dataset: {}", .holder.as_deref().unwrap_or("somebody has it"))]
    Busy {
        /// The holder, as in [`crate::lock::LockAttempt::Busy`].
        holder: Option<String>,
    },
    /// Somebody else changed files meanwhile.
    #[error(
        "its files have {} where {} were made: somebody else has changed them", units::bytes(*.there_bytes), units::bytes(*.total_bytes)
    )]
    Changed {
        /// Length of all files, as they are.
        there_bytes: u64,
        /// Length of all files, as they were made.
        total_bytes: u64,
    },
    /// Somebody wanted it to end. What was made is kept.
    #[error(
        "interrupted after {files} of {files_total} files{}; the next generation goes on from there", of_share(*share)
    )]
    Cancelled {
        /// Files that are complete.
        files: u64,
        /// Files of the dataset, or of the share.
        files_total: u64,
        /// Made here, where others make the rest.
        share: Option<FileShare>,
    },
    /// There are not enough files that others made.
    #[error("the plan wants {} to {purpose} on, and there are {found}", units::counted(*wanted, &format!("{extension} file")))]
    TooFew {
        /// `train` or `evaluate`.
        purpose: &'static str,
        /// The format's.
        extension: String,
        /// By the plan.
        wanted: u64,
        /// Files in the folder.
        found: u64,
    },
    /// A file has another name than DLIO gives it.
    #[error("there is no `{path}`; files must be named as DLIO names them")]
    NoFile {
        /// Relative to the dataset's folder.
        path: String,
    },
    /// A file cannot be read as its format.
    #[error("`{}`: {source}", escape::one_line(.path))]
    Format {
        /// Relative to the dataset's folder.
        path: String,
        /// The error in the file.
        source: FormatError,
    },
}

impl DatasetError {
    /// Advice, where the reason is a common one.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            DatasetError::Storage(error) => return error.hint(),
            DatasetError::BrokenManifest { .. } => {
                "point `--data` (`dataset.data_folder`) elsewhere"
            }
            DatasetError::OtherDataset { .. } => {
                "point `--data` (`dataset.data_folder`) elsewhere, or change the workload to what lies there"
            }
            DatasetError::OtherVersion(_) => {
                "`feedrate run` reads it as it is; to compare it, remove it with `feedrate clean DIR --yes`, and generate it again"
            }
            DatasetError::OlderIncomplete { .. } => {
                "remove the dataset with `feedrate clean DIR --yes`, and generate it again"
            }
            DatasetError::Strangers { .. } => {
                "`feedrate run --foreign`, or `dlio_benchmark` without `generate_data`, reads the files as they are; else point `--data` (`dataset.data_folder`) elsewhere"
            }
            DatasetError::Altered { .. } => {
                "remove the file, or move it elsewhere, and generate again: what is missing is made"
            }
            DatasetError::NoSpace { .. } => {
                "free space on the device, point `--data` (`dataset.data_folder`) elsewhere, or use fewer files (`--scale`, `dataset.num_files_train`)"
            }
            DatasetError::Changed { .. } => "generate it again: what is right is kept",
            DatasetError::TooFew { .. } => {
                "set `dataset.num_files_train` and `dataset.num_files_eval` to what is there, which `feedrate scan DIR` tells"
            }
            DatasetError::NoFile { .. } => {
                "numbers of files and subfolders are part of the names: set them to what is there, or give links such names (docs/guide/advice.md)"
            }
            DatasetError::Format { .. } => {
                "set `dataset.format` and `dataset.num_samples_per_file` to what is there"
            }
            DatasetError::NoFormat(_)
            | DatasetError::Busy { .. }
            | DatasetError::Cancelled { .. } => return None,
        })
    }
}

fn of_share(share: Option<FileShare>) -> String {
    let Some(FileShare { index, of }) = share else { return String::new() };
    format!(" of process {index}, one of {of}")
}
