//! One checkpoint in its folder: begun, written by many ranks at a time, whole once its manifest has the lengths of all files, read back, removed.

use super::content::StateContent;
use super::files;
use super::manifest::{CheckpointFile, CheckpointManifest, MANIFEST_BYTES_MAX, tensors_crc32};
use super::sink::{Length, PIECE_BYTES, Pieces};
use super::step::{self, StepFolder};
use super::{CheckpointError, find};
use crate::aside::aside;
use crate::buffer::AlignedBuffer;
use crate::clock::Clock;
use crate::comm::CommError;
use crate::live::{Live, Signals};
use crate::ranks::Ranks;
use feedrate_data::storage;
use feedrate_data::walk::{self, Watch};
use feedrate_measure::record::RankCheckpoint;
use feedrate_spec::plan::CheckpointPlan;
use feedrate_spec::plan::state::StateFile;
use feedrate_spec::units;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};

/// Ranks that write or read side by side even where there are fewer processors: storage is waited for more than computed.
const RANKS_AT_ONCE: usize = 16;
/// Read and summed up at once, so that it stays in a core's cache between the two.
const READ_BYTES: usize = 512 << 10;

/// A checkpoint, and where it lies or will lie.
pub(super) struct CheckpointFolder {
    pub(super) at: StepFolder,
    plan: Arc<CheckpointPlan>,
    clock: Clock,
    /// Told of the bytes that are written and read.
    live: Arc<Live>,
}

/// The part of a checkpoint that some ranks wrote.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct WrittenPart {
    pub(super) ranks: Vec<RankCheckpoint>,
    pub(super) entries: Vec<(String, CheckpointFile)>,
    /// As in a record, on the process of rank 0.
    pub(super) optimizer_ns: Option<u64>,
    /// When the last of it was written.
    pub(super) end_ns: u64,
}

/// The part of a checkpoint that some ranks read.
#[derive(Debug)]
pub struct LoadedPart {
    /// On the process of rank 0 all, on others their own.
    pub ranks: Vec<RankCheckpoint>,
    /// As in a record, on the process of rank 0.
    pub optimizer_ns: Option<u64>,
}

/// Where the checkpoint of `epoch` and `step` lies.
pub(crate) fn folder(plan: &CheckpointPlan, epoch: u32, step: u64) -> PathBuf {
    Path::new(&plan.folder).join(step::name(epoch, step))
}

/// Read the checkpoint of `epoch` and `step` back, all of it, and check it: each rank reads what the rank `read_rank_shift` of the
/// plan behind it wrote, as after a restart on other machines.
///
/// # Errors
/// The file system refused, or the checkpoint is not whole, or not this plan's; or it does not answer, and the run is to be left.
pub fn load(
    plan: &CheckpointPlan,
    clock: Clock,
    epoch: u32,
    step: u64,
    ranks: &Ranks,
    signals: &Signals,
) -> Result<LoadedPart, CheckpointError> {
    let (path, own, live) = (folder(plan, epoch, step), own(plan, ranks), &signals.live);
    live.bytes.begin((!ranks.are_many()).then_some(plan.total_bytes), clock.now_ns());
    let plan = Arc::new(plan.clone());
    let folder = CheckpointFolder::new(&plan, clock, live, epoch, step);
    let loaded = aside(&signals.leave, move || folder.load(own))
        .map_err(|source| CheckpointError::Read { path, source })?;
    let own = loaded.ok_or(CommError::Stopped)??;
    if !ranks.are_many() {
        return Ok(own);
    }
    let all: Vec<_> = ranks.gather(&own.ranks)?.into_iter().flatten().collect();
    ranks.comm.barrier()?;
    Ok(if ranks.is_first() { LoadedPart { ranks: all, ..own } } else { own })
}

/// The ranks of a checkpoint that this process writes or reads.
pub(super) fn own(plan: &CheckpointPlan, ranks: &Ranks) -> Range<u64> {
    let writers = plan.state.writers();
    let own = &ranks.own;
    let end = if ranks.has_last() { writers } else { u64::from(own.end).min(writers) };
    u64::from(own.start).min(end)..end
}

