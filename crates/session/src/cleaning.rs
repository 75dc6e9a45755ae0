//! Finds datasets, copies of them, results and checkpoints of feedrate below a folder, and removes them. Removes nothing that no manifest
//! and no record names.

use crate::dlio::report_name;
use crate::result_folder::RunFolder;
use feedrate_data::lock::{DatasetLock, LockAccess, LockAttempt};
use feedrate_data::manifest;
use feedrate_data::names::{OwnFileVisit, OwnFiles};
use feedrate_data::removal::{self, FolderContents, Removal};
use feedrate_data::stage::{self, Stage};
use feedrate_data::storage::{self, StorageError};
use feedrate_measure::record::Record;
use feedrate_measure::record::file::RECORD_FILE;
use feedrate_results::{leftovers, load_run};
use feedrate_run::checkpoint;
use feedrate_spec::names;
use schemars::JsonSchema;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders inside each other that are looked into.
const DEPTH_MAX: usize = 32;

names! {
    /// Something that may be removed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum CleanKind {
        /// Made by `generate`, or `run`.
        Datasets = "datasets",
        /// Those of datasets, which `reader.stage` makes.
        Copies = "copies",
        /// The folders of runs.
        Results = "results",
        /// Folders of checkpoints.
        Checkpoints = "checkpoints",
    }
}

/// One of them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CleanItem {
    /// Its kind.
    pub kind: CleanKind,
    /// Its folder.
    pub folder: PathBuf,
    /// Files that are removed.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// A few of what stays.
    pub stays: Vec<String>,
    /// Somebody makes, reads or writes it: it stays.
    pub in_use: bool,
}

/// A folder that can be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleanable {
    /// Its kind.
    pub kind: CleanKind,
    /// The folder.
    pub folder: PathBuf,
}

/// Finds all below folders, in order. Only names are read, and manifests of checkpoints. `markers` are files that a dataset of feedrate may
/// have instead of a manifest.
pub fn find(folders: &[PathBuf], markers: &[&str]) -> Vec<Cleanable> {
    let mut found = Vec::new();
    folders.iter().for_each(|folder| find_below(folder, markers, 0, &mut found));
    found.sort_by(|first, second| first.folder.cmp(&second.folder));
    found.dedup();
    found
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
    if checkpoint::contains_checkpoints(folder) {
        add(CleanKind::Checkpoints);
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if depth < DEPTH_MAX && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find_below(&entry.path(), markers, depth + 1, found);
        }
    }
}

impl Cleanable {
    /// Counts its files, and removes them if `removes` and nothing uses them. `None` if nothing shows that feedrate made the files, or
    /// another process has removed them in the meantime.
    pub fn clean(self, removes: bool, markers: &[&str]) -> anyhow::Result<Option<CleanItem>> {
        let Cleanable { kind, folder } = self;
        let contents = match kind {
            CleanKind::Datasets => dataset(&folder, removes, markers),
            CleanKind::Copies => copies(&folder, removes),
            CleanKind::Results => results(&folder, removes),
            CleanKind::Checkpoints => checkpoints(&folder, removes),
        }
        .map_err(|error| error.context(format!("cannot clean `{}`", folder.display())))?;
        Ok(contents.map(|Contents { found, in_use }| {
            let FolderContents { files, bytes, foreign_files: stays } = found;
            CleanItem { kind, folder, files, bytes, stays, in_use }
        }))
    }
}

/// Files of feedrate in a folder.
struct Contents {
    found: FolderContents,
    in_use: bool,
}

fn look_or_remove(
    removes: bool,
    look: impl FnOnce() -> anyhow::Result<Option<FolderContents>>,
    remove: impl FnOnce() -> anyhow::Result<Removal>,
) -> anyhow::Result<Option<Contents>> {
    let removal = removes.then(remove).transpose()?;
    let in_use = matches!(removal, Some(Removal::InUse { .. }));
    let found = match removal {
        Some(Removal::Removed(found)) => Some(found),
        Some(Removal::NotOurs) => None,
        Some(Removal::InUse { .. }) | None => look()?,
    };
    Ok(found.map(|found| Contents { found, in_use }))
}

fn dataset(folder: &Path, removes: bool, markers: &[&str]) -> anyhow::Result<Option<Contents>> {
    let look = || Ok(removal::inspect_folder(folder, markers)?);
    look_or_remove(removes, look, || Ok(removal::remove_folder(folder, markers, &holder())?))
}

fn holder() -> String {
    format!("`feedrate clean` of process {}", std::process::id())
}

fn copies(folder: &Path, removes: bool) -> anyhow::Result<Option<Contents>> {
    let Some(copy) = Stage::find_in(folder)? else { return Ok(None) };
    let remove = || {
        let lock = DatasetLock::try_acquire(folder, LockAccess::Exclusive, &holder())?;
        Ok(match lock {
            LockAttempt::Held(lock) if !copy.has_readers() => Removal::Removed(copy.remove(lock)?),
            _ => Removal::InUse { holder: None },
        })
    };
    look_or_remove(removes, || Ok(Some(copy.inspect()?)), remove)
}

fn checkpoints(folder: &Path, removes: bool) -> anyhow::Result<Option<Contents>> {
    let clean = |removes| checkpoint::clean(folder, removes).map(Some);
    let remove = || Ok(removal::remove_locked(folder, &holder(), || clean(true))?);
    let contents = look_or_remove(removes, || Ok(clean(false)?), remove)?;
    Ok(contents.filter(|contents| contents.in_use || contents.found.files > 0))
}

fn results(folder: &Path, removes: bool) -> anyhow::Result<Option<Contents>> {
    let Ok(record) = load_run(folder) else { return Ok(None) };
    let files = RunFiles::new(&record);
    let storage = storage::open("file", folder)?;
    // A run that goes on holds its folder.
    let held = RunFolder::take(folder.to_path_buf(), "another folder");
    let remove = || {
        if held.is_err() {
            return Ok(Removal::InUse { holder: None });
        }
        let found = removal::remove_files(&files, &*storage)?;
        // It may hold files of others, or belong to others itself.
        let _ = storage.remove_dir("");
        Ok(Removal::Removed(found))
    };
    let look = || Ok(Some(removal::inspect_files(&files, &*storage)?));
    let contents = look_or_remove(removes, look, remove)?;
    Ok(contents.map(|contents| Contents { in_use: held.is_err(), ..contents }))
}

/// The files of a run by its record.
struct RunFiles(Vec<String>);

impl RunFiles {
    fn new(record: &Record) -> Self {
        // Earlier builds named the report after the workload.
        let mut names = vec![report_name(&record.plan.model), report_name(&record.plan.workload)];
        names.dedup();
        names.extend(leftovers::own_files(record));
        RunFiles(names)
    }
}

impl OwnFiles for RunFiles {
    fn folders(&self) -> Vec<String> {
        leftovers::own_folders()
    }

    fn each(&self, visit: &mut OwnFileVisit<'_>) -> Result<(), StorageError> {
        self.0.iter().try_for_each(|name| visit(std::slice::from_ref(name), None))
    }

    fn has(&self, path: &str) -> bool {
        self.0.iter().any(|name| name == path)
    }
}
