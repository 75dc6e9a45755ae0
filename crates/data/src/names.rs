//! The files of a dataset by their names: those that its layout and its format say, and nothing else.

use crate::format::{self, Format};
use crate::manifest::FILE_NAME;
use crate::storage::{Storage, StorageError, part_of};
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;

/// The names of one dataset.
#[derive(Clone, Copy)]
pub(crate) struct Names<'n> {
    pub(crate) plan: &'n DatasetPlan,
    pub(crate) layout: &'n Layout,
    pub(crate) format: &'static dyn Format,
}

impl<'n> Names<'n> {
    /// `None` where there is no such format.
    pub(crate) fn new(plan: &'n DatasetPlan, layout: &'n Layout) -> Option<Self> {
        Some(Names { plan, layout, format: format::find(&plan.format)? })
    }

    /// All that files and their parts lie in, each before those inside it.
    pub(crate) fn folders(&self) -> Vec<String> {
        let mut folders = self.layout.folders();
        for part in self.format.parts().iter().filter(|part| !part.folder.is_empty()) {
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
            for part in self.format.parts() {
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
                self.format.parts().iter().any(|part| {
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
        for name in storage.list("")?.iter().filter(|name| self.has_unfinished(name)) {
            storage.remove(name)?;
        }
        for folder in self.folders() {
            for name in storage.list(&folder)? {
                let path = format!("{folder}/{name}");
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
