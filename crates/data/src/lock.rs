//! Lock of a dataset, on a file in its folder; released when its holder dies. Exclusive for whoever makes, completes or
//! removes the dataset; shared by those who read it. A folder of checkpoints is locked as one.

use crate::storage::StorageError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Name of the lock file in the dataset's folder.
pub const LOCK_FILE: &str = ".feedrate.lock";
/// The longest word of a holder that is read.
const HOLDER_BYTES_MAX: u64 = 400;

/// How a dataset is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockAccess {
    /// Nobody else has it: to make, complete or remove it.
    Exclusive,
    /// Others may read it too.
    Shared,
}

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct DatasetLock {
    path: PathBuf,
    file: File,
    access: LockAccess,
}

/// Result of asking for a lock.
#[derive(Debug)]
pub enum LockAttempt {
    /// The lock is held now.
    Held(DatasetLock),
    /// Somebody else holds it.
    Busy {
        /// In the words of the last who took it, who and since when; `None` where these cannot be read.
        holder: Option<String>,
    },
    /// There can be no lock: a file system without, or for readers one that may not be written.
    Unsupported {
        /// The system's word.
        reason: String,
    },
}

impl DatasetLock {
    /// Ask for the lock of the dataset in `folder`, which is made for those who want to write. `holder` is what others are told
    /// who wait meanwhile.
    ///
    /// # Errors
    /// The folder or the file cannot be made, or opened.
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
            let asked = match access {
                LockAccess::Exclusive => file.try_lock(),
                LockAccess::Shared => file.try_lock_shared(),
            };
            match asked {
                Ok(()) if !leads_to(&path, &file) => {}
                Ok(()) => {
                    // Others can only be told less: the lock holds all the same.
                    let _ = tell(&mut file, holder);
                    return Ok(LockAttempt::Held(DatasetLock { path, file, access }));
                }
                Err(TryLockError::WouldBlock) => {
                    return Ok(LockAttempt::Busy { holder: told(&mut file) });
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

    /// Whoever makes or removes the dataset in `folder` now, in words as of [`LockAttempt::Busy`]; `None` where nobody does, as far as
    /// can be told. Holds the lock of a reader for a moment.
    pub fn maker(folder: &Path) -> Option<String> {
        let mut file = readable().open(folder.join(LOCK_FILE)).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {
                Some(told(&mut file).unwrap_or_else(|| "somebody has it".into()))
            }
            _ => None,
        }
    }

    /// Remove the file too, and the folder if nothing else is left in it. Whoever waits for it sees that it is gone.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(self) -> Result<(), StorageError> {
        std::fs::remove_file(&self.path)
            .map_err(|error| StorageError::new("remove", &self.path, error))?;
        let folder = self.path.parent().unwrap_or(&self.path);
        // Others may lie in it, or it is a mount point, or in a folder of others.
        let _ = std::fs::remove_dir(folder);
        Ok(())
    }
}

impl Drop for DatasetLock {
    fn drop(&mut self) {
        if self.access == LockAccess::Exclusive {
            // What is left of it is overwritten by the next holder.
            let _ = self.file.set_len(0);
        }
    }
}

/// Open the file to be locked. Those who only read need not be able to write.
fn open(folder: &Path, path: &Path, access: LockAccess) -> Result<File, Error> {
    if access == LockAccess::Exclusive {
        std::fs::create_dir_all(folder)?;
    }
    let opened = readable().write(true).create(true).open(path);
    match access {
        LockAccess::Exclusive => opened,
        LockAccess::Shared => opened.or_else(|_| readable().open(path)),
    }
}

/// Nothing is written through a link, and no pipe is waited for.
pub(crate) fn readable() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options
}

/// Whether the file that was locked is still the one of that name: a holder before may have removed it.
fn leads_to(path: &Path, file: &File) -> bool {
    match (std::fs::metadata(path), file.metadata()) {
        (Ok(there), Ok(locked)) => (there.dev(), there.ino()) == (locked.dev(), locked.ino()),
        _ => false,
    }
}

