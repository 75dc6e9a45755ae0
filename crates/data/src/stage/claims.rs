//! Who copies which file of a copy, and who reads it: locks on places of one file, which go with their holders.

use super::{CLAIMS_FILE, Stage, StageError};
use crate::storage::StorageError;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

/// Place of the file's first bytes.
pub(super) const COUNTER: i64 = 0;
/// Place of those who read the copy; beyond it are those of files.
pub(super) const READERS: i64 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Waits until nobody else has the place.
    Alone,
    /// Beside others.
    Shared,
    /// Nobody else has the place, or it fails.
    AloneNow,
}

/// A process that reads the copy, until it is dropped.
pub struct Reader {
    _claim: File,
}

impl Stage {
    /// This process reads the copy from now on.
    ///
    /// # Errors
    /// The system's.
    pub fn reader(&self) -> Result<Reader, StageError> {
        Ok(Reader { _claim: self.claim(READERS, Claim::Shared)? })
    }

    /// Whether a process reads the copy.
    pub fn is_read(&self) -> bool {
        self.claim(READERS, Claim::AloneNow).is_err()
    }

    pub(super) fn claims(&self) -> Result<File, StorageError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).custom_flags(libc::O_NOFOLLOW);
        let file = options.open(self.folder.join(CLAIMS_FILE));
        file.map_err(|error| self.error("lock", error))
    }

    /// A lock on a place of the claims file. It belongs to the open file, so that it keeps out threads as it does processes.
    pub(super) fn claim(&self, place: i64, claim: Claim) -> Result<File, StorageError> {
        let file = self.claims()?;
        let kind = if claim == Claim::Shared { libc::F_RDLCK } else { libc::F_WRLCK };
        let command = if claim == Claim::Alone { libc::F_OFD_SETLKW } else { libc::F_OFD_SETLK };
        let stretch = libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: place,
            l_len: 1,
            l_pid: 0,
        };
        loop {
            // SAFETY: the descriptor is open, and the structure is as fcntl(2) has it and lives through the call.
            let status = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw const stretch) };
            match status {
                0 => return Ok(file),
                _ => match Error::last_os_error() {
                    error if error.kind() == ErrorKind::Interrupted => {}
                    error => return Err(self.error("lock", error)),
                },
            }
        }
    }
}
