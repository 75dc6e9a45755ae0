//! Removes datasets that feedrate made: the files that layout and manifest name, and folders that are empty then. What else lies
//! there stays.

use crate::error::DatasetError;
use crate::lock::{DatasetLock, LOCK_FILE, LockAccess, LockAttempt};
use crate::manifest::{self, Manifest, State};
use crate::names::{FileNames, first_stranger};
use crate::storage::{self, Storage};
use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::layout::Layout;
use std::path::Path;

/// Files of others that are named.
const NAMED_MAX: usize = 3;

/// Result of removing the dataset in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Dataset and folder are gone.
    Removed,
    /// The dataset is gone, its folder is not: these lie in it, or others too.
    Kept {
        /// A few of them, relative to the folder.
        strangers: Vec<String>,
    },
    /// Somebody makes or reads it.
    InUse {
        /// The holder, as in [`LockAttempt::Busy`].
        holder: Option<String>,
    },
    /// No manifest says that feedrate made what lies there: nothing was touched.
    NotOurs,
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
    if Manifest::read(&*storage)?.is_none() {
        return Ok(Removal::NotOurs);
    }
    let lock = match DatasetLock::try_acquire(folder, LockAccess::Exclusive, holder)? {
        LockAttempt::Busy { holder } => return Ok(Removal::InUse { holder }),
        LockAttempt::Held(lock) => Some(lock),
        LockAttempt::Unsupported { .. } => None,
    };
    // Another may have removed it before the lock came.
    let Some(manifest) = Manifest::read(&*storage)? else { return Ok(Removal::NotOurs) };
    remove(&manifest, &*storage)?;
    for claim in claims {
        storage.remove(claim)?;
    }
    let mut strangers = Vec::new();
    for name in storage.list("")? {
        if name != LOCK_FILE {
            strangers.push(first_file(&*storage, name)?);
        }
    }
    match lock {
        Some(lock) => lock.remove()?,
        None => storage.remove_dir("")?,
    }
    strangers.truncate(NAMED_MAX);
    Ok(if strangers.is_empty() { Removal::Removed } else { Removal::Kept { strangers } })
}

/// `path` itself, or the first that lies in it.
fn first_file(storage: &dyn Storage, path: String) -> Result<String, DatasetError> {
    let mut path = path;
    // A file has nothing in it, which is an error of its own.
    while let Some(first) = storage.list(&path).ok().and_then(|names| names.into_iter().next()) {
        path = format!("{path}/{first}");
    }
    Ok(path)
}

/// Remove the files of a dataset that was generated, its manifest, and folders that are empty then. Broken off at any moment, it
/// leaves a manifest that does not say that all are there, or none.
///
/// # Errors
/// See [`DatasetError`].
pub fn remove(manifest: &Manifest, storage: &dyn Storage) -> Result<(), DatasetError> {
    let plan = &manifest.settings;
    let layout = Layout::new(plan);
    let names = FileNames::new(plan, &layout)?;
    Manifest { state: State::Generating, ..manifest.clone() }.write(storage)?;
    names.each_there(storage, |path| storage.remove(path))?;
    names.sweep(storage)?;
    for folder in names.folders().iter().rev() {
        storage.remove_dir(folder)?;
    }
    storage.remove(manifest::FILE_NAME)?;
    Ok(())
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
    let old = Layout::new(&manifest.settings);
    let old_names = FileNames::new(&manifest.settings, &old)?;
    let old_bytes = old_names.bytes_there(storage)?;
    let stranger = first_stranger(storage, &old_names.folders(), |path| {
        old_names.has(path) || old_names.has_unfinished(path)
    })?;
    if let Some(path) = stranger {
        return Err(DatasetError::Strangers { path });
    }
    let layout = Layout::new(plan);
    let needed_bytes =
        Manifest::new(plan, &layout, FileNames::new(plan, &layout)?.format).total_bytes;
    match storage.free_bytes()?.map(|free_bytes| free_bytes.saturating_add(old_bytes)) {
        Some(free_bytes) if needed_bytes > free_bytes => {
            Err(DatasetError::NoSpace { needed_bytes, free_bytes })
        }
        _ => Ok(()),
    }
}
