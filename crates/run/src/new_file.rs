//! Output files that get their final name only when they are complete. A file that is never completed is removed. An existing file is
//! never replaced.

use feedrate_measure::record::file::create_part_of;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// A file that is written under a temporary name and renamed when it is complete.
pub struct NewFile {
    pub(crate) file: PathBuf,
    pub(crate) part: PathBuf,
    /// Open for writing.
    pub(crate) output: File,
}

impl NewFile {
    /// Creates the temporary file beside `file`.
    ///
    /// # Errors
    /// `file` exists already, or the temporary file cannot be created.
    pub fn create(file: &Path) -> io::Result<Self> {
        refuse_existing(file)?;
        let (output, part) = create_part_of(file)?;
        Ok(NewFile { file: file.into(), part, output })
    }

    /// Renames the file to its final name. Fails if a file of this name exists now.
    pub(crate) fn persist(&self) -> io::Result<()> {
        let renamed = renameat_with(CWD, &self.part, CWD, &self.file, RenameFlags::NOREPLACE);
        match renamed {
            // The file system does not support `RENAME_NOREPLACE`.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                refuse_existing(&self.file)?;
                fs::rename(&self.part, &self.file)
            }
            renamed => Ok(renamed?),
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.part);
    }
}

fn refuse_existing(file: &Path) -> io::Result<()> {
    match file.symlink_metadata() {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => Ok(()),
    }
}
