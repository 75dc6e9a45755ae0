//! A copy of a dataset in a local folder, which a run reads instead of the dataset.
//!
//! A manifest in the folder names the dataset and the lengths of its files. Files with other names or lengths belong to
//! other programs and are never removed.

mod copies;
mod error;
mod find;
#[cfg(test)]
mod tests;

pub use error::StageError;

use self::copies::Copies;
use crate::error::DatasetError;
use crate::lock::{DatasetLock, LOCK_FILE, LockAccess, LockAttempt, lock_file_options};
use crate::manifest::{BYTES_MAX, LengthRun, Manifest, fnv1a_128, read_file, write_file};
use crate::names::{FileNames, OwnFiles, VisitedFiles};
use crate::piece::Piece;
use crate::removal::{FolderContents, inspect_files, remove_files};
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
/// The file that readers of the copy lock. The manifest cannot be locked instead, because it is replaced. Earlier versions created this file too.
const READERS_FILE: &str = ".feedrate.stage";
/// Version of the manifest format.
const VERSION: u32 = 1;
/// Bytes of one read while copying.
const REQUEST_BYTES: usize = 4 << 20;

/// A dataset and the folder of its copy.
pub struct Stage {
    plan: DatasetPlan,
    layout: Layout,
    source: PathBuf,
    /// Maps the plan's file names to the dataset's real ones.
    dataset: Arc<dyn Storage>,
    folder: PathBuf,
    storage: Arc<dyn Storage>,
    limit_bytes: Option<u64>,
}

/// The current state of a dataset's files.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Length of all files.
    pub bytes: u64,
    files: Option<Vec<LengthRun>>,
    fingerprint: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct StageManifest {
    feedrate_stage: u32,
    source: PathBuf,
    /// Settings of the dataset; `None` in copies of earlier versions.
    #[serde(default)]
    settings: Option<DatasetPlan>,
    /// Hash of the dataset's settings and of the lengths and modification times of its files.
    fingerprint: String,
    /// Boot ID of the machine while the files are not durable: after a reboot they may be incomplete. `None` once they are
    /// durable.
    boot_id: Option<String>,
    /// Lengths of the dataset's files; `None` if the list would be long.
    files: Option<Vec<LengthRun>>,
}

/// Files that were copied now, and files kept from an earlier copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the field names are self-explanatory")]
pub struct CopySummary {
    pub files: u64,
    pub bytes: u64,
    pub kept_files: u64,
    pub kept_bytes: u64,
}

/// Marks the copy as in use by this process, by a shared lock of a file beside the manifest.
pub struct Reader {
    _lock: File,
}

impl Stage {
    /// The copy of the dataset of `plan` in the folder `source`. It is or will be in a subfolder of `stage_folder` and is read
    /// by `engine`.
    ///
    /// # Errors
    /// `stage_folder` cannot be used.
    pub fn new(
        plan: &DatasetPlan,
        source: &Path,
        stage_folder: &Path,
        engine: Option<&'static dyn Engine>,
        limit_bytes: Option<u64>,
    ) -> Result<Self, StageError> {
        let absolute = |path: &Path| {
            std::path::absolute(path).map_err(|error| StorageError::new("find", path, error))
        };
        let source = absolute(source)?;
        let stage_folder = absolute(stage_folder)?;
        let settings = Manifest::fingerprint_of(plan);
        let name = fnv1a_128(format!("{settings}\n{}", source.display()).as_bytes());
        let folder =
            stage_folder.join(format!("stage-{}-{:.12}", plan.format, format!("{name:032x}")));
        let engine = engine.unwrap_or(ENGINES[0]);
        let storage = Arc::from(storage::open_with_engine("file", &folder, engine)?);
        let dataset = Arc::from(storage::open("file", &source)?);
        let layout = Layout::new(plan);
        Ok(Stage { plan: plan.clone(), layout, source, dataset, folder, storage, limit_bytes })
    }

    /// Uses the real file names that `dataset` reports.
    #[must_use]
    pub fn with_names_of(self, dataset: Arc<dyn Storage>) -> Self {
        Stage { dataset, ..self }
    }

    /// Path of a file of the dataset.
    fn source_path(&self, path: &str) -> PathBuf {
        self.source.join(self.dataset.real_path(path))
    }

    /// The copy's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The storage that reads the copy.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// Number of training files.
    pub fn files_train(&self) -> u64 {
        self.layout.files_train()
    }

