//! The names of a dataset's files, as determined by its layout and format. Code that removes files uses these names, so
//! that other files in the folder are never touched.

use crate::content::Content;
use crate::error::DatasetError;
use crate::format::{self, FileSink, Format};
use crate::manifest::{FILE_NAME, LengthRun};
use crate::storage::{EntryKind, Storage, StorageError, UploadAction, list_lengths};
use feedrate_spec::part::final_name;
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;
use std::collections::HashMap;

/// Current lengths of a dataset's files. Missing files count as empty.
pub(crate) struct FileLengths {
    /// Length of all files.
    pub(crate) bytes: u64,
    /// Lengths in the order of the files; `None` if the list would be long.
    pub(crate) files: Option<Vec<LengthRun>>,
}

/// Receives the paths of a file's parts, and the lengths with which feedrate wrote them, if known.
pub type OwnFileVisit<'v> =
    dyn FnMut(&[String], Option<LengthRun>) -> Result<(), StorageError> + 'v;

/// Which files to visit.
#[derive(Clone, Copy)]
pub enum VisitedFiles<'s> {
    /// All files, whether they exist or not.
    All,
    /// The files that exist on this storage, and possibly others.
    Existing(&'s dyn Storage),
}

/// The files that feedrate created in a folder that may also contain other files.
pub trait OwnFiles {
    /// The subfolders with these files, each before its own subfolders.
    fn folders(&self) -> Vec<String>;

    /// Visits files, always in the same order.
    ///
    /// # Errors
    /// The first error of `visit`, or the storage failed.
    fn visit(
        &self,
        files: VisitedFiles<'_>,
        visit: &mut OwnFileVisit<'_>,
    ) -> Result<(), StorageError>;

    /// Whether `path` is one of the files or a file that describes them, such as the manifest.
    fn has(&self, path: &str) -> bool;

    /// Whether `path` is the temporary file of an interrupted write of one of the files.
    fn is_unfinished(&self, path: &str) -> bool {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        final_name(name).is_some_and(|file_name| self.has(&join_path(folder, file_name)))
    }

    /// Removes the temporary files and the uploads of interrupted writes and nothing else, and returns the number of uploads. Links are not
    /// followed.
    ///
    /// # Errors
    /// The storage failed.
    fn remove_unfinished(&self, storage: &dyn Storage) -> Result<u64, StorageError> {
        let folders = self.folders();
        let linked = linked_folders(&folders, storage)?;
        let real = folders.iter().filter(|folder| !is_inside(folder, &linked));
        for folder in real.map(String::as_str).chain([""]) {
            for path in storage.list(folder)?.iter().map(|name| join_path(folder, name)) {
                if self.is_unfinished(&path)
                    && matches!(storage.kind(&path)?, Some(EntryKind::File { .. }))
                {
                    storage.remove(&path)?;
                }
            }
        }
        storage.unfinished_uploads(UploadAction::Abort, &|path| self.has(path))
    }
}

/// The paths among `folders` that are links or other non-folders. Links may lead to foreign files.
pub(crate) fn linked_folders(
    folders: &[String],
    storage: &dyn Storage,
) -> Result<Vec<String>, StorageError> {
    let mut linked = Vec::new();
    for folder in folders {
        if !is_inside(folder, &linked)
            && !matches!(storage.kind(folder)?, None | Some(EntryKind::Folder))
        {
            linked.push(folder.clone());
        }
    }
    Ok(linked)
}

