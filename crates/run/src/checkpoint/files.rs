//! The operations of a file system that a checkpoint needs: few, so that tests can be a storage that loses power.
//! Shared by all that touch a checkpoint's files. Knows no format.

use super::output::{OutputFile, Stream};
use feedrate_data::storage::NameKind;
use feedrate_measure::record::file::create_part_of;
use feedrate_spec::plan::WriteInterface;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Files from this length on have their blocks reserved: ext4 writes two to three times as fast then.
const RESERVED_BYTES_MIN: u64 = 1 << 20;

/// A file system.
pub(super) trait FileSystem: Sync {
    /// Make `folder` and those above it. Returns the folders that have to be synced for it to stay.
    fn create_folder(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;

    /// Space for files below `folder`.
    fn free_bytes(&self, folder: &Path) -> io::Result<u64>;

    /// An empty file that will have `bytes` bytes, under a name of its own until it gets `path`.
    fn create_part(
        &self,
        path: &Path,
        bytes: u64,
        interface: WriteInterface,
    ) -> io::Result<(PathBuf, Box<dyn OutputFile>)>;

    /// Names in a folder; none where it is not there.
    fn list(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// A file that is there, from its start, and its length. What is no file has none, and is not waited for.
    fn open(&self, path: &Path) -> io::Result<(Box<dyn Read>, u64)>;

    /// Kind of what has this name, links not followed; `None` where nothing has.
    fn kind(&self, path: &Path) -> io::Result<Option<NameKind>>;

    /// Give a file another name; whoever had that is gone.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Remove a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Remove a folder, unless something is in it, or it is a mount point.
    fn remove_empty_folder(&self, folder: &Path) -> io::Result<()>;

    /// Make the names in a folder stay as they are.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// The system's.
pub(super) struct SystemFiles;

impl FileSystem for SystemFiles {
    fn create_folder(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let missing: Vec<&Path> = folder.ancestors().take_while(|above| !above.exists()).collect();
        fs::create_dir_all(folder)?;
        // A relative path ends in nothing, which is the folder we are in.
        let above = missing.into_iter().filter_map(Path::parent);
        Ok(above.map(|above| Path::new(".").join(above)).collect())
    }

    fn free_bytes(&self, folder: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(folder)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn create_part(
        &self,
        path: &Path,
        bytes: u64,
        interface: WriteInterface,
    ) -> io::Result<(PathBuf, Box<dyn OutputFile>)> {
        let (file, part) = create_part_of(path)?;
        if bytes >= RESERVED_BYTES_MIN {
            // Where the file system has no such thing, blocks are found as they are written.
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

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn open(&self, path: &Path) -> io::Result<(Box<dyn Read>, u64)> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        Ok((Box::new(file), found.len()))
    }

    fn kind(&self, path: &Path) -> io::Result<Option<NameKind>> {
        NameKind::of_path(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_empty_folder(&self, folder: &Path) -> io::Result<()> {
        match fs::remove_dir(folder) {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::DirectoryNotEmpty
                        | io::ErrorKind::NotFound
                        | io::ErrorKind::ResourceBusy
                ) =>
            {
                Ok(())
            }
            done => done,
        }
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_file_is_the_same_by_each_interface() {
        let folder = tempfile::tempdir().unwrap();
        let most = RESERVED_BYTES_MIN as usize;
        for interface in [WriteInterface::Posix, WriteInterface::Stdio] {
            let path = folder.path().join("file");
            let (part, mut file) =
                SystemFiles.create_part(&path, RESERVED_BYTES_MIN, interface).unwrap();
            file.write(&vec![1; most - 10]).unwrap();
            file.write_at(5, &[2; 3]).unwrap();
            file.write(&[3; 10]).unwrap();
            file.end().unwrap();
            let expected = [&[1; 5][..], &[2; 3], &vec![1; most - 18], &[3; 10]].concat();
            assert!(fs::read(part).unwrap() == expected, "{interface:?}");
        }
    }
}
