//! Lists the objects of a foreign dataset. A store lists all of them at once, with their lengths, folder by folder.

use super::Listing;
use super::collector::{Collector, Folder};
use crate::storage::{Depth, EntryKind, StorageError};
use std::io::ErrorKind;

/// Lists all objects below the root of a store.
///
/// # Errors
/// The store cannot be listed, an object cannot be read, or the index cannot be written.
pub(super) fn list_objects(mut collector: Collector<'_>) -> Result<Listing, StorageError> {
    // The folder of the last object, after the folders that contain it.
    let mut folders = vec![Folder::root()];
    let storage = collector.storage;
    let is_listed = storage.visit_entries("", Depth::All, &mut |path, kind| {
        let EntryKind::File { bytes } = kind else {
            collector.skip_odd_name(path);
            return Ok(());
        };
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let hidden = path.split('/').find(|part| part.starts_with('.'));
        if !collector.accepts(parent, hidden.unwrap_or(name)) {
            return Ok(());
        }
        let folder = enter(&mut folders, parent);
        let counted = collector.count(folder, name, bytes)?;
        counted.map_or(Ok(()), |kind| collector.write(parent, name, bytes, kind))
    })?;
    if is_listed {
        Ok(collector.listing)
    } else {
        Err(StorageError::new("list", "", ErrorKind::Unsupported))
    }
}

/// Replaces the folders by those that contain the folder `path`, and returns the last one.
fn enter<'f>(folders: &'f mut Vec<Folder>, path: &str) -> &'f mut Folder {
    while folders.last().is_some_and(|last| !last.contains(path)) {
        folders.pop();
    }
    let mut last = folders.len() - 1;
    for name in path[folders[last].path.len()..].split('/').filter(|name| !name.is_empty()) {
        folders.push(folders[last].child(name));
        last += 1;
    }
    &mut folders[last]
}
