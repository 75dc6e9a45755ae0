//! Collective reads: all processes open, read and close files together, with one worker each (MPI-IO). The planner ensures that all
//! processes make the same calls in the same order.

use crate::comm::{SharedFile, SharedFiles};
use feedrate_data::storage::{Handle, ReadStorage, Storage, StorageError};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Acquire;

/// A storage that reads through `files` and uses `inner` for everything else.
pub struct SharedFileStorage {
    inner: Arc<dyn Storage>,
    files: Box<dyn SharedFiles>,
    folder: PathBuf,
    /// Set when work must end. Other processes may have ended already, so files are no longer closed collectively.
    stop: Arc<AtomicBool>,
    /// Set when all processes have finished their work and will close their files.
    complete: Arc<AtomicBool>,
}

struct OpenSharedFile {
    file: Box<dyn SharedFile>,
    bytes: u64,
}

impl SharedFileStorage {
    /// Wraps `inner`, which is rooted at `folder`. Once `stop` is set, files are closed only if `complete` is set too.
    pub fn new(
        inner: Arc<dyn Storage>,
        files: Box<dyn SharedFiles>,
        folder: &Path,
        stop: Arc<AtomicBool>,
        complete: Arc<AtomicBool>,
    ) -> Self {
        // The path is absolute, because MPI-IO interprets a prefix that ends with a colon as the name of a file system.
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
        SharedFileStorage { inner, files, folder, stop, complete }
    }

    fn open_file<'h>(&self, file: &'h Handle) -> Result<&'h OpenSharedFile, StorageError> {
        file.object()
            .ok_or_else(|| StorageError::new("find", &self.folder, Error::other("it is not open")))
    }
}

impl ReadStorage for SharedFileStorage {
    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        let full_path = self.folder.join(path);
        let Some(bytes) = self.inner.stat(path)? else {
            return Err(StorageError::new("open", full_path, ErrorKind::NotFound));
        };
        let file = self
            .files
            .open(&full_path)
            .map_err(|error| StorageError::new("open", full_path, Error::other(error)))?;
        Ok(Handle::from_object(OpenSharedFile { file, bytes }))
    }

    fn len(&self, file: &Handle) -> Result<u64, StorageError> {
        Ok(self.open_file(file)?.bytes)
    }

    fn read_piece(
        &self,
        file: &Handle,
        offset: u64,
        buffer: &mut [u8],
        _end: u64,
    ) -> Result<usize, StorageError> {
        // Some libraries report bytes beyond the end of the file as read.
        let OpenSharedFile { file, bytes } = self.open_file(file)?;
        let len = bytes.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let outcome = file.read_at_all(offset, &mut buffer[..len]);
        outcome.map_err(|error| StorageError::new("read", &self.folder, Error::other(error)))
    }

    fn close(&self, file: Handle) {
        let may_be_alone = self.stop.load(Acquire) && !self.complete.load(Acquire);
        if let (Some(open), false) = (file.into_object::<OpenSharedFile>(), may_be_alone) {
            // An error is ignored, because a file that was only read loses no data.
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

    /// Logs the calls that were made.
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
    fn reads_end_with_the_file_and_closes_are_collective() {
        let inner: Arc<dyn Storage> =
            Arc::from(storage::open("memory", Path::new("/data")).unwrap());
        let mut file = inner.create("a").unwrap();
        file.write(&[7; 10]).unwrap();
        file.commit().unwrap();
        let calls = Calls::default();
        let stop = Arc::new(AtomicBool::new(false));
        let complete = Arc::new(AtomicBool::new(false));
        let files = Box::new(calls.clone());
        let shared = SharedFileStorage::new(
            inner,
            files,
            Path::new("/data"),
            stop.clone(),
            complete.clone(),
        );
        assert!(shared.open("b").is_err());
        let mut buffer = [0; 8];
        let handle = shared.open("a").unwrap();
        assert_eq!(shared.len(&handle).unwrap(), 10);
        assert_eq!(shared.read_at(&handle, 0, &mut buffer).unwrap(), 8);
        assert_eq!(shared.read_at(&handle, 8, &mut buffer).unwrap(), 2);
        assert_eq!(shared.read_at(&handle, 12, &mut buffer).unwrap(), 0);
        shared.close(handle);
        let handle = shared.open("a").unwrap();
        stop.store(true, Release);
        shared.close(handle);
        stop.store(false, Release);
        let handle = shared.open("a").unwrap();
        stop.store(true, Release);
        complete.store(true, Release);
        shared.close(handle);
        assert_eq!(
            *calls.0.lock().unwrap(),
            [
                "open /data/a",
                "read 8 at 0",
                "read 2 at 8",
                "read 0 at 12",
                "close",
                "open /data/a",
                "open /data/a",
                "close",
            ]
        );
    }
}
