//! Finds and removes feedrate's datasets, copies of datasets, results and checkpoints below a folder, and datasets and checkpoints in a store.
//! It removes only files that a manifest or a record lists.

use crate::dlio::report_name;
use crate::result_folder::RunFolder;
use crate::store;
use feedrate_data::lock::{DatasetLock, LockAccess, LockAttempt};
use feedrate_data::manifest;
use feedrate_data::names::{OwnFileVisit, OwnFiles, VisitedFiles};
use feedrate_data::removal::{self, FolderContents, Removal};
use feedrate_data::stage::{self, Stage};
use feedrate_data::storage::{self, Depth, EntryKind, StorageError};
use feedrate_measure::record::Record;
use feedrate_measure::record::file::{RECORD_FILE, read_folder};
use feedrate_results::{leftovers, load_run};
use feedrate_run::checkpoint;
use feedrate_spec::names;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Maximum depth of folders in a search.
const DEPTH_MAX: usize = 32;

names! {
    /// A kind of files that can be removed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum CleanKind {
        /// Generated datasets.
        Datasets = "datasets",
        /// Copies of datasets (`reader.stage`).
        Copies = "copies",
        /// Results of runs.
        Results = "results",
        /// Folders of checkpoints.
        Checkpoints = "checkpoints",
    }
}

/// A folder that was examined or cleaned.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CleanItem {
    /// Kind of the files.
    pub kind: CleanKind,
    /// Path of the folder.
    pub folder: PathBuf,
    /// Number of files to remove.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Number of unfinished uploads of such files to a store.
    pub uploads: u64,
    /// Examples of files that stay.
    pub stays: Vec<String>,
    /// Whether another process uses the folder, which therefore stays.
    pub in_use: bool,
}

/// A folder that can be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleanable {
    /// Kind of the files.
    pub kind: CleanKind,
    /// Path of the folder.
    pub folder: PathBuf,
}

/// Finds all folders that can be cleaned, sorted by path. Reads only the names of files and the manifests of checkpoints. `markers` are names
/// of files that a generated dataset may have instead of a manifest.
///
/// # Errors
/// A store cannot be listed.
pub fn find(folders: &[PathBuf], markers: &[&str]) -> Result<Vec<Cleanable>, StorageError> {
    let mut found = Vec::new();
    for folder in folders {
        if store::is_url(folder) {
            find_in_store(folder, 0, &mut found)?;
        } else {
            find_below(folder, markers, 0, &mut found);
        }
    }
    found.sort_by(|first, second| first.folder.cmp(&second.folder));
    found.dedup();
    Ok(found)
}

/// Finds datasets and checkpoints below a URL. The objects of a dataset, which may be many, are not listed.
fn find_in_store(url: &Path, depth: usize, found: &mut Vec<Cleanable>) -> Result<(), StorageError> {
    let mut has_manifest = false;
    let mut steps = BTreeSet::new();
    let mut folders = BTreeSet::new();
    storage::open_root(url)?.visit_entries("", Depth::Folder, &mut |name, kind| {
        let is_folder = kind == EntryKind::Folder;
        has_manifest |= name == manifest::FILE_NAME && !is_folder;
        steps.extend(checkpoint::step_in_name(name));
        if is_folder && !checkpoint::is_folder_name(name) && depth < DEPTH_MAX {
            folders.insert(name.to_string());
        }
        Ok(())
    })?;
    let mut add = |kind| found.push(Cleanable { kind, folder: url.to_path_buf() });
    if has_manifest {
        add(CleanKind::Datasets);
        return Ok(());
    }
    if checkpoint::contains_checkpoints(url, &steps)? {
        add(CleanKind::Checkpoints);
    }
    folders.iter().try_for_each(|name| find_in_store(&url.join(name), depth + 1, found))
}

fn find_below(folder: &Path, markers: &[&str], depth: usize, found: &mut Vec<Cleanable>) {
    let mut add = |kind| found.push(Cleanable { kind, folder: folder.to_path_buf() });
    if folder.join(manifest::FILE_NAME).is_file()
        || markers.iter().any(|name| folder.join(name).is_file())
    {
        add(CleanKind::Datasets);
    }
    if folder.join(stage::MANIFEST_FILE).is_file() {
        add(CleanKind::Copies);
    }
    if folder.join(RECORD_FILE).is_file() {
        add(CleanKind::Results);
    }
    let has_checkpoints = checkpoint::list_steps(folder)
        .and_then(|steps| checkpoint::contains_checkpoints(folder, &steps));
    if has_checkpoints.unwrap_or(false) {
        add(CleanKind::Checkpoints);
    }
    for entry in read_folder(folder).into_iter().flatten().flatten() {
        if depth < DEPTH_MAX && entry.is_folder() {
            find_below(&entry.path(), markers, depth + 1, found);
        }
    }
}

