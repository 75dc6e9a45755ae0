//! A memory map of the whole file, its pages touched by copying them (fio's `mmap`).
//!
//! The kernel copies, so that a page that is not there any more, because the file shrank or the device failed, is an error. A
//! copy by the process itself would end it (SIGBUS).

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
    summary: "A memory map of each file; pages come as they are touched.",
    abilities: &[Ability::Mapped],
};

/// A mapped file.
struct Mapping {
    fd: OwnedFd,
    /// Dangling where `len` is 0.
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is the owner's alone, and is only read, by the kernel.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(fd: OwnedFd) -> Result<Self, Errno> {
        let len = usize::try_from(fstat(&fd)?.st_size).map_err(|_| Errno::FBIG)?;
        // Nothing cannot be mapped.
        if len == 0 {
            return Ok(Mapping { fd, start: NonNull::dangling(), len });
        }
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing.
        let start =
            unsafe { mmap(std::ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, &fd, 0)? };
        Ok(Mapping { fd, start: NonNull::new(start.cast()).ok_or(Errno::NOMEM)?, len })
    }

    /// Fill `buffer` from `from` on, both inside the mapping, and say how much of it came.
    fn copy(&self, from: usize, buffer: &mut [u8]) -> Result<usize, Errno> {
        let (here, there) = (buffer.as_mut_ptr().cast(), self.start.as_ptr().wrapping_add(from));
        let local = libc::iovec { iov_base: here, iov_len: buffer.len() };
        let remote = libc::iovec { iov_base: there.cast(), iov_len: buffer.len() };
        // SAFETY: `local` is all of `buffer`; the kernel checks what it reads at `remote`, in this process.
        let copied = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
        usize::try_from(copied).map_err(|_| {
            Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
        })
    }

    /// The reason why not all could be copied.
    fn refused(&self) -> Errno {
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
            // SAFETY: mapped in `new` with this length; its owner is the last to know of it.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        }
    }
}

fn mapping(file: &Handle) -> Result<&Mapping, Errno> {
    file.kept().ok_or(Errno::BADF)
}

impl Engine for Mmap {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn adopt(&self, fd: OwnedFd) -> Result<Handle, Errno> {
        Ok(Handle::keeping(Mapping::new(fd)?))
    }

    fn fd<'h>(&self, file: &'h Handle) -> Result<BorrowedFd<'h>, Errno> {
        Ok(mapping(file)?.fd.as_fd())
    }

    fn read_at(&self, file: &Handle, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let mapping = mapping(file)?;
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(mapping.len);
        let len = buffer.len().min(mapping.len - from);
        if len == 0 {
            return Ok(0);
        }
        match mapping.copy(from, &mut buffer[..len]) {
            Ok(copied) if copied == len => Ok(len),
            Ok(_) | Err(Errno::FAULT) => Err(mapping.refused()),
            Err(errno) => Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rooms between the lengths are pages, which `SIGBUS` knows.
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
        assert_eq!(Mmap.read_at(&handle, 60_000, &mut buffer), Err(Errno::STALE), "in part");
        assert_eq!(Mmap.read_at(&handle, 80_000, &mut buffer), Err(Errno::STALE), "not there");
        assert_eq!(Mmap.read_at(&handle, 0, &mut buffer), Ok(50_000), "there");
    }

    #[test]
    fn a_handle_of_another_is_refused() {
        let other = Handle::from_number(0x7fff_0000_0000);
        assert_eq!(Mmap.read_at(&other, 0, &mut [0]), Err(Errno::BADF));
        assert!(Mmap.fd(&other).is_err());
    }
}
