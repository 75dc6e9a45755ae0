//! One checkpoint in its folder: begun, written by many ranks at a time, whole once its manifest is there, read back, removed.

use super::content::StateContent;
use super::files::{FileSystem, SystemFiles};
use super::manifest::{
    BEGUN, BegunCheckpoint, CheckpointFile, CheckpointManifest, NAME, UNFINISHED, tensors_crc32,
};
use super::sink::{Length, PIECE_BYTES, Pieces};
use super::{CheckpointError, find};
use crate::aside::aside;
use crate::buffer::AlignedBuffer;
use crate::clock::Clock;
use crate::comm::CommError;
use crate::ranks::Ranks;
use feedrate_data::storage::NameKind;
use feedrate_data::walk::{self, Watch};
use feedrate_measure::record::RankCheckpoint;
use feedrate_spec::plan::CheckpointPlan;
use feedrate_spec::plan::state::StateFile;
use feedrate_spec::units;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

/// Ranks that write or read side by side even where there are fewer processors: storage is waited for more than computed.
const RANKS_AT_ONCE: usize = 16;
/// Read and summed up at once, so that it stays in a core's cache between the two.
const READ_BYTES: usize = 512 << 10;

/// Names of files of ours that lie there, with their lengths where they are known.
type OwnFiles = BTreeMap<String, Option<u64>>;

/// A checkpoint, and where it lies or will lie.
pub(super) struct CheckpointFolder<'f> {
    files: &'f dyn FileSystem,
    plan: &'f CheckpointPlan,
    clock: Clock,
    epoch: u32,
    step: u64,
    pub(super) path: PathBuf,
    /// Waited for syncs that no rank makes.
    pub(super) sync_ns: u64,
}

/// The part of a checkpoint that some ranks wrote.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct WrittenPart {
    pub(super) ranks: Vec<RankCheckpoint>,
    pub(super) entries: Vec<(String, CheckpointFile)>,
    /// Waited for syncs that no rank makes.
    pub(super) folder_sync_ns: u64,
    /// When the last of it was written; of checkpoints that training waits for it is not asked.
    pub(super) end_ns: u64,
}

/// Where the checkpoint of `epoch` and `step` lies.
pub(crate) fn folder(plan: &CheckpointPlan, epoch: u32, step: u64) -> PathBuf {
    Path::new(&plan.folder).join(format!("global_epoch{epoch}_step{step}"))
}

/// Read the checkpoint of `epoch` and `step` back, all of it, and check it: each rank reads what the rank `read_rank_shift` of the
/// plan behind it wrote, as after a restart on other machines. On the process of rank 0 all ranks are told of, on others their own.
///
/// # Errors
/// The file system refused, or the checkpoint is not whole, or not this plan's; or it does not answer, and `leave` is set.
pub fn load(
    plan: &CheckpointPlan,
    clock: Clock,
    epoch: u32,
    step: u64,
    ranks: &Ranks,
    leave: &AtomicBool,
) -> Result<Vec<RankCheckpoint>, CheckpointError> {
    let (path, own, plan) = (folder(plan, epoch, step), own(plan, ranks), plan.clone());
    let load = move || CheckpointFolder::new(&SystemFiles, &plan, clock, epoch, step).load(own);
    let loaded = aside(leave, load).map_err(|source| CheckpointError::Read { path, source })?;
    let own = loaded.ok_or(CommError::Stopped)??;
    if !ranks.are_many() {
        return Ok(own);
    }
    let all: Vec<_> = ranks.gather(&own)?.into_iter().flatten().collect();
    ranks.comm.barrier()?;
    Ok(if ranks.is_first() { all } else { own })
}

/// The ranks of a checkpoint that this process writes or reads.
pub(super) fn own(plan: &CheckpointPlan, ranks: &Ranks) -> Range<u64> {
    let writers = plan.state.writers();
    let own = &ranks.own;
    let end = if ranks.has_last() { writers } else { u64::from(own.end).min(writers) };
    u64::from(own.start).min(end)..end
}

