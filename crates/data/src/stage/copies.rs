//! The files of a staged copy, as named by the dataset's plan.

use super::{MANIFEST_FILE, READERS_FILE, Stage};
use crate::lock::LOCK_FILE;
use crate::manifest::LengthRun;
use crate::names::{FileNames, OwnFileVisit, OwnFiles, VisitedFiles};
use crate::storage::StorageError;

/// The files of a copy. If the manifest does not list their lengths, they are compared with the dataset's files; a copy of
/// a missing file counts as changed.
pub(super) struct Copies<'s> {
    pub(super) names: FileNames<'s>,
    pub(super) files: Option<Vec<LengthRun>>,
    pub(super) stage: &'s Stage,
}

impl Copies<'_> {
    fn source_lengths(&self, parts: &[String]) -> LengthRun {
        let lengths = parts.iter().map(|path| {
            self.stage.source_path(path).metadata().map_or(u64::MAX, |file| file.len())
        });
        LengthRun::from_parts(&lengths.collect::<Vec<_>>())
    }
}

impl OwnFiles for Copies<'_> {
    fn folders(&self) -> Vec<String> {
        self.names.folders()
    }

    fn visit(
        &self,
        files: VisitedFiles<'_>,
        visit: &mut OwnFileVisit<'_>,
    ) -> Result<(), StorageError> {
        let mut listed = LengthRun::finder(self.files.as_deref());
        let is_listed = self.files.is_some();
        self.names.visit_files(self.names.numbers(files)?, |file, parts| {
            visit(parts, if is_listed { listed(file) } else { Some(self.source_lengths(parts)) })
        })
    }

    fn has(&self, path: &str) -> bool {
        [LOCK_FILE, MANIFEST_FILE, READERS_FILE].contains(&path) || self.names.has(path)
    }
}
