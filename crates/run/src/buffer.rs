//! Page-aligned buffers. Their memory is not committed until it is touched.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::io;
use std::ptr::NonNull;

/// Alignment of all buffers for reads from storage. On AMD an unaligned copy from the page cache is six times slower, and
/// `O_DIRECT` refuses unaligned buffers.
pub const ALIGN: usize = 4096;

/// A page-aligned, zeroed buffer of fixed size. It is mapped and not allocated, because an aligned zeroed allocation would
/// write the zeros.
#[derive(Debug)]
pub struct AlignedBuffer {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the buffer owns its memory; `&mut` is needed to write it.
unsafe impl Send for AlignedBuffer {}

impl AlignedBuffer {
    /// Maps `bytes` zeros, at least one page.
    ///
    /// # Errors
    /// The process has no address space or no mappings left.
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

    /// Returns the capacity in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Always false, since a buffer has at least one page.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Returns `len` bytes that begin as far into a page as `offset` does, so that source and destination of a copy from the page
    /// cache have the same alignment.
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
