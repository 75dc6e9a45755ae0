//! `feedrate clean`: datasets and their copies, results and checkpoints of feedrate, shown first and removed if told so. Removes nothing that no
//! manifest and no record names.

use crate::dlio::report_name;
use crate::exit::Exit;
use crate::messages::{self, StdoutError};
use crate::text;
use clap::{Args, ValueEnum};
use feedrate_data::lock::{DatasetLock, LockAccess, LockAttempt};
use feedrate_data::manifest;
use feedrate_data::names::{OwnFileVisit, OwnFiles};
use feedrate_data::removal::{self, FolderContents, Removal};
use feedrate_data::stage::{self, Stage};
use feedrate_data::storage::{self, StorageError};
use feedrate_measure::record::Record;
use feedrate_measure::record::file::RECORD_FILE;
use feedrate_report::output::Schema;
use feedrate_results::{leftovers, load_run};
use feedrate_run::checkpoint;
use feedrate_session::result_folder::RunFolder;
use feedrate_spec::refusal::refuse;
use feedrate_spec::units;
use feedrate_study::own_datasets::CLAIM;
use schemars::JsonSchema;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders inside each other that are looked into.
const DEPTH_MAX: usize = 32;

/// `feedrate clean`.
#[derive(Debug, Args)]
#[command(after_help = "\
Files are removed that the manifest of a dataset, copy or checkpoint names, or the record of a run, and folders that are empty then. \
All other files stay, and are named. Links are not followed.

Examples:
  feedrate clean data results checkpoints
  feedrate clean data --only datasets --yes")]
pub(super) struct CleanArguments {
    /// Folders of datasets, copies, runs or checkpoints, or any folder above them.
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Remove what is shown; without it nothing is removed.
    #[arg(long)]
    yes: bool,
    /// Only this kind.
    #[arg(long, value_name = "KIND")]
    only: Option<CleanKind>,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Something that may be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "snake_case")]
enum CleanKind {
    /// Made by `generate`, or `run`.
    Datasets,
    /// Those of datasets, which `reader.stage` makes.
    Copies,
    /// The folders of runs.
    Results,
    /// Folders of checkpoints.
    Checkpoints,
}

/// One of them.
#[derive(Serialize, JsonSchema)]
pub(super) struct CleanItem {
    kind: CleanKind,
    folder: PathBuf,
    files: u64,
    bytes: u64,
    /// A few of what stays.
    stays: Vec<String>,
    /// Somebody makes, reads or writes it: it stays.
    in_use: bool,
}

/// Show what there is, and remove it where that is wanted.
pub(super) fn clean(arguments: &CleanArguments) -> anyhow::Result<Exit> {
    let mut found = Vec::new();
    for folder in &arguments.folders {
        if !folder.is_dir() {
            let message = format!("there is no folder `{}`", folder.display());
            return refuse(
                message,
                "give folders of datasets, results or checkpoints, or any above them",
            );
        }
        find(&folder.canonicalize()?, 0, &mut found);
    }
    found.retain(|(kind, _)| arguments.only.is_none_or(|only| only == *kind));
    found.sort_by(|a, b| a.1.cmp(&b.1));
    found.dedup();
    let mut items = Vec::new();
    let mut errors = Vec::new();
    for (kind, folder) in found {
        let own = match kind {
            CleanKind::Datasets => dataset(&folder, arguments.yes),
            CleanKind::Copies => copies(&folder, arguments.yes),
            CleanKind::Results => results(&folder, arguments.yes),
            CleanKind::Checkpoints => checkpoints(&folder, arguments.yes),
        };
        match own {
            Ok(None) => {}
            Ok(Some(Own { found, in_use })) => {
                let FolderContents { files, bytes, foreign_files: stays } = found;
                items.push(CleanItem { kind, folder, files, bytes, stays, in_use });
            }
            Err(error) => {
                errors.push(error.context(format!("cannot clean `{}`", folder.display())));
            }
        }
    }
    tell(&items, arguments)?;
    errors.iter().for_each(messages::print_error);
    if !errors.is_empty() {
        return Ok(Exit::Failed);
    }
    Ok(if arguments.yes && items.iter().any(|item| item.in_use) { Exit::Unmet } else { Exit::Fine })
}

