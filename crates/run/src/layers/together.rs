//! A storage whose files all processes open, read and close together, one worker each (MPI-IO). Everything else is the storage's
//! own. That all ask for the same things in the same order is the planner's to see to.

use crate::comm::{SharedFile, SharedFiles};
use feedrate_data::storage::{Handle, ReadStorage, Storage, StorageError};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Acquire;

/// Reads through `files`.
pub struct Together {
    inner: Arc<dyn Storage>,
    files: Box<dyn SharedFiles>,
    folder: PathBuf,
    /// Work is to end, and others may have ended theirs: nothing is closed together any more.
    stop: Arc<AtomicBool>,
    /// All have done all their work, and will close what they have open.
    complete: Arc<AtomicBool>,
}

struct OpenTogether {
    file: Box<dyn SharedFile>,
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
        Together { inner, files, folder, stop, complete }
    }

    fn opened<'h>(&self, file: &'h Handle) -> Result<&'h OpenTogether, StorageError> {
        file.object()
            .ok_or_else(|| StorageError::new("find", &self.folder, Error::other("it is not open")))
    }
}

impl ReadStorage for Together {
    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        let full = self.folder.join(path);
        let Some(bytes) = self.inner.stat(path)? else {
            return Err(StorageError::new("open", full, ErrorKind::NotFound));
        };
        let file = self.files.open(&full);
        let file = file.map_err(|error| StorageError::new("open", full, Error::other(error)))?;
        Ok(Handle::from_object(OpenTogether { file, bytes }))
    }

    fn len(&self, file: &Handle) -> Result<u64, StorageError> {
        Ok(self.opened(file)?.bytes)
    }

    fn read_at(
        &self,
        file: &Handle,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, StorageError> {
        // Some libraries say that they have read what lies beyond the end.
        let OpenTogether { file, bytes } = self.opened(file)?;
        let len = bytes.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let read = file.read_at_all(offset, &mut buffer[..len]);
        read.map_err(|error| StorageError::new("read", &self.folder, Error::other(error)))
    }

    fn close(&self, file: Handle) {
        let is_alone = self.stop.load(Acquire) && !self.complete.load(Acquire);
        if let (Some(open), false) = (file.into_object::<OpenTogether>(), is_alone) {
            // Of a file that was only read nothing is lost.
            let _ = open.file.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::CommError;
    use feedrate_data::storage;
    use std::sync::Mutex;
    use std::sync::atomic::Ordering::Release;

    /// Calls that were made, and the bytes asked for.
    #[derive(Clone, Default)]
    struct Calls(Arc<Mutex<Vec<String>>>);

    impl Calls {
        fn add(&self, call: String) {
            self.0.lock().unwrap().push(call);
        }
    }

    impl SharedFiles for Calls {
        fn open(&self, path: &Path) -> Result<Box<dyn SharedFile>, CommError> {
            self.add(format!("open {}", path.display()));
            Ok(Box::new(self.clone()))
        }
    }

    impl SharedFile for Calls {
        fn read_at_all(&self, at: u64, bytes: &mut [u8]) -> Result<usize, CommError> {
            self.add(format!("read {} at {at}", bytes.len()));
            Ok(bytes.len())
        }

        fn close(self: Box<Self>) -> Result<(), CommError> {
            self.add("close".to_string());
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
        assert_eq!(together.len(&handle).unwrap(), 10);
        assert_eq!(together.read_at(&handle, 0, &mut buffer).unwrap(), 8);
        assert_eq!(together.read_at(&handle, 8, &mut buffer).unwrap(), 2);
        assert_eq!(together.read_at(&handle, 12, &mut buffer).unwrap(), 0);
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
        let (open, closed) = ("open /data/a", "close");
        let reads = "read 8 at 0, read 2 at 8, read 0 at 12";
        assert_eq!(said, format!("{open}, {reads}, {closed}, {open}, {open}, {closed}"));
    }
}
