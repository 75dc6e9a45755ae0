//! Output files that users name: existing files are not overwritten.

use feedrate_spec::refusal::{Refusal, refuse};

use feedrate_data::storage::StorageError;
use feedrate_measure::record::file::{self, read_bounded};
use std::fs;
use std::path::Path;

/// Whether it is the root of the file system: most likely an empty variable before a slash.
pub fn is_root(folder: &Path) -> bool {
    folder.canonicalize().is_ok_and(|folder| folder.parent().is_none())
}

/// Refuses to write into the root of the file system. `named_by` is the option that named it.
///
/// # Errors
/// It is the root.
pub fn refuse_root(folder: &Path, named_by: &str) -> Result<(), Refusal> {
    if is_root(folder) {
        return refuse(
            format!("`{}` is the root of the file system", folder.display()),
            format!("name a folder in it with {named_by}"),
        );
    }
    Ok(())
}

/// Refuses a file that exists, unless `force` allows to replace it; `None` for a command without `--force`.
///
/// # Errors
/// It exists.
pub fn refuse_there(file: &Path, force: Option<bool>) -> Result<(), Refusal> {
    if force == Some(true) || file.symlink_metadata().is_err() || is_device(file) {
        return Ok(());
    }
    let hint = match force {
        Some(_) => "give another name, or replace it with `--force`",
        None => "give another name",
    };
    refuse(format!("`{}` is there already", file.display()), hint)
}

/// Writes a file of the user's choice as a whole. An existing file is replaced if `force` says so; one with the same bytes stays.
///
/// # Errors
/// It exists, or cannot be written.
pub fn write_output(file: &Path, bytes: &[u8], force: Option<bool>) -> anyhow::Result<()> {
    if is_device(file) {
        fs::write(file, bytes).map_err(|source| StorageError::new("write", file, source))?;
    } else if !read_bounded(file, bytes.len() as u64).is_ok_and(|there| there == bytes) {
        refuse_there(file, force)?;
        file::write_atomically(file, bytes)?;
    }
    Ok(())
}

/// Whether it exists and is no regular file, as a pipe, a terminal or `/dev/null`: it is written to and never replaced.
fn is_device(file: &Path) -> bool {
    file.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}
