//! Checkpoint formats: one file per format, one row in [`CHECKPOINTS`].
//!
//! To add one: copy `raw.rs`, implement [`Checkpoint`], add its `mod` line and its row.

mod content;
mod pt;
mod raw;

use feedrate_spec::catalog::Member;
use feedrate_spec::plan::CheckpointPlan;
use feedrate_spec::plan::state::StateFile;
use feedrate_spec::units;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// How a model's state lies in a file.
pub trait Checkpoint: Sync {
    /// Name, summary, abilities. The name is the files' extension.
    fn member(&self) -> &'static Member;

    /// Write `state` to `file`, which is new. Memory stays bounded, whatever the state.
    ///
    /// # Errors
    /// The file system refused.
    fn write(&self, file: &mut fs::File, state: &StateFile) -> io::Result<()>;
}

/// Every format, in the order docs show them.
pub static CHECKPOINTS: &[&dyn Checkpoint] = &[&pt::Pt, &raw::Raw];

/// The format called `name`.
pub fn find(name: &str) -> Option<&'static dyn Checkpoint> {
    CHECKPOINTS.iter().copied().find(|format| format.member().name == name)
}

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

/// Write a checkpoint of `epoch`, in a folder named by `step` as DLIO names it: the files of all ranks, by as many threads as there
/// are processors. Each gets its name once it is whole.
///
/// # Errors
/// The file system refused, or is too small. No file that was begun is left then; those that are whole are.
pub fn save(plan: &CheckpointPlan, epoch: u32, step: u64) -> Result<(), CheckpointError> {
    let folder = Path::new(&plan.folder).join(format!("global_epoch{epoch}_step{step}"));
    let prepare = || {
        fs::create_dir_all(&folder)?;
        check_space(&folder, plan.total_bytes)
    };
    prepare().map_err(|source| CheckpointError { path: folder.clone(), source })?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
    let write_ranks = || {
        loop {
            let rank = next.fetch_add(1, Relaxed);
            if rank >= plan.state.writers() || failed.load(Relaxed) {
                return Ok(());
            }
            for state in plan.state.files(rank) {
                let written = write_file(plan, &folder, &state);
                written.inspect_err(|_| failed.store(true, Relaxed))?;
            }
        }
    };
    std::thread::scope(|scope| {
        let helpers = threads.min(plan.state.writers()).saturating_sub(1);
        let helpers: Vec<_> = (0..helpers).map(|_| scope.spawn(write_ranks)).collect();
        let first = write_ranks();
        let panicked = || io::Error::other("a thread that wrote it broke off");
        helpers.into_iter().fold(first, |result, helper| {
            let joined = helper.join().unwrap_or_else(|_| {
                Err(CheckpointError { path: folder.clone(), source: panicked() })
            });
            result.and(joined)
        })
    })
}

fn write_file(
    plan: &CheckpointPlan,
    folder: &Path,
    state: &StateFile,
) -> Result<(), CheckpointError> {
    let path = folder.join(format!("{}.{}", state.name, plan.format));
    let part = path.with_extension("part");
    let unknown = || io::Error::other(format!("there is no checkpoint format `{}`", plan.format));
    let write = || {
        let format = find(&plan.format).ok_or_else(unknown)?;
        let mut file = fs::File::create(&part)?;
        format.write(&mut file, state)?;
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
