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

mod saver;

pub use saver::{Due, Saved, Saver};
pub use sink::Sink;

use self::content::StateContent;
use crate::clock::Clock;
use crate::comm::CommError;
use crate::ranks::Ranks;
use feedrate_measure::record::RankCheckpoint;
use feedrate_spec::catalog::Member;
use feedrate_spec::plan::CheckpointPlan;
use feedrate_spec::plan::state::StateFile;
use feedrate_spec::units;
use files::{Files, Syncs, SystemFiles};
use manifest::{Entry, Manifest};
use serde::{Deserialize, Serialize};
use sink::{Length, PIECE_BYTES, Pieces};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

/// Ranks that write or read side by side even where there are fewer processors: storage is waited for more than computed.
const RANKS_AT_ONCE: u64 = 16;

type OfRank<'a> = dyn Fn(u64, &mut RankCheckpoint) -> Result<(), CheckpointError> + Sync + 'a;

/// How a model's state lies in a file.
pub trait Checkpoint: Sync {
    /// Name, summary, abilities. The name is the files' extension.
    fn member(&self) -> &'static Member;

    /// Write `state` to `sink`. What it puts has the same length whatever the content.
    ///
    /// # Errors
    /// The file system refused.
    fn write(&self, sink: &mut dyn Sink, state: &StateFile) -> io::Result<()>;
}

/// Every format, in the order docs show them.
pub static CHECKPOINTS: &[&dyn Checkpoint] = &[&pt::Pt, &safetensors::Safetensors, &raw::Raw];

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
            CheckpointError::Comm(error) => error.hint(),
            CheckpointError::Damaged { .. } => Some(
                "it is not the checkpoint that was asked for, or not whole: load another, or write it anew",
            ),
        }
    }
}

/// Make the folder; from here on no checkpoint in it is whole.
fn begin(
    files: &dyn Files,
    plan: &CheckpointPlan,
    folder: &Path,
    syncs: &mut Syncs,
) -> Result<(), CheckpointError> {
    prepare(files, plan, folder, syncs)
        .map_err(|source| CheckpointError::Write { path: folder.to_owned(), source })
}

fn prepare(
    files: &dyn Files,
    plan: &CheckpointPlan,
    folder: &Path,
    syncs: &mut Syncs,
) -> io::Result<()> {
    for changed in files.create_folder(folder)? {
        syncs.folder(files, &changed)?;
    }
    check_space(files.free_bytes(folder)?, plan.total_bytes)?;
    Manifest::withdraw(files, folder, syncs)
}

/// The part of a checkpoint that some ranks wrote.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Part {
    ranks: Vec<RankCheckpoint>,
    entries: Vec<(String, Entry)>,
    /// Waited for syncs that no rank makes.
    folder_sync_ns: u64,
    /// When the last of it was written; of checkpoints that training waits for it is not asked.
    end_ns: u64,
}

/// The files of `own` ranks, many at a time. Each gets its name once it is whole. Memory is bounded by ranks that write at a time
/// (16, or as many as there are processors) × a piece of 4 MiB, whatever the model; where files of given sizes are written, each
/// in one call, × the largest of them.
///
/// # Errors
/// The file system refused. No file that was begun is left then; those that are whole are.
fn write(
    files: &dyn Files,
    plan: &CheckpointPlan,
    clock: Clock,
    folder: &Path,
    own: Range<u64>,
) -> Result<Part, CheckpointError> {
    let entries = Mutex::new(Vec::new());
    let ranks = ranks(own, clock, &|rank, own| {
        let writer = Writer { files, plan, clock, folder };
        for state in plan.state.files(rank) {
            let entry = writer.write(&state, own)?;
            let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
            entries.push((file_name(plan, &state), entry));
        }
        Ok(())
    })?;
    let entries = entries.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Part { ranks, entries, folder_sync_ns: 0, end_ns: 0 })
}

/// All files are there: now it is whole.
fn complete(
    files: &dyn Files,
    folder: &Path,
    entries: Vec<(String, Entry)>,
    syncs: &mut Syncs,
) -> Result<(), CheckpointError> {
    Manifest::new(entries)
        .write(files, folder, syncs)
        .map_err(|source| CheckpointError::Write { path: folder.join(manifest::NAME), source })
}

/// The ranks of a checkpoint that this process writes or reads.
fn own(plan: &CheckpointPlan, ranks: &Ranks) -> Range<u64> {
    let writers = plan.state.writers();
    let own = &ranks.own;
    let end = if ranks.has_last() { writers } else { u64::from(own.end).min(writers) };
    u64::from(own.start).min(end)..end
}

/// Read the checkpoint of `epoch` and `step` back, all of it, and check it: each rank reads what the rank `rank_shift` behind
/// it wrote, as after a restart on other machines. On the process of rank 0 all ranks are told of, on others their own.
///
/// # Errors
/// The file system refused, or the checkpoint is not whole, or not this plan's.
pub fn load(
    plan: &CheckpointPlan,
    clock: Clock,
    epoch: u32,
    step: u64,
    rank_shift: u64,
    ranks: &Ranks,
) -> Result<Vec<RankCheckpoint>, CheckpointError> {
    let folder = folder(plan, epoch, step);
    let own = own(plan, ranks);
    let own = load_from(&SystemFiles, plan, clock, &folder, rank_shift, own)?;
    if !ranks.are_many() {
        return Ok(own);
    }
    let all: Vec<_> = ranks.gather(&own)?.into_iter().flatten().collect();
    ranks.comm.barrier()?;
    Ok(if ranks.is_first() { all } else { own })
}

