//! Removes files that feedrate created, as named by a manifest or a record, and folders that are empty afterwards.
//!
//! All other files stay and are reported. Links are not followed.

use crate::error::DatasetError;
use crate::lock::{DatasetLock, LOCK_FILE, LockAccess, LockAttempt};
use crate::manifest::{self, LengthRun, Manifest, State};
use crate::names::{
    FileNames, OwnFileVisit, OwnFiles, VisitedFiles, is_inside, join_path, linked_folders,
};
use crate::storage::{self, EntryKind, EntryLookup, Storage, StorageError, UploadAction};
use crate::walk;
use feedrate_spec::object_url::ObjectUrl;
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;
use std::path::Path;

/// Upper limit on the foreign files that are reported.
const REPORTED_MAX: usize = 3;

/// Files that are removed at the same time. A store takes a request for each.
const REMOVALS: usize = 16;
/// Files whose names are kept until they are removed.
const BATCH_FILES: usize = 4096;

/// Result of removing the dataset in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The dataset was removed, and its folder too if no other files were in it.
    Removed(FolderContents),
    /// Another process generates or reads the dataset.
    InUse {
        /// The holder, as in [`LockAttempt::Busy`].
        holder: Option<String>,
    },
    /// No manifest says that feedrate generated the files. Nothing was removed.
    Foreign,
}

/// Contents of a folder that feedrate created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderContents {
    /// Number of files that feedrate created.
    pub files: u64,
    /// Length of these files.
    pub bytes: u64,
    /// Number of unfinished uploads of such files to a store.
    pub uploads: u64,
    /// A few of the foreign files, relative to the folder. Includes files that have the expected name but were changed
    /// since feedrate wrote them.
    pub foreign_files: Vec<String>,
}

/// Reports the contents of the dataset folder `folder`, which may be a URL. `caller_files` are files that the caller keeps in it. Returns `None`
/// if there is no manifest of feedrate. A folder with only caller files counts as a dataset, because its generation may
/// have ended before the manifest was written.
///
/// # Errors
/// See [`DatasetError`].
pub fn inspect_folder(
    folder: &Path,
    caller_files: &[&str],
) -> Result<Option<FolderContents>, DatasetError> {
    let storage = storage::open_root(folder)?;
    match read_valid_manifest(&*storage)? {
        Some(manifest) => with_generated_files(&manifest, caller_files, &*storage, |files| {
            Ok(Some(inspect_files(files, &*storage)?))
        }),
        None => {
            let is_dataset = has_only_caller_files(&*storage, caller_files)?;
            Ok(is_dataset.then(FolderContents::default))
        }
    }
}

/// Removes the dataset in `folder`, the caller's files `caller_files`, and `folder` itself if it is empty then. `holder`
/// describes this process to those that wait for the lock.
///
/// # Errors
/// See [`DatasetError`]. After an error, the manifest does not claim that the remaining dataset is complete.
pub fn remove_folder(
    folder: &Path,
    caller_files: &[&str],
    holder: &str,
) -> Result<Removal, DatasetError> {
    let storage = storage::open_root(folder)?;
    if read_valid_manifest(&*storage)?.is_none() && !has_only_caller_files(&*storage, caller_files)?
    {
        return Ok(Removal::Foreign);
    }
    remove_locked(folder, holder, || {
        // Another process may have removed the dataset before this one got the lock.
        match read_valid_manifest(&*storage)? {
            Some(manifest) => with_generated_files(&manifest, caller_files, &*storage, |files| {
                remove_generated_files(files, &*storage).map(Some)
            }),
            None if has_only_caller_files(&*storage, caller_files)? => {
                caller_files.iter().try_for_each(|path| storage.remove(path))?;
                Ok(Some(FolderContents::default()))
            }
            None => Ok(None),
        }
    })
}

/// Whether the folder of `storage` contains at least one of `caller_files` and otherwise only the lock file.
fn has_only_caller_files(
    storage: &dyn Storage,
    caller_files: &[&str],
) -> Result<bool, StorageError> {
    let mut names = storage.list("")?;
    names.retain(|name| name != LOCK_FILE);
    Ok(!names.is_empty() && names.iter().all(|name| caller_files.contains(&&**name)))
}