    /// Reads the length and modification time of each file of the dataset.
    ///
    /// # Errors
    /// A file is missing.
    pub fn survey(&self) -> Result<Survey, StageError> {
        let mut survey = Survey { bytes: 0, files: Some(Vec::new()), fingerprint: String::new() };
        let mut hash = fnv1a_128(Manifest::fingerprint_of(&self.plan).as_bytes());
        self.names()?.visit(VisitedFiles::All, &mut |parts, _| {
            let mut lengths = Vec::with_capacity(parts.len());
            for path in parts {
                let path = self.source_path(path);
                let metadata = path.metadata();
                let metadata = metadata.map_err(|error| StorageError::new("open", &path, error))?;
                let properties = [metadata.len() as i64, metadata.mtime(), metadata.mtime_nsec()]
                    .map(i64::to_le_bytes);
                hash = fnv1a_128(&[&hash.to_le_bytes()[..], &properties.concat()].concat());
                lengths.push(metadata.len());
            }
            let run = LengthRun::from_parts(&lengths);
            survey.bytes = survey.bytes.saturating_add(run.bytes);
            LengthRun::push(&mut survey.files, run);
            Ok(())
        })?;
        survey.fingerprint = format!("{hash:032x}");
        Ok(survey)
    }

    /// Locks and prepares the copy's folder. Called by one process per machine; `holder` describes it to other processes. An
    /// existing copy of the same dataset is kept; a copy of an earlier state of the dataset is removed.
    ///
    /// # Errors
    /// The dataset is larger than the limit or than the free space `free_bytes`; see [`StageError`]. Files that this call
    /// created are removed.
    pub fn begin(
        &self,
        survey: &Survey,
        free_bytes: Option<u64>,
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
        match self.prepare_folder(survey, free_bytes, boot_id) {
            Ok(()) => Ok(lock),
            Err(error) => {
                if is_new {
                    self.remove(lock)?;
                }
                Err(error)
            }
        }
    }