/// Say who holds it; of many readers, the last says so.
fn tell(file: &mut File, holder: &str) -> Result<(), Error> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(holder.as_bytes())
}

fn told(file: &mut File) -> Option<String> {
    let mut words = String::new();
    file.take(HOLDER_BYTES_MAX).read_to_string(&mut words).ok()?;
    (!words.is_empty()).then(|| words.escape_debug().to_string())
}

fn has_no_locks(error: &Error) -> bool {
    let codes = [libc::ENOLCK, libc::ENOSYS, libc::EOPNOTSUPP];
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::LockAccess::{Exclusive, Shared};
    use super::*;

    fn ask(folder: &Path, access: LockAccess) -> LockAttempt {
        DatasetLock::try_acquire(folder, access, "a test, since ever").unwrap()
    }

    fn held(attempt: LockAttempt) -> DatasetLock {
        let LockAttempt::Held(lock) = attempt else { panic!("{attempt:?}") };
        lock
    }

    fn busy(attempt: LockAttempt) -> Option<String> {
        let LockAttempt::Busy { holder } = attempt else { panic!("{attempt:?}") };
        holder
    }

    #[test]
    fn one_makes_or_many_read() {
        let folder = tempfile::tempdir().unwrap();
        let folder = &folder.path().join("new");
        let maker = held(ask(folder, Exclusive));
        for access in [Exclusive, Shared] {
            assert_eq!(busy(ask(folder, access)).as_deref(), Some("a test, since ever"));
        }
        drop(maker);
        assert_eq!(DatasetLock::maker(folder), None);
        let readers = [Shared, Shared].map(|access| held(ask(folder, access)));
        assert_eq!(busy(ask(folder, Exclusive)).as_deref(), Some("a test, since ever"));
        assert_eq!(DatasetLock::maker(folder), None, "readers make nothing");
        drop(readers);
        let _maker = held(ask(folder, Exclusive));
        assert_eq!(DatasetLock::maker(folder).as_deref(), Some("a test, since ever"));
    }

    /// The words of a holder that died are still there, and tell nobody anything.
    #[test]
    fn the_dead_hold_nothing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(LOCK_FILE), "a maker that was killed").unwrap();
        assert_eq!(DatasetLock::maker(folder.path()), None);
        held(ask(folder.path(), Exclusive));
        std::fs::write(folder.path().join(LOCK_FILE), "a reader that was killed").unwrap();
        let _reader = held(ask(folder.path(), Shared));
        assert_eq!(busy(ask(folder.path(), Exclusive)).as_deref(), Some("a test, since ever"));
    }

    #[test]
    fn a_lock_that_was_removed_is_asked_for_anew() {
        let folder = tempfile::tempdir().unwrap();
        let dataset = folder.path().join("dataset");
        let first = held(ask(&dataset, Exclusive));
        std::fs::write(dataset.join("thesis.txt"), "mine").unwrap();
        first.remove().unwrap();
        assert!(dataset.join("thesis.txt").exists());
        let second = held(ask(&dataset, Exclusive));
        std::fs::remove_file(dataset.join("thesis.txt")).unwrap();
        second.remove().unwrap();
        assert!(!dataset.exists());
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let theirs = folder.path().join("thesis.txt");
        std::fs::write(&theirs, "mine").unwrap();
        std::os::unix::fs::symlink(&theirs, folder.path().join(LOCK_FILE)).unwrap();
        assert!(DatasetLock::try_acquire(folder.path(), Exclusive, "").is_err());
        assert!(matches!(ask(folder.path(), Shared), LockAttempt::Unsupported { .. }));
        assert_eq!(std::fs::read(theirs).unwrap(), b"mine");
    }

    #[test]
    fn readers_of_what_is_not_there_make_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let nowhere = folder.path().join("nowhere");
        assert!(matches!(ask(&nowhere, Shared), LockAttempt::Unsupported { .. }));
        assert!(!nowhere.exists());
    }
}
