//! Blocking `pread`, through the page cache (fio's `psync`).

use super::{Engine, Handle, number, pread_all};
use feedrate_spec::catalog::Member;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;

pub(super) struct Psync;

static MEMBER: Member =
    Member { name: "psync", summary: "Blocking pread, through the page cache.", abilities: &[] };

impl Engine for Psync {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn adopt(&self, fd: OwnedFd) -> Result<Handle, Errno> {
        Ok(number::adopt(fd))
    }

    fn fd<'h>(&self, file: &'h Handle) -> BorrowedFd<'h> {
        number::fd(file)
    }

    fn read_at(&self, file: Handle, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        // Only the end of the file is an end.
        pread_all(number::fd(&file), offset, buffer, 1)
    }

    fn close(&self, file: Handle) {
        number::close(file);
    }
}
