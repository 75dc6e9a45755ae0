//! The lock of a dataset: a locked file in the dataset's folder, which the system releases when the holding process
//! ends.
//!
//! Generating, completing or removing the dataset takes the lock exclusively; reading shares it. A folder of checkpoints
//! is locked in the same way.

use crate::storage::StorageError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Name of the lock file in the dataset's folder.
pub const LOCK_FILE: &str = ".feedrate.lock";
/// Upper limit on the description of the holder that is read from the lock file.
const HOLDER_BYTES_MAX: u64 = 400;

/// How a dataset is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockAccess {
    /// For one process that generates, completes or removes the dataset.
    Exclusive,
    /// For processes that read the dataset.
    Shared,
}

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct DatasetLock {
    path: PathBuf,
    file: File,
    access: LockAccess,
}

/// Result of a request for the lock.
#[derive(Debug)]
pub enum LockAttempt {
    /// The lock is held now.
    Held(DatasetLock),
    /// Another process holds the lock.
    Busy {
        /// Description of the holder, as the last holder wrote it; `None` if it cannot be read.
        holder: Option<String>,
    },
    /// Locking is not possible: the file system has no locks, or a reader cannot create the lock file.
    Unsupported {
        /// The system's error message.
        reason: String,
    },
}

impl DatasetLock {
    /// Tries to take the lock of the dataset in `folder`. Exclusive access creates the folder if it is missing. `holder`
    /// describes this process and is shown to processes that wait for the lock.
    ///
    /// # Errors
    /// The folder or the lock file cannot be created or opened.
    pub fn try_acquire(
        folder: &Path,
        access: LockAccess,
        holder: &str,
    ) -> Result<LockAttempt, StorageError> {
        let path = folder.join(LOCK_FILE);
        loop {
            let mut file = match open(folder, &path, access) {
                Ok(file) => file,
                Err(error) if access == LockAccess::Shared => {
                    return Ok(LockAttempt::Unsupported { reason: error.to_string() });
                }
                Err(error) => return Err(StorageError::new("lock", path, error)),
            };
            let locked = match access {
                LockAccess::Exclusive => file.try_lock(),
                LockAccess::Shared => file.try_lock_shared(),
            };
            match locked {
                Ok(()) if !is_at_path(&file, &path) => {}
                Ok(()) => {
                    // The description only informs other processes; the lock is valid without it.
                    let _ = write_holder(&mut file, holder);
                    return Ok(LockAttempt::Held(DatasetLock { path, file, access }));
                }
                Err(TryLockError::WouldBlock) => {
                    return Ok(LockAttempt::Busy { holder: read_holder(&mut file) });
                }
                Err(TryLockError::Error(error)) if has_no_locks(&error) => {
                    return Ok(LockAttempt::Unsupported { reason: error.to_string() });
                }
                Err(TryLockError::Error(error)) => {
                    return Err(StorageError::new("lock", path, error));
                }
            }
        }
    }

    /// Description of the process that is generating or removing the dataset in `folder`, as in [`LockAttempt::Busy`];
    /// `None` if there is no such process or the lock cannot be tested. Briefly holds a shared lock.
    pub fn writer(folder: &Path) -> Option<String> {
        let mut file = lock_file_options().open(folder.join(LOCK_FILE)).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(
                read_holder(&mut file).unwrap_or_else(|| "another process has locked it".into()),
            ),
            _ => None,
        }
    }

    /// Removes the lock file, and the folder if it is empty then. Waiting processes notice that the file is gone and retry.
    ///
    /// # Errors
    /// The lock file cannot be removed.
    pub fn remove(self) -> Result<(), StorageError> {
        std::fs::remove_file(&self.path)
            .map_err(|error| StorageError::new("remove", &self.path, error))?;
        let folder = self.path.parent().unwrap_or(&self.path);
        // Fails if other files are in the folder, if it is a mount point, or without permission for its parent.
        let _ = std::fs::remove_dir(folder);
        Ok(())
    }
}

impl Drop for DatasetLock {
    fn drop(&mut self) {
        if self.access == LockAccess::Exclusive {
            // If this fails, the next holder overwrites the description.
            let _ = self.file.set_len(0);
        }
    }
}

/// Opens the lock file. Shared access also works without write permission.
fn open(folder: &Path, path: &Path, access: LockAccess) -> Result<File, Error> {
    if access == LockAccess::Exclusive {
        std::fs::create_dir_all(folder)?;
    }
    let opened = lock_file_options().write(true).create(true).open(path);
    match access {
        LockAccess::Exclusive => opened,
        LockAccess::Shared => opened.or_else(|_| lock_file_options().open(path)),
    }
}

