//! Reasons that a dataset is not copied.

use crate::error::DatasetError;
use crate::storage::StorageError;
use feedrate_spec::{escape, units};
use std::path::PathBuf;

/// The reason why a dataset is not copied.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// A storage refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Its files cannot be named, or their manifest cannot be written.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// Files lie there that are not of the copy.
    #[error("`{}` lies in `{}`, and is no file of the copy", escape::one_line(.path), .folder.display())]
    Strangers {
        /// The copy's folder.
        folder: PathBuf,
        /// Relative to it.
        path: String,
    },
    /// More than the user allows.
    #[error("the dataset has {}, more than `reader.stage_limit` of {}", units::bytes(*.bytes), units::bytes(*.limit_bytes))]
    Limit {
        /// Length of all files.
        bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
    /// More than there is room for.
    #[error("the copy needs {}, and `{}` has room for {}", units::bytes(*.needed_bytes), .folder.display(), units::bytes(*.free_bytes))]
    NoSpace {
        /// The copy's folder.
        folder: PathBuf,
        /// Still to be copied.
        needed_bytes: u64,
        /// Bytes free there.
        free_bytes: u64,
    },
    /// Another run has it.
    #[error("another run has the copy in `{}`: {}", .folder.display(), .holder.as_deref().unwrap_or("somebody has it"))]
    Busy {
        /// The copy's folder.
        folder: PathBuf,
        /// The holder, as in [`Busy`](crate::lock::LockAttempt::Busy).
        holder: Option<String>,
    },
    /// Others could not be kept out.
    #[error("`{}` cannot be locked ({reason})", .folder.display())]
    NoLock {
        /// The copy's folder.
        folder: PathBuf,
        /// The system's word.
        reason: String,
    },
    /// Somebody wrote to the dataset meanwhile.
    #[error("`{}` changed its length while it was copied", escape::one_line(.path))]
    Changed {
        /// Relative to the dataset's folder.
        path: String,
    },
}

impl StageError {
    /// Advice, where the reason is a common one.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            StageError::Storage(error) if error.is_full() => {
                "free space there, or point `reader.stage` at another folder"
            }
            StageError::Storage(error) => return error.hint(),
            StageError::Dataset(error) => return error.hint(),
            StageError::Strangers { .. } => {
                "move it elsewhere, or point `reader.stage` at another folder"
            }
            StageError::Limit { .. } => "raise `reader.stage_limit`",
            StageError::NoSpace { .. } => {
                "free space there, or point `reader.stage` at another folder"
            }
            StageError::Busy { .. } => {
                "let it end, or point `reader.stage` at another folder; one that several machines share cannot be used"
            }
            StageError::NoLock { .. } => "point `reader.stage` at a folder of a local disk",
            StageError::Changed { .. } => "let nobody write to the dataset while it is used",
        })
    }
}