/// Calls `remove` under the lock of `folder`, then removes the lock file, and `folder` if it is empty. A store has neither locks nor
/// folders.
///
/// # Errors
/// The errors of `remove`, or the lock cannot be taken.
pub fn remove_locked<E: From<StorageError>>(
    folder: &Path,
    holder: &str,
    remove: impl FnOnce() -> Result<Option<FolderContents>, E>,
) -> Result<Removal, E> {
    if ObjectUrl::is_written_in(folder) {
        return Ok(remove()?.map_or(Removal::Foreign, Removal::Removed));
    }
    let lock = match DatasetLock::try_acquire(folder, LockAccess::Exclusive, holder)? {
        LockAttempt::Busy { holder } => return Ok(Removal::InUse { holder }),
        LockAttempt::Held(lock) => Some(lock),
        LockAttempt::Unsupported { .. } => None,
    };
    let Some(found) = remove()? else { return Ok(Removal::Foreign) };
    match lock {
        Some(lock) => lock.remove()?,
        // Fails if the folder is a mount point, or without permission for its parent.
        None => drop(std::fs::remove_dir(folder)),
    }
    Ok(Removal::Removed(found))
}

/// The manifest at the root of `storage`. An invalid or unknown one counts as missing, since it names no files that may
/// be removed.
fn read_valid_manifest(storage: &dyn Storage) -> Result<Option<Manifest>, DatasetError> {
    match Manifest::read(storage) {
        Err(DatasetError::BrokenManifest { .. } | DatasetError::ForeignFiles { .. }) => Ok(None),
        read => read,
    }
}

/// Removes a generated dataset, and folders that are empty afterwards. After an interrupted
/// removal, the manifest is missing or does not claim that the dataset is complete.
///
/// # Errors
/// See [`DatasetError`].
pub fn remove(manifest: &Manifest, storage: &dyn Storage) -> Result<FolderContents, DatasetError> {
    with_generated_files(manifest, &[], storage, |files| remove_generated_files(files, storage))
}

/// Checks that the dataset of `plan` can replace the one that `manifest` describes.
///
/// # Errors
/// The folder contains foreign files, or the device has too little space even after the removal; see [`DatasetError`].
pub fn check_replacement(
    manifest: &Manifest,
    plan: &DatasetPlan,
    storage: &dyn Storage,
) -> Result<(), DatasetError> {
    let found = with_generated_files(manifest, &[], storage, |files| {
        let mut found = visit_unchanged(files, storage, &mut |_| Ok(()))?;
        // Foreign files in the root are allowed, so only the subfolders are searched.
        found.add_foreign_files(files, storage, &files.folders())?;
        Ok(found)
    })?;
    if let Some(path) = found.foreign_files.into_iter().next() {
        return Err(DatasetError::ForeignFiles { path });
    }
    let layout = Layout::new(plan);
    let needed_bytes =
        Manifest::new(plan, &layout, FileNames::new(plan, &layout)?.format).total_bytes;
    match storage.free_bytes()?.map(|free_bytes| free_bytes.saturating_add(found.bytes)) {
        Some(free_bytes) if needed_bytes > free_bytes => {
            Err(DatasetError::NoSpace { needed_bytes, free_bytes })
        }
        _ => Ok(()),
    }
}

/// The first file of a dataset that is missing or does not have the length in `manifest`.
pub(crate) fn first_incomplete_file(
    manifest: &Manifest,
    storage: &dyn Storage,
) -> Result<Option<String>, DatasetError> {
    let mut first = None;
    with_generated_files(manifest, &[], storage, |files| {
        let existing = files.names.existing_files(storage)?;
        let leading = existing.iter().zip(0..).take_while(|(file, number)| *file == number).count();
        // Up to the first file that is missing.
        let checked = 0..files.names.layout.files().min(leading as u64 + 1);
        let mut written_length = LengthRun::finder(manifest.files.as_deref());
        Ok(files.names.visit_files(checked, |file, parts| {
            if first.is_some() {
                return Ok(());
            }
            let written = written_length(file);
            let mut bytes = 0;
            for path in parts {
                match storage.stat(path)? {
                    Some(part_bytes) => bytes += part_bytes,
                    None => first = Some(path.clone()),
                }
            }
            if first.is_none() && written.is_some_and(|written| written.bytes != bytes) {
                first = parts.first().cloned();
            }
            Ok(())
        })?)
    })?;
    Ok(first)
}

