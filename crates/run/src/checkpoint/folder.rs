//! Writes, completes, reads back and removes one checkpoint. Ranks write in parallel; a checkpoint is complete when its manifest
//! has the lengths and checksums of all files.

use super::content::StateContent;
use super::file_names::{Overview, file_names, overview, planned_files};
use super::files::{self, NewFile};
use super::manifest::{CheckpointFile, CheckpointManifest, MANIFEST_BYTES_MAX, tensors_crc32};
use super::object::{self, length_problem};
use super::sink::{CheckpointSink, LengthCounter, PIECE_BYTES, PieceWriter};
use super::step::{self, StepFolder, is_in_store};
use super::{CheckpointError, NamedContent, find};
use crate::abandonable::run_abandonable;
use crate::clock::Clock;
use crate::comm::CommError;
use crate::live::{Live, Signals};
use crate::ranks::Ranks;
use feedrate_data::storage;
use feedrate_data::walk;
use feedrate_measure::record::RankCheckpoint;
use feedrate_spec::plan::CheckpointPlan;
use feedrate_spec::plan::state::StateFile;
use feedrate_spec::units;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

/// Number of ranks that write or read in parallel even with fewer processors, because they mostly wait for the storage.
const PARALLEL_RANKS_MIN: usize = 16;

/// The folder of one checkpoint with its plan.
pub(super) struct CheckpointFolder {
    pub(super) step: StepFolder,
    plan: Arc<CheckpointPlan>,
    clock: Clock,
    /// Receives the progress in bytes.
    live: Arc<Live>,
}

/// The part of a checkpoint written by one process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct WrittenPart {
    pub(super) ranks: Vec<RankCheckpoint>,
    pub(super) entries: Vec<(String, CheckpointFile)>,
    /// Time that rank 0 took for files of the optimizer; only in the process of rank 0.
    pub(super) optimizer_ns: Option<u64>,
    /// Time at which the last file was written.
    pub(super) end_ns: u64,
}

/// The part of a checkpoint read by one process.
#[derive(Debug)]
pub struct LoadedPart {
    /// All ranks in the process of rank 0, local ranks in other processes.
    pub ranks: Vec<RankCheckpoint>,
    /// Time that rank 0 took for files of the optimizer; only in the process of rank 0.
    pub optimizer_ns: Option<u64>,
}

/// Returns the folder of the checkpoint of `epoch` and `step`.
pub(crate) fn folder(plan: &CheckpointPlan, epoch: u32, step: u64) -> PathBuf {
    Path::new(&plan.folder).join(step::folder_name(epoch, step))
}

/// Reads the checkpoint of `epoch` and `step` completely and verifies it. Each rank reads the files of the rank that is
/// `read_rank_shift` higher, as after a restart on other machines.
///
/// # Errors
/// The file system refused; the checkpoint is incomplete or of another plan; or the run was ended while the storage hung.
pub fn load(
    plan: &CheckpointPlan,
    clock: Clock,
    epoch: u32,
    step: u64,
    ranks: &Ranks,
    signals: &Signals,
) -> Result<LoadedPart, CheckpointError> {
    let path = folder(plan, epoch, step);
    let local = local_ranks(plan, ranks);
    let live = &signals.live;
    live.bytes.begin((!ranks.is_distributed()).then_some(plan.total_bytes), clock.now_ns());
    let folder = CheckpointFolder::new(&Arc::new(plan.clone()), clock, live, epoch, step);
    let loaded = run_abandonable(&signals.abandon, move || folder.load(local))
        .map_err(|source| CheckpointError::Read { path, source })?;
    let part = loaded.ok_or(CommError::Stopped)??;
    if !ranks.is_distributed() {
        return Ok(part);
    }
    let all: Vec<_> = ranks.gather(&part.ranks)?.into_iter().flatten().collect();
    ranks.comm.barrier()?;
    Ok(if ranks.is_first() { LoadedPart { ranks: all, ..part } } else { part })
}