impl<'f> CheckpointFolder<'f> {
    pub(super) fn new(
        files: &'f dyn FileSystem,
        plan: &'f CheckpointPlan,
        clock: Clock,
        epoch: u32,
        step: u64,
    ) -> Self {
        let path = folder(plan, epoch, step);
        CheckpointFolder { files, plan, clock, epoch, step, path, sync_ns: 0 }
    }

    /// Make the folder; from here on no checkpoint in it is whole. Files of others in it stay; where they have names of ours,
    /// nothing is touched.
    pub(super) fn begin(&mut self) -> Result<(), CheckpointError> {
        let failed = not_written(&self.path);
        let own = self.own_files();
        let planned: BTreeSet<String> = self.state_files().map(|s| self.file_name(&s)).collect();
        if let Some(path) = self.stranger(&planned, &own).map_err(&failed)? {
            return Err(CheckpointError::Stranger { path });
        }
        self.prepare(planned, own).map_err(failed)
    }

    fn prepare(&mut self, planned: BTreeSet<String>, own: OwnFiles) -> io::Result<()> {
        for changed in self.files.create_folder(&self.path)? {
            self.sync_folder(&changed)?;
        }
        let (bytes, free) = (self.plan.total_bytes, self.files.free_bytes(&self.path)?);
        if bytes > free {
            let (bytes, free) = (units::bytes(bytes), units::bytes(free));
            let message = format!("it has {bytes}, only {free} are free");
            return Err(io::Error::new(io::ErrorKind::StorageFull, message));
        }
        let left = own.into_keys();
        let left = left.filter(|name| name != NAME && !planned.contains(name));
        let left: Vec<String> = left.collect();
        let files = planned.into_iter().chain(left.iter().cloned()).collect();
        let text = serde_json::to_vec(&BegunCheckpoint { files }).map_err(io::Error::other)?;
        let part = self.path.join(UNFINISHED);
        self.files.create(&part, text.len() as u64)?.write(&text)?;
        self.files.rename(&part, &self.path.join(BEGUN))?;
        let path = self.path.clone();
        self.withdraw(&path)?;
        // Those of a checkpoint that had more files would not be told from ours.
        left.iter().try_for_each(|name| self.remove_file(&path.join(name)))
    }

    /// Files that a checkpoint here has, or one that was broken off; of the former with their lengths.
    fn own_files(&self) -> OwnFiles {
        let read = |name| {
            let mut text = Vec::new();
            let read = self.read(name, "", None, |piece| text.extend_from_slice(piece));
            read.ok().map(|()| text)
        };
        let begun = read(BEGUN).and_then(|text| serde_json::from_slice(&text).ok());
        let begun = begun.map_or_else(BTreeSet::new, |begun: BegunCheckpoint| begun.files);
        let mut own: OwnFiles = begun.into_iter().map(|name| (name, None)).collect();
        let whole = read(NAME)
            .and_then(|text| CheckpointManifest::parse(&text, self.epoch, self.step).ok());
        if let Some(whole) = whole {
            own.insert(NAME.to_string(), None);
            for (name, file) in whole.files {
                own.entry(name).or_insert(Some(file.bytes));
            }
        }
        // Names that lead elsewhere are nobody's.
        own.retain(|name, _| !name.contains('/'));
        own
    }

