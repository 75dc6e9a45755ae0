//! Checkpoint formats: one file per format, one row in [`CHECKPOINTS`].
//!
//! To add one: copy `raw.rs`, implement [`Checkpoint`], add its `mod` line and its row.

mod output;
mod files;
mod content;
mod sink;
mod manifest;
mod pt;
mod safetensors;
mod raw;
mod step;
mod folder;
mod saver;
mod all;

pub use all::{are_in, clean, refuse_strangers};
pub(crate) use folder::folder;
pub use folder::{LoadedPart, load};
pub use saver::{CheckpointDue, Saved, Saver};
pub use sink::CheckpointSink;

use crate::comm::CommError;
use feedrate_spec::catalog::Member;
use feedrate_spec::plan::state::StateFile;
use std::io;
use std::path::PathBuf;

/// So many files of others are named.
const NAMED_MAX: usize = 10;

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
    /// Things of others have names of files that are to be written.
    #[error("{} where checkpoints are to be written, and no manifest says that feedrate wrote {}",
        lying(paths), if paths.len() == 1 { "it" } else { "them" })]
    Strangers {
        /// All of them.
        paths: Vec<PathBuf>,
    },
    /// Another run writes, reads or removes checkpoints there.
    #[error("the folder of checkpoints `{}` is in use: {}", folder.display(), holder.as_deref().unwrap_or("somebody has it"))]
    Busy {
        /// That of all checkpoints.
        folder: PathBuf,
        /// Who and since when, in its own words.
        holder: Option<String>,
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
            CheckpointError::Strangers { .. } => Some(
                "move what is yours elsewhere, or point `checkpoint.checkpoint_folder` at another folder",
            ),
            CheckpointError::Busy { .. } => Some(
                "wait until it ends, or point `checkpoint.checkpoint_folder` at another folder",
            ),
            CheckpointError::Comm(error) => error.hint(),
            CheckpointError::Damaged { .. } => Some(
                "it is not the checkpoint that was asked for, or not whole: load another, or write it anew",
            ),
        }
    }
}

/// `a`, `b` and 7 more lie
fn lying(paths: &[PathBuf]) -> String {
    let named: Vec<_> =
        paths.iter().take(NAMED_MAX).map(|path| format!("`{}`", path.display())).collect();
    let more = match paths.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more} {}", named.join(", "), if paths.len() == 1 { "lies" } else { "lie" })
}

#[cfg(test)]
mod tests;