/// Returns the ranks of a checkpoint that this process writes or reads.
pub(super) fn local_ranks(plan: &CheckpointPlan, ranks: &Ranks) -> Range<u64> {
    let writers = plan.state.writers();
    let local = &ranks.local;
    let end = if ranks.has_last() { writers } else { u64::from(local.end).min(writers) };
    u64::from(local.start).min(end)..end
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
        let step = StepFolder::new(syncs, Path::new(&plan.folder), epoch, step);
        CheckpointFolder { step, plan: Arc::clone(plan), clock, live: Arc::clone(live) }
    }

    /// Creates the folder and marks the checkpoint as incomplete. Foreign files in the folder are kept; if one has the name of a
    /// planned file, nothing is changed and the call fails.
    pub(super) fn begin(&self) -> Result<(), CheckpointError> {
        let write_error = write_error(&self.step.path);
        let older = self.step.read_manifest().map_err(&write_error)?;
        let planned = planned_files(&self.plan);
        let paths = self.step.foreign_files(&planned, older.as_ref()).map_err(&write_error)?;
        if !paths.is_empty() {
            return Err(CheckpointError::ForeignFiles { paths });
        }
        self.prepare(&planned, older).map_err(write_error)
    }

    fn prepare(
        &self,
        planned: &BTreeSet<String>,
        older: Option<CheckpointManifest>,
    ) -> io::Result<()> {
        self.create(&self.step.root)?;
        let existing = if self.step.path.exists() { &self.step.path } else { &self.step.root };
        let free_bytes = storage::open_root(existing)
            .and_then(|storage| storage.free_bytes())
            .map_err(|error| error.source)?;
        let total_bytes = self.plan.total_bytes;
        if let Some(free_bytes) = free_bytes.filter(|free_bytes| total_bytes > *free_bytes) {
            let message = format!(
                "it has {}, only {} are free",
                units::bytes(total_bytes),
                units::bytes(free_bytes)
            );
            return Err(io::Error::new(io::ErrorKind::StorageFull, message));
        }
        self.step.begin(planned, older)?;
        self.create(&self.step.path)
    }

    /// Creates a folder if it does not exist. A store has no folders.
    fn create(&self, folder: &Path) -> io::Result<()> {
        if is_in_store(folder) {
            return Ok(());
        }
        let changed = files::create_folder(folder)?;
        changed.iter().try_for_each(|folder| self.step.sync_folder(folder))
    }

    /// Writes the files of the ranks `local` in parallel. Each file gets its name when it is complete. Each parallel rank uses 4 MiB
    /// of memory, independent of the size of the model; if the plan gives file sizes, each file is written in one call, and a rank uses as
    /// much memory as its largest file.
    ///
    /// # Errors
    /// The file system refused. Incomplete files are removed; complete ones are kept.
    pub(super) fn write(&self, local: Range<u64>) -> Result<WrittenPart, CheckpointError> {
        let entries = Mutex::new(Vec::new());
        let optimizer = self.optimizer_time(&local);
        let ranks = self.for_each_rank(local, |record| {
            for state in self.plan.state.files(record.rank) {
                let written =
                    optimizer.measure(record.rank, &state, || self.write_state(&state, record))?;
                entries.lock().unwrap_or_else(PoisonError::into_inner).extend(written);
            }
            if record.rank == 0
                && let Some(Overview { file: NamedContent { name, content }, state }) =
                    overview(&self.plan)
            {
                let put = |sink: &mut dyn CheckpointSink| sink.put(&content);
                let (file, ()) = self.write_file(&name, &state, record, put)?;
                entries.lock().unwrap_or_else(PoisonError::into_inner).push((name, file));
            }
            Ok(())
        })?;
        Ok(WrittenPart {
            ranks,
            entries: entries.into_inner().unwrap_or_else(PoisonError::into_inner),
            optimizer_ns: optimizer.ns(),
            end_ns: self.clock.now_ns(),
        })
    }

    /// Writes the files of a state. Returns their entries in the manifest.
    fn write_state(
        &self,
        state: &StateFile,
        record: &mut RankCheckpoint,
    ) -> Result<Vec<(String, CheckpointFile)>, CheckpointError> {
        let name = &self.plan.format;
        let format = find(name).ok_or_else(|| {
            let message = format!("there is no checkpoint format `{name}`");
            write_error(&self.step.path)(io::Error::other(message))
        })?;
        let mut names = format.file_names(&state.name).into_iter();
        let mut entries = Vec::new();
        let mut contents = Vec::new();
        if let Some(first) = names.next() {
            let write = |sink: &mut dyn CheckpointSink| format.write(sink, state);
            let (file, others) = self.write_file(&first, state, record, write)?;
            entries.push((first, file));
            contents = others;
        }
        for (other, content) in names.zip(&contents) {
            let put = |sink: &mut dyn CheckpointSink| sink.put(content);
            let (file, ()) = self.write_file(&other, state, record, put)?;
            entries.push((other, file));
        }
        Ok(entries)
    }

    /// Writes a file that belongs to `state`, and adds its bytes and the time of its sync to `record`.
    fn write_file<T>(
        &self,
        name: &str,
        state: &StateFile,
        record: &mut RankCheckpoint,
        write: impl Fn(&mut dyn CheckpointSink) -> io::Result<T>,
    ) -> Result<(CheckpointFile, T), CheckpointError> {
        let path = self.step.path.join(name);
        self.write_content(&path, state, record, write)
            .map_err(|source| CheckpointError::Write { path, source })
    }

    fn write_content<T>(
        &self,
        path: &Path,
        state: &StateFile,
        record: &mut RankCheckpoint,
        write: impl Fn(&mut dyn CheckpointSink) -> io::Result<T>,
    ) -> io::Result<(CheckpointFile, T)> {
        let mut length = LengthCounter::default();
        write(&mut length)?;
        let writes_in_one_call = !self.plan.state.file_sizes.is_empty();
        let piece_bytes_max = if writes_in_one_call { length.bytes } else { PIECE_BYTES as u64 };
        let piece_bytes = length.bytes.min(piece_bytes_max) as usize;
        let content = if self.plan.ones {
            StateContent::ones()
        } else {
            StateContent::random(self.step.epoch, self.step.step, &state.name)
        };
        let mut file = self.create_file(path, length.bytes)?;
        let done = &self.live.bytes.done;
        let mut pieces = PieceWriter::new(content, piece_bytes, &mut *file.output, done)?;
        let result = write(&mut pieces)?;
        let (bytes, crc32) = pieces.finish()?;
        let sync_ns = self.step.time_sync(|| file.output.sync())?;
        file.commit(path)?;
        // A file that is shorter than planned would end in reserved blocks.
        assert_eq!(bytes, length.bytes, "length of {}", path.display());
        record.sync_ns += sync_ns;
        record.bytes += bytes;
        Ok((CheckpointFile { bytes, crc32, tensors_crc32: tensors_crc32(state) }, result))
    }

    fn create_file(&self, path: &Path, bytes: u64) -> io::Result<NewFile> {
        if !is_in_store(path) {
            return NewFile::in_folder(path, bytes, self.plan.interface);
        }
        NewFile::in_store(&*self.step.storage()?, &self.path_in_root(path))
    }

    /// Returns a path relative to the folder of all checkpoints, as storages name it.
    fn path_in_root(&self, path: &Path) -> String {
        let relative = path.strip_prefix(&self.step.root).unwrap_or(path);
        relative.to_string_lossy().into_owned()
    }

    /// Marks the checkpoint as complete. All files must be written.
    pub(super) fn complete(
        &self,
        entries: Vec<(String, CheckpointFile)>,
    ) -> Result<(), CheckpointError> {
        self.step.complete(entries).map_err(write_error(&self.step.manifest_path()))
    }

    /// Reads and verifies the files of the ranks `local`.
    pub(super) fn load(&self, local: Range<u64>) -> Result<LoadedPart, CheckpointError> {
        let manifest = self.read_manifest()?;
        let optimizer = self.optimizer_time(&local);
        let writers = self.plan.state.writers();
        let shift = self.plan.read_rank_shift;
        let ranks = self.for_each_rank(local, |record| {
            for state in self.plan.state.files((record.rank + shift % writers) % writers) {
                record.bytes +=
                    optimizer.measure(record.rank, &state, || self.verify(&manifest, &state))?;
            }
            if record.rank == 0
                && let Some(Overview { file, state }) = overview(&self.plan)
            {
                record.bytes += self.verify_file(&manifest, &state, &file.name)?;
            }
            Ok(())
        })?;
        Ok(LoadedPart { ranks, optimizer_ns: optimizer.ns() })
    }

    fn optimizer_time(&self, local: &Range<u64>) -> OptimizerTime {
        let is_known = local.start == 0 && self.plan.state.file_sizes.is_empty();
        OptimizerTime { clock: self.clock, is_known, ns: AtomicU64::new(0) }
    }

    /// Removes an older checkpoint of this run.
    pub(super) fn remove(&self, epoch: u32, step: u64) -> Result<(), CheckpointError> {
        let older = StepFolder::new(None, &self.step.root, epoch, step);
        older.remove().map_err(write_error(&older.path))
    }

    /// Reads the manifest of a complete checkpoint.
    fn read_manifest(&self) -> Result<CheckpointManifest, CheckpointError> {
        let path = self.step.manifest_path();
        let missing = "it does not exist, so the checkpoint is incomplete";
        let mut text = Vec::new();
        if is_in_store(&path) {
            let name = self.path_in_root(&path);
            let read = self.step.storage();
            let read = read.and_then(|storage| object::read(&*storage, &name, MANIFEST_BYTES_MAX));
            text = read.map_err(|error| read_error(&path, missing, error))?;
        } else {
            self.read(&path, missing, None, |piece| text.extend_from_slice(piece))?;
        }
        let parsed = self.step.parse(&text).and_then(|manifest| {
            let is_complete = manifest.files.values().all(Option::is_some);
            is_complete.then_some(manifest).ok_or_else(|| {
                "it was begun and not completed, so the checkpoint is incomplete".into()
            })
        });
        parsed.map_err(|problem| CheckpointError::Damaged { path, problem })
    }

    /// Reads the files of `state`, compares them with the manifest and returns the sum of their lengths.
    fn verify(
        &self,
        manifest: &CheckpointManifest,
        state: &StateFile,
    ) -> Result<u64, CheckpointError> {
        let names = file_names(&self.plan, state).into_iter();
        names.map(|name| self.verify_file(manifest, state, &name)).sum()
    }

    fn verify_file(
        &self,
        manifest: &CheckpointManifest,
        state: &StateFile,
        name: &str,
    ) -> Result<u64, CheckpointError> {
        let path = self.step.path.join(name);
        let damaged = |problem| CheckpointError::Damaged { path: path.clone(), problem };
        let Some(entry) = manifest.files.get(name).copied().flatten() else {
            return Err(damaged("it is not in the checkpoint's manifest".into()));
        };
        if entry.tensors_crc32 != tensors_crc32(state) {
            return Err(damaged("its tensors differ from those of this plan".into()));
        }
        let missing = "it is missing, and the checkpoint's manifest names it";
        let done = &self.live.bytes.done;
        let crc = if is_in_store(&path) {
            let name = self.path_in_root(&path);
            let read = self.step.storage();
            let read = read.and_then(|storage| object::crc32(&*storage, &name, entry.bytes, done));
            read.map_err(|error| read_error(&path, missing, error))?
        } else {
            let mut bytes = 0;
            let mut hasher = crc32fast::Hasher::new();
            self.read(&path, missing, Some(entry.bytes), |piece| {
                hasher.update(piece);
                bytes += piece.len() as u64;
                done.fetch_add(piece.len() as u64, Relaxed);
            })?;
            if bytes != entry.bytes {
                return Err(damaged(length_problem(bytes, entry.bytes)));
            }
            hasher.finalize()
        };
        if crc != entry.crc32 {
            return Err(damaged(format!("its checksum is {crc:08x}, not {:08x}", entry.crc32)));
        }
        Ok(entry.bytes)
    }

    /// Reads a file completely, piece by piece. Refuses the file before reading if its length differs from `expected_bytes`, or without
    /// `expected_bytes` if it is too long for a manifest. If the file grows meanwhile, at most one additional byte is read.
    fn read(
        &self,
        path: &Path,
        missing: &str,
        expected_bytes: Option<u64>,
        consume: impl FnMut(&[u8]),
    ) -> Result<(), CheckpointError> {
        let damaged = |problem| CheckpointError::Damaged { path: path.to_owned(), problem };
        let read_error = |source| read_error(path, missing, source);
        let (input, bytes) = files::open(path).map_err(read_error)?;
        match expected_bytes {
            Some(expected) if expected != bytes => {
                return Err(damaged(length_problem(bytes, expected)));
            }
            None if bytes > MANIFEST_BYTES_MAX => {
                return Err(damaged(format!(
                    "it has {bytes} bytes, more than {MANIFEST_BYTES_MAX}"
                )));
            }
            _ => {}
        }
        files::read_all(input.take(bytes.saturating_add(1)), consume).map_err(read_error)
    }

    /// Calls `work` with the record of each rank in `local`, in parallel, until one call fails. Returns the records ordered by rank.
    fn for_each_rank(
        &self,
        local: Range<u64>,
        work: impl Fn(&mut RankCheckpoint) -> Result<(), CheckpointError> + Sync,
    ) -> Result<Vec<RankCheckpoint>, CheckpointError> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let records = Mutex::new(Vec::new());
        walk::for_all(
            local.end - local.start,
            processors.max(PARALLEL_RANKS_MIN),
            || (),
            |(), number| {
                let start_ns = self.clock.now_ns();
                let mut record = RankCheckpoint {
                    rank: local.start + number,
                    start_ns,
                    end_ns: start_ns,
                    bytes: 0,
                    sync_ns: 0,
                };
                work(&mut record)?;
                record.end_ns = self.clock.now_ns();
                records.lock().unwrap_or_else(PoisonError::into_inner).push(record);
                Ok::<(), CheckpointError>(())
            },
        )?;
        let mut records = records.into_inner().unwrap_or_else(PoisonError::into_inner);
        records.sort_unstable_by_key(|record| record.rank);
        Ok(records)
    }
}

