//! Page-aligned memory that costs nothing until it is touched.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::io;
use std::ptr::NonNull;

/// Alignment of every buffer that storage reads into: on AMD an unaligned copy from the page cache is
/// six times slower, and O_DIRECT refuses it.
pub const ALIGN: usize = 4096;

/// A fixed, page-aligned, zeroed buffer, mapped rather than allocated: an aligned allocation of zeros would write them.
#[derive(Debug)]
pub struct AlignedBuffer {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the buffer owns its memory; `&mut` is needed to write it.
unsafe impl Send for AlignedBuffer {}

impl AlignedBuffer {
    /// `bytes` of zeros, at least one page.
    ///
    /// # Errors
    /// The system has no address space, or no mappings, left.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let len = bytes.max(1).next_multiple_of(ALIGN);
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new private mapping at an address of the kernel's choice aliases nothing.
        let start =
            unsafe { mmap_anonymous(std::ptr::null_mut(), len, protection, MapFlags::PRIVATE) };
        match NonNull::new(start?.cast()) {
            Some(start) => Ok(AlignedBuffer { start, len }),
            None => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }

    /// Bytes it holds.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: a buffer has at least one page.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// `len` bytes whose address is as far from a page's start as `offset` is, so that a copy from the page
    /// cache has source and destination aligned alike.
    pub fn aligned_like(&mut self, offset: u64, len: usize) -> &mut [u8] {
        let skew = (offset % ALIGN as u64) as usize;
        // SAFETY: `start` is valid for `self.len` initialised bytes, and `&mut self` is exclusive.
        let all = unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) };
        &mut all[skew..skew + len]
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length; nothing borrows it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}
