//! Finds the folders of runs below a folder, whatever the layout. Reads names only; links are not followed.

use super::config;
use super::names::{LOG, SHARED_STATS, SUMMARY, is_result_file, rank_of};
use feedrate_measure::dlio::micros;
use feedrate_measure::record::file::RECORD_FILE;
use feedrate_spec::escape;
use feedrate_spec::units;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders inside each other that are looked into.
const DEPTH_MAX: usize = 32;
/// Names, and folders, that are read until the first run is found: what holds none by then is a folder of data, or far above any run.
const NAMES_MAX: usize = 1 << 17;
const FOLDERS_MAX: usize = 1 << 12;

/// The maker of a run's folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOrigin {
    /// feedrate: there is a record, which tells more than DLIO's files beside it.
    #[default]
    #[serde(rename = "record")]
    Feedrate,
    /// DLIO.
    Dlio,
    /// DLIO under `mlpstorage`.
    MlperfStorage,
}

/// The folder of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRun {
    /// Where.
    pub path: PathBuf,
    /// Its maker.
    pub origin: RunOrigin,
}

/// A folder, and why it is left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct LeftOut {
    /// Its folder.
    pub path: PathBuf,
    /// The reason.
    pub why: String,
}

impl LeftOut {
    /// Leave out `path`.
    pub fn new(path: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        LeftOut { path: path.into(), why: why.into() }
    }
}

/// The folders of runs in `root` and below it, in the order of their paths; and what is below it and cannot be used: closed folders, links that lead
/// elsewhere, folders of runs that left nothing. Folders are read level by level.
///
/// # Errors
/// `root` cannot be looked into, or holds no run and more than is looked through.
pub fn find(root: &Path) -> io::Result<(Vec<FoundRun>, Vec<LeftOut>)> {
    find_within(root, DEPTH_MAX)
}

/// The same, so many folders deep at most.
///
/// # Errors
/// As [`find`].
pub fn find_within(root: &Path, depth_max: usize) -> io::Result<(Vec<FoundRun>, Vec<LeftOut>)> {
    let (mut found, mut closed, mut links) = (Vec::new(), Vec::new(), Vec::new());
    let mut open = VecDeque::from([(root.to_path_buf(), 0)]);
    let (mut names, mut folders) = (0, 0);
    while let Some((folder, depth)) = open.pop_front() {
        if found.is_empty() && (names > NAMES_MAX || folders == FOLDERS_MAX) {
            let (names, folders) = (units::count(names as u64), units::count(folders as u64));
            let why = format!("no run is among the first {names} names, in {folders} folders");
            return Err(io::Error::other(why));
        }
        let entries = match FolderEntries::read(&folder) {
            Err(error) if depth == 0 => return Err(error),
            Err(error) => {
                closed.push(LeftOut::new(folder, error.to_string()));
                continue;
            }
            Ok(entries) => entries,
        };
        (names, folders) = (names + entries.count, folders + 1);
        links.extend(entries.links.into_iter().map(|name| folder.join(name)));
        if entries.count > NAMES_MAX {
            let why =
                format!("of its names only the first {} were read", units::count(NAMES_MAX as u64));
            closed.push(LeftOut::new(&folder, why));
        }
        let is_deepest = depth == depth_max && !entries.folders.is_empty();
        // What lies below a record belongs to its run; a root may have a file of a DLIO run's name.
        if entries.origin != Some(RunOrigin::Feedrate) && depth < depth_max {
            let is_submission =
                entries.folders.iter().any(|name| OF_SUBMISSION.iter().any(|one| name == one));
            for name in entries.folders {
                let text = name.to_string_lossy();
                let shown = escape::one_line(&text);
                if *shown != *text {
                    let why = "control characters are in its name: give it another";
                    closed.push(LeftOut::new(folder.join(&*shown), why));
                } else if is_code(&name, is_submission) {
                    let why = "it is the code of a submission, whose runs are fixtures of tests";
                    closed.push(LeftOut::new(folder.join(name), why));
                } else {
                    open.push_back((folder.join(name), depth + 1));
                }
            }
        }
        match (entries.origin, entries.metadata) {
            (Some(origin), _) => found.push(FoundRun { path: folder, origin }),
            (None, Some(name)) => {
                let why = format!("it holds `{name}`, and no results of DLIO");
                closed.push(LeftOut::new(folder, why));
            }
            (None, None) if entries.count == 0 && time_of_name(&folder).is_some() => {
                closed.push(LeftOut::new(folder, "it is empty: a run that left nothing"));
            }
            (None, None) if is_deepest => {
                let why = format!("it lies {depth_max} folders deep: not looked into");
                closed.push(LeftOut::new(folder, why));
            }
            (None, None) => {}
        }
    }
    closed.extend(leading_elsewhere(root, links));
    found.sort_by(|a, b| a.path.cmp(&b.path));
    closed.sort();
    Ok((found, closed))
}

