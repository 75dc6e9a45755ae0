//! Creates and opens the files of checkpoints, independently of their format.

use super::output::{OutputFile, Stream};
use feedrate_measure::record::file::create_part_of;
use feedrate_spec::plan::WriteInterface;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Minimum length of a file with reserved blocks, which ext4 writes two to three times as fast.
const RESERVED_BYTES_MIN: u64 = 1 << 20;

/// Creates `folder` and its missing ancestors. Returns the folders that have to be synced to make `folder` durable.
pub(super) fn create_folder(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    fs::create_dir_all(folder)?;
    // The parent of a relative path may be empty. It then means the working directory.
    let parents = missing.into_iter().filter_map(Path::parent);
    Ok(parents.map(|parent| Path::new(".").join(parent)).collect())
}

/// Creates the temporary file of a file at `path` that will have `bytes` bytes. Returns the temporary path and the open file.
pub(super) fn create_part(
    path: &Path,
    bytes: u64,
    interface: WriteInterface,
) -> io::Result<(PathBuf, Box<dyn OutputFile>)> {
    let (file, part) = create_part_of(path)?;
    if bytes >= RESERVED_BYTES_MIN {
        // Without support in the file system, blocks are allocated when they are written.
        let reserved = fallocate(&file, FallocateFlags::empty(), 0, bytes);
        if reserved == Err(Errno::NOSPC) {
            let _ = fs::remove_file(&part);
            return Err(io::ErrorKind::StorageFull.into());
        }
    }
    Ok(match interface {
        WriteInterface::Posix => (part, Box::new(file)),
        WriteInterface::Stdio => (part, Box::new(Stream::new(file)?)),
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_interfaces_write_the_same_reserved_file() {
        let folder = tempfile::tempdir().unwrap();
        let reserved_bytes = RESERVED_BYTES_MIN as usize;
        for interface in [WriteInterface::Posix, WriteInterface::Stdio] {
            let path = folder.path().join("file");
            let (part, mut file) = create_part(&path, RESERVED_BYTES_MIN, interface).unwrap();
            file.write(&vec![1; reserved_bytes - 10]).unwrap();
            file.write_at(5, &[2; 3]).unwrap();
            file.write(&[3; 10]).unwrap();
            file.finish().unwrap();
            let expected = [&[1; 5][..], &[2; 3], &vec![1; reserved_bytes - 18], &[3; 10]].concat();
            assert!(fs::read(part).unwrap() == expected, "{interface:?}");
        }
    }
}
