//! The files of a copy.

use super::{MANIFEST_FILE, READERS_FILE, Stage};
use crate::lock::LOCK_FILE;
use crate::manifest::FileRun;
use crate::names::{FileNames, OwnFileVisit, OwnFiles};
use crate::storage::StorageError;

/// The copy's files in its folder. Where their lengths would have been a long list, those of the dataset tell which of them are as they were
/// copied; without these none is known to be.
pub(super) struct Copies<'s> {
    pub(super) names: FileNames<'s>,
    pub(super) files: Option<Vec<FileRun>>,
    pub(super) stage: &'s Stage,
}

impl Copies<'_> {
    fn as_in_source(&self, parts: &[String]) -> FileRun {
        let lengths = parts
            .iter()
            .map(|path| self.stage.original(path).metadata().map_or(u64::MAX, |file| file.len()));
        FileRun::from_parts(&lengths.collect::<Vec<_>>())
    }
}

impl OwnFiles for Copies<'_> {
    fn folders(&self) -> Vec<String> {
        self.names.folders()
    }

    fn each(&self, visit: &mut OwnFileVisit<'_>) -> Result<(), StorageError> {
        let mut lengths = FileRun::each(self.files.as_deref());
        self.names.each(&mut |parts, _| {
            let told = self.files.is_some();
            visit(parts, if told { lengths.next() } else { Some(self.as_in_source(parts)) })
        })
    }

    fn has(&self, path: &str) -> bool {
        [LOCK_FILE, MANIFEST_FILE, READERS_FILE].contains(&path) || self.names.has(path)
    }
}
