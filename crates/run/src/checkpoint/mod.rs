//! Checkpoint formats: one file per format, one row in [`CHECKPOINTS`].
//!
//! To add one: copy `raw.rs`, implement [`Checkpoint`], add its `mod` line and its row.

mod raw;

use feedrate_spec::catalog::Member;
use feedrate_spec::plan::CheckpointPlan;
use feedrate_spec::units;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How a model's state lies in a file.
pub trait Checkpoint: Sync {
    /// Name, summary, abilities.
    fn member(&self) -> &'static Member;

    /// Write `bytes` of state to `file`, which is new.
    ///
    /// # Errors
    /// The file system refused.
    fn write(&self, file: &mut fs::File, bytes: u64) -> io::Result<()>;
}

/// Every format, in the order docs show them.
pub static CHECKPOINTS: &[&dyn Checkpoint] = &[&raw::Raw];

/// Why a checkpoint was not written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write checkpoint `{}`: {source}", path.display())]
pub struct CheckpointError {
    /// The file.
    pub path: PathBuf,
    /// The system's word.
    pub source: io::Error,
}

impl CheckpointError {
    /// Advice, where the reason is a common one.
    pub fn hint(&self) -> Option<&'static str> {
        match self.source.kind() {
            io::ErrorKind::StorageFull => {
                Some("free space, or point `checkpoint.checkpoint_folder` elsewhere")
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Some("point `checkpoint.checkpoint_folder` at a folder you may write")
            }
            _ => None,
        }
    }
}

/// Write the checkpoint of `epoch` after `step` steps of it: under a temporary name, then renamed, so that what has the name is whole.
/// The folder's name is DLIO's, which counts one step too many (`main.py:393`).
///
/// # Errors
/// The file system refused, or is too small; nothing is left then.
pub fn save(plan: &CheckpointPlan, epoch: u32, step: u64) -> Result<(), CheckpointError> {
    let format = CHECKPOINTS[0];
    let folder = Path::new(&plan.folder).join(format!("global_epoch{epoch}_step{}", step + 1));
    let path = folder.join(format!("model_states-0.{}", format.member().name));
    let part = path.with_extension("part");
    let write = || {
        fs::create_dir_all(&folder)?;
        check_space(&folder, plan.bytes)?;
        let mut file = fs::File::create(&part)?;
        format.write(&mut file, plan.bytes)?;
        if plan.fsync {
            file.sync_all()?;
        }
        fs::rename(&part, &path)
    };
    write().map_err(|source| {
        // What was never made cannot be removed; the first error is the one to tell.
        let _ = fs::remove_file(&part);
        CheckpointError { path: path.clone(), source }
    })
}

fn check_space(folder: &Path, bytes: u64) -> io::Result<()> {
    let stat = rustix::fs::statvfs(folder)?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if bytes <= free {
        return Ok(());
    }
    let message = format!("it has {}, only {} are free", units::bytes(bytes), units::bytes(free));
    Err(io::Error::new(io::ErrorKind::StorageFull, message))
}