/// Options that do not follow a link and do not wait for the other end of a pipe.
pub(crate) fn lock_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options
}

/// Whether `path` still names the locked file. The previous holder may have removed the file.
fn is_at_path(file: &File, path: &Path) -> bool {
    match (std::fs::metadata(path), file.metadata()) {
        (Ok(named), Ok(locked)) => (named.dev(), named.ino()) == (locked.dev(), locked.ino()),
        _ => false,
    }
}

/// Writes the holder's description. Each reader overwrites the description of the reader before.
fn write_holder(file: &mut File, holder: &str) -> Result<(), Error> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(holder.as_bytes())
}

fn read_holder(file: &mut File) -> Option<String> {
    let mut holder = String::new();
    file.take(HOLDER_BYTES_MAX).read_to_string(&mut holder).ok()?;
    (!holder.is_empty()).then(|| holder.escape_debug().to_string())
}

/// Whether the error means that the file system does not support locks.
fn has_no_locks(error: &Error) -> bool {
    let codes = [libc::ENOLCK, libc::ENOSYS, libc::EOPNOTSUPP];
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::LockAccess::{Exclusive, Shared};
    use super::*;

    fn attempt(folder: &Path, access: LockAccess) -> LockAttempt {
        DatasetLock::try_acquire(folder, access, "a test, since noon").unwrap()
    }

    fn expect_lock(attempt: LockAttempt) -> DatasetLock {
        let LockAttempt::Held(lock) = attempt else { panic!("{attempt:?}") };
        lock
    }

    fn expect_holder(attempt: LockAttempt) -> Option<String> {
        let LockAttempt::Busy { holder } = attempt else { panic!("{attempt:?}") };
        holder
    }

    #[test]
    fn there_is_one_writer_or_many_readers() {
        let folder = tempfile::tempdir().unwrap();
        let folder = &folder.path().join("new");
        let writer = expect_lock(attempt(folder, Exclusive));
        for access in [Exclusive, Shared] {
            assert_eq!(
                expect_holder(attempt(folder, access)).as_deref(),
                Some("a test, since noon")
            );
        }
        drop(writer);
        assert_eq!(DatasetLock::writer(folder), None);
        let readers = [Shared, Shared].map(|access| expect_lock(attempt(folder, access)));
        assert_eq!(
            expect_holder(attempt(folder, Exclusive)).as_deref(),
            Some("a test, since noon")
        );
        assert_eq!(DatasetLock::writer(folder), None, "readers are not writers");
        drop(readers);
        let _writer = expect_lock(attempt(folder, Exclusive));
        assert_eq!(DatasetLock::writer(folder).as_deref(), Some("a test, since noon"));
    }

    /// The description of a holder that died stays in the file and must not be reported.
    #[test]
    fn a_dead_holder_has_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(LOCK_FILE), "a writer that was killed").unwrap();
        assert_eq!(DatasetLock::writer(folder.path()), None);
        expect_lock(attempt(folder.path(), Exclusive));
        std::fs::write(folder.path().join(LOCK_FILE), "a reader that was killed").unwrap();
        let _reader = expect_lock(attempt(folder.path(), Shared));
        assert_eq!(
            expect_holder(attempt(folder.path(), Exclusive)).as_deref(),
            Some("a test, since noon")
        );
    }

    #[test]
    fn a_removed_lock_can_be_taken_again() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = folder.path().join("dataset");
        let first = expect_lock(attempt(&dataset, Exclusive));
        std::fs::write(dataset.join("thesis.txt"), "mine").unwrap();
        first.remove().unwrap();
        assert!(dataset.join("thesis.txt").exists());
        let second = expect_lock(attempt(&dataset, Exclusive));
        std::fs::remove_file(dataset.join("thesis.txt")).unwrap();
        second.remove().unwrap();
        assert!(!dataset.exists());
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let linked_file = folder.path().join("thesis.txt");
        std::fs::write(&linked_file, "mine").unwrap();
        std::os::unix::fs::symlink(&linked_file, folder.path().join(LOCK_FILE)).unwrap();
        assert!(DatasetLock::try_acquire(folder.path(), Exclusive, "").is_err());
        assert!(matches!(attempt(folder.path(), Shared), LockAttempt::Unsupported { .. }));
        assert_eq!(std::fs::read(linked_file).unwrap(), b"mine");
    }

    #[test]
    fn readers_do_not_create_a_missing_folder() {
        let folder = tempfile::tempdir().unwrap();
        let nowhere = folder.path().join("nowhere");
        assert!(matches!(attempt(&nowhere, Shared), LockAttempt::Unsupported { .. }));
        assert!(!nowhere.exists());
    }
}
