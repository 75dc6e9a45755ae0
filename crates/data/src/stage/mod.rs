//! A copy of a dataset in a folder of its own on this machine, which is read instead of it. A manifest there says what it is a copy
//! of and how long its files are: what has other names or lengths is somebody else's, and stays.

mod copies;
mod error;
mod left;
#[cfg(test)]
mod tests;

pub use error::StageError;

use self::copies::Copies;
use crate::error::DatasetError;
use crate::lock::{DatasetLock, LOCK_FILE, LockAccess, LockAttempt, readable};
use crate::manifest::{BYTES_MAX, FileRun, Manifest, fnv1a_128, read_file, write_file};
use crate::names::{FileNames, OwnFiles};
use crate::piece::Piece;
use crate::removal::{OwnFound, look_at, remove_files};
use crate::storage::engine::{ENGINES, Engine};
use crate::storage::{self, ReadStorage, Storage, StorageError};
use crate::walk::{FileShare, Watch, for_each};
use feedrate_spec::part::final_name;
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Name of the manifest in the copy's folder.
pub const MANIFEST_FILE: &str = "stage.json";
/// Locked by those who read the copy. Not the manifest, which is replaced. Copies of earlier versions have a file of this name too.
const READERS_FILE: &str = ".feedrate.stage";
/// Version of the manifest's own form.
const VERSION: u32 = 1;
/// A request of those who copy.
const REQUEST_BYTES: usize = 4 << 20;

/// A dataset and the folder of its copy.
pub struct Stage {
    plan: DatasetPlan,
    layout: Layout,
    source: PathBuf,
    /// Knows what the dataset's files are called.
    dataset: Arc<dyn Storage>,
    folder: PathBuf,
    storage: Arc<dyn Storage>,
    limit_bytes: Option<u64>,
}

/// Files of a dataset as they are now.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Length of all files.
    pub bytes: u64,
    files: Option<Vec<FileRun>>,
    fingerprint: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct StageManifest {
    feedrate_stage: u32,
    source: PathBuf,
    /// Settings of the dataset; `None` in copies of before.
    #[serde(default)]
    settings: Option<DatasetPlan>,
    /// Stands for settings, lengths and times of change.
    fingerprint: String,
    /// The machine's run that its files are known to be whole in; `None` once they are durable.
    boot_id: Option<String>,
    /// Lengths of the dataset's files; `None` where that would be a long list.
    files: Option<Vec<FileRun>>,
}

/// Files that were copied, and those that a run before had copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Copied {
    pub files: u64,
    pub bytes: u64,
    pub kept_files: u64,
    pub kept_bytes: u64,
}

/// A process that reads the copy: a shared lock of a file beside its manifest.
pub struct Reader {
    _lock: File,
}

impl Stage {
    /// The copy of the dataset of `plan` in `source` that lies, or is to lie, in a folder in `place`, read by `engine`.
    ///
    /// # Errors
    /// `place` cannot be used.
    pub fn new(
        plan: &DatasetPlan,
        source: &Path,
        place: &Path,
        engine: Option<&'static dyn Engine>,
        limit_bytes: Option<u64>,
    ) -> Result<Self, StageError> {
        let [source, place] = [source, place].map(|path| {
            std::path::absolute(path).map_err(|error| StorageError::new("find", path, error))
        });
        let (source, place) = (source?, place?);
        let settings = Manifest::fingerprint_of(plan);
        let name = fnv1a_128(format!("{settings}\n{}", source.display()).as_bytes());
        let folder = place.join(format!("stage-{}-{:.12}", plan.format, format!("{name:032x}")));
        let engine = engine.unwrap_or(ENGINES[0]);
        let storage = Arc::from(storage::open_by("file", &folder, engine)?);
        let dataset = Arc::from(storage::open("file", &source)?);
        let (plan, layout) = (plan.clone(), Layout::new(plan));
        Ok(Stage { plan, layout, source, dataset, folder, storage, limit_bytes })
    }

