//! A storage whose files are copied when they are read first, and read from their copies then. What has no room there is read where it
//! lies. A file that was copied costs no more than the copy's storage does.

use crate::clock::Clock;
use feedrate_data::stage::{FirstRead, Stage, StageError};
use feedrate_data::storage::{Handle, ReadStorage, Storage, StorageError};
use feedrate_measure::record::StagingRecord;
use std::io::{Error, ErrorKind};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

/// Reads copies.
pub struct FirstReads {
    stage: Arc<Stage>,
    /// The dataset, at its cost.
    original: Arc<dyn ReadStorage>,
    /// The same without.
    bare: Arc<dyn Storage>,
    clock: Clock,
    stop: Arc<AtomicBool>,
    files: AtomicU64,
    bytes: AtomicU64,
    copying_ns: AtomicU64,
    original_opens: AtomicU64,
    /// There was no room for a file: no other is tried.
    is_full: AtomicBool,
}

/// A file that had no copy when it was opened. It is copied by its first read, so that the time is one of reading.
struct Awaited {
    path: String,
    bytes: u64,
    opened: OnceLock<FirstPlace>,
}

/// The file that an awaited one is read from.
enum FirstPlace {
    Copy(Handle),
    Original(Handle),
}

impl FirstReads {
    /// Around `original`, which is `bare` at its cost. No copy begins once `stop` is set.
    pub fn new(
        stage: Arc<Stage>,
        original: Arc<dyn ReadStorage>,
        bare: Arc<dyn Storage>,
        clock: Clock,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let [files, bytes, copying_ns, original_opens] = [0; 4].map(AtomicU64::new);
        let is_full = AtomicBool::new(false);
        FirstReads {
            stage,
            original,
            bare,
            clock,
            stop,
            files,
            bytes,
            copying_ns,
            original_opens,
            is_full,
        }
    }

    /// Files that this process has copied, and what it cost.
    pub fn told(&self) -> StagingRecord {
        StagingRecord {
            folder: self.stage.folder().display().to_string(),
            files: self.files.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            first_read_ns: self.copying_ns.load(Relaxed),
            original_opens: self.original_opens.load(Relaxed),
            ..StagingRecord::default()
        }
    }

    /// The copy that `path` is read from, if it has one now.
    pub fn copy_of(&self, path: &str) -> Option<PathBuf> {
        self.copy().stat(path).ok()??;
        Some(self.stage.folder().join(self.copy().name_of(path)))
    }

    /// Whether `path` has a copy now.
    fn is_copied(&self, path: &str) -> Result<bool, StorageError> {
        if self.stop.load(Relaxed) || self.is_full.load(Relaxed) {
            return Ok(false);
        }
        let begun_ns = self.clock.now_ns();
        let done = self.stage.first_read(&*self.original, path, &self.stop);
        self.copying_ns.fetch_add(self.clock.now_ns() - begun_ns, Relaxed);
        match done {
            Ok(FirstRead::Copied(bytes)) => {
                self.files.fetch_add(1, Relaxed);
                self.bytes.fetch_add(bytes, Relaxed);
                Ok(true)
            }
            Ok(FirstRead::There) => Ok(true),
            Ok(FirstRead::NoRoom) => {
                self.is_full.store(true, Relaxed);
                Ok(false)
            }
            Ok(FirstRead::Stopped) => Ok(false),
            Err(StageError::Storage(error)) => Err(error),
            Err(error) => Err(StorageError::new("copy", path, Error::other(error))),
        }
    }

    fn place(&self, path: &str) -> Result<FirstPlace, StorageError> {
        if self.is_copied(path)? {
            return Ok(FirstPlace::Copy(self.copy().open(path)?));
        }
        self.original_opens.fetch_add(1, Relaxed);
        Ok(FirstPlace::Original(self.original.open(path)?))
    }

    fn leave(&self, place: FirstPlace) {
        match place {
            FirstPlace::Copy(file) => self.copy().close(file),
            FirstPlace::Original(file) => self.original.close(file),
        }
    }

    fn copy(&self) -> &Arc<dyn Storage> {
        self.stage.storage()
    }

    /// The storage that `path` would be read from, were it opened now.
    ///
    /// # Errors
    /// That of the copies refused.
    pub fn storage_of(&self, path: &str) -> Result<&Arc<dyn Storage>, StorageError> {
        Ok(if self.copy().stat(path)?.is_some() { self.copy() } else { &self.bare })
    }
}

impl ReadStorage for FirstReads {
    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        match self.copy().open(path) {
            Err(error) if error.source.kind() == ErrorKind::NotFound => {}
            opened => return opened,
        }
        let Some(bytes) = self.bare.stat(path)? else {
            return Err(StorageError::new("open", path, ErrorKind::NotFound));
        };
        Ok(Handle::keeping(Awaited { path: path.into(), bytes, opened: OnceLock::new() }))
    }

    fn len(&self, file: &Handle) -> Result<u64, StorageError> {
        match file.kept::<Awaited>() {
            Some(awaited) => Ok(awaited.bytes),
            None => self.copy().len(file),
        }
    }

    fn read_at(
        &self,
        file: &Handle,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, StorageError> {
        let Some(awaited) = file.kept::<Awaited>() else {
            return self.copy().read_at(file, offset, buffer);
        };
        let place = match awaited.opened.get() {
            Some(place) => place,
            None => {
                let place = self.place(&awaited.path)?;
                if let Err(late) = awaited.opened.set(place) {
                    self.leave(late);
                }
                awaited.opened.wait()
            }
        };
        match place {
            FirstPlace::Copy(file) => self.copy().read_at(file, offset, buffer),
            FirstPlace::Original(file) => self.original.read_at(file, offset, buffer),
        }
    }

    fn close(&self, file: Handle) {
        if file.kept::<Awaited>().is_none() {
            return self.copy().close(file);
        }
        let awaited = file.into_kept::<Awaited>();
        if let Some(place) = awaited.and_then(|awaited| awaited.opened.into_inner()) {
            self.leave(place);
        }
    }
}
