//! Finds the folders of runs below a folder in any layout. It reads only names, and does not follow links.

use super::config;
use super::names::{SHARED_STATS, SUMMARY, is_result_file, rank_of};
use feedrate_measure::dlio::micros;
use feedrate_measure::record::file::{RECORD_FILE, read_folder};
use feedrate_spec::escape;
use feedrate_spec::plan::LOG_FILE;
use feedrate_spec::units;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum depth of the search.
const DEPTH_MAX: usize = 32;
/// Maximum number of names read before the first run is found. A folder with more is probably a dataset or far above any run.
const NAMES_MAX: usize = 1 << 17;
/// Maximum number of folders read before the first run is found.
const FOLDERS_MAX: usize = 1 << 12;

/// The program that made a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOrigin {
    /// feedrate, whose record contains more than the DLIO files next to it.
    #[default]
    #[serde(rename = "record")]
    Feedrate,
    /// DLIO.
    Dlio,
    /// DLIO, started by `mlpstorage`.
    MlperfStorage,
}

/// The folder of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRun {
    /// Path of the folder.
    pub path: PathBuf,
    /// Program that made the run.
    pub origin: RunOrigin,
}

/// A folder that is left out, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct LeftOut {
    /// Path of the folder.
    pub path: PathBuf,
    /// Reason for leaving it out.
    pub why: String,
}

impl LeftOut {
    /// Creates an entry for `path`.
    pub fn new(path: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        LeftOut { path: path.into(), why: why.into() }
    }

    /// Returns whether the entry is a row of a CSV that no run matches, and not a folder.
    pub fn is_row(&self) -> bool {
        self.path.extension().is_some_and(|end| end == "csv")
    }
}

/// Finds the runs in `root` and below, sorted by path. Also returns what is left out: unreadable folders, links to folders outside `root`, and
/// folders of runs without files. Folders are read level by level.
///
/// # Errors
/// `root` cannot be read, or contains more than the search limits allow without a run.
pub fn find(root: &Path) -> io::Result<(Vec<FoundRun>, Vec<LeftOut>)> {
    find_within(root, DEPTH_MAX)
}

/// Finds runs as [`find`] does, down to a maximum depth.
///
/// # Errors
/// As [`find`].
pub fn find_within(root: &Path, depth_max: usize) -> io::Result<(Vec<FoundRun>, Vec<LeftOut>)> {
    let mut found = Vec::new();
    let mut left_out = Vec::new();
    let mut links = Vec::new();
    let mut open = VecDeque::from([(root.to_path_buf(), 0)]);
    let mut names = 0;
    let mut folders = 0;
    while let Some((folder, depth)) = open.pop_front() {
        if found.is_empty() && (names > NAMES_MAX || folders == FOLDERS_MAX) {
            return Err(io::Error::other(format!(
                "there is no run among the first {} names in {} folders",
                units::count(names as u64),
                units::count(folders as u64)
            )));
        }
        let entries = match FolderEntries::read(&folder) {
            Err(error) if depth == 0 => return Err(error),
            Err(error) => {
                left_out.push(LeftOut::new(folder, error.to_string()));
                continue;
            }
            Ok(entries) => entries,
        };
        names += entries.count;
        folders += 1;
        links.extend(entries.links.into_iter().map(|name| folder.join(name)));
        if entries.count > NAMES_MAX {
            let why = format!("only its first {} names were read", units::count(NAMES_MAX as u64));
            left_out.push(LeftOut::new(&folder, why));
        }
        let is_deepest = depth == depth_max && !entries.folders.is_empty();
        // Folders below a record belong to its run. Folders below DLIO's files are searched, since the root may happen to contain a file with one of
        // DLIO's names.
        if entries.origin != Some(RunOrigin::Feedrate) && depth < depth_max {
            let is_submission = entries
                .folders
                .iter()
                .any(|name| SUBMISSION_FOLDERS.iter().any(|known| name == known));
            for name in entries.folders {
                let text = name.to_string_lossy();
                let escaped = escape::one_line(&text);
                if *escaped != *text {
                    let why = "its name contains control characters: rename it";
                    left_out.push(LeftOut::new(folder.join(&*escaped), why));
                } else if is_code(&name, is_submission) {
                    let why = "it is the code of a submission, whose runs are test fixtures";
                    left_out.push(LeftOut::new(folder.join(name), why));
                } else {
                    open.push_back((folder.join(name), depth + 1));
                }
            }
        }
        match (entries.origin, entries.metadata) {
            (Some(origin), _) => found.push(FoundRun { path: folder, origin }),
            (None, Some(name)) => {
                let why = format!("it contains `{name}` but no results of DLIO");
                left_out.push(LeftOut::new(folder, why));
            }
            (None, None) if entries.count == 0 && time_of_name(&folder).is_some() => {
                left_out.push(LeftOut::new(folder, "it is empty: the run left no files"));
            }
            (None, None) if is_deepest => {
                let why = format!("it is {depth_max} folders deep and was not searched");
                left_out.push(LeftOut::new(folder, why));
            }
            (None, None) => {}
        }
    }
    left_out.extend(outside_links(root, links));
    found.sort_by(|a, b| a.path.cmp(&b.path));
    left_out.sort();
    Ok((found, left_out))
}

/// Returns the links to folders outside `root`.
fn outside_links(root: &Path, links: Vec<PathBuf>) -> impl Iterator<Item = LeftOut> {
    let root = fs::canonicalize(root).unwrap_or_else(|_| root.into());
    let outside = links.into_iter().filter(move |link| {
        fs::canonicalize(link).is_ok_and(|to| to.is_dir() && !to.starts_with(&root))
    });
    outside.map(|link| LeftOut::new(link, "it is a link, which is not followed: pass its target"))
}

