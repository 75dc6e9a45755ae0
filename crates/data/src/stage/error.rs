//! Errors of copying a dataset to the stage folder.

use crate::error::DatasetError;
use crate::storage::StorageError;
use feedrate_spec::{escape, units};
use std::path::PathBuf;

/// The reason why a dataset is not copied.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// A storage operation failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The files cannot be named, or the manifest cannot be written.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The folder contains files that do not belong to the copy.
    #[error("`{}` in `{}` is not a file of the copy", escape::one_line(.path), .folder.display())]
    ForeignFiles {
        /// The copy's folder.
        folder: PathBuf,
        /// Path relative to the folder.
        path: String,
    },
    /// The dataset is larger than the configured limit.
    #[error("the dataset has {}, more than `reader.stage_limit` of {}", units::bytes(*.bytes), units::bytes(*.limit_bytes))]
    Limit {
        /// Length of all files.
        bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
    /// The dataset is larger than the free space.
    #[error("the copy needs {}, and `{}` has room for {}", units::bytes(*.needed_bytes), .folder.display(), units::bytes(*.free_bytes))]
    NoSpace {
        /// The copy's folder.
        folder: PathBuf,
        /// Bytes still to be copied.
        needed_bytes: u64,
        /// Bytes free there.
        free_bytes: u64,
    },
    /// Another run uses the copy.
    #[error("another run uses the copy in `{}`: {}", .folder.display(), .holder.as_deref().unwrap_or("another process has locked it"))]
    Busy {
        /// The copy's folder.
        folder: PathBuf,
        /// The holder, as in [`Busy`](crate::lock::LockAttempt::Busy).
        holder: Option<String>,
    },
    /// The folder does not support locks.
    #[error("`{}` cannot be locked ({reason})", .folder.display())]
    NoLock {
        /// The copy's folder.
        folder: PathBuf,
        /// The system's error message.
        reason: String,
    },
    /// A file of the dataset changed during the copy.
    #[error("`{}` changed its length while it was copied", escape::one_line(.path))]
    Changed {
        /// Path relative to the dataset's folder.
        path: String,
    },
}

impl StageError {
    /// Advice for common errors.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            StageError::Storage(error) if error.is_full() => {
                "free space there, or point `reader.stage` at another folder"
            }
            StageError::Storage(error) => return error.hint(),
            StageError::Dataset(error) => return error.hint(),
            StageError::ForeignFiles { .. } => {
                "move the file, or point `reader.stage` at another folder"
            }
            StageError::Limit { .. } => "raise `reader.stage_limit`",
            StageError::NoSpace { .. } => {
                "free space there, or point `reader.stage` at another folder"
            }
            StageError::Busy { .. } => {
                "wait until the run has ended, or point `reader.stage` at another folder; a folder shared by several machines cannot be used"
            }
            StageError::NoLock { .. } => "point `reader.stage` at a folder of a local disk",
            StageError::Changed { .. } => "do not change the dataset while it is in use",
        })
    }
}
