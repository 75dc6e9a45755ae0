//! Deduplicates the reads of a group of accelerators that read the same data. Each read is done once and kept until all members have
//! taken it. Files are opened at their first actual read.

use feedrate_data::storage::{Handle, ReadStorage, StorageError};
use feedrate_spec::transfers::TransferCounts;
use std::collections::HashMap;
use std::io::Error;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// Results of a group's reads that some members have not taken yet.
pub(super) struct KeptReads {
    group_size: u32,
    results: Mutex<HashMap<ReadKey, KeptResult>>,
    changed: Condvar,
}

/// Identifies a read of `part` (offset and length) of a file, or of the file's length if `part` is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ReadKey {
    path: Arc<str>,
    part: Option<(u64, usize)>,
}

enum KeptResult {
    /// A member is reading.
    Pending,
    /// The data, and the number of members that have not taken it yet.
    Ready { bytes: Arc<[u8]>, remaining: u32 },
}

impl KeptReads {
    /// Creates the store of a group of `group_size` accelerators.
    pub(super) fn new(group_size: u32) -> Arc<Self> {
        Arc::new(KeptReads { group_size, results: Mutex::default(), changed: Condvar::new() })
    }

    /// Takes the result of another member's read, or reads with `read` for all members.
    fn take_or_read(
        &self,
        key: ReadKey,
        read: impl FnOnce() -> Result<Arc<[u8]>, StorageError>,
    ) -> Result<Arc<[u8]>, StorageError> {
        let mut results = self.results();
        while let Some(result) = results.get_mut(&key) {
            let KeptResult::Ready { bytes, remaining } = result else {
                results = self.changed.wait(results).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let bytes = Arc::clone(bytes);
            *remaining -= 1;
            if *remaining == 0 {
                results.remove(&key);
            }
            return Ok(bytes);
        }
        let remaining = self.group_size - 1;
        if remaining == 0 {
            drop(results);
            return read();
        }
        results.insert(key.clone(), KeptResult::Pending);
        drop(results);
        let outcome = read();
        let mut results = self.results();
        match &outcome {
            Ok(bytes) => {
                results.insert(key, KeptResult::Ready { bytes: Arc::clone(bytes), remaining })
            }
            Err(_) => results.remove(&key),
        };
        self.changed.notify_all();
        outcome
    }

    fn results(&self) -> MutexGuard<'_, HashMap<ReadKey, KeptResult>> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A storage that reads `inner` once for a group. Several of the group's workers may use it.
pub(super) struct ReadOnceStorage {
    inner: Arc<dyn ReadStorage>,
    kept: Arc<KeptReads>,
}

struct LazyHandle {
    path: Arc<str>,
    /// Handle of the inner storage, opened at the first actual read.
    handle: OnceLock<Handle>,
}

impl ReadOnceStorage {
    pub(super) fn new(inner: Arc<dyn ReadStorage>, kept: Arc<KeptReads>) -> Self {
        ReadOnceStorage { inner, kept }
    }

    /// Returns the handle of the inner storage. Only the worker that opened the file uses it.
    fn inner_handle<'o>(&self, open: &'o LazyHandle) -> Result<&'o Handle, StorageError> {
        if let Some(handle) = open.handle.get() {
            return Ok(handle);
        }
        let handle = self.inner.open(&open.path)?;
        Ok(open.handle.get_or_init(|| handle))
    }
}

fn open_file(file: &Handle) -> Result<&LazyHandle, StorageError> {
    file.object().ok_or_else(|| StorageError::new("find", "a file", Error::other("it is not open")))
}

impl ReadStorage for ReadOnceStorage {
    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        Ok(Handle::from_object(LazyHandle { path: path.into(), handle: OnceLock::new() }))
    }

    fn len(&self, file: &Handle) -> Result<u64, StorageError> {
        let open = open_file(file)?;
        let key = ReadKey { path: Arc::clone(&open.path), part: None };
        let bytes = self.kept.take_or_read(key, || {
            let len = self.inner.len(self.inner_handle(open)?)?;
            Ok(len.to_le_bytes().into())
        })?;
        Ok(bytes.as_ref().try_into().map_or(0, u64::from_le_bytes))
    }

    fn read_piece(
        &self,
        file: &Handle,
        offset: u64,
        buffer: &mut [u8],
        end: u64,
    ) -> Result<usize, StorageError> {
        let open = open_file(file)?;
        let key = ReadKey { path: Arc::clone(&open.path), part: Some((offset, buffer.len())) };
        let bytes = self.kept.take_or_read(key, || {
            let handle = self.inner_handle(open)?;
            let read_bytes = self.inner.read_piece(handle, offset, buffer, end)?;
            Ok(buffer[..read_bytes].into())
        })?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn close(&self, file: Handle) {
        let open = file.into_object::<LazyHandle>();
        if let Some(handle) = open.and_then(|open| open.handle.into_inner()) {
            self.inner.close(handle);
        }
    }

    fn transfers(&self) -> Option<TransferCounts> {
        self.inner.transfers()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_data::storage::{self, Storage};
    use std::path::Path;

    #[test]
    fn a_group_reads_once_and_drops_data_that_all_have_taken() {
        let inner: Arc<dyn Storage> = Arc::from(storage::open("memory", Path::new("/")).unwrap());
        let mut file = inner.create("a").unwrap();
        file.write(&[7; 10]).unwrap();
        file.commit().unwrap();
        let kept = KeptReads::new(3);
        let workers = [0; 3].map(|_| ReadOnceStorage::new(inner.clone(), Arc::clone(&kept)));
        for (number, once) in workers.iter().enumerate() {
            let handle = once.open("a").unwrap();
            assert_eq!(once.len(&handle).unwrap(), 10);
            let mut buffer = [0; 8];
            assert_eq!(once.read_at(&handle, 4, &mut buffer).unwrap(), 6);
            assert_eq!(buffer, [7, 7, 7, 7, 7, 7, 0, 0]);
            once.close(handle);
            // The others do not read the file.
            if number == 0 {
                inner.remove("a").unwrap();
            }
        }
        assert!(kept.results().is_empty());
        let handle = workers[0].open("a").unwrap();
        assert_eq!(workers[0].len(&handle).unwrap_err().action, "open");
        assert!(kept.results().is_empty());
    }
}