    fn prepare_folder(
        &self,
        survey: &Survey,
        free_bytes: Option<u64>,
        boot_id: &str,
    ) -> Result<(), StageError> {
        let mut existing_bytes = 0;
        match self.manifest()? {
            None => {
                // A killed process may have left the temporary file of its manifest.
                let is_expected = |name: &str| {
                    [LOCK_FILE, READERS_FILE].contains(&name)
                        || final_name(name) == Some(MANIFEST_FILE)
                };
                let names = self.storage.list("")?;
                self.refuse_foreign(names.into_iter().filter(|name| !is_expected(name)))?;
                self.copies(None)?.remove_unfinished(&*self.storage)?;
            }
            Some(found) => {
                let is_current = found.source == self.source
                    && found.fingerprint == survey.fingerprint
                    && found.boot_id.is_none_or(|boot| boot == boot_id);
                let copies = self.copies(found.files)?;
                let foreign_files = if is_current {
                    copies.remove_unfinished(&*self.storage)?;
                    let kept = inspect_files(&copies, &*self.storage)?;
                    existing_bytes = kept.bytes;
                    kept.foreign_files
                } else {
                    remove_files(&copies, &*self.storage)?.foreign_files
                };
                self.refuse_foreign(foreign_files)?;
            }
        }
        let needed_bytes = survey.bytes.saturating_sub(existing_bytes);
        match free_bytes {
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

    fn refuse_foreign(
        &self,
        foreign_files: impl IntoIterator<Item = String>,
    ) -> Result<(), StageError> {
        let folder = self.folder.clone();
        match foreign_files.into_iter().next() {
            Some(path) => Err(StageError::ForeignFiles { folder, path }),
            None => Ok(()),
        }
    }

    /// Copies the files of `share`. With `evict`, each file is dropped from the page cache of that storage before it is read.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn copy(
        &self,
        source: &dyn ReadStorage,
        evict: Option<&dyn Storage>,
        share: FileShare,
        threads: usize,
        watch: &Watch,
    ) -> Result<CopySummary, StageError> {
        let names = self.names()?;
        let kept_files = AtomicU64::new(0);
        let kept_bytes = AtomicU64::new(0);
        let files = AtomicU64::new(0);
        let bytes = AtomicU64::new(0);
        let thread_state = || (Piece::new(REQUEST_BYTES), String::new(), String::new());
        for_each(
            share.file_count(self.layout.files()),
            threads,
            watch,
            thread_state,
            |state, i| {
                let (buffer, data_path, path) = state;
                self.layout.write_path(share.file_number(i), data_path);
                for part in names.format.parts {
                    part.write_path(data_path, path);
                    if let Some(copy_bytes) = self.complete_copy_bytes(path)? {
                        kept_files.fetch_add(1, Relaxed);
                        kept_bytes.fetch_add(copy_bytes, Relaxed);
                        watch.add_bytes(copy_bytes);
                        continue;
                    }
                    evict.map_or(Ok(()), |storage| storage.evict(path))?;
                    let on_piece = |bytes| {
                        watch.add_bytes(bytes);
                        watch.should_stop()
                    };
                    if let Some(copied_bytes) = self.copy_file(source, path, buffer, &on_piece)? {
                        files.fetch_add(1, Relaxed);
                        bytes.fetch_add(copied_bytes, Relaxed);
                    }
                }
                Ok::<(), StageError>(())
            },
        )?;
        Ok(CopySummary {
            files: files.into_inner(),
            bytes: bytes.into_inner(),
            kept_files: kept_files.into_inner(),
            kept_bytes: kept_bytes.into_inner(),
        })
    }

    /// Length of the copy of a file; `None` if it is missing or incomplete.
    fn complete_copy_bytes(&self, path: &str) -> Result<Option<u64>, StageError> {
        let Some(bytes) = self.storage.stat(path)? else { return Ok(None) };
        Ok((self.source_bytes(path)? == bytes).then_some(bytes))
    }

    fn source_bytes(&self, path: &str) -> Result<u64, StorageError> {
        let path = self.source_path(path);
        let bytes = path.metadata().map(|file| file.len());
        bytes.map_err(|error| StorageError::new("open", path, error))
    }

    /// Copies one file and returns its length. `on_piece` is called with the length of each copied piece; if it returns true,
    /// the copy is abandoned and the result is `None`.
    fn copy_file(
        &self,
        source: &dyn ReadStorage,
        path: &str,
        buffer: &mut [u8],
        on_piece: &dyn Fn(u64) -> bool,
    ) -> Result<Option<u64>, StageError> {
        let file = source.open(path)?;
        let copied = (|| {
            let bytes = source.len(&file)?;
            let mut offset = 0;
            let mut copy = self.storage.create(path)?;
            while offset < bytes {
                let read = source.read_at(&file, offset, buffer)?;
                if read == 0 {
                    break;
                }
                copy.write(&buffer[..read])?;
                offset += read as u64;
                if on_piece(read as u64) && offset < bytes {
                    return Ok(None);
                }
            }
            if offset != bytes {
                return Err(StageError::Changed { path: path.into() });
            }
            copy.commit()?;
            Ok(Some(bytes))
        })();
        source.close(file);
        copied
    }

    /// Makes the copy durable. Called after all files have been copied.
    ///
    /// # Errors
    /// The storage failed.
    pub fn complete(&self, survey: &Survey) -> Result<(), StageError> {
        self.storage.sync_all()?;
        self.write_manifest(survey, None)
    }

    /// Removes the copy, and its folder if it is empty then. Foreign files stay and are reported.
    ///
    /// # Errors
    /// The storage failed.
    pub fn remove(&self, lock: DatasetLock) -> Result<FolderContents, StageError> {
        let mut found = FolderContents::default();
        if let Some(manifest) = self.manifest()? {
            found = remove_files(&self.copies(manifest.files)?, &*self.storage)?;
            self.storage.remove(READERS_FILE)?;
            self.storage.remove(MANIFEST_FILE)?;
        }
        lock.remove()?;
        Ok(found)
    }

    /// Marks the copy as read by this process until the result is dropped.
    ///
    /// # Errors
    /// The copy's folder does not support locks.
    pub fn lock_for_reading(&self) -> Result<Reader, StageError> {
        let path = self.folder.join(READERS_FILE);
        let file = lock_file_options().write(true).create(true).open(&path);
        let locked = file.and_then(|file| file.lock_shared().map(|()| file));
        let lock = locked.map_err(|error| StorageError::new("lock", path, error))?;
        Ok(Reader { _lock: lock })
    }

    /// Whether a process may be reading the copy. A lock that cannot be tested counts as held.
    pub fn has_readers(&self) -> bool {
        match lock_file_options().write(true).open(self.folder.join(READERS_FILE)) {
            Ok(file) => file.try_lock().is_err(),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    fn names(&self) -> Result<FileNames<'_>, DatasetError> {
        FileNames::new(&self.plan, &self.layout)
    }

    fn copies(&self, files: Option<Vec<LengthRun>>) -> Result<Copies<'_>, DatasetError> {
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
    /// The manifest at the root of `storage`; `None` if there is no valid one.
    fn read(storage: &dyn Storage) -> Result<Option<Self>, StorageError> {
        // A pipe has length 0, and reading it would block.
        let Some(bytes @ 1..=BYTES_MAX) = storage.stat(MANIFEST_FILE)? else { return Ok(None) };
        let text = read_file(storage, MANIFEST_FILE, bytes)?;
        let read = serde_json::from_slice(&text).ok();
        Ok(read.filter(|manifest: &StageManifest| manifest.feedrate_stage == VERSION))
    }
}