/// All below `folder`, of which only names are read, and manifests of checkpoints.
fn find(folder: &Path, depth: usize, found: &mut Vec<(CleanKind, PathBuf)>) {
    if [manifest::FILE_NAME, CLAIM].iter().any(|name| folder.join(name).is_file()) {
        found.push((CleanKind::Datasets, folder.to_path_buf()));
    }
    if folder.join(stage::MANIFEST_FILE).is_file() {
        found.push((CleanKind::Copies, folder.to_path_buf()));
    }
    if folder.join(RECORD_FILE).is_file() {
        found.push((CleanKind::Results, folder.to_path_buf()));
    }
    if checkpoint::contains_checkpoints(folder) {
        found.push((CleanKind::Checkpoints, folder.to_path_buf()));
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if depth < DEPTH_MAX && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find(&entry.path(), depth + 1, found);
        }
    }
}

/// Files of ours in a folder, which were removed if that is wanted and nothing uses them.
struct Own {
    found: FolderContents,
    in_use: bool,
}

/// `None` if nothing shows that feedrate made the files, or another process has removed them meanwhile.
fn look_or_remove(
    removes: bool,
    look: impl FnOnce() -> anyhow::Result<Option<FolderContents>>,
    remove: impl FnOnce() -> anyhow::Result<Removal>,
) -> anyhow::Result<Option<Own>> {
    let removal = removes.then(remove).transpose()?;
    let in_use = matches!(removal, Some(Removal::InUse { .. }));
    let found = match removal {
        Some(Removal::Removed(found)) => Some(found),
        Some(Removal::NotOurs) => None,
        Some(Removal::InUse { .. }) | None => look()?,
    };
    Ok(found.map(|found| Own { found, in_use }))
}

fn dataset(folder: &Path, removes: bool) -> anyhow::Result<Option<Own>> {
    let look = || Ok(removal::inspect_folder(folder, &[CLAIM])?);
    look_or_remove(removes, look, || Ok(removal::remove_folder(folder, &[CLAIM], &holder())?))
}

fn holder() -> String {
    format!("`feedrate clean` of process {}", std::process::id())
}

fn copies(folder: &Path, removes: bool) -> anyhow::Result<Option<Own>> {
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

fn checkpoints(folder: &Path, removes: bool) -> anyhow::Result<Option<Own>> {
    let clean = |removes| checkpoint::clean(folder, removes).map(Some);
    let remove = || Ok(removal::remove_locked(folder, &holder(), || clean(true))?);
    let own = look_or_remove(removes, || Ok(clean(false)?), remove)?;
    Ok(own.filter(|own| own.in_use || own.found.files > 0))
}

fn results(folder: &Path, removes: bool) -> anyhow::Result<Option<Own>> {
    let Ok(record) = load_run(folder) else { return Ok(None) };
    let (files, storage) = (RunFiles::new(&record), storage::open("file", folder)?);
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
    let own =
        look_or_remove(removes, || Ok(Some(removal::inspect_files(&files, &*storage)?)), remove)?;
    Ok(own.map(|own| Own { in_use: held.is_err(), ..own }))
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

/// Output of `clean --json`.
#[derive(Serialize, JsonSchema)]
pub(super) struct CleanOutput<'a> {
    /// Whether the items were removed, as `--yes` requests.
    removed: bool,
    /// Bytes of all items.
    bytes: u64,
    /// Everything that is removed, or would be.
    items: &'a [CleanItem],
}

fn tell(items: &[CleanItem], arguments: &CleanArguments) -> Result<(), StdoutError> {
    let removed = || items.iter().filter(|item| !item.in_use);
    let bytes = removed().map(|item| item.bytes).sum();
    if arguments.json {
        let output = CleanOutput { removed: arguments.yes, bytes, items };
        return messages::print_json(Schema::Clean, &output);
    }
    if items.is_empty() {
        return messages::print_page("nothing of feedrate lies there");
    }
    let rows = items.iter().map(|item| {
        let stays = item.stays.iter().map(|path| format!("`{path}`"));
        let in_use = item.in_use.then(|| "all of it: in use".to_string());
        [
            match item.kind {
                CleanKind::Datasets => "dataset".to_string(),
                CleanKind::Copies => "copy".to_string(),
                CleanKind::Results => "results".to_string(),
                CleanKind::Checkpoints => "checkpoints".to_string(),
            },
            item.folder.display().to_string(),
            item.files.to_string(),
            units::bytes(item.bytes),
            in_use.into_iter().chain(stays).collect::<Vec<_>>().join(", "),
        ]
    });
    let header = ["", "Folder", "Files", "Size", "Stays"];
    messages::print_page(&text::table_of_numbers(header, rows, &[2, 3]))?;
    let files = units::counted(removed().map(|item| item.files).sum(), "file");
    let bytes = units::bytes(bytes);
    messages::note(if arguments.yes {
        format!("{files} removed, {bytes}")
    } else {
        format!("{files} would be removed, {bytes}; `--yes` removes them")
    });
    Ok(())
}
