//! Ways to read a file of the `file` storage: one file per engine, one row per engine in [`ENGINES`].
//!
//! An engine turns an open descriptor into a handle, and serves ranges of it. Names are fio's where it has them.

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

/// Every engine; the first is what files are read by where nobody asks for another.
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

/// A way to read files.
pub trait Engine: Send + Sync {
    /// Name, summary, abilities.
    fn member(&self) -> &'static Member;

    /// Flags to open files with, beside read-only.
    fn flags(&self) -> OFlags {
        OFlags::empty()
    }

    /// Take over an open file. An engine whose handle is not the descriptor has its own of this and of [`Engine::fd`].
    ///
    /// # Errors
    /// The system's.
    fn adopt(&self, fd: OwnedFd) -> Result<Handle, Errno> {
        Ok(Handle::from_descriptor(fd))
    }

    /// The descriptor behind a handle.
    ///
    /// # Errors
    /// The handle is not one of this engine.
    fn fd<'h>(&self, file: &'h Handle) -> Result<BorrowedFd<'h>, Errno> {
        file.descriptor().ok_or(Errno::BADF)
    }

    /// Bytes that it serves of a file; `None` is all that the file has.
    fn len(&self, _file: &Handle) -> Option<u64> {
        None
    }

    /// See [`super::ReadStorage::read_at`].
    ///
    /// # Errors
    /// The system's.
    fn read_at(&self, file: &Handle, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno>;
}

/// `pread` until `buffer` is full or the file ends, which a count that is no multiple of `block` shows too.
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
