//! A file that gets its name once it is whole, and is gone where nothing comes of it. None that is there is replaced.

use feedrate_measure::record::file::create_part_of;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// A file under another name until it is whole.
pub struct NewFile {
    pub(crate) file: PathBuf,
    pub(crate) part: PathBuf,
    /// To write it by.
    pub(crate) output: File,
}

impl NewFile {
    /// Take the place of `file`.
    ///
    /// # Errors
    /// It is there already, or cannot be made.
    pub fn create(file: &Path) -> io::Result<Self> {
        refuse_there(file)?;
        let (output, part) = create_part_of(file)?;
        Ok(NewFile { file: file.into(), part, output })
    }

    /// Give the file its name, which nobody else has taken meanwhile.
    pub(crate) fn name(&self) -> io::Result<()> {
        let named = renameat_with(CWD, &self.part, CWD, &self.file, RenameFlags::NOREPLACE);
        match named {
            // File systems that cannot tell.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                refuse_there(&self.file)?;
                fs::rename(&self.part, &self.file)
            }
            named => Ok(named?),
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.part);
    }
}

fn refuse_there(file: &Path) -> io::Result<()> {
    match file.symlink_metadata() {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => Ok(()),
    }
}
