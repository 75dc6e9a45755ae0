//! A memory map of the whole file, its pages touched by copying them (fio's `mmap`).
//!
//! A file whose length changes while it is mapped is an error. Where it shrinks, or the device fails, in the very moment of a
//! copy, the kernel ends the process (SIGBUS): only files that nobody writes may be read so.

use super::{Engine, Handle};
use feedrate_spec::catalog::{Ability, Member};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ptr;

pub(super) struct Mmap;

static MEMBER: Member = Member {
    name: "mmap",
    summary: "A memory map of each file; pages come as they are touched.",
    abilities: &[Ability::Mapped],
};

/// A mapped file. Its address is the handle.
struct Mapping {
    fd: OwnedFd,
    start: *const u8,
    len: usize,
}

impl Mapping {
    fn new(fd: OwnedFd) -> Result<Self, Errno> {
        let len = usize::try_from(fstat(&fd)?.st_size).map_err(|_| Errno::FBIG)?;
        // Nothing cannot be mapped.
        if len == 0 {
            return Ok(Mapping { fd, start: ptr::null(), len });
        }
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing.
        let start =
            unsafe { mmap(ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, &fd, 0)? };
        Ok(Mapping { fd, start: start.cast_const().cast(), len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: mapped in `new` with this length; its owner is the last to know of it.
            let _ = unsafe { munmap(self.start.cast_mut().cast(), self.len) };
        }
    }
}

fn mapping(file: &Handle) -> &Mapping {
    // SAFETY: handles are made by `adopt` from boxes that live until `close`.
    unsafe { &*ptr::with_exposed_provenance(file.0 as usize) }
}

impl Engine for Mmap {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn adopt(&self, fd: OwnedFd) -> Result<Handle, Errno> {
        let mapping = Box::into_raw(Box::new(Mapping::new(fd)?));
        Ok(Handle(mapping.expose_provenance() as u64))
    }

    fn fd<'h>(&self, file: &'h Handle) -> BorrowedFd<'h> {
        mapping(file).fd.as_fd()
    }

    fn read_at(&self, file: Handle, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let mapping = mapping(&file);
        // What is no longer there must not be touched. That leaves the moment until the copy, and failing devices.
        if fstat(&mapping.fd)?.st_size as u64 != mapping.len as u64 {
            return Err(Errno::STALE);
        }
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(mapping.len);
        let len = buffer.len().min(mapping.len - from);
        if len > 0 {
            // SAFETY: `from + len` is inside the mapping, and `buffer` is not part of it.
            unsafe {
                ptr::copy_nonoverlapping(mapping.start.add(from), buffer.as_mut_ptr(), len);
            }
        }
        Ok(len)
    }

    fn close(&self, file: Handle) {
        let mapping = ptr::with_exposed_provenance_mut::<Mapping>(file.0 as usize);
        // SAFETY: the handle came from `adopt`, and its owner gives it up here.
        drop(unsafe { Box::from_raw(mapping) });
    }
}
