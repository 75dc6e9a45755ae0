//! Files that all ranks read together, by number.

use super::files::{MpiFile, MpiFiles};
use crate::comm::{CommError, SharedFiles};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) struct Numbered {
    files: MpiFiles,
    /// One thread uses it: nobody waits for it.
    open: Mutex<Vec<Option<MpiFile>>>,
}

impl Numbered {
    pub(super) fn new(files: MpiFiles) -> Self {
        Numbered { files, open: Mutex::default() }
    }

    fn open_files(&self) -> MutexGuard<'_, Vec<Option<MpiFile>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedFiles for Numbered {
    fn open(&self, path: &Path) -> Result<u64, CommError> {
        let file = self.files.open(path)?;
        let mut open = self.open_files();
        let free = open.iter().position(Option::is_none).unwrap_or(open.len());
        if free == open.len() {
            open.push(None);
        }
        open[free] = Some(file);
        Ok(free as u64)
    }

    fn read_at_all(&self, file: u64, offset: u64, bytes: &mut [u8]) -> Result<usize, CommError> {
        match self.open_files().get(file as usize) {
            Some(Some(file)) => file.read_at_all(offset, bytes),
            _ => Err(closed("MPI_File_read_at_all")),
        }
    }

    fn close(&self, file: u64) -> Result<(), CommError> {
        let file = self.open_files().get_mut(file as usize).and_then(Option::take);
        file.ok_or_else(|| closed("MPI_File_close"))?.close()
    }
}

fn closed(call: &'static str) -> CommError {
    CommError::Library { call, reason: "the file is not open".to_owned() }
}