/// Prefixes of `mlpstorage`'s metadata file for benchmarks without DLIO, whose summary has the same name as DLIO's.
pub(crate) const OTHER_BENCHMARKS: [&str; 4] =
    ["kv_cache", "kvcache", "vector_database", "vectordb"];

/// Folders next to `code` in a submission to MLPerf Storage.
const SUBMISSION_FOLDERS: [&str; 2] = ["results", "systems"];

/// Returns whether a folder contains the code of a submission. It is called `code` in a submission, or `v1.0.0_code`, or since version 3.0 `code-`
/// and eight digits of its hash.
fn is_code(name: &OsStr, is_submission: bool) -> bool {
    let Some(name) = name.to_str() else { return false };
    let hash = name.strip_prefix("code-");
    (is_submission && (name == "code" || name.ends_with("_code")))
        || hash.is_some_and(|hash| hash.len() == 8 && hash.bytes().all(|c| c.is_ascii_hexdigit()))
}

/// Parses the time in the name of a folder, `2025-11-30-18-54-16` or `20251130_185416`, to microseconds.
pub(crate) fn time_of_name(path: &Path) -> Option<i64> {
    let name = path.file_name()?.to_str()?;
    let digits: String = name.chars().filter(char::is_ascii_digit).take(14).collect();
    let digits_at = |from: usize, to: usize| digits.get(from..to);
    let date = format!("{}-{}-{}", digits_at(0, 4)?, digits_at(4, 6)?, digits_at(6, 8)?);
    let [hour, minute, second] = [digits_at(8, 10)?, digits_at(10, 12)?, digits_at(12, 14)?];
    micros(&format!("{date}T{hour}:{minute}:{second}.000000"))
}

/// Maximum time between the starts of a job's ranks. Ranks that start in different seconds write to different folders.
const START_US: i64 = 5_000_000;

/// Finds a sibling of a run's folder that started at the same time and contains only files of `ranks`, the ranks that are missing in the run.
pub(crate) fn sibling_with_ranks(folder: &Path, ranks: &[u32]) -> Option<String> {
    let start_us = time_of_name(folder)?;
    let siblings = read_folder(folder.parent()?).ok()?.flatten().map(|entry| entry.path());
    let simultaneous = siblings.filter(|path| {
        let difference_us = time_of_name(path).map(|sibling_us| (sibling_us - start_us).abs());
        path != folder && difference_us.is_some_and(|us| us <= START_US)
    });
    // A folder that also has files of other ranks belongs to another run.
    let matching = simultaneous.filter(|path| {
        let names = file_names(path);
        let mut present = names.iter().filter_map(|name| rank_of(name)).peekable();
        present.peek().is_some() && present.all(|rank| ranks.contains(&rank))
    });
    Some(matching.min()?.file_name()?.to_string_lossy().into_owned())
}

/// Returns the names of files that runs have left in `folder`, and of Hydra's folder.
pub(crate) fn left_by_runs(folder: &Path) -> Vec<String> {
    let mut names = file_names(folder);
    names.retain(|name| is_result_file(name));
    let hydra = config::subfolder(folder).filter(|(name, _)| *name != config::MLPERF_1_FOLDER);
    names.extend(hydra.map(|(name, _)| name.to_string()));
    names.sort_unstable();
    names
}

/// Returns the names of a folder's entries.
pub(super) fn file_names(folder: &Path) -> Vec<String> {
    let entries = read_folder(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[derive(Default)]
struct FolderEntries {
    origin: Option<RunOrigin>,
    folders: Vec<OsString>,
    links: Vec<OsString>,
    /// Name of the file that `mlpstorage` adds to the files of DLIO.
    metadata: Option<String>,
    count: usize,
}

impl FolderEntries {
    fn read(folder: &Path) -> io::Result<Self> {
        let mut is_dlio = false;
        let mut is_record = false;
        let mut found = FolderEntries::default();
        for entry in read_folder(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let text = name.to_string_lossy();
            found.count += 1;
            if found.count > NAMES_MAX {
                break;
            }
            is_record |= text == RECORD_FILE && entry.path().is_file();
            is_dlio |=
                [SUMMARY, LOG_FILE, SHARED_STATS].contains(&&*text) || rank_of(&text).is_some();
            if text.ends_with(config::METADATA_SUFFIX) {
                found.metadata = Some(text.into_owned());
                continue;
            }
            if entry.is_link() {
                found.links.push(name);
            } else if entry.is_folder() && text != "dlio_config" && !text.starts_with('.') {
                found.folders.push(name);
            }
        }
        let hydra = config::subfolder(folder).map(|(name, _)| name);
        // The folder name `configs` is too general to identify a run.
        is_dlio |= hydra.is_some_and(|name| name != config::MLPERF_1_FOLDER);
        let is_other_benchmark = found
            .metadata
            .as_ref()
            .is_some_and(|name| OTHER_BENCHMARKS.iter().any(|prefix| name.starts_with(prefix)));
        is_dlio &= !is_other_benchmark;
        found.origin = match hydra {
            _ if is_record => Some(RunOrigin::Feedrate),
            _ if !is_dlio => None,
            None | Some(".hydra") => Some(RunOrigin::Dlio),
            Some(_) => Some(RunOrigin::MlperfStorage),
        };
        Ok(found)
    }
}
