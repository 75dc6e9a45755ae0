//! Blocking `pread` through the page cache (fio's `psync`).

use super::{Engine, Handle, pread_all, preadv_over};
use feedrate_spec::catalog::Member;
use rustix::io::Errno;

/// Length of a page of the page cache, or a divisor of it.
const PAGE_BYTES: u64 = 4096;

pub(super) struct Psync;

static MEMBER: Member =
    Member { name: "psync", summary: "Blocking pread, through the page cache.", abilities: &[] };

impl Engine for Psync {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn read_at(&self, file: &Handle, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        pread_all(self.fd(file)?, offset, buffer, PAGE_BYTES)
    }

    fn read_over(
        &self,
        file: &Handle,
        offset: u64,
        len: u64,
        buffer: &mut [u8],
    ) -> Result<u64, Errno> {
        preadv_over(self.fd(file)?, offset, len, buffer, PAGE_BYTES)
    }
}
