//! Removes what feedrate made: files that a manifest or a record names, and folders that are empty then. What else lies there
//! stays, and is told. Links are not followed.

use crate::error::DatasetError;
use crate::lock::{DatasetLock, LOCK_FILE, LockAccess, LockAttempt};
use crate::manifest::{self, FileRun, Manifest, State};
use crate::names::{FileNames, OwnFileVisit, OwnFiles, closed, join, lies_in};
use crate::storage::{self, NameKind, Storage, StorageError};
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;
use std::path::Path;

/// Files of others that are named.
const NAMED_MAX: usize = 3;

/// Result of removing the dataset in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// The dataset is gone; its folder too, unless others lie in it.
    Removed(OwnFound),
    /// Somebody makes or reads it.
    InUse {
        /// The holder, as in [`LockAttempt::Busy`].
        holder: Option<String>,
    },
    /// No manifest says that feedrate made what lies there: nothing was touched.
    NotOurs,
}

/// Contents of a folder of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnFound {
    /// Files that are ours.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// A few of those that are not, relative to the folder; also what has a name of ours and is not what we wrote.
    pub strangers: Vec<String>,
}

/// Look at the dataset in `folder`, of which `claims` are files of the caller's. `None` where no manifest says that it is ours, unless it
/// has a claim and nothing else: generation ended before its manifest was written.
///
/// # Errors
/// See [`DatasetError`].
pub fn look_at_folder(folder: &Path, claims: &[&str]) -> Result<Option<OwnFound>, DatasetError> {
    let storage = storage::open("file", folder)?;
    match own_manifest(&*storage)? {
        Some(manifest) => {
            MadeFiles::visit(&manifest, claims, &*storage, |own| Ok(Some(look_at(own, &*storage)?)))
        }
        None => Ok(has_claims_alone(&*storage, claims)?.then(OwnFound::default)),
    }
}

/// Remove the dataset in `folder`, and `folder` with it if nothing else lies there; `claims` are files of the caller's in it.
/// `holder` is told to those who wait meanwhile.
///
/// # Errors
/// See [`DatasetError`]. What is left has a manifest that does not say that all files are there.
pub fn remove_folder(
    folder: &Path,
    claims: &[&str],
    holder: &str,
) -> Result<Removal, DatasetError> {
    let storage = storage::open("file", folder)?;
    if own_manifest(&*storage)?.is_none() && !has_claims_alone(&*storage, claims)? {
        return Ok(Removal::NotOurs);
    }
    remove_locked(folder, holder, || {
        // Another may have removed it before the lock came.
        match own_manifest(&*storage)? {
            Some(manifest) => {
                MadeFiles::visit(&manifest, claims, &*storage, |own| remove_made(own, &*storage))
                    .map(Some)
            }
            None if has_claims_alone(&*storage, claims)? => {
                claims.iter().try_for_each(|claim| storage.remove(claim))?;
                Ok(Some(OwnFound::default()))
            }
            None => Ok(None),
        }
    })
}

/// Whether the folder of `storage` has one of `claims` and nothing else but the lock.
fn has_claims_alone(storage: &dyn Storage, claims: &[&str]) -> Result<bool, StorageError> {
    let mut names = storage.list("")?;
    names.retain(|name| name != LOCK_FILE);
    Ok(!names.is_empty() && names.iter().all(|name| claims.contains(&&**name)))
}

/// Call `remove` under the lock of `folder`, then remove the lock's file, and `folder` if it is empty.
///
/// # Errors
/// Those of `remove`, or the lock cannot be taken.
pub fn remove_locked<E: From<StorageError>>(
    folder: &Path,
    holder: &str,
    remove: impl FnOnce() -> Result<Option<OwnFound>, E>,
) -> Result<Removal, E> {
    let lock = match DatasetLock::try_acquire(folder, LockAccess::Exclusive, holder)? {
        LockAttempt::Busy { holder } => return Ok(Removal::InUse { holder }),
        LockAttempt::Held(lock) => Some(lock),
        LockAttempt::Unsupported { .. } => None,
    };
    let Some(found) = remove()? else { return Ok(Removal::NotOurs) };
    match lock {
        Some(lock) => lock.remove()?,
        // It may be a mount point, or in a folder of others.
        None => drop(std::fs::remove_dir(folder)),
    }
    Ok(Removal::Removed(found))
}

