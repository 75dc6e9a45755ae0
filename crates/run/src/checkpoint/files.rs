//! Creates and opens the files of checkpoints, independently of their format.

use super::output::{ObjectOutput, OutputFile, Stream};
use crate::buffer::AlignedBuffer;
use feedrate_data::storage::Storage;
use feedrate_measure::record::file::create_part_of;
use feedrate_spec::plan::WriteInterface;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Minimum length of a file with reserved blocks, which ext4 writes two to three times as fast.
const RESERVED_BYTES_MIN: u64 = 1 << 20;
/// Bytes that are read and checksummed at a time; few enough to stay in a core's cache.
const READ_BYTES: usize = 512 << 10;

/// Creates `folder` and its missing ancestors. Returns the folders that have to be synced to make `folder` durable.
pub(super) fn create_folder(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    fs::create_dir_all(folder)?;
    // The parent of a relative path may be empty. It then means the working directory.
    let parents = missing.into_iter().filter_map(Path::parent);
    Ok(parents.map(|parent| Path::new(".").join(parent)).collect())
}

/// A file that is being written. It has a temporary name until it is committed; an object is invisible until then.
pub(super) struct NewFile {
    pub(super) output: Box<dyn OutputFile>,
    /// Temporary path of a file in a folder.
    part: Option<PathBuf>,
}

impl NewFile {
    /// Creates a file at `path` that will have `bytes` bytes.
    pub(super) fn in_folder(
        path: &Path,
        bytes: u64,
        interface: WriteInterface,
    ) -> io::Result<Self> {
        let (file, part) = create_part_of(path)?;
        if bytes >= RESERVED_BYTES_MIN {
            // Without support in the file system, blocks are allocated when they are written.
            let reserved = fallocate(&file, FallocateFlags::empty(), 0, bytes);
            if reserved == Err(Errno::NOSPC) {
                let _ = fs::remove_file(&part);
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        let output: Box<dyn OutputFile> = match interface {
            WriteInterface::Posix => Box::new(file),
            WriteInterface::Stdio => Box::new(Stream::new(file)?),
        };
        Ok(NewFile { output, part: Some(part) })
    }

    /// Creates an object.
    pub(super) fn in_store(storage: &dyn Storage, path: &str) -> io::Result<Self> {
        let object = storage.create(path).map_err(super::object::io_error)?;
        Ok(NewFile { output: Box::new(ObjectOutput::new(object)), part: None })
    }

    /// Gives the file its name. Called after [`OutputFile::finish`].
    pub(super) fn commit(mut self, path: &Path) -> io::Result<()> {
        if let Some(part) = &self.part {
            fs::rename(part, path)?;
        }
        self.part = None;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // The error that prevented the commit is the one to report.
            let _ = fs::remove_file(part);
        }
    }
}

/// Opens a regular file for reading and returns it with its length. Other kinds of files are refused; opening a pipe does not block.
pub(super) fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok((file, metadata.len()))
}

/// Reads `input` to its end, and calls `consume` with each piece.
pub(super) fn read_all(mut input: impl Read, mut consume: impl FnMut(&[u8])) -> io::Result<()> {
    let mut buffer = AlignedBuffer::new(READ_BYTES)?;
    let piece = buffer.aligned_like(0, READ_BYTES);
    loop {
        match input.read(piece)? {
            0 => return Ok(()),
            bytes => consume(&piece[..bytes]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_interfaces_write_the_same_reserved_file() {
        let folder = tempfile::tempdir().unwrap();
        let reserved_bytes = RESERVED_BYTES_MIN as usize;
        for interface in [WriteInterface::Posix, WriteInterface::Stdio] {
            let path = folder.path().join("file");
            let mut file = NewFile::in_folder(&path, RESERVED_BYTES_MIN, interface).unwrap();
            file.output.write(&vec![1; reserved_bytes - 10]).unwrap();
            file.output.write_at(5, &[2; 3]).unwrap();
            file.output.write(&[3; 10]).unwrap();
            file.output.finish().unwrap();
            file.commit(&path).unwrap();
            let expected = [&[1; 5][..], &[2; 3], &vec![1; reserved_bytes - 18], &[3; 10]].concat();
            assert!(fs::read(path).unwrap() == expected, "{interface:?}");
        }
    }
}
