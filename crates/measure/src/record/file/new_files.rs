//! Writes several files that appear together, with a single wait for the disk.

use super::{RecordFileError, create_part_of, io_error, sync_folder};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Number of threads that sync files.
const SYNC_THREADS: usize = 8;
/// Number of open files that are synced together, well below the usual limit of descriptors.
const OPEN_FILES_MAX: usize = 256;

/// Files in a folder that appear together. Each file is written under a temporary name. [`NewFiles::publish`] syncs all files and renames
/// them; if it is not called, dropping this removes them.
pub struct NewFiles {
    folder: PathBuf,
    /// Files with their temporary names, in the order of renaming.
    written: Vec<WrittenFile>,
    /// Files that are not synced yet: the last ones of `written`.
    unsynced: Vec<File>,
}

struct WrittenFile {
    path: PathBuf,
    part: PathBuf,
}

impl NewFiles {
    /// Creates an empty set of files in a folder.
    pub fn new(folder: &Path) -> Self {
        NewFiles { folder: folder.into(), written: Vec::new(), unsynced: Vec::new() }
    }

    /// Folder of the files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a file under a temporary name. Publishing replaces an earlier file called `name`, which may contain existing folders.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), RecordFileError> {
        let path = self.folder.join(name);
        let created = create_part_of(&path).map_err(|source| io_error("write", &path, source));
        let (mut file, part) = created?;
        if let Err(source) = file.write_all(bytes) {
            let _ = fs::remove_file(&part);
            return Err(io_error("write", &path, source));
        }
        self.written.push(WrittenFile { path, part });
        self.unsynced.push(file);
        if self.unsynced.len() < OPEN_FILES_MAX { Ok(()) } else { self.sync() }
    }

    /// Syncs all files and renames them in the order in which they were written.
    ///
    /// # Errors
    /// The first failure. If a sync fails, no file is renamed.
    pub fn publish(mut self) -> Result<(), RecordFileError> {
        self.sync()?;
        for WrittenFile { path, part } in &self.written {
            fs::rename(part, path).map_err(|source| io_error("write", path, source))?;
        }
        let written = std::mem::take(&mut self.written);
        let folders: BTreeSet<&Path> =
            written.iter().filter_map(|file| file.path.parent()).collect();
        for folder in folders {
            sync_folder(folder).map_err(|source| io_error("sync", folder, source))?;
        }
        Ok(())
    }

    /// Syncs files in parallel, as concurrent syncs share a commit of the file system's journal.
    fn sync(&mut self) -> Result<(), RecordFileError> {
        let unsynced = std::mem::take(&mut self.unsynced);
        let written = &self.written[self.written.len() - unsynced.len()..];
        let files: Vec<(File, &Path)> =
            unsynced.into_iter().zip(written.iter().map(|file| &*file.path)).collect();
        let mut shares = files.chunks(files.len().div_ceil(SYNC_THREADS).max(1));
        let first = shares.next().unwrap_or_default();
        std::thread::scope(|scope| {
            let others: Vec<_> = shares
                .map(|share| {
                    let thread = std::thread::Builder::new();
                    thread.spawn_scoped(scope, || sync_each(share)).map_err(|_| share)
                })
                .collect();
            let result = sync_each(first);
            others.into_iter().fold(result, |result, other| {
                result.and(match other {
                    Ok(thread) => {
                        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                    }
                    // The thread could not be started, so its share is synced here.
                    Err(share) => sync_each(share),
                })
            })
        })
    }
}

impl Drop for NewFiles {
    fn drop(&mut self) {
        for file in &self.written {
            // Renamed files no longer exist under this name.
            let _ = fs::remove_file(&file.part);
        }
    }
}

fn sync_each(files: &[(File, &Path)]) -> Result<(), RecordFileError> {
    for (file, path) in files {
        file.sync_data().map_err(|source| io_error("sync", path, source))?;
    }
    Ok(())
}