    /// The first that has a name that is to be written, and is not `own`.
    fn stranger(&self, planned: &BTreeSet<String>, own: &OwnFiles) -> io::Result<Option<PathBuf>> {
        for name in planned.iter().map(String::as_str).chain([NAME]) {
            let path = self.path.join(name);
            let is_own = match (self.files.kind(&path)?, own.get(name)) {
                (None, _) | (Some(NameKind::File { .. }), Some(None)) => true,
                (Some(NameKind::File { bytes }), Some(Some(written))) => bytes == *written,
                (Some(_), _) => false,
            };
            if !is_own {
                return Ok(Some(path));
            }
            // Only what was begun here can have a part of ours.
            let part = part_of(&path);
            let is_begun = name == NAME || own.get(name) == Some(&None);
            if !is_begun && self.files.kind(&part)?.is_some() {
                return Ok(Some(part));
            }
        }
        for name in [UNFINISHED, BEGUN] {
            let path = self.path.join(name);
            if !matches!(self.files.kind(&path)?, None | Some(NameKind::File { .. })) {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    fn state_files(&self) -> impl Iterator<Item = StateFile> + use<'f> {
        let state = &self.plan.state;
        (0..state.writers()).flat_map(|rank| state.files(rank))
    }

    /// From here on the checkpoint in `folder` is not whole, if there is one.
    fn withdraw(&mut self, folder: &Path) -> io::Result<()> {
        match self.files.remove(&folder.join(NAME)) {
            Ok(()) => self.sync_folder(folder),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Remove a file that may not be there.
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        match self.files.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Write the files of `own` ranks, many at a time. Each gets its name once it is whole. Memory is bounded by ranks that write
    /// at a time (16, or as many as there are processors) × a piece of 4 MiB, whatever the model; where files of given sizes are
    /// written, each in one call, × the largest of them.
    ///
    /// # Errors
    /// The file system refused. No file that was begun is left then; those that are whole are.
    pub(super) fn write(&self, own: Range<u64>) -> Result<WrittenPart, CheckpointError> {
        let entries = Mutex::new(Vec::new());
        let ranks = self.ranks(own, |rank, own| {
            for state in self.plan.state.files(rank) {
                let entry = self.write_file(&state, own)?;
                let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
                entries.push((self.file_name(&state), entry));
            }
            Ok(())
        })?;
        let entries = entries.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(WrittenPart { ranks, entries, folder_sync_ns: self.sync_ns, end_ns: 0 })
    }

    fn write_file(
        &self,
        state: &StateFile,
        own: &mut RankCheckpoint,
    ) -> Result<CheckpointFile, CheckpointError> {
        let path = self.path.join(self.file_name(state));
        let part = part_of(&path);
        let written = self.write_part(&part, state, own);
        written.and_then(|entry| self.files.rename(&part, &path).map(|()| entry)).map_err(
            |source| {
                // What was never made cannot be removed; the first error is the one to tell.
                let _ = self.files.remove(&part);
                CheckpointError::Write { path, source }
            },
        )
    }

    fn write_part(
        &self,
        part: &Path,
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
        let mut output = self.files.create(part, length.bytes)?;
        let content = if self.plan.ones {
            StateContent::ones()
        } else {
            StateContent::random(self.epoch, self.step, &state.name)
        };
        let mut pieces = Pieces::new(content, piece_bytes, &mut *output)?;
        format.write(&mut pieces, state)?;
        let (bytes, crc32) = pieces.finish()?;
        own.sync_ns += self.timed(|| output.sync())?;
        own.bytes += bytes;
        Ok(CheckpointFile { bytes, crc32, tensors_crc32: tensors_crc32(state) })
    }

    /// All files are there: now it is whole.
    pub(super) fn complete(
        &mut self,
        entries: Vec<(String, CheckpointFile)>,
    ) -> Result<(), CheckpointError> {
        let path = self.path.join(NAME);
        let manifest = CheckpointManifest::new(self.epoch, self.step, entries);
        self.put(&manifest, &path).map_err(not_written(&path))
    }

    fn put(&mut self, manifest: &CheckpointManifest, path: &Path) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(manifest).map_err(io::Error::other)?;
        let part = self.path.join(UNFINISHED);
        let mut output = self.files.create(&part, text.len() as u64)?;
        output.write(&text)?;
        self.sync_ns += self.timed(|| output.sync())?;
        // No storage may keep the manifest's name and lose a file's.
        let folder = self.path.clone();
        self.sync_folder(&folder)?;
        self.files.rename(&part, path)?;
        self.sync_folder(&folder)?;
        self.remove_file(&folder.join(BEGUN))
    }

    /// Remove an older checkpoint of the same plan. The manifest goes first, so that what is left at any moment does not look whole;
    /// then what this run wrote, and the folder where nothing else is in it.
    pub(super) fn remove(&mut self, older: &Path) -> Result<(), CheckpointError> {
        self.remove_files(older).map_err(not_written(older))
    }

    fn remove_files(&mut self, older: &Path) -> io::Result<()> {
        self.withdraw(older)?;
        for file in self.state_files() {
            self.remove_file(&older.join(self.file_name(&file)))?;
        }
        self.files.remove_empty_folder(older)
    }

    /// Read the part of `own` ranks, and check it.
    pub(super) fn load(&self, own: Range<u64>) -> Result<Vec<RankCheckpoint>, CheckpointError> {
        let mut text = Vec::new();
        let missing = "there is none, so the checkpoint is not whole";
        self.read(NAME, missing, None, |piece| text.extend_from_slice(piece))?;
        let manifest = CheckpointManifest::parse(&text, self.epoch, self.step)
            .map_err(|problem| self.damaged(NAME, problem))?;
        let (writers, shift) = (self.plan.state.writers(), self.plan.read_rank_shift);
        self.ranks(own, |rank, own| {
            for state in self.plan.state.files((rank + shift % writers) % writers) {
                own.bytes += self.check(&manifest, &state)?;
            }
            Ok(())
        })
    }

    /// Read the file that is to hold `state`; returns its length.
    fn check(
        &self,
        manifest: &CheckpointManifest,
        state: &StateFile,
    ) -> Result<u64, CheckpointError> {
        let name = &self.file_name(state);
        let Some(entry) = manifest.files.get(name) else {
            return Err(self.damaged(name, format!("it is not in `{NAME}`")));
        };
        if entry.tensors_crc32 != tensors_crc32(state) {
            return Err(self.damaged(name, "it holds other tensors than this plan's".into()));
        }
        let (mut bytes, mut crc) = (0, crc32fast::Hasher::new());
        let missing = format!("it is missing, and `{NAME}` names it");
        self.read(name, &missing, Some(entry.bytes), |piece| {
            crc.update(piece);
            bytes += piece.len() as u64;
        })?;
        let crc = crc.finalize();
        if bytes != entry.bytes {
            return Err(self.of_other_length(name, bytes, entry.bytes));
        }
        if crc != entry.crc32 {
            let problem = format!("its checksum is {crc:08x}, not {:08x}", entry.crc32);
            return Err(self.damaged(name, problem));
        }
        Ok(bytes)
    }

    /// Read the file `name` to its end, piece by piece; one that is not as long as `wanted` is not begun. However a file grows
    /// meanwhile, no more than a byte is read beyond what it had.
    fn read(
        &self,
        name: &str,
        missing: &str,
        wanted: Option<u64>,
        take: impl FnMut(&[u8]),
    ) -> Result<(), CheckpointError> {
        let path = self.path.join(name);
        let refused = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => self.damaged(name, missing.to_owned()),
            _ => CheckpointError::Read { path: path.clone(), source },
        };
        let (input, bytes) = self.files.open(&path).map_err(refused)?;
        if let Some(wanted) = wanted.filter(|wanted| *wanted != bytes) {
            return Err(self.of_other_length(name, bytes, wanted));
        }
        read_all(input.take(bytes.saturating_add(1)), take).map_err(refused)
    }

    fn of_other_length(&self, name: &str, bytes: u64, wanted: u64) -> CheckpointError {
        self.damaged(name, format!("it has {bytes} bytes of {wanted}"))
    }

    fn damaged(&self, name: &str, problem: String) -> CheckpointError {
        CheckpointError::Damaged { path: self.path.join(name), problem }
    }

    fn file_name(&self, state: &StateFile) -> String {
        format!("{}.{}", state.name, self.plan.format)
    }

    fn sync_folder(&mut self, folder: &Path) -> io::Result<()> {
        self.sync_ns += self.timed(|| self.files.sync_folder(folder))?;
        Ok(())
    }

    /// Do `sync` where it is asked for; returns how long it took.
    fn timed(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<u64> {
        if !self.plan.fsync {
            return Ok(0);
        }
        let start_ns = self.clock.now_ns();
        sync()?;
        Ok(self.clock.now_ns() - start_ns)
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

/// The name of a file until it is whole.
fn part_of(path: &Path) -> PathBuf {
    path.with_extension("part")
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
