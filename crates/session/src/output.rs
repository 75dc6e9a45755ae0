//! Places that users name for what is written: never over something of theirs.

use feedrate_spec::refusal::{Refusal, refuse};

use feedrate_data::storage::StorageError;
use feedrate_measure::record::file::{self, read_bounded};
use std::fs;
use std::path::Path;

/// Whether it is the root of the file system: most likely an empty variable before a slash.
pub fn is_root(folder: &Path) -> bool {
    folder.canonicalize().is_ok_and(|folder| folder.parent().is_none())
}

/// Refuse to write into the root of the file system, which `asked` has named.
pub fn refuse_root(folder: &Path, asked: &str) -> Result<(), Refusal> {
    if is_root(folder) {
        return refuse(
            format!("`{}` is the root of the file system", folder.display()),
            format!("name a folder in it with {asked}"),
        );
    }
    Ok(())
}

/// Refuse a file that is there, unless it may be replaced. `force` is the command's `--force`, where it has one.
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

/// Write a file that the user wants, whole or not at all. One that is there already is replaced where `force` says so, and may
/// stay where it says the same.
pub fn write_output(file: &Path, bytes: &[u8], force: Option<bool>) -> anyhow::Result<()> {
    if is_device(file) {
        fs::write(file, bytes).map_err(|source| StorageError::new("write", file, source))?;
    } else if !read_bounded(file, bytes.len() as u64).is_ok_and(|there| there == bytes) {
        refuse_there(file, force)?;
        file::write_atomically(file, bytes)?;
    }
    Ok(())
}

/// Whether it is there and is written to, never replaced: a pipe, a terminal, `/dev/null`.
fn is_device(file: &Path) -> bool {
    file.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}
