//! Checkpoint formats: one file per format, one row in [`CHECKPOINTS`].
//!
//! To add a format: copy `raw.rs`, implement [`Checkpoint`], add its `mod` line and its row.

mod output;
mod files;
mod content;
mod sink;
mod manifest;
mod file_names;
mod pt;
mod tf;
mod safetensors;
mod raw;
mod step;
mod object;
mod folder;
mod saver;
mod all;

pub use all::{clean, contains_checkpoints, refuse_foreign_files};
pub(crate) use folder::folder;
pub use folder::{LoadedPart, load};
pub use saver::{CheckpointDue, SavedCheckpoint, Saver};
pub use sink::CheckpointSink;
pub(crate) use step::is_in_store;
pub use step::{is_folder_name, list_steps, step_in_name};

use crate::comm::CommError;
use feedrate_data::storage::store_hint;
use feedrate_spec::catalog::Member;
use feedrate_spec::plan::state::StateFile;
use std::io;
use std::path::PathBuf;

/// Number of foreign files that an error lists by name.
const LISTED_MAX: usize = 10;

/// A file format of a model's state.
pub trait Checkpoint: Sync {
    /// Name, summary and abilities.
    fn member(&self) -> &'static Member;

    /// Returns the names of the files of the state called `state`. The first one has the tensors.
    fn file_names(&self, state: &str) -> Vec<String> {
        vec![format!("{state}.{}", self.member().name)]
    }

    /// Writes the first file of `state` to `sink`, and returns the content of the others. The lengths must not depend on the content of the
    /// tensors.
    ///
    /// # Errors
    /// The file system refused.
    fn write(&self, sink: &mut dyn CheckpointSink, state: &StateFile) -> io::Result<Vec<Vec<u8>>>;

    /// Returns a further file of a checkpoint, if the format has one. `state` is the checkpoint's first state.
    fn overview(&self, _state: &str) -> Option<NamedContent> {
        None
    }
}

/// The name and the content of a file.
pub struct NamedContent {
    /// The name.
    pub name: String,
    /// The content.
    pub content: Vec<u8>,
}

/// All formats, in the order in which the documentation lists them.
pub static CHECKPOINTS: &[&dyn Checkpoint] =
    &[&pt::Pt, &tf::Tf, &safetensors::SafetensorsCheckpoint, &raw::RawCheckpoint];

/// Returns the format called `name`.
pub fn find(name: &str) -> Option<&'static dyn Checkpoint> {
    CHECKPOINTS.iter().copied().find(|format| format.member().name == name)
}

/// An error of writing, reading or removing checkpoints.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The system refused to write a file.
    #[error("cannot write checkpoint `{}`: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The system refused to read a file.
    #[error("cannot read checkpoint `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Files that feedrate did not write have the names of planned files.
    #[error("{} where checkpoints are to be written, and no manifest says that feedrate wrote {}",
        existing_text(paths), if paths.len() == 1 { "it" } else { "them" })]
    ForeignFiles {
        /// The foreign files.
        paths: Vec<PathBuf>,
    },
    /// Another process uses the folder.
    #[error("the folder of checkpoints `{}` is in use: {}", folder.display(), holder.as_deref().unwrap_or("another process holds its lock"))]
    Busy {
        /// The folder of all checkpoints.
        folder: PathBuf,
        /// Description of the process that holds the lock, if known.
        holder: Option<String>,
    },
    /// Communication between the processes of the run failed.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// The content differs from what was written.
    #[error("cannot load checkpoint `{}`: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Description of the damage.
        problem: String,
    },
}

impl CheckpointError {
    /// Returns advice, if the error is a common one.
    pub fn hint(&self) -> Option<&'static str> {
        if let CheckpointError::Write { source, .. } | CheckpointError::Read { source, .. } = self
            && let Some(hint) = store_hint(source)
        {
            return Some(hint);
        }
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
            CheckpointError::ForeignFiles { .. } => Some(
                "move your files elsewhere, or point `checkpoint.checkpoint_folder` at another folder",
            ),
            CheckpointError::Busy { .. } => Some(
                "wait until it ends, or point `checkpoint.checkpoint_folder` at another folder",
            ),
            CheckpointError::Comm(error) => error.hint(),
            CheckpointError::Damaged { .. } => Some(
                "the file is incomplete or belongs to another checkpoint: load another checkpoint, or write this one again",
            ),
        }
    }
}

/// Formats the beginning of an error: "`a`, `b` and 7 more exist".
fn existing_text(paths: &[PathBuf]) -> String {
    let listed: Vec<_> =
        paths.iter().take(LISTED_MAX).map(|path| format!("`{}`", path.display())).collect();
    let more = match paths.len() - listed.len() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    format!("{}{more} {}", listed.join(", "), if paths.len() == 1 { "exists" } else { "exist" })
}

#[cfg(test)]
mod tests;
