//! A file that is written: by the system's calls, or through a stream of the C library, as C programs write, with all that is unsafe
//! about it. Knows no format.

use rustix::fs::fsync;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;

/// A file that is written.
pub(super) trait OutputFile {
    /// Append.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Change what was written.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// All is written: hand on what is still buffered.
    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Make what was written stay.
    fn sync(&mut self) -> io::Result<()>;
}

impl OutputFile for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

/// A stream of the C library.
pub(super) struct Stream(NonNull<libc::FILE>);

impl Stream {
    /// To write `file` by.
    pub(super) fn new(file: File) -> io::Result<Self> {
        let fd = file.into_raw_fd();
        // SAFETY: the descriptor is open, and nobody else's.
        let stream = unsafe { libc::fdopen(fd, c"w".as_ptr()) };
        NonNull::new(stream).map(Stream).ok_or_else(|| {
            let error = io::Error::last_os_error();
            // SAFETY: no stream has taken it.
            drop(unsafe { File::from_raw_fd(fd) });
            error
        })
    }

    fn seek(&mut self, offset: i64) -> io::Result<()> {
        // SAFETY: the stream is open until it is dropped.
        done(unsafe { libc::fseeko(self.0.as_ptr(), offset, libc::SEEK_SET) })
    }
}

impl OutputFile for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: the stream is open until it is dropped, and `bytes` has as many.
        let written =
            unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), self.0.as_ptr()) };
        if written == bytes.len() { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: the stream is open until it is dropped.
        let end = unsafe { libc::ftello(self.0.as_ptr()) };
        if end < 0 {
            return Err(io::Error::last_os_error());
        }
        self.seek(offset as i64)?;
        self.write(bytes)?;
        // The file's own end is that of the space reserved for it.
        self.seek(end)
    }

    fn end(&mut self) -> io::Result<()> {
        // SAFETY: the stream is open until it is dropped.
        done(unsafe { libc::fflush(self.0.as_ptr()) })
    }

    fn sync(&mut self) -> io::Result<()> {
        // SAFETY: the stream is open until it is dropped, and its descriptor with it.
        let file = unsafe { BorrowedFd::borrow_raw(libc::fileno(self.0.as_ptr())) };
        Ok(fsync(file)?)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: it was opened in `new`, and is used no more.
        unsafe { libc::fclose(self.0.as_ptr()) };
    }
}

fn done(code: libc::c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;

    #[test]
    fn what_is_buffered_comes_into_the_file_or_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut stream = Stream::new(File::create(&path).unwrap()).unwrap();
        for bytes in [&[0; 6000][..], b"middle", &[1; 20]] {
            stream.write(bytes).unwrap();
        }
        stream.write_at(5998, b"ab").unwrap();
        stream.write(b"end").unwrap();
        stream.end().unwrap();
        stream.sync().unwrap();
        let expected = [&[0; 5998][..], b"abmiddle", &[1; 20], b"end"].concat();
        assert_eq!(std::fs::read(&path).unwrap(), expected);
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut stream = Stream::new(full).unwrap();
        stream.write(b"buffered").unwrap();
        assert_eq!(stream.end().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