/// Counts `files` and the foreign files in the folder of `storage`.
///
/// # Errors
/// The storage failed.
pub fn inspect_files(
    files: &dyn OwnFiles,
    storage: &dyn Storage,
) -> Result<FolderContents, StorageError> {
    let mut found = visit_unchanged(files, storage, &mut |_| Ok(()))?;
    found.uploads = storage.unfinished_uploads(UploadAction::Count, &|path| files.has(path))?;
    found.add_foreign_files(files, storage, &with_root(files.folders()))?;
    Ok(found)
}

/// Removes files, and empties their list.
fn remove_batch(paths: &mut Vec<String>, storage: &dyn Storage) -> Result<(), StorageError> {
    let remove = |(): &mut (), number: u64| storage.remove(&paths[number as usize]);
    walk::for_all(paths.len() as u64, REMOVALS, || (), remove)?;
    paths.clear();
    Ok(())
}

/// Removes `files` from the folder of `storage`, and subfolders that are empty afterwards.
///
/// # Errors
/// The storage failed.
pub fn remove_files(
    files: &dyn OwnFiles,
    storage: &dyn Storage,
) -> Result<FolderContents, StorageError> {
    let mut batch = Vec::with_capacity(BATCH_FILES);
    let mut found = visit_unchanged(files, storage, &mut |path| {
        batch.push(path.to_string());
        if batch.len() == BATCH_FILES { remove_batch(&mut batch, storage) } else { Ok(()) }
    })?;
    remove_batch(&mut batch, storage)?;
    found.uploads = files.remove_unfinished(storage)?;
    let folders = files.folders();
    let linked = linked_folders(&folders, storage)?;
    for folder in folders.iter().rev().filter(|folder| !is_inside(folder, &linked)) {
        storage.remove_dir(folder)?;
    }
    found.add_foreign_files(files, storage, &with_root(folders))?;
    Ok(found)
}

fn with_root(mut folders: Vec<String>) -> Vec<String> {
    folders.push(String::new());
    folders
}

/// Calls `act` with each of `files` whose length has not changed since feedrate wrote it. Changed files, and folders or links
/// with the name of a file, are reported as foreign.
fn visit_unchanged(
    files: &dyn OwnFiles,
    storage: &dyn Storage,
    act: &mut dyn FnMut(&str) -> Result<(), StorageError>,
) -> Result<FolderContents, StorageError> {
    let linked = linked_folders(&files.folders(), storage)?;
    let mut found = FolderContents::default();
    let mut entries = EntryLookup::new(storage);
    files.visit(VisitedFiles::Existing(storage), &mut |parts, written| {
        let mut existing = Vec::with_capacity(parts.len());
        for path in parts.iter().filter(|path| !is_inside(path, &linked)) {
            match entries.kind(path)? {
                Some(EntryKind::File { bytes }) => existing.push((path, bytes)),
                Some(EntryKind::Folder | EntryKind::Other) => found.add_foreign_file(path.clone()),
                None => {}
            }
        }
        let bytes = existing.iter().map(|(_, bytes)| bytes).sum();
        let has_all_parts = existing.len() == parts.len();
        // If a sidecar is missing, only the data file can be compared.
        let data_bytes =
            existing.iter().find(|(path, _)| **path == parts[0]).map(|(_, bytes)| *bytes);
        let is_changed = written.is_some_and(|written| {
            if has_all_parts {
                written.bytes != bytes
            } else {
                data_bytes.is_some() && written.data_bytes != data_bytes
            }
        });
        for (path, _) in &existing {
            if is_changed { found.add_foreign_file((*path).clone()) } else { act(path)? }
        }
        if !is_changed {
            found.files += existing.len() as u64;
            found.bytes = found.bytes.saturating_add(bytes);
        }
        Ok(())
    })?;
    Ok(found)
}

impl FolderContents {
    /// Reports a foreign file, unless enough are reported already.
    fn add_foreign_file(&mut self, path: String) {
        if self.foreign_files.len() < REPORTED_MAX {
            self.foreign_files.push(path);
        }
    }