/// Measures the time that rank 0 takes for files of the optimizer.
struct OptimizerTime {
    clock: Clock,
    is_known: bool,
    ns: AtomicU64,
}

impl OptimizerTime {
    fn measure<T>(&self, rank: u64, state: &StateFile, work: impl FnOnce() -> T) -> T {
        let start_ns = self.clock.now_ns();
        let result = work();
        if rank == 0 && state.is_optimizer_state() {
            self.ns.fetch_add(self.clock.now_ns() - start_ns, Relaxed);
        }
        result
    }

    fn ns(self) -> Option<u64> {
        self.is_known.then(|| self.ns.into_inner())
    }
}

/// Converts an error of reading `path`. `missing` describes what it means that the file does not exist.
fn read_error(path: &Path, missing: &str, source: io::Error) -> CheckpointError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::NotFound => CheckpointError::Damaged { path, problem: missing.into() },
        io::ErrorKind::InvalidInput => {
            CheckpointError::Damaged { path, problem: source.to_string() }
        }
        _ => CheckpointError::Read { path, source },
    }
}

/// Returns a conversion of I/O errors into errors of writing `path`.
fn write_error(path: &Path) -> impl Fn(io::Error) -> CheckpointError + use<> {
    let path = path.to_owned();
    move |source| CheckpointError::Write { path: path.clone(), source }
}
