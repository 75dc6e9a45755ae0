//! Page-aligned memory that costs nothing until it is touched.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Alignment of every buffer that storage reads into: on AMD an unaligned copy from the page cache is
/// six times slower, and O_DIRECT refuses it.
pub const ALIGN: usize = 4096;

/// A fixed, page-aligned, zeroed buffer.
#[derive(Debug)]
pub struct AlignedBuffer {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the buffer owns its memory; `&mut` is needed to write it.
unsafe impl Send for AlignedBuffer {}

impl AlignedBuffer {
    /// `bytes` of zeros, at least one page.
    pub fn new(bytes: usize) -> Self {
        let size = bytes.max(1).next_multiple_of(ALIGN);
        let Ok(layout) = Layout::from_size_align(size, ALIGN) else {
            unreachable!("buffers are far below isize::MAX")
        };
        // SAFETY: the layout has a size above zero.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(memory) else { handle_alloc_error(layout) };
        AlignedBuffer { start, layout }
    }

    /// Bytes it holds.
    pub fn len(&self) -> usize {
        self.layout.size()
    }

    /// Never: a buffer has at least one page.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// `len` bytes whose address is as far from a page's start as `offset` is, so that a copy from the page
    /// cache has source and destination aligned alike.
    pub fn aligned_like(&mut self, offset: u64, len: usize) -> &mut [u8] {
        let skew = (offset % ALIGN as u64) as usize;
        &mut self.all()[skew..skew + len]
    }

    /// All of it.
    pub fn all(&mut self) -> &mut [u8] {
        // SAFETY: `start` is valid for `layout.size()` zeroed bytes, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}