    /// Reports the files in `folders` whose names are not among `files`.
    fn add_foreign_files(
        &mut self,
        files: &dyn OwnFiles,
        storage: &dyn Storage,
        folders: &[String],
    ) -> Result<(), StorageError> {
        let linked = linked_folders(folders, storage)?;
        for folder in folders.iter().rev().filter(|folder| !is_inside(folder, &linked)) {
            for path in storage.list(folder)?.iter().map(|name| join_path(folder, name)) {
                if self.foreign_files.len() == REPORTED_MAX {
                    return Ok(());
                }
                let is_own = files.has(&path) || files.is_unfinished(&path);
                if linked.contains(&path) {
                    self.add_foreign_file(path);
                } else if !is_own && !folders.contains(&path) {
                    self.add_foreign_file(first_file(storage, path)?);
                }
            }
        }
        Ok(())
    }
}

/// `path` itself, or the first file inside it.
fn first_file(storage: &dyn Storage, path: String) -> Result<String, StorageError> {
    let mut path = path;
    while storage.kind(&path)? == Some(EntryKind::Folder) {
        let Some(first) = storage.list(&path)?.into_iter().next() else { break };
        path = join_path(&path, &first);
    }
    Ok(path)
}

/// The files of a dataset as named by its manifest, and the caller's files beside it.
struct GeneratedFiles<'m> {
    names: FileNames<'m>,
    manifest: &'m Manifest,
    caller_files: &'m [&'m str],
}

/// Calls `act` with the files that `manifest` describes.
fn with_generated_files<T>(
    manifest: &Manifest,
    caller_files: &[&str],
    storage: &dyn Storage,
    act: impl FnOnce(&GeneratedFiles) -> Result<T, DatasetError>,
) -> Result<T, DatasetError> {
    let layout = Layout::new(&manifest.settings);
    let names = FileNames::new(&manifest.settings, &layout)?;
    // If the manifest lists no file lengths, only the total length shows whether files were changed.
    if manifest.files.is_none() && manifest.state == State::Complete {
        let found_bytes = names.existing_bytes(storage)?;
        let total_bytes = manifest.total_bytes;
        if found_bytes != total_bytes {
            return Err(DatasetError::Changed { found_bytes, total_bytes });
        }
    }
    act(&GeneratedFiles { names, manifest, caller_files })
}

impl OwnFiles for GeneratedFiles<'_> {
    fn folders(&self) -> Vec<String> {
        self.names.folders()
    }

    fn visit(
        &self,
        files: VisitedFiles<'_>,
        visit: &mut OwnFileVisit<'_>,
    ) -> Result<(), StorageError> {
        let mut written = LengthRun::finder(self.manifest.files.as_deref());
        let numbers = self.names.numbers(files)?;
        self.names.visit_files(numbers, |file, parts| visit(parts, written(file)))
    }

    fn has(&self, path: &str) -> bool {
        path == LOCK_FILE || self.caller_files.contains(&path) || self.names.has(path)
    }
}

/// Removes the dataset. The manifest is removed last, because it proves that feedrate generated the files.
fn remove_generated_files(
    files: &GeneratedFiles,
    storage: &dyn Storage,
) -> Result<FolderContents, DatasetError> {
    let removing = files.manifest.removing || files.manifest.state == State::Complete;
    let generating = Manifest { state: State::Generating, removing, ..files.manifest.clone() };
    let mut first_removed = FolderContents::default();
    match generating.write(storage) {
        // On a full device, the manifest can be written only after a file is removed. Until then it claims a complete
        // dataset, but the missing file would be detected.
        Err(DatasetError::Storage(error)) if error.is_full() => {
            visit_unchanged(files, storage, &mut |path| {
                if first_removed.files > 0 {
                    return Ok(());
                }
                first_removed.files = 1;
                first_removed.bytes = storage.stat(path)?.unwrap_or(0);
                storage.remove(path)
            })?;
            generating.write(storage)?;
        }
        written => written?,
    }
    let mut found = remove_files(files, storage)?;
    found.files += first_removed.files;
    found.bytes += first_removed.bytes;
    storage.remove(manifest::FILE_NAME)?;
    for path in files.caller_files {
        storage.remove(path)?;
    }
    Ok(found)
}
