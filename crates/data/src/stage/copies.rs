//! The files of a staged copy, as named by the dataset's plan.

use super::{MANIFEST_FILE, READERS_FILE, Stage};
use crate::lock::LOCK_FILE;
use crate::manifest::FileRun;
use crate::names::{FileNames, OwnFileVisit, OwnFiles};
use crate::storage::StorageError;

/// The copy's files in its folder. If the manifest does not list their lengths, the lengths of the dataset's files show
/// which copies are unchanged. If the dataset's files are missing, no copy counts as unchanged.
pub(super) struct Copies<'s> {
    pub(super) names: FileNames<'s>,
    pub(super) files: Option<Vec<FileRun>>,
    pub(super) stage: &'s Stage,
}

impl Copies<'_> {
    fn source_lengths(&self, parts: &[String]) -> FileRun {
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
            let is_listed = self.files.is_some();
            visit(parts, if is_listed { lengths.next() } else { Some(self.source_lengths(parts)) })
        })
    }

    fn has(&self, path: &str) -> bool {
        [LOCK_FILE, MANIFEST_FILE, READERS_FILE].contains(&path) || self.names.has(path)
    }
}