/// Whether `path` is one of `folders` or inside one of them.
pub(crate) fn is_inside(path: &str, folders: &[String]) -> bool {
    folders.iter().any(|folder| {
        path.strip_prefix(&**folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// The path of a name in a folder, where `""` is the root.
pub(crate) fn join_path(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_string() } else { format!("{folder}/{name}") }
}

/// The file names of one dataset.
#[derive(Clone, Copy)]
pub(crate) struct FileNames<'n> {
    pub(crate) plan: &'n DatasetPlan,
    pub(crate) layout: &'n Layout,
    pub(crate) format: &'static Format,
}

impl<'n> FileNames<'n> {
    pub(crate) fn new(plan: &'n DatasetPlan, layout: &'n Layout) -> Result<Self, DatasetError> {
        let format = format::find(&plan.format);
        let format = format.ok_or_else(|| DatasetError::NoFormat(plan.format.clone()))?;
        Ok(FileNames { plan, layout, format })
    }

    /// Writes dataset file number `file` to `sink`.
    pub(crate) fn encode(
        &self,
        file: u64,
        content: &mut Content,
        sink: &mut dyn FileSink,
    ) -> Result<(), StorageError> {
        content.select_file(file);
        (self.format.encode)(&self.layout.shape(file), &self.plan.encoding, content, sink)
    }

    /// The numbers of the files of which a part exists, in ascending order. The folders are listed, because a manifest may claim
    /// far more files than there are.
    pub(crate) fn existing_files(&self, storage: &dyn Storage) -> Result<Vec<u64>, StorageError> {
        let mut files = Vec::new();
        for folder in &self.folders() {
            let names = match storage.kind(folder)? {
                // Storages without folders have files below the path.
                Some(EntryKind::Folder) | None => storage.list(folder)?,
                // It may be a link to a folder.
                Some(EntryKind::Other) => storage.list(folder).unwrap_or_default(),
                Some(EntryKind::File { .. }) => continue,
            };
            files.extend(names.iter().filter_map(|name| self.number_of(&join_path(folder, name))));
        }
        files.sort_unstable();
        files.dedup();
        Ok(files)
    }

    /// The numbers of the files to visit, in ascending order.
    pub(crate) fn numbers(
        &self,
        files: VisitedFiles<'_>,
    ) -> Result<Box<dyn Iterator<Item = u64>>, StorageError> {
        Ok(match files {
            VisitedFiles::All => Box::new(0..self.layout.files()),
            VisitedFiles::Existing(storage) => Box::new(self.existing_files(storage)?.into_iter()),
        })
    }

    /// The bytes of all files that exist.
    pub(crate) fn existing_bytes(&self, storage: &dyn Storage) -> Result<u64, StorageError> {
        let mut bytes = 0_u64;
        self.visit(VisitedFiles::Existing(storage), &mut |parts, _| {
            for path in parts {
                bytes = bytes.saturating_add(storage.stat(path)?.unwrap_or(0));
            }
            Ok(())
        })?;
        Ok(bytes)
    }

    /// The number of the file of which `path` is a part.
    fn number_of(&self, path: &str) -> Option<u64> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let rest = name.strip_prefix(&*self.plan.prefix)?.strip_prefix('_')?;
        let number: u64 = rest.split('_').next()?.parse().ok()?;
        let mut file_path = String::new();
        let mut part_path = String::new();
        // The number in the name counts either training or evaluation files.
        let numbers = [Some(number), number.checked_add(self.layout.files_train())];
        numbers.into_iter().flatten().filter(|file| *file < self.layout.files()).find(|file| {
            self.layout.write_path(*file, &mut file_path);
            self.format.parts.iter().any(|part| {
                part.write_path(&file_path, &mut part_path);
                part_path == path
            })
        })
    }

    /// Calls `visit` with the number and the paths of each of `files`.
    pub(crate) fn visit_files(
        &self,
        files: impl IntoIterator<Item = u64>,
        mut visit: impl FnMut(u64, &[String]) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let mut path = String::new();
        let mut parts = vec![String::new(); self.format.parts.len()];
        for file in files {
            self.layout.write_path(file, &mut path);
            for (part, part_path) in self.format.parts.iter().zip(&mut parts) {
                part.write_path(&path, part_path);
            }
            visit(file, &parts)?;
        }
        Ok(())
    }

    /// Reads the lengths of all files from the storage.
    pub(crate) fn file_lengths(&self, storage: &dyn Storage) -> Result<FileLengths, StorageError> {
        let mut found = FileLengths { bytes: 0, files: Some(Vec::new()) };
        let mut listed = HashMap::new();
        for folder in self.folders() {
            let lengths = list_lengths(storage, &folder)?.unwrap_or_default();
            listed.extend(lengths.into_iter().map(|(name, len)| (join_path(&folder, &name), len)));
        }
        self.visit(VisitedFiles::All, &mut |parts, _| {
            let length = |path: &String| match listed.get(path) {
                Some(bytes) => Ok(*bytes),
                None => Ok(storage.stat(path)?.unwrap_or(0)),
            };
            let lengths = parts.iter().map(length);
            let run = LengthRun::from_parts(&lengths.collect::<Result<Vec<_>, StorageError>>()?);
            found.bytes = found.bytes.saturating_add(run.bytes);
            LengthRun::push(&mut found.files, run);
            Ok(())
        })?;
        Ok(found)
    }
}

impl OwnFiles for FileNames<'_> {
    fn folders(&self) -> Vec<String> {
        let mut folders = self.layout.folders();
        for part in self.format.parts.iter().filter(|part| !part.folder.is_empty()) {
            folders.push(part.folder.to_string());
            folders.extend(["train", "valid"].map(|split| format!("{}/{split}", part.folder)));
        }
        folders
    }

    fn visit(
        &self,
        files: VisitedFiles<'_>,
        visit: &mut OwnFileVisit<'_>,
    ) -> Result<(), StorageError> {
        self.visit_files(self.numbers(files)?, |_, parts| visit(parts, None))
    }

    fn has(&self, path: &str) -> bool {
        path == FILE_NAME || self.number_of(path).is_some()
    }
}

/// The first file in `folders`.
pub(crate) fn first_file_in(
    storage: &dyn Storage,
    folders: &[String],
) -> Result<Option<String>, StorageError> {
    for folder in folders {
        let mut paths = storage.list(folder)?.into_iter().map(|name| join_path(folder, &name));
        if let Some(path) = paths.find(|path| !folders.contains(path)) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}
