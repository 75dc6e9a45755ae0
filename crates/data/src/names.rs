//! The names of a dataset's files, as determined by its layout and format. Code that removes files uses these names, so
//! that other files in the folder are never touched.

use crate::content::Content;
use crate::error::DatasetError;
use crate::format::{self, FileSink, Format};
use crate::manifest::{FILE_NAME, LengthRun};
use crate::storage::{EntryKind, Storage, StorageError};
use feedrate_spec::part::final_name;
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;

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

/// The files that feedrate created in a folder that may also contain other files.
pub trait OwnFiles {
    /// The subfolders with these files, each before its own subfolders.
    fn folders(&self) -> Vec<String>;

    /// Visits every file, whether it exists or not.
    ///
    /// # Errors
    /// The first error of `visit`.
    fn visit_all(&self, visit: &mut OwnFileVisit<'_>) -> Result<(), StorageError>;

    /// Whether `path` is one of the files or a file that describes them, such as the manifest.
    fn has(&self, path: &str) -> bool;

    /// Whether `path` is the temporary file of an interrupted write of one of the files.
    fn is_unfinished(&self, path: &str) -> bool {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        final_name(name).is_some_and(|file_name| self.has(&join_path(folder, file_name)))
    }

    /// Removes the temporary files of interrupted writes and nothing else. Links are not followed.
    ///
    /// # Errors
    /// The storage failed.
    fn remove_unfinished(&self, storage: &dyn Storage) -> Result<(), StorageError> {
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
        Ok(())
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

    /// Reads the lengths of all files from the storage.
    pub(crate) fn file_lengths(&self, storage: &dyn Storage) -> Result<FileLengths, StorageError> {
        let mut found = FileLengths { bytes: 0, files: Some(Vec::new()) };
        self.visit_all(&mut |parts, _| {
            let lengths = parts.iter().map(|path| Ok(storage.stat(path)?.unwrap_or(0)));
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

    fn visit_all(&self, visit: &mut OwnFileVisit<'_>) -> Result<(), StorageError> {
        let mut path = String::new();
        let mut parts = vec![String::new(); self.format.parts.len()];
        for file in 0..self.layout.files() {
            self.layout.write_path(file, &mut path);
            for (part, part_path) in self.format.parts.iter().zip(&mut parts) {
                part.write_path(&path, part_path);
            }
            visit(&parts, None)?;
        }
        Ok(())
    }

    fn has(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let number = name.strip_prefix(&*self.plan.prefix).and_then(|rest| rest.strip_prefix('_'));
        let number = number.and_then(|rest| rest.split('_').next()?.parse::<u64>().ok());
        let Some(number) = number else { return path == FILE_NAME };
        let mut file_path = String::new();
        let mut part_path = String::new();
        // The number counts either training or evaluation files.
        [Some(number), number.checked_add(self.layout.files_train())]
            .into_iter()
            .flatten()
            .filter(|file| *file < self.layout.files())
            .any(|file| {
                self.layout.write_path(file, &mut file_path);
                self.format.parts.iter().any(|part| {
                    part.write_path(&file_path, &mut part_path);
                    part_path == path
                })
            })
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
