//! A storage whose files all processes open, read and close together, one worker each (MPI-IO). Everything else is the storage's
//! own. That all ask for the same things in the same order is the planner's to see to.

use super::pass_on_but_reading;
use crate::comm::{CommError, SharedFiles};
use feedrate_data::storage::{Handle, Storage, StorageError};
use std::io::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Acquire;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Reads through `files`.
pub struct Together {
    inner: Arc<dyn Storage>,
    files: Box<dyn SharedFiles>,
    folder: PathBuf,
    /// Work is to end, and others may have ended theirs: nothing is closed together any more.
    stop: Arc<AtomicBool>,
    /// All have done all their work, and will close what they have open.
    complete: Arc<AtomicBool>,
    /// One worker uses it: nobody waits for it.
    open: Mutex<Vec<Option<Open>>>,
}

struct Open {
    file: u64,
    bytes: u64,
}

impl Together {
    /// Around `inner`, which is rooted at `folder`. Once `stop` is set, files are closed only if `complete` is set too.
    pub fn new(
        inner: Arc<dyn Storage>,
        files: Box<dyn SharedFiles>,
        folder: &Path,
        stop: Arc<AtomicBool>,
        complete: Arc<AtomicBool>,
    ) -> Self {
        // Libraries take what comes before a colon for the name of a file system.
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
        Together { inner, files, folder, stop, complete, open: Mutex::default() }
    }

    fn open_files(&self) -> MutexGuard<'_, Vec<Option<Open>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Storage for Together {
    pass_on_but_reading!();

    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        let refused = |source| StorageError::new("open", self.folder.join(path), source);
        let missing = || refused(Error::from(std::io::ErrorKind::NotFound));
        let bytes = self.inner.stat(path)?.ok_or_else(missing)?;
        let file = self.files.open(&self.folder.join(path));
        let file = file.map_err(|error| refused(Error::other(error)))?;
        let mut open = self.open_files();
        let free = open.iter().position(Option::is_none).unwrap_or(open.len());
        if free == open.len() {
            open.push(None);
        }
        open[free] = Some(Open { file, bytes });
        Ok(Handle::of(free as u64))
    }

    fn len(&self, file: Handle) -> Result<u64, StorageError> {
        match self.open_files().get(file.number() as usize) {
            Some(Some(open)) => Ok(open.bytes),
            _ => Err(self.refused("stat", Error::other("the file is not open"))),
        }
    }

    fn read_at(&self, file: Handle, offset: u64, buffer: &mut [u8]) -> Result<usize, StorageError> {
        let open = self.open_files();
        let Some(Some(Open { file, bytes })) = open.get(file.number() as usize) else {
            return Err(self.refused("read", Error::other("the file is not open")));
        };
        // Some libraries say that they have read what lies beyond the end.
        let len = bytes.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let read = self.files.read_at_all(*file, offset, &mut buffer[..len]);
        read.map_err(|error: CommError| self.refused("read", Error::other(error)))
    }

    fn close(&self, file: Handle) {
        let open = self.open_files().get_mut(file.number() as usize).and_then(Option::take);
        let alone = self.stop.load(Acquire) && !self.complete.load(Acquire);
        if let Some(open) = open.filter(|_| !alone) {
            // Of a file that was only read nothing is lost.
            let _ = self.files.close(open.file);
        }
    }
}

impl Together {
    fn refused(&self, action: &'static str, source: Error) -> StorageError {
        StorageError::new(action, &self.folder, source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_data::storage;
    use std::sync::atomic::Ordering::Release;

    /// What was called, and the bytes asked for.
    #[derive(Clone, Default)]
    struct Calls(Arc<Mutex<Vec<String>>>);

    impl Calls {
        fn add(&self, call: String) {
            self.0.lock().unwrap().push(call);
        }
    }

    impl SharedFiles for Calls {
        fn open(&self, path: &Path) -> Result<u64, CommError> {
            self.add(format!("open {}", path.display()));
            Ok(70)
        }

        fn read_at_all(&self, file: u64, at: u64, bytes: &mut [u8]) -> Result<usize, CommError> {
            self.add(format!("read {} of {file} at {at}", bytes.len()));
            Ok(bytes.len())
        }

        fn close(&self, file: u64) -> Result<(), CommError> {
            self.add(format!("close {file}"));
            Ok(())
        }
    }

    #[test]
    fn no_more_is_asked_for_than_there_is_and_nothing_is_closed_alone() {
        let inner: Arc<dyn Storage> =
            Arc::from(storage::open("memory", Path::new("/data")).unwrap());
        let mut file = inner.create("a").unwrap();
        file.write(&[7; 10]).unwrap();
        file.commit().unwrap();
        let (calls, flag) = (Calls::default(), || Arc::new(AtomicBool::new(false)));
        let (stop, complete) = (flag(), flag());
        let files = Box::new(calls.clone());
        let together =
            Together::new(inner, files, Path::new("/data"), stop.clone(), complete.clone());
        assert!(together.open("b").is_err());
        let mut buffer = [0; 8];
        let handle = together.open("a").unwrap();
        assert_eq!(together.len(handle).unwrap(), 10);
        assert_eq!(together.read_at(handle, 0, &mut buffer).unwrap(), 8);
        assert_eq!(together.read_at(handle, 8, &mut buffer).unwrap(), 2);
        assert_eq!(together.read_at(handle, 12, &mut buffer).unwrap(), 0);
        together.close(handle);
        let handle = together.open("a").unwrap();
        stop.store(true, Release);
        together.close(handle);
        stop.store(false, Release);
        let handle = together.open("a").unwrap();
        stop.store(true, Release);
        complete.store(true, Release);
        together.close(handle);
        let said = calls.0.lock().unwrap().join(", ");
        let (open, closed) = ("open /data/a", "close 70");
        let reads = "read 8 of 70 at 0, read 2 of 70 at 8, read 0 of 70 at 12";
        assert_eq!(said, format!("{open}, {reads}, {closed}, {open}, {open}, {closed}"));
    }
}