/// One that is none, or that this feedrate does not understand, names nothing that may go.
fn own_manifest(storage: &dyn Storage) -> Result<Option<Manifest>, DatasetError> {
    match Manifest::read(storage) {
        Err(DatasetError::BrokenManifest { .. } | DatasetError::Strangers { .. }) => Ok(None),
        read => read,
    }
}

/// Remove a dataset that was generated, and folders that are empty then. Broken off at any moment, it leaves a manifest that does
/// not say that all files are there, or none.
///
/// # Errors
/// See [`DatasetError`].
pub fn remove(manifest: &Manifest, storage: &dyn Storage) -> Result<OwnFound, DatasetError> {
    MadeFiles::visit(manifest, &[], storage, |own| remove_made(own, storage))
}

/// Refuse to put the dataset of `plan` in the place of the one that `manifest` describes: files of others lie there, or even then
/// there would be no room.
///
/// # Errors
/// See [`DatasetError`].
pub fn refuse_replacing(
    manifest: &Manifest,
    plan: &DatasetPlan,
    storage: &dyn Storage,
) -> Result<(), DatasetError> {
    let found = MadeFiles::visit(manifest, &[], storage, |own| {
        let mut found = go_through(own, storage, &mut |_| Ok(()))?;
        // Beside the folders of its files others may lie.
        found.add_strangers(own, storage, &own.folders())?;
        Ok(found)
    })?;
    if let Some(path) = found.strangers.into_iter().next() {
        return Err(DatasetError::Strangers { path });
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

/// A file of a dataset that is missing, or not as long as `manifest` says.
pub(crate) fn first_not_whole(
    manifest: &Manifest,
    storage: &dyn Storage,
) -> Result<Option<String>, DatasetError> {
    let mut first = None;
    MadeFiles::visit(manifest, &[], storage, |own| {
        Ok(own.each(&mut |parts, written_bytes| {
            if first.is_some() {
                return Ok(());
            }
            let mut bytes = 0;
            for path in parts {
                match storage.stat(path)? {
                    Some(there) => bytes += there,
                    None => first = Some(path.clone()),
                }
            }
            if first.is_none() && written_bytes.is_some_and(|written| written.bytes != bytes) {
                first = parts.first().cloned();
            }
            Ok(())
        })?)
    })?;
    Ok(first)
}

/// Look at files of ours in the folder of `storage`.
///
/// # Errors
/// The storage refused.
pub fn look_at(own: &dyn OwnFiles, storage: &dyn Storage) -> Result<OwnFound, StorageError> {
    let mut found = go_through(own, storage, &mut |_| Ok(()))?;
    found.add_strangers(own, storage, &with_root(own.folders()))?;
    Ok(found)
}

/// Remove files of ours from the folder of `storage`, and folders in it that are empty then.
///
/// # Errors
/// The storage refused.
pub fn remove_files(own: &dyn OwnFiles, storage: &dyn Storage) -> Result<OwnFound, StorageError> {
    let mut found = go_through(own, storage, &mut |path| storage.remove(path))?;
    own.sweep(storage)?;
    let folders = own.folders();
    let closed = closed(&folders, storage)?;
    for folder in folders.iter().rev().filter(|folder| !lies_in(folder, &closed)) {
        storage.remove_dir(folder)?;
    }
    found.add_strangers(own, storage, &with_root(folders))?;
    Ok(found)
}

fn with_root(mut folders: Vec<String>) -> Vec<String> {
    folders.push(String::new());
    folders
}

/// Do `act` with each file that is ours. What has a name of ours and is no file, or is not as long as we wrote it, is not.
fn go_through(
    own: &dyn OwnFiles,
    storage: &dyn Storage,
    act: &mut dyn FnMut(&str) -> Result<(), StorageError>,
) -> Result<OwnFound, StorageError> {
    let closed = closed(&own.folders(), storage)?;
    let mut found = OwnFound::default();
    own.each(&mut |parts, written| {
        let mut there = Vec::with_capacity(parts.len());
        for path in parts.iter().filter(|path| !lies_in(path, &closed)) {
            match storage.kind(path)? {
                Some(NameKind::File { bytes }) => there.push((path, bytes)),
                Some(NameKind::Folder | NameKind::Other) => found.add(path.clone()),
                None => {}
            }
        }
        let bytes = there.iter().map(|(_, bytes)| bytes).sum();
        let is_whole = there.len() == parts.len();
        // Without a sidecar, by its data.
        let data_bytes = there.iter().find(|(path, _)| **path == parts[0]).map(|(_, bytes)| *bytes);
        let is_changed = written.is_some_and(|written| {
            if is_whole {
                written.bytes != bytes
            } else {
                data_bytes.is_some() && written.data_bytes != data_bytes
            }
        });
        for (path, _) in &there {
            if is_changed { found.add((*path).clone()) } else { act(path)? }
        }
        if !is_changed {
            found.files += there.len() as u64;
            found.bytes = found.bytes.saturating_add(bytes);
        }
        Ok(())
    })?;
    Ok(found)
}

impl OwnFound {
    /// Name one more of others, while there are few.
    fn add(&mut self, stranger: String) {
        if self.strangers.len() < NAMED_MAX {
            self.strangers.push(stranger);
        }
    }

    /// Add those in `folders` that have no name of ours.
    fn add_strangers(
        &mut self,
        own: &dyn OwnFiles,
        storage: &dyn Storage,
        folders: &[String],
    ) -> Result<(), StorageError> {
        let closed = closed(folders, storage)?;
        for folder in folders.iter().rev().filter(|folder| !lies_in(folder, &closed)) {
            for path in storage.list(folder)?.iter().map(|name| join(folder, name)) {
                if self.strangers.len() == NAMED_MAX {
                    return Ok(());
                }
                if closed.contains(&path) {
                    self.add(path);
                } else if !own.has(&path) && !own.has_unfinished(&path) && !folders.contains(&path)
                {
                    self.add(first_file(storage, path)?);
                }
            }
        }
        Ok(())
    }
}

/// `path` itself, or the first that lies in it.
fn first_file(storage: &dyn Storage, path: String) -> Result<String, StorageError> {
    let mut path = path;
    while storage.kind(&path)? == Some(NameKind::Folder) {
        let Some(first) = storage.list(&path)?.into_iter().next() else { break };
        path = join(&path, &first);
    }
    Ok(path)
}

/// The files of a dataset by its manifest, and `claims` of the caller's beside it.
struct MadeFiles<'m> {
    names: FileNames<'m>,
    manifest: &'m Manifest,
    claims: &'m [&'m str],
}