impl CheckpointFolder {
    pub(super) fn new(
        plan: &Arc<CheckpointPlan>,
        clock: Clock,
        live: &Arc<Live>,
        epoch: u32,
        step: u64,
    ) -> Self {
        let syncs = plan.fsync.then_some(clock);
        let at = StepFolder::new(syncs, Path::new(&plan.folder), epoch, step);
        CheckpointFolder { at, plan: Arc::clone(plan), clock, live: Arc::clone(live) }
    }

    /// Make the folder; from here on no checkpoint in it is whole. Files of others in it stay; where they have names of ours,
    /// nothing is touched.
    pub(super) fn begin(&self) -> Result<(), CheckpointError> {
        let failed = not_written(&self.at.path);
        let own = self.at.own().map_err(&failed)?;
        let planned = planned(&self.plan);
        let paths = self.at.strangers(&planned, own.as_ref()).map_err(&failed)?;
        if !paths.is_empty() {
            return Err(CheckpointError::Strangers { paths });
        }
        self.prepare(&planned, own).map_err(failed)
    }

    fn prepare(
        &self,
        planned: &BTreeSet<String>,
        own: Option<CheckpointManifest>,
    ) -> io::Result<()> {
        self.create(&self.at.root)?;
        let above = if self.at.path.exists() { &self.at.path } else { &self.at.root };
        let free = storage::open("file", above).and_then(|storage| storage.free_bytes());
        let (bytes, free) = (self.plan.total_bytes, free.map_err(|error| error.source)?);
        if let Some(free) = free.filter(|free| bytes > *free) {
            let (bytes, free) = (units::bytes(bytes), units::bytes(free));
            let message = format!("it has {bytes}, only {free} are free");
            return Err(io::Error::new(io::ErrorKind::StorageFull, message));
        }
        self.at.begin(planned, own)?;
        self.create(&self.at.path)
    }

    /// Make a folder that may be there.
    fn create(&self, folder: &Path) -> io::Result<()> {
        let changed = files::create_folder(folder)?;
        changed.iter().try_for_each(|folder| self.at.sync_folder(folder))
    }

    /// Write the files of `own` ranks, many at a time. Each gets its name once it is whole. Memory is bounded by ranks that write
    /// at a time (16, or as many as there are processors) × a piece of 4 MiB, whatever the model; where files of given sizes are
    /// written, each in one call, × the largest of them.
    ///
    /// # Errors
    /// The file system refused. No file that was begun is left then; those that are whole are.
    pub(super) fn write(&self, own: Range<u64>) -> Result<WrittenPart, CheckpointError> {
        let (entries, optimizer) = (Mutex::new(Vec::new()), self.optimizer_time(&own));
        let ranks = self.ranks(own, |rank, own| {
            for state in self.plan.state.files(rank) {
                let entry = optimizer.timed(rank, &state, || self.write_file(&state, own))?;
                let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
                entries.push((file_name(&self.plan, &state), entry));
            }
            Ok(())
        })?;
        let entries = entries.into_inner().unwrap_or_else(PoisonError::into_inner);
        let end_ns = self.clock.now_ns();
        Ok(WrittenPart { ranks, entries, optimizer_ns: optimizer.ns(), end_ns })
    }

    fn write_file(
        &self,
        state: &StateFile,
        own: &mut RankCheckpoint,
    ) -> Result<CheckpointFile, CheckpointError> {
        let path = self.at.path.join(file_name(&self.plan, state));
        self.write_state(&path, state, own)
            .map_err(|source| CheckpointError::Write { path, source })
    }

