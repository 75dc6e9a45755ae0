//! Walks the folders of a foreign dataset.

use super::Listing;
use super::collector::{Collector, Folder};
use crate::folder;
use crate::storage::StorageError;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

/// Number of names in a folder that are sorted together.
const SORTED_NAMES: usize = 1 << 20;

/// Lists all files below the root of a file system. Links to files and folders are followed; each folder is listed once.
///
/// # Errors
/// The root cannot be read, or the index cannot be written.
pub(super) fn list_folders(collector: Collector<'_>) -> Result<Listing, StorageError> {
    let mut walk =
        FolderWalk { collector, seen: HashSet::new(), chunk: Vec::new(), text: String::new() };
    let mut folders = vec![Folder::root()];
    while let Some(folder) = folders.pop() {
        walk.list_folder(folder, &mut folders)?;
    }
    Ok(walk.collector.listing)
}

struct FolderWalk<'s> {
    collector: Collector<'s>,
    /// Device and inode of the folders that have been listed.
    seen: HashSet<(u64, u64)>,
    /// Names in the current folder that have not been sorted and written yet.
    chunk: Vec<ListedName>,
    /// Text of the names in `chunk`.
    text: String,
}

struct ListedName {
    /// Range of the name in [`FolderWalk::text`].
    start: u32,
    end: u32,
    bytes: u64,
    /// Group and purpose, in the upper bits of an entry.
    group_and_purpose: u64,
}

impl FolderWalk<'_> {
    /// Lists the files of one folder and pushes its subfolders to `folders`.
    fn list_folder(
        &mut self,
        mut folder: Folder,
        folders: &mut Vec<Folder>,
    ) -> Result<(), StorageError> {
        let path = self.collector.root.join(&folder.path);
        let list_error = |error: io::Error| StorageError::new("list", &path, error);
        let opened = fs::metadata(&path).and_then(|found| Ok((found, folder::entries(&path)?)));
        let (found, entries) = match opened {
            Err(_) if !folder.path.is_empty() => {
                self.collector.skip("unreadable folder");
                return Ok(());
            }
            opened => opened.map_err(list_error)?,
        };
        if !self.seen.insert((found.dev(), found.ino())) {
            return Ok(());
        }
        let mut subfolders = Vec::new();
        for entry in entries {
            let Ok(name) = entry.map_err(list_error)?.into_string() else {
                self.collector.skip("name not in UTF-8");
                continue;
            };
            if !self.collector.accepts(&folder.path, &name) {
                continue;
            }
            match fs::metadata(path.join(&name)) {
                Ok(metadata) if metadata.is_dir() => subfolders.push(name),
                Ok(metadata) if metadata.is_file() => {
                    self.add_file(&mut folder, &name, metadata.len())?
                }
                Ok(_) => self.collector.skip("not a regular file"),
                Err(_) => self.collector.skip("broken link"),
            }
        }
        self.flush(&folder.path)?;
        // `folders` is a stack, so the first subfolder is pushed last.
        subfolders.sort_unstable_by_key(|name| Reverse(name.clone()));
        folders.extend(subfolders.iter().map(|name| folder.child(name)));
        Ok(())
    }

    fn add_file(
        &mut self,
        folder: &mut Folder,
        name: &str,
        bytes: u64,
    ) -> Result<(), StorageError> {
        let Some(group_and_purpose) = self.collector.count(folder, name, bytes)? else {
            return Ok(());
        };
        let start = self.text.len() as u32;
        self.text.push_str(name);
        let end = self.text.len() as u32;
        self.chunk.push(ListedName { start, end, bytes, group_and_purpose });
        if self.chunk.len() >= SORTED_NAMES { self.flush(&folder.path) } else { Ok(()) }
    }

    /// Sorts the collected names and writes them to the index.
    fn flush(&mut self, folder: &str) -> Result<(), StorageError> {
        let FolderWalk { collector, chunk, text, .. } = self;
        let names: &str = text;
        let name_text = |name: &ListedName| &names[name.start as usize..name.end as usize];
        chunk.sort_unstable_by(|a, b| name_text(a).cmp(name_text(b)));
        for name in &*chunk {
            collector.write(folder, name_text(name), name.bytes, name.group_and_purpose)?;
        }
        chunk.clear();
        text.clear();
        Ok(())
    }
}