/// Those of the links that lead to folders outside of `root`.
fn leading_elsewhere(root: &Path, links: Vec<PathBuf>) -> impl Iterator<Item = LeftOut> {
    let root = fs::canonicalize(root).unwrap_or_else(|_| root.into());
    let elsewhere = links.into_iter().filter(move |link| {
        fs::canonicalize(link).is_ok_and(|to| to.is_dir() && !to.starts_with(&root))
    });
    elsewhere.map(|link| LeftOut::new(link, "it is a link, which is not followed: give its target"))
}

/// Beginnings of `mlpstorage`'s file of benchmarks without DLIO, which have a summary of the same name.
pub(crate) const OTHER_BENCHMARKS: [&str; 4] =
    ["kv_cache", "kvcache", "vector_database", "vectordb"];

/// Folders beside `code` in a submission to MLPerf Storage.
const OF_SUBMISSION: [&str; 2] = ["results", "systems"];

/// Whether a folder has the code of a submission: `code` in it, or since 3.0 `code-` and eight digits of its hash.
fn is_code(name: &OsStr, is_submission: bool) -> bool {
    let hash = name.to_str().and_then(|name| name.strip_prefix("code-"));
    (is_submission && name == "code")
        || hash.is_some_and(|hash| hash.len() == 8 && hash.bytes().all(|c| c.is_ascii_hexdigit()))
}

/// The time in the name of a folder, `2025-11-30-18-54-16` or `20251130_185416`.
pub(crate) fn time_of_name(path: &Path) -> Option<i64> {
    let name = path.file_name()?.to_str()?;
    let digits: String = name.chars().filter(char::is_ascii_digit).take(14).collect();
    let at = |from: usize, to: usize| digits.get(from..to);
    let date = format!("{}-{}-{}", at(0, 4)?, at(4, 6)?, at(6, 8)?);
    micros(&format!("{date}T{}:{}:{}.000000", at(8, 10)?, at(10, 12)?, at(12, 14)?))
}

/// Ranks that cross a second as they start write into a folder of that second; and those of one job start within so many.
const START_US: i64 = 5_000_000;

/// The folder beside a run's that was begun with it, by its name, and has files of one of these ranks.
pub(crate) fn sibling_with_ranks(folder: &Path, ranks: &[u32]) -> Option<String> {
    let begun = time_of_name(folder)?;
    let beside = fs::read_dir(folder.parent()?).ok()?.flatten().map(|entry| entry.path());
    let at_once = beside.filter(|path| {
        let apart = time_of_name(path).map(|at| (at - begun).abs());
        path != folder && apart.is_some_and(|us| us <= START_US)
    });
    // Another run of the same second has the ranks that are here too.
    let with = at_once.filter(|path| {
        let names = file_names(path);
        let mut there = names.iter().filter_map(|name| rank_of(name)).peekable();
        there.peek().is_some() && there.all(|rank| ranks.contains(&rank))
    });
    Some(with.min()?.file_name()?.to_string_lossy().into_owned())
}

/// Names of what runs have left in `folder` itself, and Hydra's folder with them.
pub(crate) fn left_by_runs(folder: &Path) -> Vec<String> {
    let mut names = file_names(folder);
    names.retain(|name| is_result_file(name));
    let hydra = config::subfolder(folder).filter(|(name, _)| *name != config::MLPERF_1_FOLDER);
    names.extend(hydra.map(|(name, _)| name.to_string()));
    names.sort_unstable();
    names
}

/// The names of the files in a folder.
pub(super) fn file_names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[derive(Default)]
struct FolderEntries {
    origin: Option<RunOrigin>,
    folders: Vec<OsString>,
    links: Vec<OsString>,
    /// The file that `mlpstorage` writes beside those of DLIO.
    metadata: Option<String>,
    count: usize,
}

impl FolderEntries {
    fn read(folder: &Path) -> io::Result<Self> {
        let (mut is_dlio, mut is_record) = (false, false);
        let mut found = FolderEntries::default();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let text = name.to_string_lossy();
            found.count += 1;
            if found.count > NAMES_MAX {
                break;
            }
            is_record |= text == RECORD_FILE && entry.path().is_file();
            is_dlio |= [SUMMARY, LOG, SHARED_STATS].contains(&&*text) || rank_of(&text).is_some();
            if text.ends_with(config::METADATA_SUFFIX) {
                found.metadata = Some(text.into_owned());
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_symlink() {
                found.links.push(name);
            } else if kind.is_dir() && text != "dlio_config" && !text.starts_with('.') {
                found.folders.push(name);
            }
        }
        let hydra = config::subfolder(folder).map(|(name, _)| name);
        // A folder of configs may be of anything.
        is_dlio |= hydra.is_some_and(|name| name != config::MLPERF_1_FOLDER);
        is_dlio &= !found
            .metadata
            .iter()
            .any(|name| OTHER_BENCHMARKS.iter().any(|one| name.starts_with(one)));
        found.origin = match hydra {
            _ if is_record => Some(RunOrigin::Feedrate),
            _ if !is_dlio => None,
            None | Some(".hydra") => Some(RunOrigin::Dlio),
            Some(_) => Some(RunOrigin::MlperfStorage),
        };
        Ok(found)
    }
}
