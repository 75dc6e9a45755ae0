//! I/O engines, which read the files of the `file` storage: one file per engine, and one row per engine in [`ENGINES`].
//!
//! An engine turns an open file descriptor into a handle and serves ranges of it. Engines that fio also
//! has are named as in fio.

mod psync;
mod mmap;
mod direct;
#[cfg(feature = "libhdf5")]
mod libhdf5;
#[cfg(test)]
mod tests;

use super::Handle;
use feedrate_spec::catalog::Member;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;

/// Every engine. The first is the default.
pub static ENGINES: &[&dyn Engine] = &[
    &psync::Psync,
    &mmap::Mmap,
    &direct::Direct,
    #[cfg(feature = "libhdf5")]
    &libhdf5::LibHdf5,
];

/// The engine called `name`.
pub fn find(name: &str) -> Option<&'static dyn Engine> {
    ENGINES.iter().copied().find(|engine| engine.member().name == name)
}

/// An I/O engine.
pub trait Engine: Send + Sync {
    /// Name, summary, abilities.
    fn member(&self) -> &'static Member;

    /// Flags for opening files, in addition to read-only.
    fn flags(&self) -> OFlags {
        OFlags::empty()
    }

    /// Turns an open file into a handle. An engine whose handle is not the descriptor also implements [`Engine::fd`].
    ///
    /// # Errors
    /// The system call failed.
    fn adopt(&self, fd: OwnedFd) -> Result<Handle, Errno> {
        Ok(Handle::from_descriptor(fd))
    }

    /// The descriptor behind a handle.
    ///
    /// # Errors
    /// The handle belongs to another engine.
    fn fd<'h>(&self, file: &'h Handle) -> Result<BorrowedFd<'h>, Errno> {
        file.descriptor().ok_or(Errno::BADF)
    }

    /// Number of bytes that the engine serves from a file, if it differs from the file's length.
    fn len(&self, _file: &Handle) -> Option<u64> {
        None
    }

    /// See [`super::ReadStorage::read_at`].
    ///
    /// # Errors
    /// The system call failed.
    fn read_at(&self, file: &Handle, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno>;
}

/// Calls `pread` until `buffer` is full or the file ends. A read that returns no multiple of `block` bytes also marks
/// the end of the file.
fn pread_all(
    fd: BorrowedFd<'_>,
    offset: u64,
    buffer: &mut [u8],
    block: usize,
) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::io::pread(fd, &mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(bytes) => {
                filled += bytes;
                if !filled.is_multiple_of(block) {
                    break;
                }
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(filled)
}