impl Cleanable {
    /// Counts the files, and removes them if `removes` is set and no other process uses them. Returns `None` if the files are not feedrate's, or
    /// if another process has removed them.
    ///
    /// # Errors
    /// Fails if files cannot be read or removed.
    pub fn clean(self, removes: bool, markers: &[&str]) -> anyhow::Result<Option<CleanItem>> {
        let Cleanable { kind, folder } = self;
        let contents = match kind {
            CleanKind::Datasets => clean_dataset(&folder, removes, markers),
            CleanKind::Copies => clean_copy(&folder, removes),
            CleanKind::Results => clean_results(&folder, removes),
            CleanKind::Checkpoints => clean_checkpoints(&folder, removes),
        }
        .map_err(|error| error.context(format!("cannot clean `{}`", folder.display())))?;
        Ok(contents.map(|Contents { found, in_use }| {
            let FolderContents { files, bytes, uploads, foreign_files: stays } = found;
            CleanItem { kind, folder, files, bytes, uploads, stays, in_use }
        }))
    }
}

/// Feedrate's files in a folder.
struct Contents {
    found: FolderContents,
    in_use: bool,
}

/// Removes files with `remove`, or only examines them with `inspect`.
fn inspect_or_remove(
    removes: bool,
    inspect: impl FnOnce() -> anyhow::Result<Option<FolderContents>>,
    remove: impl FnOnce() -> anyhow::Result<Removal>,
) -> anyhow::Result<Option<Contents>> {
    let removal = removes.then(remove).transpose()?;
    let in_use = matches!(removal, Some(Removal::InUse { .. }));
    let found = match removal {
        Some(Removal::Removed(found)) => Some(found),
        Some(Removal::Foreign) => None,
        Some(Removal::InUse { .. }) | None => inspect()?,
    };
    Ok(found.map(|found| Contents { found, in_use }))
}

fn clean_dataset(
    folder: &Path,
    removes: bool,
    markers: &[&str],
) -> anyhow::Result<Option<Contents>> {
    let inspect = || Ok(removal::inspect_folder(folder, markers)?);
    inspect_or_remove(removes, inspect, || {
        Ok(removal::remove_folder(folder, markers, &holder_text())?)
    })
}

/// Describes this process to processes that wait for its lock.
fn holder_text() -> String {
    format!("`feedrate clean` of process {}", std::process::id())
}

fn clean_copy(folder: &Path, removes: bool) -> anyhow::Result<Option<Contents>> {
    let Some(copy) = Stage::find_in(folder)? else { return Ok(None) };
    let remove = || {
        let lock = DatasetLock::try_acquire(folder, LockAccess::Exclusive, &holder_text())?;
        Ok(match lock {
            LockAttempt::Held(lock) if !copy.has_readers() => Removal::Removed(copy.remove(lock)?),
            _ => Removal::InUse { holder: None },
        })
    };
    inspect_or_remove(removes, || Ok(Some(copy.inspect()?)), remove)
}

fn clean_checkpoints(folder: &Path, removes: bool) -> anyhow::Result<Option<Contents>> {
    let clean = |removes| checkpoint::clean(folder, removes).map(Some);
    let remove = || Ok(removal::remove_locked(folder, &holder_text(), || clean(true))?);
    let contents = inspect_or_remove(removes, || Ok(clean(false)?), remove)?;
    Ok(contents.filter(|contents| contents.in_use || contents.found.files > 0))
}

fn clean_results(folder: &Path, removes: bool) -> anyhow::Result<Option<Contents>> {
    let Ok(record) = load_run(folder) else { return Ok(None) };
    let files = RunFiles::new(&record);
    let storage = storage::open("file", folder)?;
    // A running run has locked its folder.
    let locked = RunFolder::take(folder.to_path_buf(), "another folder");
    let remove = || {
        if locked.is_err() {
            return Ok(Removal::InUse { holder: None });
        }
        let found = removal::remove_files(&files, &*storage)?;
        // This fails if the folder has other files, or belongs to another user.
        let _ = storage.remove_dir("");
        Ok(Removal::Removed(found))
    };
    let inspect = || Ok(Some(removal::inspect_files(&files, &*storage)?));
    let contents = inspect_or_remove(removes, inspect, remove)?;
    // Checkpoints in a store are removed by their own URL.
    let checkpoints = record.plan.checkpoint.as_ref().filter(|plan| plan.is_in_store());
    Ok(contents.map(|Contents { mut found, .. }| {
        found.foreign_files.extend(checkpoints.map(|plan| plan.folder.clone()));
        Contents { found, in_use: locked.is_err() }
    }))
}

/// The names of the files of a run, from its record.
struct RunFiles(Vec<String>);

impl RunFiles {
    fn new(record: &Record) -> Self {
        // Earlier builds named the report after the workload.
        let mut names = vec![report_name(&record.plan.model), report_name(&record.plan.workload)];
        names.dedup();
        names.extend(leftovers::feedrate_files(record));
        RunFiles(names)
    }
}

impl OwnFiles for RunFiles {
    fn folders(&self) -> Vec<String> {
        leftovers::feedrate_folders()
    }

    fn visit(
        &self,
        _files: VisitedFiles<'_>,
        visit: &mut OwnFileVisit<'_>,
    ) -> Result<(), StorageError> {
        self.0.iter().try_for_each(|name| visit(std::slice::from_ref(name), None))
    }

    fn has(&self, path: &str) -> bool {
        self.0.iter().any(|name| name == path)
    }
}
