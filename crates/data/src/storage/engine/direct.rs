//! `pread` with O_DIRECT, which bypasses the page cache and reads from the device.
//!
//! The kernel requires addresses, offsets and lengths at multiples of the device's block length; multiples of 4096 are
//! valid for all common block lengths. Aligned requests, such as the requests of a run's workers, are read directly into their
//! buffer. All others are copied through an aligned bounce buffer.

use super::{Engine, Handle, pread_all, preadv_over, read_pieces};
use feedrate_spec::catalog::{Ability, Member};
use rustix::fd::BorrowedFd;
use rustix::fs::OFlags;
use rustix::io::Errno;

pub(super) struct Direct;

static MEMBER: Member = Member {
    name: "direct",
    summary: "pread with O_DIRECT: bypasses the page cache and reads whole blocks.",
    abilities: &[Ability::BypassesPageCache],
};

const BLOCK_BYTES: usize = 4096;
/// Length of the bounce buffer.
const BOUNCE_BYTES: usize = 1 << 20;

impl Engine for Direct {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn flags(&self) -> OFlags {
        OFlags::DIRECT
    }

    fn read_at(&self, file: &Handle, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let fd = self.fd(file)?;
        let block = BLOCK_BYTES as u64;
        if offset.is_multiple_of(block)
            && buffer.len().is_multiple_of(BLOCK_BYTES)
            && buffer.as_ptr().addr().is_multiple_of(BLOCK_BYTES)
        {
            return pread_all(fd, offset, buffer, block);
        }
        read_through_bounce_buffer(fd, offset, buffer)
    }

    fn read_over(
        &self,
        file: &Handle,
        offset: u64,
        len: u64,
        buffer: &mut [u8],
    ) -> Result<u64, Errno> {
        let block = BLOCK_BYTES as u64;
        let is_aligned = offset.is_multiple_of(block)
            && len.is_multiple_of(block)
            && buffer.len().is_multiple_of(BLOCK_BYTES)
            && buffer.as_ptr().addr().is_multiple_of(BLOCK_BYTES);
        if is_aligned {
            return preadv_over(self.fd(file)?, offset, len, buffer, block);
        }
        read_pieces(offset, len, buffer, |offset, piece| self.read_at(file, offset, piece))
    }
}

fn read_through_bounce_buffer(
    fd: BorrowedFd<'_>,
    offset: u64,
    buffer: &mut [u8],
) -> Result<usize, Errno> {
    let aligned_len = buffer.len().next_multiple_of(BLOCK_BYTES) + BLOCK_BYTES;
    let len = aligned_len.min(BOUNCE_BYTES);
    let mut memory = vec![0u8; len + BLOCK_BYTES];
    let start = memory.as_ptr().align_offset(BLOCK_BYTES);
    let bounce = &mut memory[start..start + len];
    let mut filled = 0;
    while filled < buffer.len() {
        let position = offset + filled as u64;
        let skip = (position % BLOCK_BYTES as u64) as usize;
        let read_bytes = pread_all(fd, position - skip as u64, bounce, BLOCK_BYTES as u64)?;
        let bytes = read_bytes.saturating_sub(skip).min(buffer.len() - filled);
        buffer[filled..filled + bytes].copy_from_slice(&bounce[skip..skip + bytes]);
        filled += bytes;
        if read_bytes < bounce.len() {
            break;
        }
    }
    Ok(filled)
}
