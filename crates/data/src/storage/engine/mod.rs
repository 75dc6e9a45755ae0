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

use super::{Handle, read_pieces};
use feedrate_spec::catalog::Member;
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
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

    /// See [`super::ReadStorage::read_over`].
    ///
    /// # Errors
    /// The system call failed.
    fn read_over(
        &self,
        file: &Handle,
        offset: u64,
        len: u64,
        buffer: &mut [u8],
    ) -> Result<u64, Errno> {
        read_pieces(offset, len, buffer, |offset, piece| self.read_at(file, offset, piece))
    }
}

/// Maximum number of parts of a vectored read (`IOV_MAX`).
const PARTS_MAX: usize = 1024;
/// Maximum length of a read (`MAX_RW_COUNT`).
const READ_BYTES_MAX: u64 = 0x7fff_f000;

/// Calls `preadv` for `len` bytes with parts that all lie in `buffer`, so that the memory of one part receives them all. Repeats the call
/// until all are read or the file ends, as [`pread_all`] does.
fn preadv_over(
    fd: BorrowedFd<'_>,
    offset: u64,
    len: u64,
    buffer: &mut [u8],
    block: u64,
) -> Result<u64, Errno> {
    let mut done = 0;
    while done < len {
        let mut left = len - done;
        let mut parts = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PARTS_MAX];
        let mut count = 0;
        while left > 0 && count < PARTS_MAX {
            let iov_len = left.min(buffer.len() as u64) as usize;
            parts[count] = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len };
            left -= iov_len as u64;
            count += 1;
        }
        let (requested, position) = (len - done - left, (offset + done) as libc::off_t);
        // SAFETY: the first `count` parts lie in `buffer`, which this function borrows exclusively. They overlap, and no one reads them.
        let read =
            unsafe { libc::preadv(fd.as_raw_fd(), parts.as_ptr(), count as libc::c_int, position) };
        match u64::try_from(read) {
            Ok(0) => break,
            Ok(bytes) => {
                done += bytes;
                if is_at_end(offset + done, bytes, requested, block) {
                    break;
                }
            }
            Err(_) => {
                match std::io::Error::last_os_error().raw_os_error().map(Errno::from_raw_os_error) {
                    Some(Errno::INTR) => {}
                    Some(errno) => return Err(errno),
                    None => return Err(Errno::IO),
                }
            }
        }
    }
    Ok(done)
}

/// Whether a read of `bytes` of `requested` bytes, which ended at `position`, reached the end of the file: before it, the system ends reads
/// only between blocks of `block` bytes.
fn is_at_end(position: u64, bytes: u64, requested: u64, block: u64) -> bool {
    bytes < requested.min(READ_BYTES_MAX) && !position.is_multiple_of(block)
}

/// Calls `pread` until `buffer` is full or the file ends, which a read of 0 bytes or a short read within a block marks.
fn pread_all(
    fd: BorrowedFd<'_>,
    offset: u64,
    buffer: &mut [u8],
    block: u64,
) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::io::pread(fd, &mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(bytes) => {
                let requested = buffer.len() - filled;
                filled += bytes;
                if is_at_end(offset + filled as u64, bytes as u64, requested as u64, block) {
                    break;
                }
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(filled)
}
