//! Finds the folders of runs below a folder, whatever the layout. Reads names only; links are not followed.

use super::config;
use super::dlio::{LOG, STATS_OF_ALL, SUMMARY, is_of_rank};
use feedrate_measure::record::file::RECORD_FILE;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// Folders inside each other that are looked into.
const DEPTH_MAX: usize = 32;

/// What wrote a run's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// feedrate: there is a record, which tells more than DLIO's files beside it.
    Record,
    /// DLIO.
    Dlio,
    /// DLIO under `mlpstorage`.
    MlperfStorage,
}

/// The folder of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where.
    pub path: PathBuf,
    /// Of whom.
    pub kind: Kind,
}

/// A folder that cannot be looked into, and why.
pub type Closed = (PathBuf, String);

/// The folders of runs in `root` and below it, in the order of their paths; and those below it that are closed.
///
/// # Errors
/// `root` cannot be looked into.
pub fn find(root: &Path) -> io::Result<(Vec<Found>, Vec<Closed>)> {
    let mut found = Vec::new();
    let mut closed = Vec::new();
    let mut open = vec![(root.to_path_buf(), 0)];
    while let Some((folder, depth)) = open.pop() {
        match entries(&folder) {
            Err(error) if depth == 0 => return Err(error),
            Err(error) => closed.push((folder, error.to_string())),
            Ok(Entries { kind: Some(kind), .. }) => found.push(Found { path: folder, kind }),
            Ok(Entries { folders, .. }) if depth < DEPTH_MAX => {
                open.extend(folders.into_iter().map(|name| (folder.join(name), depth + 1)));
            }
            Ok(_) => {
                closed.push((folder, format!("it lies {DEPTH_MAX} folders deep: not looked into")));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    closed.sort();
    Ok((found, closed))
}

/// The names of the files in a folder.
pub(super) fn file_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

struct Entries {
    kind: Option<Kind>,
    folders: Vec<std::ffi::OsString>,
}

fn entries(folder: &Path) -> io::Result<Entries> {
    let (mut folders, mut is_dlio, mut is_record) = (Vec::new(), false, false);
    let mut has_hidden = false;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let text = name.to_string_lossy();
        is_record |= text == RECORD_FILE && entry.path().is_file();
        is_dlio |= text == SUMMARY || text == LOG || text == STATS_OF_ALL || is_of_rank(&text);
        if entry.file_type()?.is_dir() {
            has_hidden |= text == ".hydra" || text == "dlio_config";
            if !text.starts_with('.') {
                folders.push(name);
            }
        }
    }
    let hydra = if has_hidden { config::subfolder(folder) } else { None };
    let kind = match (is_record, is_dlio || hydra.is_some()) {
        (true, _) => Some(Kind::Record),
        (false, true) if hydra.is_some_and(|(name, _)| name == "dlio_config") => {
            Some(Kind::MlperfStorage)
        }
        (false, true) => Some(Kind::Dlio),
        (false, false) => None,
    };
    Ok(Entries { kind, folders })
}