    /// Take the files to be called as `dataset` says.
    #[must_use]
    pub fn called_by(self, dataset: Arc<dyn Storage>) -> Self {
        Stage { dataset, ..self }
    }

    /// A file of the dataset.
    fn original(&self, path: &str) -> PathBuf {
        self.source.join(self.dataset.name_of(path))
    }

    /// Where the copy lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The copy's files.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// Files of the dataset for training.
    pub fn files_train(&self) -> u64 {
        self.layout.files_train()
    }

    /// Look at the dataset's files, each once.
    ///
    /// # Errors
    /// One is missing.
    pub fn survey(&self) -> Result<Survey, StageError> {
        let mut survey = Survey { bytes: 0, files: Some(Vec::new()), fingerprint: String::new() };
        let mut hash = fnv1a_128(Manifest::fingerprint_of(&self.plan).as_bytes());
        self.names()?.each(&mut |parts, _| {
            let mut lengths = Vec::with_capacity(parts.len());
            for path in parts {
                let path = self.original(path);
                let file = path.metadata();
                let file = file.map_err(|error| StorageError::new("open", &path, error))?;
                let told =
                    [file.len() as i64, file.mtime(), file.mtime_nsec()].map(i64::to_le_bytes);
                hash = fnv1a_128(&[&hash.to_le_bytes()[..], &told.concat()].concat());
                lengths.push(file.len());
            }
            let run = FileRun::from_parts(&lengths);
            survey.bytes = survey.bytes.saturating_add(run.bytes);
            FileRun::push(&mut survey.files, run);
            Ok(())
        })?;
        survey.fingerprint = format!("{hash:032x}");
        Ok(survey)
    }

    /// Take the copy's folder, for one process of the machine: `holder` is shown to others. A copy of the same dataset stays there, one
    /// of another state of it is removed. A dataset larger than the limit or than `room_bytes`, the room there, is refused.
    ///
    /// # Errors
    /// See [`StageError`]. Nothing of ours is left then that was not there before.
    pub fn begin(
        &self,
        survey: &Survey,
        room_bytes: Option<u64>,
        boot_id: &str,
        holder: &str,
    ) -> Result<DatasetLock, StageError> {
        if let Some(limit_bytes) = self.limit_bytes.filter(|&limit| survey.bytes > limit) {
            return Err(StageError::Limit { bytes: survey.bytes, limit_bytes });
        }
        let folder = self.folder.clone();
        let lock = match DatasetLock::try_acquire(&folder, LockAccess::Exclusive, holder)? {
            LockAttempt::Held(lock) => lock,
            LockAttempt::Busy { holder } => return Err(StageError::Busy { folder, holder }),
            LockAttempt::Unsupported { reason } => {
                return Err(StageError::NoLock { folder, reason });
            }
        };
        let is_new = self.manifest()?.is_none();
        match self.take(survey, room_bytes, boot_id) {
            Ok(()) => Ok(lock),
            Err(refused) => {
                if is_new {
                    self.remove(lock)?;
                }
                Err(refused)
            }
        }
    }

