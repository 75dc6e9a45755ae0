//! A storage of which each read is made once for a group of accelerators that all read the same, and kept until all have had it.
//! Files are opened when something of them is really read.

use feedrate_data::storage::{Handle, ReadStorage, StorageError};
use std::collections::HashMap;
use std::io::Error;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// Reads of a group, whichever worker made them.
pub(super) struct KeptReads {
    takers: u32,
    answers: Mutex<HashMap<KeptRead, KeptAnswer>>,
    changed: Condvar,
}

/// A part of a file, or without one its length.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct KeptRead {
    path: Arc<str>,
    part: Option<(u64, usize)>,
}

enum KeptAnswer {
    /// Somebody is getting it.
    Coming,
    /// So many others will take it.
    There { bytes: Arc<[u8]>, left: u32 },
}

impl KeptReads {
    /// For a group of `takers` accelerators.
    pub(super) fn new(takers: u32) -> Arc<Self> {
        Arc::new(KeptReads { takers, answers: Mutex::default(), changed: Condvar::new() })
    }

    /// The answer that another has got, or that `get` gets for all.
    fn ask(
        &self,
        question: KeptRead,
        get: impl FnOnce() -> Result<Arc<[u8]>, StorageError>,
    ) -> Result<Arc<[u8]>, StorageError> {
        let mut answers = self.answers();
        while let Some(answer) = answers.get_mut(&question) {
            let KeptAnswer::There { bytes, left } = answer else {
                answers = self.changed.wait(answers).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let bytes = Arc::clone(bytes);
            *left -= 1;
            if *left == 0 {
                answers.remove(&question);
            }
            return Ok(bytes);
        }
        let left = self.takers - 1;
        if left == 0 {
            drop(answers);
            return get();
        }
        answers.insert(question.clone(), KeptAnswer::Coming);
        drop(answers);
        let got = get();
        let mut answers = self.answers();
        match &got {
            Ok(bytes) => {
                answers.insert(question, KeptAnswer::There { bytes: Arc::clone(bytes), left })
            }
            Err(_) => answers.remove(&question),
        };
        self.changed.notify_all();
        got
    }

    fn answers(&self) -> MutexGuard<'_, HashMap<KeptRead, KeptAnswer>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads `inner` for one or more of the group's workers.
pub(super) struct Once {
    inner: Arc<dyn ReadStorage>,
    kept: Arc<KeptReads>,
}

struct OpenOnce {
    path: Arc<str>,
    /// Handle of the inner storage, once something was read.
    handle: OnceLock<Handle>,
}

impl Once {
    pub(super) fn new(inner: Arc<dyn ReadStorage>, kept: Arc<KeptReads>) -> Self {
        Once { inner, kept }
    }

    /// The inner storage's handle, which only the worker that opened the file uses.
    fn inner_handle<'o>(&self, open: &'o OpenOnce) -> Result<&'o Handle, StorageError> {
        if let Some(handle) = open.handle.get() {
            return Ok(handle);
        }
        let handle = self.inner.open(&open.path)?;
        Ok(open.handle.get_or_init(|| handle))
    }
}

fn opened(file: &Handle) -> Result<&OpenOnce, StorageError> {
    file.object().ok_or_else(|| StorageError::new("find", "a file", Error::other("it is not open")))
}

impl ReadStorage for Once {
    fn open(&self, path: &str) -> Result<Handle, StorageError> {
        Ok(Handle::from_object(OpenOnce { path: path.into(), handle: OnceLock::new() }))
    }

    fn len(&self, file: &Handle) -> Result<u64, StorageError> {
        let open = opened(file)?;
        let question = KeptRead { path: Arc::clone(&open.path), part: None };
        let bytes = self.kept.ask(question, || {
            let len = self.inner.len(self.inner_handle(open)?)?;
            Ok(len.to_le_bytes().into())
        })?;
        Ok(bytes.as_ref().try_into().map_or(0, u64::from_le_bytes))
    }

    fn read_at(
        &self,
        file: &Handle,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, StorageError> {
        let open = opened(file)?;
        let question =
            KeptRead { path: Arc::clone(&open.path), part: Some((offset, buffer.len())) };
        let bytes = self.kept.ask(question, || {
            let handle = self.inner_handle(open)?;
            let read = self.inner.read_at(handle, offset, buffer)?;
            Ok(buffer[..read].into())
        })?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn close(&self, file: Handle) {
        let open = file.into_object::<OpenOnce>();
        if let Some(handle) = open.and_then(|open| open.handle.into_inner()) {
            self.inner.close(handle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedrate_data::storage::{self, Storage};
    use std::path::Path;

    #[test]
    fn a_group_reads_once_and_keeps_nothing_that_all_have_had() {
        let inner: Arc<dyn Storage> = Arc::from(storage::open("memory", Path::new("/")).unwrap());
        let mut file = inner.create("a").unwrap();
        file.write(&[7; 10]).unwrap();
        file.commit().unwrap();
        let kept = KeptReads::new(3);
        let workers = [0; 3].map(|_| Once::new(inner.clone(), Arc::clone(&kept)));
        for (number, once) in workers.iter().enumerate() {
            let handle = once.open("a").unwrap();
            assert_eq!(once.len(&handle).unwrap(), 10);
            let mut buffer = [0; 8];
            assert_eq!(once.read_at(&handle, 4, &mut buffer).unwrap(), 6);
            assert_eq!(buffer, [7, 7, 7, 7, 7, 7, 0, 0]);
            once.close(handle);
            // The others need no file any more.
            if number == 0 {
                inner.remove("a").unwrap();
            }
        }
        assert!(kept.answers().is_empty());
        let handle = workers[0].open("a").unwrap();
        assert_eq!(workers[0].len(&handle).unwrap_err().action, "open");
        assert!(kept.answers().is_empty());
    }
}
