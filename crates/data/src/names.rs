//! The files of a dataset by their names: those that its layout and its format say, and nothing else.

use crate::content::Content;
use crate::error::DatasetError;
use crate::format::{self, FileSink, Format};
use crate::manifest::FILE_NAME;
use crate::storage::{Storage, StorageError};
use feedrate_spec::part::part_of;
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;

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

    /// Bytes of all files that are there.
    pub(crate) fn bytes_there(&self, storage: &dyn Storage) -> Result<u64, StorageError> {
        let mut bytes = 0u64;
        self.each(|path| {
            bytes = bytes.saturating_add(storage.stat(path)?.unwrap_or(0));
            Ok(())
        })?;
        Ok(bytes)
    }

    /// All that files and their parts lie in, each before those inside it.
    pub(crate) fn folders(&self) -> Vec<String> {
        let mut folders = self.layout.folders();
        for part in self.format.parts.iter().filter(|part| !part.folder.is_empty()) {
            folders.push(part.folder.to_string());
            folders.extend(["train", "valid"].map(|split| format!("{}/{split}", part.folder)));
        }
        folders
    }

    /// Call `each` with the path of every file, its parts by themselves.
    pub(crate) fn each(
        &self,
        mut visit: impl FnMut(&str) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let (mut path, mut part_path) = (String::new(), String::new());
        for file in 0..self.layout.files() {
            self.layout.write_path(file, &mut path);
            for part in self.format.parts {
                part.write_path(&path, &mut part_path);
                visit(&part_path)?;
            }
        }
        Ok(())
    }

    /// Whether it is a file of the dataset.
    pub(crate) fn has(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let number = name.strip_prefix(&*self.plan.prefix).and_then(|rest| rest.strip_prefix('_'));
        let number = number.and_then(|rest| rest.split('_').next()?.parse::<u64>().ok());
        let Some(number) = number else { return false };
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

    /// Whether it is a file of the dataset, or of its manifest, whose writing was broken off.
    pub(crate) fn has_unfinished(&self, path: &str) -> bool {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let Some(whole) = part_of(name) else { return false };
        match folder {
            "" => whole == FILE_NAME,
            _ => self.has(&format!("{folder}/{whole}")),
        }
    }

    /// Remove files whose writing was broken off, and nothing else.
    pub(crate) fn sweep(&self, storage: &dyn Storage) -> Result<(), StorageError> {
        for folder in self.folders().iter().map(String::as_str).chain([""]) {
            for name in storage.list(folder)? {
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                if self.has_unfinished(&path) {
                    storage.remove(&path)?;
                }
            }
        }
        Ok(())
    }
}

/// A file in `folders` that is not `own`.
pub(crate) fn first_stranger(
    storage: &dyn Storage,
    folders: &[String],
    own: impl Fn(&str) -> bool,
) -> Result<Option<String>, StorageError> {
    for folder in folders {
        let paths = storage.list(folder)?.into_iter().map(|name| format!("{folder}/{name}"));
        let mut strangers = paths.filter(|path| !folders.contains(path) && !own(path));
        if let Some(path) = strangers.next() {
            return Ok(Some(path));
        }
    }
    Ok(None)
}