    fn take(
        &self,
        survey: &Survey,
        room_bytes: Option<u64>,
        boot_id: &str,
    ) -> Result<(), StageError> {
        let mut there_bytes = 0;
        match self.manifest()? {
            None => {
                // One that was killed may have begun its manifest.
                let is_own = |name: &str| {
                    [LOCK_FILE, READERS_FILE].contains(&name)
                        || final_name(name) == Some(MANIFEST_FILE)
                };
                let names = self.storage.list("")?;
                self.refuse(names.into_iter().filter(|name| !is_own(name)))?;
                self.copies(None)?.sweep(&*self.storage)?;
            }
            Some(found) => {
                let is_same = found.source == self.source
                    && found.fingerprint == survey.fingerprint
                    && found.boot_id.is_none_or(|boot| boot == boot_id);
                let copies = self.copies(found.files)?;
                let left = if is_same {
                    copies.sweep(&*self.storage)?;
                    look_at(&copies, &*self.storage)?
                } else {
                    let removed = remove_files(&copies, &*self.storage)?;
                    OwnFound { bytes: 0, ..removed }
                };
                there_bytes = left.bytes;
                self.refuse(left.strangers)?;
            }
        }
        let needed_bytes = survey.bytes.saturating_sub(there_bytes);
        match room_bytes {
            Some(free_bytes) if free_bytes < needed_bytes => {
                let folder = self.folder.clone();
                return Err(StageError::NoSpace { folder, needed_bytes, free_bytes });
            }
            _ => {}
        }
        self.write_manifest(survey, Some(boot_id.into()))?;
        for folder in self.names()?.folders() {
            self.storage.make_dir(&folder)?;
        }
        Ok(())
    }

    fn refuse(&self, strangers: impl IntoIterator<Item = String>) -> Result<(), StageError> {
        let folder = self.folder.clone();
        match strangers.into_iter().next() {
            Some(path) => Err(StageError::Strangers { folder, path }),
            None => Ok(()),
        }
    }

    /// Copy files of a share, with so many threads. `evict` drops each from the page cache before.
    ///
    /// # Errors
    /// One cannot be read or written.
    pub fn copy(
        &self,
        original: &dyn ReadStorage,
        evict: Option<&dyn Storage>,
        share: FileShare,
        threads: usize,
        watch: &Watch,
    ) -> Result<Copied, StageError> {
        let names = self.names()?;
        let [kept_files, kept_bytes] = [0; 2].map(AtomicU64::new);
        let [files, bytes] = [0; 2].map(AtomicU64::new);
        let memory = || (Piece::new(REQUEST_BYTES), String::new(), String::new());
        for_each(share.files(self.layout.files()), threads, watch, memory, |memory, i| {
            let (buffer, data_path, path) = memory;
            self.layout.write_path(share.file(i), data_path);
            for part in names.format.parts {
                part.write_path(data_path, path);
                if let Some(there_bytes) = self.kept_bytes(path)? {
                    kept_files.fetch_add(1, Relaxed);
                    kept_bytes.fetch_add(there_bytes, Relaxed);
                    watch.bytes_done(there_bytes);
                    continue;
                }
                evict.map_or(Ok(()), |storage| storage.evict(path))?;
                let told = |bytes| {
                    watch.bytes_done(bytes);
                    watch.is_over()
                };
                if let Some(copied_bytes) = self.copy_file(original, path, buffer, &told)? {
                    files.fetch_add(1, Relaxed);
                    bytes.fetch_add(copied_bytes, Relaxed);
                }
            }
            Ok::<(), StageError>(())
        })?;
        Ok(Copied {
            files: files.into_inner(),
            bytes: bytes.into_inner(),
            kept_files: kept_files.into_inner(),
            kept_bytes: kept_bytes.into_inner(),
        })
    }

    /// Length of the copy of a file, where there is a whole one.
    fn kept_bytes(&self, path: &str) -> Result<Option<u64>, StageError> {
        let Some(bytes) = self.storage.stat(path)? else { return Ok(None) };
        Ok((self.source_bytes(path)? == bytes).then_some(bytes))
    }

    fn source_bytes(&self, path: &str) -> Result<u64, StorageError> {
        let path = self.original(path);
        let bytes = path.metadata().map(|file| file.len());
        bytes.map_err(|error| StorageError::new("open", path, error))
    }