impl MadeFiles<'_> {
    fn visit<T>(
        manifest: &Manifest,
        claims: &[&str],
        storage: &dyn Storage,
        visit: impl FnOnce(&MadeFiles) -> Result<T, DatasetError>,
    ) -> Result<T, DatasetError> {
        let layout = Layout::new(&manifest.settings);
        let names = FileNames::new(&manifest.settings, &layout)?;
        // Which of them are as we wrote them cannot be told.
        if manifest.files.is_none() && manifest.state == State::Complete {
            let (there_bytes, total_bytes) =
                (names.lengths_there(storage)?.bytes, manifest.total_bytes);
            if there_bytes != total_bytes {
                return Err(DatasetError::Changed { there_bytes, total_bytes });
            }
        }
        visit(&MadeFiles { names, manifest, claims })
    }
}

impl OwnFiles for MadeFiles<'_> {
    fn folders(&self) -> Vec<String> {
        self.names.folders()
    }

    fn each(&self, visit: &mut OwnFileVisit<'_>) -> Result<(), StorageError> {
        let mut lengths = FileRun::each(self.manifest.files.as_deref());
        self.names.each(&mut |parts, _| visit(parts, lengths.next()))
    }

    fn has(&self, path: &str) -> bool {
        path == LOCK_FILE || self.claims.contains(&path) || self.names.has(path)
    }
}

/// The manifest, which says that they are ours, goes last.
fn remove_made(own: &MadeFiles, storage: &dyn Storage) -> Result<OwnFound, DatasetError> {
    let removing = own.manifest.removing || own.manifest.state == State::Complete;
    let generating = Manifest { state: State::Generating, removing, ..own.manifest.clone() };
    let mut first = OwnFound::default();
    match generating.write(storage) {
        // A full device has room for it once a file is gone; that one is missing is seen.
        Err(DatasetError::Storage(error)) if error.is_full() => {
            go_through(own, storage, &mut |path| {
                if first.files > 0 {
                    return Ok(());
                }
                (first.files, first.bytes) = (1, storage.stat(path)?.unwrap_or(0));
                storage.remove(path)
            })?;
            generating.write(storage)?;
        }
        written => written?,
    }
    let mut found = remove_files(own, storage)?;
    (found.files, found.bytes) = (found.files + first.files, found.bytes + first.bytes);
    storage.remove(manifest::FILE_NAME)?;
    for claim in own.claims {
        storage.remove(claim)?;
    }
    Ok(found)
}