    fn write_state(
        &self,
        path: &Path,
        state: &StateFile,
        own: &mut RankCheckpoint,
    ) -> io::Result<CheckpointFile> {
        let name = &self.plan.format;
        let format = find(name)
            .ok_or_else(|| io::Error::other(format!("there is no checkpoint format `{name}`")))?;
        let mut length = Length::default();
        format.write(&mut length, state)?;
        let in_one = !self.plan.state.file_sizes.is_empty();
        let most = if in_one { length.bytes } else { PIECE_BYTES as u64 };
        let piece_bytes = length.bytes.min(most) as usize;
        let content = if self.plan.ones {
            StateContent::ones()
        } else {
            StateContent::random(self.at.epoch, self.at.step, &state.name)
        };
        let (part, mut output) = files::create_part(path, length.bytes, self.plan.interface)?;
        let written = Pieces::new(content, piece_bytes, &mut *output, &self.live.bytes.done)
            .and_then(|mut pieces| format.write(&mut pieces, state).and_then(|()| pieces.finish()))
            .and_then(|written| Ok((written, self.at.timed(|| output.sync())?)));
        let named = written.and_then(|done| fs::rename(&part, path).map(|()| done));
        if named.is_err() {
            // The first error is the one to report.
            let _ = fs::remove_file(&part);
        }
        let ((bytes, crc32), sync_ns) = named?;
        // What was reserved of a shorter one would be its tail.
        assert_eq!(bytes, length.bytes, "{} as it was planned", path.display());
        own.sync_ns += sync_ns;
        own.bytes += bytes;
        Ok(CheckpointFile { bytes, crc32, tensors_crc32: tensors_crc32(state) })
    }

    /// All files are there: now it is whole.
    pub(super) fn complete(
        &self,
        entries: Vec<(String, CheckpointFile)>,
    ) -> Result<(), CheckpointError> {
        self.at.complete(entries).map_err(not_written(&self.at.manifest()))
    }

    /// Read the part of `own` ranks, and check it.
    pub(super) fn load(&self, own: Range<u64>) -> Result<LoadedPart, CheckpointError> {
        let (manifest, optimizer) = (self.manifest()?, self.optimizer_time(&own));
        let (writers, shift) = (self.plan.state.writers(), self.plan.read_rank_shift);
        let ranks = self.ranks(own, |rank, own| {
            for state in self.plan.state.files((rank + shift % writers) % writers) {
                own.bytes += optimizer.timed(rank, &state, || self.check(&manifest, &state))?;
            }
            Ok(())
        })?;
        Ok(LoadedPart { ranks, optimizer_ns: optimizer.ns() })
    }

    fn optimizer_time(&self, own: &Range<u64>) -> OptimizerTime {
        let is_known = own.start == 0 && self.plan.state.file_sizes.is_empty();
        OptimizerTime { clock: self.clock, is_known, ns: AtomicU64::new(0) }
    }

    /// Remove an older checkpoint of this run.
    pub(super) fn remove(&self, epoch: u32, step: u64) -> Result<(), CheckpointError> {
        let older = StepFolder::new(None, &self.at.root, epoch, step);
        older.remove().map_err(not_written(&older.path))
    }

    fn manifest(&self) -> Result<CheckpointManifest, CheckpointError> {
        let path = self.at.manifest();
        let missing = "there is none, so the checkpoint is not whole";
        let mut text = Vec::new();
        self.read(&path, missing, None, |piece| text.extend_from_slice(piece))?;
        let parsed = self.at.parse(&text).and_then(|manifest| {
            let is_whole = manifest.files.values().all(Option::is_some);
            is_whole.then_some(manifest).ok_or_else(|| {
                "it was begun and not completed, so the checkpoint is not whole".into()
            })
        });
        parsed.map_err(|problem| CheckpointError::Damaged { path, problem })
    }

    /// Read the file that is to hold `state`; returns its length.
    fn check(
        &self,
        manifest: &CheckpointManifest,
        state: &StateFile,
    ) -> Result<u64, CheckpointError> {
        let name = file_name(&self.plan, state);
        let path = self.at.path.join(&name);
        let damaged = |problem| CheckpointError::Damaged { path: path.clone(), problem };
        let Some(entry) = manifest.files.get(&name).copied().flatten() else {
            return Err(damaged("it is not in the checkpoint's manifest".into()));
        };
        if entry.tensors_crc32 != tensors_crc32(state) {
            return Err(damaged("it holds other tensors than this plan's".into()));
        }
        let (mut bytes, mut crc) = (0, crc32fast::Hasher::new());
        let missing = "it is missing, and the checkpoint's manifest names it";
        self.read(&path, missing, Some(entry.bytes), |piece| {
            crc.update(piece);
            bytes += piece.len() as u64;
            self.live.bytes.done.fetch_add(piece.len() as u64, Relaxed);
        })?;
        let crc = crc.finalize();
        if bytes != entry.bytes {
            return Err(damaged(of_other_length(bytes, entry.bytes)));
        }
        if crc != entry.crc32 {
            return Err(damaged(format!("its checksum is {crc:08x}, not {:08x}", entry.crc32)));
        }
        Ok(bytes)
    }