    /// Its bytes; `None` where `is_over` ended it, which hears of each piece.
    fn copy_file(
        &self,
        original: &dyn ReadStorage,
        path: &str,
        buffer: &mut [u8],
        is_over: &dyn Fn(u64) -> bool,
    ) -> Result<Option<u64>, StageError> {
        let file = original.open(path)?;
        let copied = (|| {
            let (bytes, mut offset) = (original.len(&file)?, 0);
            let mut copy = self.storage.create(path)?;
            while offset < bytes {
                let read = original.read_at(&file, offset, buffer)?;
                if read == 0 {
                    break;
                }
                copy.write(&buffer[..read])?;
                offset += read as u64;
                if is_over(read as u64) && offset < bytes {
                    return Ok(None);
                }
            }
            if offset != bytes {
                return Err(StageError::Changed { path: path.into() });
            }
            copy.commit()?;
            Ok(Some(bytes))
        })();
        original.close(file);
        copied
    }

    /// All files are copied: make them outlive the machine's run.
    ///
    /// # Errors
    /// The storage refused.
    pub fn complete(&self, survey: &Survey) -> Result<(), StageError> {
        self.storage.sync_all()?;
        self.write_manifest(survey, None)
    }

    /// Remove the copy, and its folder unless files of others lie there, which are told.
    ///
    /// # Errors
    /// The storage refused.
    pub fn remove(&self, lock: DatasetLock) -> Result<OwnFound, StageError> {
        let mut found = OwnFound::default();
        if let Some(manifest) = self.manifest()? {
            found = remove_files(&self.copies(manifest.files)?, &*self.storage)?;
            self.storage.remove(READERS_FILE)?;
            self.storage.remove(MANIFEST_FILE)?;
        }
        lock.remove()?;
        Ok(found)
    }

    /// Mark that this process reads the copy, until the result is dropped.
    ///
    /// # Errors
    /// The folder of the copy does not allow a lock.
    pub fn reader(&self) -> Result<Reader, StageError> {
        let path = self.folder.join(READERS_FILE);
        let file = readable().write(true).create(true).open(&path);
        let locked = file.and_then(|file| file.lock_shared().map(|()| file));
        let lock = locked.map_err(|error| StorageError::new("lock", path, error))?;
        Ok(Reader { _lock: lock })
    }

    /// Whether a process reads the copy, or may read it: a lock that cannot be tried counts as held.
    pub fn is_read(&self) -> bool {
        match readable().write(true).open(self.folder.join(READERS_FILE)) {
            Ok(file) => file.try_lock().is_err(),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    fn names(&self) -> Result<FileNames<'_>, DatasetError> {
        FileNames::new(&self.plan, &self.layout)
    }

    fn copies(&self, files: Option<Vec<FileRun>>) -> Result<Copies<'_>, DatasetError> {
        Ok(Copies { names: self.names()?, files, stage: self })
    }

    fn manifest(&self) -> Result<Option<StageManifest>, StorageError> {
        StageManifest::read(&*self.storage)
    }

    fn write_manifest(&self, survey: &Survey, boot_id: Option<String>) -> Result<(), StageError> {
        let manifest = StageManifest {
            feedrate_stage: VERSION,
            source: self.source.clone(),
            settings: Some(self.plan.clone()),
            fingerprint: survey.fingerprint.clone(),
            boot_id,
            files: survey.files.clone(),
        };
        let text = serde_json::to_vec(&manifest);
        let path = self.folder.join(MANIFEST_FILE);
        let text =
            text.map_err(|error| StorageError::new("write", path, io::Error::other(error)))?;
        Ok(write_file(&*self.storage, MANIFEST_FILE, &text)?)
    }
}

impl StageManifest {
    /// `None` where there is none of ours that can be read.
    fn read(storage: &dyn Storage) -> Result<Option<Self>, StorageError> {
        // A pipe has no length, and would be waited for.
        let Some(bytes @ 1..=BYTES_MAX) = storage.stat(MANIFEST_FILE)? else { return Ok(None) };
        let text = read_file(storage, MANIFEST_FILE, bytes)?;
        let read = serde_json::from_slice(&text).ok();
        Ok(read.filter(|manifest: &StageManifest| manifest.feedrate_stage == VERSION))
    }
}
