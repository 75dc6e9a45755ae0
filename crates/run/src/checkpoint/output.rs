//! Output files, written by system calls, through a stream of the C library (`fwrite`), as C programs do, or as objects in a store.

use feedrate_data::storage::WriteFile;
use rustix::fs::fsync;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;

/// A file that is being written.
pub(super) trait OutputFile {
    /// Appends `bytes`.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Announces bytes that will be overwritten, before they are written.
    fn hold(&mut self, _range: Range<u64>) {}

    /// Announces that held bytes are final.
    fn release(&mut self, _range: Range<u64>) {}

    /// Overwrites earlier bytes, which are held. Later bytes are still appended at the end.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Flushes buffers, and makes an object visible. Called once, after the last write.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Makes the content durable.
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

/// An object in a store. It is durable once it is visible.
pub(super) struct ObjectOutput(Option<Box<dyn WriteFile>>);

impl ObjectOutput {
    pub(super) fn new(object: Box<dyn WriteFile>) -> Self {
        ObjectOutput(Some(object))
    }

    /// The object, which exists until it is visible.
    fn object(&mut self) -> io::Result<&mut dyn WriteFile> {
        match &mut self.0 {
            Some(object) => Ok(&mut **object),
            None => Err(io::Error::other("the object is complete")),
        }
    }
}

impl OutputFile for ObjectOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.object()?.write(bytes).map_err(|error| error.source)
    }

    fn hold(&mut self, range: Range<u64>) {
        self.0.iter_mut().for_each(|object| object.hold(range.clone()));
    }

    fn release(&mut self, range: Range<u64>) {
        self.0.iter_mut().for_each(|object| object.release(range.clone()));
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.object()?.patch(offset, bytes).map_err(|error| error.source)
    }

    fn finish(&mut self) -> io::Result<()> {
        let object = self.0.take();
        object.map_or(Ok(()), |object| object.commit()).map_err(|error| error.source)
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A stream of the C library.
pub(super) struct Stream(NonNull<libc::FILE>);

impl Stream {
    /// Opens a stream that writes to `file`.
    pub(super) fn new(file: File) -> io::Result<Self> {
        let fd = file.into_raw_fd();
        // SAFETY: the descriptor is open and owned here.
        let stream = unsafe { libc::fdopen(fd, c"w".as_ptr()) };
        NonNull::new(stream).map(Stream).ok_or_else(|| {
            let error = io::Error::last_os_error();
            // SAFETY: the descriptor was not taken by a stream.
            drop(unsafe { File::from_raw_fd(fd) });
            error
        })
    }

    fn seek(&mut self, offset: i64) -> io::Result<()> {
        // SAFETY: the stream is open until it is dropped.
        check(unsafe { libc::fseeko(self.0.as_ptr(), offset, libc::SEEK_SET) })
    }
}

impl OutputFile for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: the stream is open until it is dropped, and `bytes` has the length that is passed.
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
        // `SEEK_END` would go to the end of the reserved blocks.
        self.seek(end)
    }

    fn finish(&mut self) -> io::Result<()> {
        // SAFETY: the stream is open until it is dropped.
        check(unsafe { libc::fflush(self.0.as_ptr()) })
    }

    fn sync(&mut self) -> io::Result<()> {
        // SAFETY: the stream is open until it is dropped, and its descriptor with it.
        let file = unsafe { BorrowedFd::borrow_raw(libc::fileno(self.0.as_ptr())) };
        Ok(fsync(file)?)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: it was opened in `new` and is not used after this.
        unsafe { libc::fclose(self.0.as_ptr()) };
    }
}

fn check(code: libc::c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;

    #[test]
    fn buffered_bytes_reach_the_file_or_fail() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut stream = Stream::new(File::create(&path).unwrap()).unwrap();
        for bytes in [&[0; 6000][..], b"middle", &[1; 20]] {
            stream.write(bytes).unwrap();
        }
        stream.write_at(5998, b"ab").unwrap();
        stream.write(b"end").unwrap();
        stream.finish().unwrap();
        stream.sync().unwrap();
        let expected = [&[0; 5998][..], b"abmiddle", &[1; 20], b"end"].concat();
        assert_eq!(std::fs::read(&path).unwrap(), expected);
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut stream = Stream::new(full).unwrap();
        stream.write(b"buffered").unwrap();
        assert_eq!(stream.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