    /// Read a file to its end, piece by piece; one that is not as long as `wanted`, or too long for a manifest, is not begun. However it
    /// grows meanwhile, no more than a byte is read beyond what it had.
    fn read(
        &self,
        path: &Path,
        missing: &str,
        wanted: Option<u64>,
        take: impl FnMut(&[u8]),
    ) -> Result<(), CheckpointError> {
        let damaged = |problem| CheckpointError::Damaged { path: path.to_owned(), problem };
        let refused = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => damaged(missing.into()),
            io::ErrorKind::InvalidInput => damaged(source.to_string()),
            _ => CheckpointError::Read { path: path.to_owned(), source },
        };
        let (input, bytes) = files::open(path).map_err(refused)?;
        match wanted {
            Some(wanted) if wanted != bytes => return Err(damaged(of_other_length(bytes, wanted))),
            None if bytes > MANIFEST_BYTES_MAX => {
                return Err(damaged(format!(
                    "it has {bytes} bytes, more than {MANIFEST_BYTES_MAX}"
                )));
            }
            _ => {}
        }
        read_all(input.take(bytes.saturating_add(1)), take).map_err(refused)
    }

    /// Do the part of each of `own` ranks, [`RANKS_AT_ONCE`] or as many as there are processors at a time, until one failed.
    fn ranks(
        &self,
        own: Range<u64>,
        part: impl Fn(u64, &mut RankCheckpoint) -> Result<(), CheckpointError> + Sync,
    ) -> Result<Vec<RankCheckpoint>, CheckpointError> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let (done, never) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        let watch = Watch::new(&|_, _| {}, &never);
        let (count, threads) = (own.end - own.start, threads.max(RANKS_AT_ONCE));
        walk::for_each(
            count,
            threads,
            &watch,
            || (),
            |(), number| {
                let (rank, start_ns) = (own.start + number, self.clock.now_ns());
                let mut own =
                    RankCheckpoint { rank, start_ns, end_ns: start_ns, bytes: 0, sync_ns: 0 };
                part(rank, &mut own)?;
                own.end_ns = self.clock.now_ns();
                done.lock().unwrap_or_else(PoisonError::into_inner).push(own);
                Ok::<(), CheckpointError>(())
            },
        )?;
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_unstable_by_key(|own| own.rank);
        Ok(done)
    }
}

/// Time that rank 0 takes for files of the optimizer.
struct OptimizerTime {
    clock: Clock,
    is_known: bool,
    ns: AtomicU64,
}

impl OptimizerTime {
    fn timed<T>(&self, rank: u64, state: &StateFile, act: impl FnOnce() -> T) -> T {
        let start_ns = self.clock.now_ns();
        let done = act();
        if rank == 0 && state.is_optimizer_state() {
            self.ns.fetch_add(self.clock.now_ns() - start_ns, Relaxed);
        }
        done
    }

    fn ns(self) -> Option<u64> {
        self.is_known.then(|| self.ns.into_inner())
    }
}

/// Names of the files of each checkpoint of `plan`.
pub(super) fn planned(plan: &CheckpointPlan) -> BTreeSet<String> {
    let state = &plan.state;
    let files = (0..state.writers()).flat_map(|rank| state.files(rank));
    files.map(|state| file_name(plan, &state)).collect()
}

fn file_name(plan: &CheckpointPlan, state: &StateFile) -> String {
    format!("{}.{}", state.name, plan.format)
}

fn of_other_length(bytes: u64, wanted: u64) -> String {
    format!("it has {bytes} bytes of {wanted}")
}

fn not_written(path: &Path) -> impl Fn(io::Error) -> CheckpointError + use<> {
    let path = path.to_owned();
    move |source| CheckpointError::Write { path: path.clone(), source }
}

fn read_all(mut input: impl Read, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let mut buffer = AlignedBuffer::new(READ_BYTES)?;
    let piece = buffer.aligned_like(0, READ_BYTES);
    loop {
        match input.read(piece)? {
            0 => return Ok(()),
            bytes => take(&piece[..bytes]),
        }
    }
}
