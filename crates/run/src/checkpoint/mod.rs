//! Checkpoint formats: one file per format, one row in [`CHECKPOINTS`].
//!
//! To add one: copy `raw.rs`, implement [`Checkpoint`], add its `mod` line and its row.

mod files;
mod content;
mod sink;
mod manifest;
mod pt;
mod safetensors;
mod raw;
mod folder;
mod saver;

pub(crate) use folder::folder;
pub use folder::load;
pub use saver::{CheckpointDue, Saved, Saver};
pub use sink::CheckpointSink;

use crate::comm::CommError;
use feedrate_spec::catalog::Member;
use feedrate_spec::plan::state::StateFile;
use std::io;
use std::path::PathBuf;

/// How a model's state lies in a file.
pub trait Checkpoint: Sync {
    /// Name, summary, abilities. The name is the files' extension.
    fn member(&self) -> &'static Member;

    /// Write `state` to `sink`. What it puts has the same length whatever the content.
    ///
    /// # Errors
    /// The file system refused.
    fn write(&self, sink: &mut dyn CheckpointSink, state: &StateFile) -> io::Result<()>;
}

/// Every format, in the order docs show them.
pub static CHECKPOINTS: &[&dyn Checkpoint] =
    &[&pt::Pt, &safetensors::SafetensorsCheckpoint, &raw::RawCheckpoint];

/// The format called `name`.
pub fn find(name: &str) -> Option<&'static dyn Checkpoint> {
    CHECKPOINTS.iter().copied().find(|format| format.member().name == name)
}

/// The reason why a checkpoint was not written or not read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The system refused to write it.
    #[error("cannot write checkpoint `{}`: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The system refused to read it.
    #[error("cannot read checkpoint `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Something of others has the name of one of its files.
    #[error("`{}` lies where a checkpoint is to be written, and no manifest says that feedrate wrote it", path.display())]
    Stranger {
        /// Its path.
        path: PathBuf,
    },
    /// The processes of the run lost each other.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// It is not what was written.
    #[error("cannot load checkpoint `{}`: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault.
        problem: String,
    },
}

impl CheckpointError {
    /// Advice, where the reason is a common one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            CheckpointError::Write { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    Some("free space, or point `checkpoint.checkpoint_folder` elsewhere")
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Some("point `checkpoint.checkpoint_folder` at a folder you may write")
                }
                _ => None,
            },
            CheckpointError::Read { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => {
                    Some("see `checkpoint.checkpoint_folder`; write the checkpoint first")
                }
                _ => None,
            },
            CheckpointError::Stranger { .. } => {
                Some("move it elsewhere, or point `checkpoint.checkpoint_folder` at another folder")
            }
            CheckpointError::Comm(error) => error.hint(),
            CheckpointError::Damaged { .. } => Some(
                "it is not the checkpoint that was asked for, or not whole: load another, or write it anew",
            ),
        }
    }
}

#[cfg(test)]
mod fragile;
#[cfg(test)]
mod tests;