fn load_from(
    files: &dyn Files,
    plan: &CheckpointPlan,
    clock: Clock,
    folder: &Path,
    rank_shift: u64,
    own: Range<u64>,
) -> Result<Vec<RankCheckpoint>, CheckpointError> {
    let manifest = Manifest::read(files, folder)?;
    let writers = plan.state.writers();
    ranks(own, clock, &|rank, own| {
        for state in plan.state.files((rank + rank_shift % writers) % writers) {
            own.bytes += manifest.check(files, folder, &file_name(plan, &state), &state)?;
        }
        Ok(())
    })
}

/// Where the checkpoint of `epoch` and `step` lies.
pub(crate) fn folder(plan: &CheckpointPlan, epoch: u32, step: u64) -> PathBuf {
    Path::new(&plan.folder).join(format!("global_epoch{epoch}_step{step}"))
}

fn file_name(plan: &CheckpointPlan, state: &StateFile) -> String {
    format!("{}.{}", state.name, plan.format)
}

/// Do the part of each of `own` ranks, [`RANKS_AT_ONCE`] or as many as there are processors at a time.
fn ranks(
    own: Range<u64>,
    clock: Clock,
    part: &OfRank<'_>,
) -> Result<Vec<RankCheckpoint>, CheckpointError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let next = AtomicU64::new(own.start);
    let mut all = std::thread::scope(|scope| {
        let helpers = threads.max(RANKS_AT_ONCE).min(own.end - own.start).saturating_sub(1);
        let helpers: Vec<_> = (0..helpers)
            .map(|_| scope.spawn(|| one_after_another(&next, own.end, clock, part)))
            .collect();
        let first = one_after_another(&next, own.end, clock, part);
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

/// Do the part of the next rank until all below `end` are done, or one failed: then there is no next.
fn one_after_another(
    next: &AtomicU64,
    end: u64,
    clock: Clock,
    part: &OfRank<'_>,
) -> Result<Vec<RankCheckpoint>, CheckpointError> {
    let mut done = Vec::new();
    loop {
        let rank = next.fetch_add(1, Relaxed);
        if rank >= end {
            return Ok(done);
        }
        let start_ns = clock.now_ns();
        let mut own = RankCheckpoint { rank, start_ns, end_ns: start_ns, bytes: 0, sync_ns: 0 };
        part(rank, &mut own).inspect_err(|_| next.store(end, Relaxed))?;
        own.end_ns = clock.now_ns();
        done.push(own);
    }
}

/// Writes one file after another.
struct Writer<'a> {
    files: &'a dyn Files,
    plan: &'a CheckpointPlan,
    clock: Clock,
    folder: &'a Path,
}

impl Writer<'_> {
    fn write(&self, state: &StateFile, own: &mut RankCheckpoint) -> Result<Entry, CheckpointError> {
        let path = self.folder.join(file_name(self.plan, state));
        let part = path.with_extension("part");
        self.write_part(&part, state, own)
            .and_then(|entry| self.files.rename(&part, &path).map(|()| entry))
            .map_err(|source| {
                // What was never made cannot be removed; the first error is the one to tell.
                let _ = self.files.remove(&part);
                CheckpointError::Write { path, source }
            })
    }

    fn write_part(
        &self,
        part: &Path,
        state: &StateFile,
        own: &mut RankCheckpoint,
    ) -> io::Result<Entry> {
        let name = &self.plan.format;
        let format = find(name)
            .ok_or_else(|| io::Error::other(format!("there is no checkpoint format `{name}`")))?;
        let mut length = Length::default();
        format.write(&mut length, state)?;
        let in_one = !self.plan.state.file_sizes.is_empty();
        let most = if in_one { length.bytes } else { PIECE_BYTES as u64 };
        let piece_bytes = length.bytes.min(most) as usize;
        let mut output = self.files.create(part, length.bytes)?;
        let content =
            if self.plan.ones { StateContent::ones() } else { StateContent::random(&state.name) };
        let mut pieces = Pieces::new(content, piece_bytes, &mut *output)?;
        format.write(&mut pieces, state)?;
        let (bytes, crc32) = pieces.finish()?;
        let mut syncs = Syncs::new(self.plan.fsync, self.clock);
        syncs.file(&mut *output)?;
        own.sync_ns += syncs.ns;
        own.bytes += bytes;
        Ok(Entry { bytes, crc32, tensors_crc32: manifest::tensors_crc32(state) })
    }
}

fn check_space(free: u64, bytes: u64) -> io::Result<()> {
    if bytes <= free {
        return Ok(());
    }
    let message = format!("it has {}, only {} are free", units::bytes(bytes), units::bytes(free));
    Err(io::Error::new(io::ErrorKind::StorageFull, message))
}

#[cfg(test)]
mod fragile;
#[cfg(test)]
mod tests;
