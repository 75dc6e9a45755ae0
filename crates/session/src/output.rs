//! Output files and folders that users name. Existing files are not overwritten.

use feedrate_data::manifest::Manifest;
use feedrate_data::storage::StorageError;
use feedrate_measure::record::file::{self, read_bounded};
use feedrate_spec::refusal::{Refusal, refuse};
use std::fs;
use std::path::Path;

/// Whether a folder is the root of the file system. Users hardly mean the root: most likely, a variable before the slash was empty.
pub fn is_root(folder: &Path) -> bool {
    folder.canonicalize().is_ok_and(|folder| folder.parent().is_none())
}

/// Refuses to write into the root of the file system. `named_by` is the option that named the folder.
///
/// # Errors
/// Returns a refusal if the folder is the root.
pub fn refuse_root(folder: &Path, named_by: &str) -> Result<(), Refusal> {
    if is_root(folder) {
        return refuse(
            format!("`{}` is the root of the file system", folder.display()),
            format!("name a folder in it with {named_by}"),
        );
    }
    Ok(())
}

/// Refuses an existing file, unless `force` allows replacing it. `force` is `None` for commands without `--force`.
///
/// # Errors
/// Returns a refusal if the file exists.
pub fn refuse_existing(file: &Path, force: Option<bool>) -> Result<(), Refusal> {
    if force == Some(true) || file.symlink_metadata().is_err() || is_device(file) {
        return Ok(());
    }
    let hint = match force {
        Some(_) => "give another name, or replace it with `--force`",
        None => "give another name",
    };
    refuse(format!("`{}` is there already", file.display()), hint)
}

/// Refuses a file in a folder that does not exist.
///
/// # Errors
/// Returns a refusal if there is no such folder.
pub fn refuse_missing_folder(file: &Path) -> Result<(), Refusal> {
    // The parent of a bare file name is the empty path.
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.filter(|folder| !folder.is_dir()) {
        Some(folder) => {
            refuse(format!("there is no folder `{}`", folder.display()), "create it first")
        }
        None => Ok(()),
    }
}

/// Writes a file that the user named, atomically. An existing file with other content is replaced only with `force`.
///
/// # Errors
/// Fails if the file exists with other content, or cannot be written.
pub fn write_output(file: &Path, bytes: &[u8], force: Option<bool>) -> anyhow::Result<()> {
    if is_device(file) {
        fs::write(file, bytes).map_err(|source| StorageError::new("write", file, source))?;
    } else if !read_bounded(file, bytes.len() as u64).is_ok_and(|existing| existing == bytes) {
        refuse_existing(file, force)?;
        file::write_atomically(file, bytes)?;
    }
    Ok(())
}

/// Whether a file is a special file, such as a pipe, a terminal or `/dev/null`. Such files are written to and never replaced.
pub fn is_device(file: &Path) -> bool {
    file.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Refuses a path below the data folder or below another generated dataset. `option` is the option that gave the path.
///
/// # Errors
/// Returns a refusal if the path is there.
pub fn refuse_below(path: &Path, data: &Path, option: &str) -> anyhow::Result<()> {
    let absolute = std::path::absolute(path)?;
    let existing =
        absolute.ancestors().find_map(|folder| folder.canonicalize().ok()).unwrap_or_default();
    let data_folder = data.canonicalize().ok();
    let has_data = |folder: &&Path| {
        Some(*folder) == data_folder.as_deref() || Manifest::find_in(folder).is_some()
    };
    let Some(folder) = existing.ancestors().find(has_data) else { return Ok(()) };
    refuse(
        format!("`{}` would be in the data folder `{}`", path.display(), folder.display()),
        format!("give another path with `{option}`"),
    )
}
