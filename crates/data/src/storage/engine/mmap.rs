//! Maps whole files into memory and copies from the pages (fio's `mmap`).
//!
//! The kernel makes the copies (`process_vm_readv`), so a missing page is reported as an error, for example after the file
//! has shrunk or the device has failed. If the process copied the page itself, SIGBUS would end the process.

use super::{Engine, Handle};
use feedrate_spec::catalog::{Ability, Member};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ptr::NonNull;

pub(super) struct Mmap;

static MEMBER: Member = Member {
    name: "mmap",
    summary: "A memory map of each file; the kernel reads a page when it is first touched.",
    abilities: &[Ability::Mapped],
};

/// A mapped file.
struct Mapping {
    fd: OwnedFd,
    /// Dangling where `len` is 0.
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping has one owner and is only read, by the kernel.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(fd: OwnedFd) -> Result<Self, Errno> {
        let len = usize::try_from(fstat(&fd)?.st_size).map_err(|_| Errno::FBIG)?;
        // The kernel refuses empty mappings.
        if len == 0 {
            return Ok(Mapping { fd, start: NonNull::dangling(), len });
        }
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing.
        let start =
            unsafe { mmap(std::ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, &fd, 0)? };
        Ok(Mapping { fd, start: NonNull::new(start.cast()).ok_or(Errno::NOMEM)?, len })
    }

    /// Copies bytes from `start` of the mapping on into `buffer` and returns their number. The range must be inside the
    /// mapping.
    fn copy(&self, start: usize, buffer: &mut [u8]) -> Result<usize, Errno> {
        let source = self.start.as_ptr().wrapping_add(start);
        let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let remote = libc::iovec { iov_base: source.cast(), iov_len: buffer.len() };
        // SAFETY: `local` covers `buffer`; the kernel checks the addresses of `remote`, which are in this process.
        let copied = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
        usize::try_from(copied).map_err(|_| {
            Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
        })
    }

    /// The error to report if not all bytes could be copied.
    fn copy_error(&self) -> Errno {
        match fstat(&self.fd) {
            Ok(stat) if stat.st_size as u64 == self.len as u64 => Errno::IO,
            Ok(_) => Errno::STALE,
            Err(errno) => errno,
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: mapped in `new` with this length, and the owner is dropped, so nothing uses the mapping any more.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        }
    }
}

fn mapping(file: &Handle) -> Result<&Mapping, Errno> {
    file.object().ok_or(Errno::BADF)
}

impl Engine for Mmap {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn adopt(&self, fd: OwnedFd) -> Result<Handle, Errno> {
        Ok(Handle::from_object(Mapping::new(fd)?))
    }

    fn fd<'h>(&self, file: &'h Handle) -> Result<BorrowedFd<'h>, Errno> {
        Ok(mapping(file)?.fd.as_fd())
    }

    fn read_at(&self, file: &Handle, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let mapping = mapping(file)?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(mapping.len);
        let len = buffer.len().min(mapping.len - start);
        if len == 0 {
            return Ok(0);
        }
        match mapping.copy(start, &mut buffer[..len]) {
            Ok(copied) if copied == len => Ok(len),
            Ok(_) | Err(Errno::FAULT) => Err(mapping.copy_error()),
            Err(errno) => Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lengths are more than a page apart, because the kernel detects missing bytes only by page.
    #[test]
    fn a_file_that_shrinks_while_it_is_mapped_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, vec![7; 100_000]).unwrap();
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let handle = Mmap.adopt(file.try_clone().unwrap().into()).unwrap();
        let mut buffer = vec![0; 50_000];
        assert_eq!(Mmap.read_at(&handle, 60_000, &mut buffer), Ok(40_000));
        file.set_len(65_000).unwrap();
        assert_eq!(
            Mmap.read_at(&handle, 60_000, &mut buffer),
            Err(Errno::STALE),
            "partly beyond the new end"
        );
        assert_eq!(
            Mmap.read_at(&handle, 80_000, &mut buffer),
            Err(Errno::STALE),
            "beyond the new end"
        );
        assert_eq!(Mmap.read_at(&handle, 0, &mut buffer), Ok(50_000), "before the new end");
    }

    #[test]
    fn a_handle_of_another_engine_is_refused() {
        let other = Handle::from_number(0x7fff_0000_0000);
        assert_eq!(Mmap.read_at(&other, 0, &mut [0]), Err(Errno::BADF));
        assert!(Mmap.fd(&other).is_err());
    }
}
