//! The files of a dataset by their names: those that its layout and its format say, and nothing else.

use crate::content::Content;
use crate::error::DatasetError;
use crate::format::{self, FileSink, Format};
use crate::manifest::{FILE_NAME, FileRun};
use crate::storage::{NameKind, Storage, StorageError};
use feedrate_spec::part::final_name;
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;

/// Lengths of a dataset's files; one that is not there has none.
pub(crate) struct LengthsThere {
    pub(crate) bytes: u64,
    /// In the order of the files; `None` where they are of too many lengths.
    pub(crate) files: Option<Vec<FileRun>>,
}

/// Calls with the paths of a file's parts, and its lengths where these are known.
pub type OwnFileVisit<'v> = dyn FnMut(&[String], Option<FileRun>) -> Result<(), StorageError> + 'v;

/// Files of ours in a folder where others may lie too.
pub trait OwnFiles {
    /// All that they lie in but the folder itself, each before those inside it.
    fn folders(&self) -> Vec<String>;

    /// Visit every file, be it there or not.
    ///
    /// # Errors
    /// The first of `visit`.
    fn each(&self, visit: &mut OwnFileVisit<'_>) -> Result<(), StorageError>;

    /// Whether it is one of them, or what says whose they are.
    fn has(&self, path: &str) -> bool;

    /// Whether it is left of the writing of one of them, which was broken off.
    fn has_unfinished(&self, path: &str) -> bool {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        final_name(name).is_some_and(|whole| self.has(&join(folder, whole)))
    }

    /// Remove files whose writing was broken off, and nothing else. Links are not followed.
    ///
    /// # Errors
    /// The storage refused.
    fn sweep(&self, storage: &dyn Storage) -> Result<(), StorageError> {
        let folders = self.folders();
        let closed = closed(&folders, storage)?;
        let open = folders.iter().filter(|folder| !lies_in(folder, &closed));
        for folder in open.map(String::as_str).chain([""]) {
            for path in storage.list(folder)?.iter().map(|name| join(folder, name)) {
                if self.has_unfinished(&path)
                    && matches!(storage.kind(&path)?, Some(NameKind::File { .. }))
                {
                    storage.remove(&path)?;
                }
            }
        }
        Ok(())
    }
}

/// Those of `folders` that are none: links, which lead to what others have.
pub(crate) fn closed(
    folders: &[String],
    storage: &dyn Storage,
) -> Result<Vec<String>, StorageError> {
    let mut closed = Vec::new();
    for folder in folders {
        if !lies_in(folder, &closed)
            && !matches!(storage.kind(folder)?, None | Some(NameKind::Folder))
        {
            closed.push(folder.clone());
        }
    }
    Ok(closed)
}

/// Whether `path` is one of `folders`, or in one of them.
pub(crate) fn lies_in(path: &str, folders: &[String]) -> bool {
    folders.iter().any(|folder| {
        path.strip_prefix(&**folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// The path of a name in a folder, where `""` is the root.
pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_string() } else { format!("{folder}/{name}") }
}

/// The names of one dataset.
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

    /// Write file number `file`, whose content the thread of `content` makes.
    pub(crate) fn encode(
        &self,
        file: u64,
        content: &mut Content,
        sink: &mut dyn FileSink,
    ) -> Result<(), StorageError> {
        content.start(file);
        (self.format.encode)(&self.layout.shape(file), &self.plan.encoding, content, sink)
    }

    /// Look at the lengths of all files, once each.
    pub(crate) fn lengths_there(
        &self,
        storage: &dyn Storage,
    ) -> Result<LengthsThere, StorageError> {
        let mut there = LengthsThere { bytes: 0, files: Some(Vec::new()) };
        self.each(&mut |parts, _| {
            let lengths = parts.iter().map(|path| Ok(storage.stat(path)?.unwrap_or(0)));
            let run = FileRun::from_parts(&lengths.collect::<Result<Vec<_>, StorageError>>()?);
            there.bytes = there.bytes.saturating_add(run.bytes);
            FileRun::push(&mut there.files, run);
            Ok(())
        })?;
        Ok(there)
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

    fn each(&self, visit: &mut OwnFileVisit<'_>) -> Result<(), StorageError> {
        let (mut path, mut parts) = (String::new(), vec![String::new(); self.format.parts.len()]);
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
        let (mut file_path, mut part_path) = (String::new(), String::new());
        // Of training, or of evaluation.
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

/// A file in one of `folders`.
pub(crate) fn first_in(
    storage: &dyn Storage,
    folders: &[String],
) -> Result<Option<String>, StorageError> {
    for folder in folders {
        let mut paths = storage.list(folder)?.into_iter().map(|name| join(folder, &name));
        if let Some(path) = paths.find(|path| !folders.contains(path)) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}
