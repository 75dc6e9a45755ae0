//! Looks up many entries of a storage.

use super::{Depth, EntryKind, Storage, StorageError};
use std::collections::HashMap;

/// Finds entries by their paths. A storage that lists lengths is asked once for each folder, so the entries are those at that time.
pub struct EntryLookup<'s> {
    storage: &'s dyn Storage,
    /// Lengths of the files in each folder; `None` if the storage is asked for each file.
    folders: HashMap<String, Option<HashMap<String, u64>>>,
}

impl<'s> EntryLookup<'s> {
    /// Creates a lookup in `storage`.
    pub fn new(storage: &'s dyn Storage) -> Self {
        EntryLookup { storage, folders: HashMap::new() }
    }

    /// As [`Storage::kind`].
    ///
    /// # Errors
    /// The storage failed.
    pub fn kind(&mut self, path: &str) -> Result<Option<EntryKind>, StorageError> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if !self.folders.contains_key(folder) {
            self.folders.insert(folder.into(), list_lengths(self.storage, folder)?);
        }
        match &self.folders[folder] {
            Some(lengths) => Ok(lengths.get(name).map(|&bytes| EntryKind::File { bytes })),
            None => self.storage.kind(path),
        }
    }
}

/// Lists the lengths of the files in a folder by their names; `None` if the storage finds each file as fast.
///
/// # Errors
/// The storage failed.
pub(crate) fn list_lengths(
    storage: &dyn Storage,
    folder: &str,
) -> Result<Option<HashMap<String, u64>>, StorageError> {
    let mut lengths = HashMap::new();
    let is_listed = storage.visit_entries(folder, Depth::Folder, &mut |name, kind| {
        if let EntryKind::File { bytes } = kind {
            lengths.insert(name.to_string(), bytes);
        }
        Ok(())
    })?;
    Ok(is_listed.then_some(lengths))
}
