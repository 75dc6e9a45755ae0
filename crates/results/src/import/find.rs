//! Finds the folders of runs below a folder, whatever the layout. Reads names only; links are not followed.

use super::config;
use super::dlio::SUMMARY;
use super::log::LOG;
use super::rank::{STATS_OF_ALL, is_of_rank};
use feedrate_measure::dlio::micros;
use feedrate_measure::record::file::RECORD_FILE;
use serde::Serialize;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Folders inside each other that are looked into.
const DEPTH_MAX: usize = 32;

/// The maker of a run's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// feedrate: there is a record, which tells more than DLIO's files beside it.
    #[serde(rename = "record")]
    Feedrate,
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
    /// Its maker.
    pub origin: Origin,
}

/// A folder that cannot be looked into, and why.
pub type Closed = (PathBuf, String);

/// The folders of runs in `root` and below it, in the order of their paths; and what is below it and cannot be used: closed folders, links that lead
/// elsewhere, folders of runs that left nothing.
///
/// # Errors
/// `root` cannot be looked into.
pub fn find(root: &Path) -> io::Result<(Vec<Found>, Vec<Closed>)> {
    let mut found = Vec::new();
    let mut closed = Vec::new();
    let mut open = vec![(root.to_path_buf(), 0)];
    let real_root = std::fs::canonicalize(root).unwrap_or_else(|_| root.into());
    while let Some((folder, depth)) = open.pop() {
        let entries = match entries(&folder) {
            Err(error) if depth == 0 => return Err(error),
            Err(error) => {
                closed.push((folder, error.to_string()));
                continue;
            }
            Ok(entries) => entries,
        };
        closed.extend(entries.left_nothing(&folder).map(|why| (folder.clone(), why)));
        for name in entries.links {
            let link = folder.join(name);
            let leads_out = |to: PathBuf| to.is_dir() && !to.starts_with(&real_root);
            if std::fs::canonicalize(&link).is_ok_and(leads_out) {
                closed.push((link, "it is a link, which is not followed: give its target".into()));
            }
        }
        // What lies below a record belongs to its run; a root may have a file of a DLIO run's name.
        if entries.origin != Some(Origin::Feedrate) && depth < DEPTH_MAX {
            let below = entries.folders.into_iter().map(|name| (folder.join(name), depth + 1));
            open.extend(below);
        } else if entries.origin.is_none() && !entries.folders.is_empty() {
            let why = format!("it lies {DEPTH_MAX} folders deep: not looked into");
            closed.push((folder.clone(), why));
        }
        found.extend(entries.origin.map(|origin| Found { path: folder, origin }));
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    closed.sort();
    Ok((found, closed))
}

/// The time in the name of a folder, `2025-11-30-18-54-16` or `20251130_185416`.
pub(crate) fn time_of_name(path: &Path) -> Option<i64> {
    let name = path.file_name()?.to_str()?;
    let digits: String = name.chars().filter(char::is_ascii_digit).take(14).collect();
    let at = |from: usize, to: usize| digits.get(from..to);
    let date = format!("{}-{}-{}", at(0, 4)?, at(4, 6)?, at(6, 8)?);
    micros(&format!("{date}T{}:{}:{}.000000", at(8, 10)?, at(10, 12)?, at(12, 14)?))
}

/// The names of the files in a folder.
pub(super) fn file_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[derive(Default)]
struct Entries {
    origin: Option<Origin>,
    folders: Vec<OsString>,
    links: Vec<OsString>,
    /// The file that `mlpstorage` writes beside those of DLIO.
    metadata: Option<String>,
    count: usize,
}

fn entries(folder: &Path) -> io::Result<Entries> {
    let (mut is_dlio, mut is_record, mut has_hydra) = (false, false, false);
    let mut found = Entries::default();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let text = name.to_string_lossy();
        found.count += 1;
        is_record |= text == RECORD_FILE && entry.path().is_file();
        is_dlio |= text == SUMMARY || text == LOG || text == STATS_OF_ALL || is_of_rank(&text);
        if text.ends_with("_metadata.json") {
            found.metadata = Some(text.into_owned());
            continue;
        }
        let kind = entry.file_type()?;
        has_hydra |= config::SUBFOLDERS.contains(&text.as_ref());
        if kind.is_symlink() {
            found.links.push(name);
        } else if kind.is_dir() && text != "dlio_config" && !text.starts_with('.') {
            found.folders.push(name);
        }
    }
    let hydra = if has_hydra { config::subfolder(folder) } else { None };
    let hydra = hydra.map(|(name, _)| name);
    // A folder of configs may be of anything.
    is_dlio |= hydra.is_some_and(|name| name != config::OF_MLPERF_1);
    found.origin = match (is_record, is_dlio) {
        (true, _) => Some(Origin::Feedrate),
        (false, true) if hydra.is_some_and(|name| name != ".hydra") => Some(Origin::MlperfStorage),
        (false, true) => Some(Origin::Dlio),
        (false, false) => None,
    };
    Ok(found)
}

impl Entries {
    /// The reason for which a folder that a run was to write into has no results.
    fn left_nothing(&self, folder: &Path) -> Option<String> {
        match (&self.origin, &self.metadata) {
            (Some(_), _) => None,
            (None, Some(name)) => Some(format!("it holds `{name}`, and no results of DLIO")),
            (None, None) => {
                let is_of_run = self.count == 0 && time_of_name(folder).is_some();
                is_of_run.then(|| "it is empty: a run that left nothing".into())
            }
        }
    }
}
