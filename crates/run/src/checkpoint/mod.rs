//! Checkpoint formats: one file per format, one row in [`CHECKPOINTS`].
//!
//! To add one: copy `raw.rs`, implement [`Checkpoint`], add its `mod` line and its row.

mod content;
mod pt;
mod raw;

use crate::clock::Clock;
use feedrate_measure::record::RankCheckpoint;
use feedrate_spec::catalog::Member;
use feedrate_spec::plan::CheckpointPlan;
use feedrate_spec::plan::state::StateFile;
use feedrate_spec::units;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Ranks that write or read side by side even where there are fewer processors: storage is waited for more than computed.
const RANKS_AT_ONCE: u64 = 16;

type OfRank<'a> = dyn Fn(u64, &mut RankCheckpoint) -> Result<(), CheckpointError> + Sync + 'a;

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

/// Why a checkpoint was not written or not read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The system refused to write it.
    #[error("cannot write checkpoint `{}`: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// The system refused to read it.
    #[error("cannot read checkpoint `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// It is not what was written.
    #[error("cannot load checkpoint `{}`: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl CheckpointError {
    /// Advice, where the reason is a common one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            CheckpointError::Write { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull => {
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
            CheckpointError::Damaged { .. } => Some(
                "it is not the checkpoint that was asked for, or not whole: load another, or write it anew",
            ),
        }
    }
}

/// Write the checkpoint of `epoch` whose folder is named by `step`, as DLIO names it: the files of all ranks, many ranks at a
/// time. Each file gets its name once it is whole.
///
/// # Errors
/// The file system refused, or is too small. No file that was begun is left then; those that are whole are.
pub fn save(
    plan: &CheckpointPlan,
    clock: Clock,
    epoch: u32,
    step: u64,
) -> Result<Vec<RankCheckpoint>, CheckpointError> {
    let folder = folder(plan, epoch, step);
    let prepare = || {
        fs::create_dir_all(&folder)?;
        check_space(&folder, plan.total_bytes)
    };
    prepare().map_err(|source| CheckpointError::Write { path: folder.clone(), source })?;
    let of_rank = |rank, own: &mut RankCheckpoint| {
        let files = plan.state.files(rank);
        files.iter().try_for_each(|state| write_file(plan, clock, &folder, state, own))
    };
    ranks(plan.state.writers(), clock, &of_rank)
}

/// Read the checkpoint of `epoch` and `step` back: each rank reads what the rank `rank_shift` behind it wrote, as after a restart
/// on other machines.
///
/// # Errors
/// The file system refused, or a file is not whole.
pub fn load(
    plan: &CheckpointPlan,
    clock: Clock,
    epoch: u32,
    step: u64,
    rank_shift: u64,
) -> Result<Vec<RankCheckpoint>, CheckpointError> {
    let folder = folder(plan, epoch, step);
    let writers = plan.state.writers();
    let of_rank = |rank, own: &mut RankCheckpoint| {
        let files = plan.state.files((rank + rank_shift % writers) % writers);
        files.iter().try_for_each(|state| read_file(plan, &folder, state, own))
    };
    ranks(writers, clock, &of_rank)
}

/// Where the checkpoint of `epoch` and `step` lies.
pub(crate) fn folder(plan: &CheckpointPlan, epoch: u32, step: u64) -> PathBuf {
    Path::new(&plan.folder).join(format!("global_epoch{epoch}_step{step}"))
}

/// Do the part of each of `count` ranks, [`RANKS_AT_ONCE`] or as many as there are processors at a time.
fn ranks(
    count: u64,
    clock: Clock,
    part: &OfRank<'_>,
) -> Result<Vec<RankCheckpoint>, CheckpointError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
    let work = || {
        let mut done = Vec::new();
        loop {
            let rank = next.fetch_add(1, Relaxed);
            if rank >= count || failed.load(Relaxed) {
                return Ok(done);
            }
            let start_ns = clock.now_ns();
            let mut own = RankCheckpoint { rank, start_ns, end_ns: start_ns, bytes: 0, sync_ns: 0 };
            part(rank, &mut own).inspect_err(|_| failed.store(true, Relaxed))?;
            own.end_ns = clock.now_ns();
            done.push(own);
        }
    };
    let mut all = std::thread::scope(|scope| {
        let helpers = threads.max(RANKS_AT_ONCE).min(count).saturating_sub(1);
        let helpers: Vec<_> = (0..helpers).map(|_| scope.spawn(work)).collect();
        let first = work();
        helpers.into_iter().fold(first, |result, helper| {
            let joined = helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result.and_then(|mut all| {
                all.extend(joined?);
                Ok(all)
            })
        })
    })?;
    all.sort_unstable_by_key(|own| own.rank);
    Ok(all)
}

fn write_file(
    plan: &CheckpointPlan,
    clock: Clock,
    folder: &Path,
    state: &StateFile,
    own: &mut RankCheckpoint,
) -> Result<(), CheckpointError> {
    let path = folder.join(format!("{}.{}", state.name, plan.format));
    let part = path.with_extension("part");
    let unknown = || io::Error::other(format!("there is no checkpoint format `{}`", plan.format));
    let mut write = || {
        let format = find(&plan.format).ok_or_else(unknown)?;
        let mut file = fs::File::create(&part)?;
        format.write(&mut file, state)?;
        if plan.fsync {
            let start_ns = clock.now_ns();
            file.sync_all()?;
            own.sync_ns += clock.now_ns() - start_ns;
        }
        own.bytes += file.metadata()?.len();
        fs::rename(&part, &path)
    };
    write().map_err(|source| {
        // What was never made cannot be removed; the first error is the one to tell.
        let _ = fs::remove_file(&part);
        CheckpointError::Write { path: path.clone(), source }
    })
}

fn read_file(
    plan: &CheckpointPlan,
    folder: &Path,
    state: &StateFile,
    own: &mut RankCheckpoint,
) -> Result<(), CheckpointError> {
    let path = folder.join(format!("{}.{}", state.name, plan.format));
    let mut piece = vec![0; content::PIECE_BYTES];
    let mut read = || {
        let mut file = fs::File::open(&path)?;
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(()),
                bytes => own.bytes += bytes as u64,
            }
        }
    };
    read().map_err(|source| CheckpointError::Read { path: path.clone(), source })
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
