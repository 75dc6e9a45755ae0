//! Finds, generates or refuses the dataset of a plan. Datasets with different settings have folders beside each other.

use crate::launch::decided;
use crate::output::refuse_root;
use feedrate_spec::refusal::refuse;

use crate::{catalog, dataset_lock, folder, progress_text, threads};
use anyhow::Context;
use feedrate_data::error::DatasetError;
use feedrate_data::file_index::{FileIndex, NamedFiles};
use feedrate_data::generate::{self, ExistingFiles, FileShare, Generated, Generation, Watch};
use feedrate_data::lock::{DatasetLock, LOCK_FILE, LockAccess};
use feedrate_data::manifest::{self, DropMark, MadeOn, Manifest, State};
use feedrate_data::storage::{self, Storage, StorageError, engine};
use feedrate_run::live::Signals;
use feedrate_run::ranks::Ranks;
use feedrate_run::system;
use feedrate_run::training::Preparation;
use feedrate_spec::catalog::Ability;
use feedrate_spec::listener::Listener;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::plan::{DatasetPlan, FileAccess, Plan};
use feedrate_spec::units;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Size of a dataset from which its generation is announced.
const ANNOUNCED_BYTES: u64 = 1_000_000_000;

/// A dataset that is ready to be read.
pub struct OpenDataset {
    /// Its folder.
    pub folder: PathBuf,
    /// Its storage, rooted in that folder.
    pub storage: Arc<dyn Storage>,
    /// The files are what the plan says.
    pub trusts_plan: bool,
    /// Files that were made, on rank 0 by all.
    pub generated: Generated,
    /// Files that were opened or made.
    pub preparation: Preparation,
    /// As in [`Choice::found`].
    pub found: Option<DatasetPlan>,
    /// Held on rank 0 while the dataset is read: a process that would change it waits.
    pub lock: Option<DatasetLock>,
}

/// Files that a dataset consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files<'n> {
    /// Those that feedrate generates.
    Generated,
    /// The same, each of which is looked at even where the manifest says that all are there.
    Checked,
    /// Those that others made, as they are.
    Foreign {
        /// File for the index of their names.
        names: &'n Path,
        /// Number of files that were opened before, if the index is complete already.
        probed: Option<u64>,
    },
}

/// The dataset to be read, decided by rank 0 for all.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Choice {
    /// Its folder.
    pub folder: PathBuf,
    /// Whether others made it.
    pub foreign: bool,
    /// Whether files may be missing.
    pub incomplete: bool,
    /// Whether every file is examined, even if another process completes the dataset meanwhile.
    pub check_files: bool,
    /// Files that rank 0 opened to see what they hold.
    pub probed_files: u64,
    /// Index of the files' names, if these are not the plan's.
    pub names: Option<PathBuf>,
    /// Settings in its manifest, if these are not the plan's.
    pub found: Option<DatasetPlan>,
}

/// Chooses the dataset of `plan` below `root`: one that exists, or one to be generated. Files of others are examined.
///
/// # Errors
/// The folder holds something else, or files of others do not fit the plan.
pub fn choose(
    plan: &Plan,
    root: &Path,
    files: Files<'_>,
    listener: &dyn Listener,
) -> anyhow::Result<Choice> {
    if let Files::Foreign { names, probed } = files {
        return choose_foreign(plan, root, names, probed, listener);
    }
    let folder = folder(plan, root)?;
    let storage = storage::open(&plan.storage.kind, &folder)?;
    let check_files = files == Files::Checked;
    let incomplete =
        needs_files(plan, &*storage) && (check_files || !is_complete(&*storage, plan)?);
    Ok(Choice { folder, incomplete, check_files, ..Choice::default() })
}

/// Chooses the files below `root`, by the plan's names if they have these, else by their own.
fn choose_foreign(
    plan: &Plan,
    root: &Path,
    names: &Path,
    probed: Option<u64>,
    listener: &dyn Listener,
) -> anyhow::Result<Choice> {
    refuse_unreadable(plan)?;
    let chosen = Choice { folder: root.into(), foreign: true, ..Choice::default() };
    if let Some(probed_files) = probed {
        return Ok(Choice { probed_files, names: Some(names.into()), ..chosen });
    }
    let storage = storage::open(&plan.storage.kind, root)?;
    let mut first = String::new();
    Layout::new(&plan.dataset).write_path(0, &mut first);
    let is_to_list = needs_files(plan, &*storage) && root.is_dir();
    if !is_to_list || storage.stat(&first)?.is_some() {
        let probed_files = probe(plan, &*storage, root, None, listener)?;
        return Ok(Choice { probed_files, ..chosen });
    }
    let found = folder::list(&plan.dataset, root, names)?;
    if plan.dataset.files_train < found[0] {
        let wanted = plan.dataset.files_train;
        return refuse(
            format!("the plan wants {wanted} of {} files in `{}`", found[0], root.display()),
            format!("set `dataset.num_files_train={}`, or give a folder of those alone", found[0]),
        );
    }
    let files = open(plan, root, Some(names), None)?;
    let probed_files = probe(plan, &*files, root, Some(found), listener)?;
    Ok(Choice { probed_files, names: Some(names.into()), ..chosen })
}

/// The plan's storage, rooted at `folder`, with the index of the files' names if these are not the plan's.
fn open(
    plan: &Plan,
    folder: &Path,
    names: Option<&Path>,
    engine: Option<&'static dyn engine::Engine>,
) -> Result<Box<dyn Storage>, StorageError> {
    let engine = engine.unwrap_or(engine::ENGINES[0]);
    let files = storage::open_with_engine(&plan.storage.kind, folder, engine)?;
    let Some(names) = names else { return Ok(files) };
    Ok(Box::new(NamedFiles::new(files, FileIndex::open(names)?, &plan.dataset)))
}

/// Refuses ways of reading that need files of ours.
fn refuse_unreadable(plan: &Plan) -> anyhow::Result<()> {
    if serves_samples(plan) {
        let engine = plan.storage.engine.as_deref().unwrap_or_default();
        return refuse(
            format!("engine `{engine}` cannot tell what files hold that others made"),
            "leave out `storage.engine`",
        );
    }
    if plan.loader.file_access == FileAccess::Mpio {
        return refuse(
            "`reader.file_access=mpio` needs to know every file, and others made these",
            "use `collective`, or files that feedrate generates",
        );
    }
    if storage_has(plan, Ability::KeepsBytes) && !is_in_folder(plan) {
        return refuse(
            format!(
                "files that others made lie in folders, and storage `{}` has none",
                plan.storage.kind
            ),
            "leave out `storage.storage_type`",
        );
    }
    Ok(())
}

/// Examines files of others. `counts` is the number of files to train and to evaluate on; `None` counts the files with the plan's names.
/// Returns the number of files that were opened.
///
/// # Errors
/// The files do not fit the plan.
pub fn probe(
    plan: &Plan,
    storage: &dyn Storage,
    folder: &Path,
    counts: Option<[u64; 2]>,
    listener: &dyn Listener,
) -> anyhow::Result<u64> {
    refuse_unreadable(plan)?;
    let layout = Layout::new(&plan.dataset);
    let dataset = &plan.dataset;
    let counts = counts.map_or_else(|| generate::files_there(storage, dataset, &layout), Ok);
    let probe =
        counts.and_then(|counts| generate::probe_foreign(storage, dataset, &layout, counts));
    let probe = probe.with_context(|| {
        format!("the files in `{}` are not what the plan wants", folder.display())
    })?;
    for note in &probe.notes {
        listener.important(format!("warning: {note}"));
    }
    Ok(probe.files.len() as u64)
}

/// Prepares the dataset that was chosen: generates what is missing, each process a share. `lock` is the lock that rank 0 holds already:
/// exclusive if the dataset is incomplete, else shared.
///
/// # Errors
/// The dataset cannot be generated, or the user interrupted it.
pub fn ready(
    plan: &Plan,
    choice: Option<Choice>,
    lock: Option<DatasetLock>,
    ranks: &Ranks,
    signals: &Signals,
    listener: &dyn Listener,
) -> anyhow::Result<Option<OpenDataset>> {
    let Some(choice) = choice else { return Ok(None) };
    let (folder, interrupted) = (&choice.folder, &signals.interrupted);
    let mut lock = lock;
    let mut generated = Generated::default();
    let generate = |storage: &dyn Storage| -> anyhow::Result<Generated> {
        let made = make(plan, storage, ranks, interrupted, listener)
            .with_context(|| format!("cannot generate the dataset in `{}`", folder.display()))?;
        if made.files_mended > 0 && ranks.is_first() {
            let (files, folder) = (units::counted(made.files_mended, "file"), folder.display());
            listener.important(format!(
                "warning: {files} of a generation in `{folder}` that was broken off were not as they should be: made again"
            ));
        }
        Ok(made)
    };
    let first = if choice.incomplete { LockAccess::Exclusive } else { LockAccess::Shared };
    let mut next = is_in_folder(plan).then_some(first);
    while let Some(access) = next {
        // Rank 0 has it for all: they end with it.
        let is_whole = decided(&*ranks.comm, || {
            lock = match lock.take() {
                None => lock_for(plan, folder, access, interrupted, listener)?,
                held => held,
            };
            let storage = storage::open(&plan.storage.kind, folder)?;
            Ok(choice.foreign || !needs_files(plan, &*storage) || is_complete(&*storage, plan)?)
        })?;
        next = Some(match access {
            LockAccess::Shared if is_whole => break,
            // Another process replaced or removed it before this one had the lock.
            LockAccess::Shared => LockAccess::Exclusive,
            LockAccess::Exclusive => {
                if choice.check_files || !is_whole {
                    // By the default engine: some engines do not read bytes.
                    generated = generate(&*storage::open(&plan.storage.kind, folder)?)?;
                }
                LockAccess::Shared
            }
        });
        lock = None;
    }
    // After the lock: until then the folder may have belonged to another process.
    let names = choice.names.as_deref();
    let storage: Arc<dyn Storage> = Arc::from(open(plan, folder, names, engine_of(plan))?);
    if choice.incomplete && !is_in_folder(plan) {
        generated = generate(&*storage)?;
    }
    let preparation = preparation(plan, &choice, ranks)?;
    let Choice { folder, foreign, found, .. } = choice;
    let trusts_plan = !foreign;
    Ok(Some(OpenDataset { folder, storage, trusts_plan, generated, preparation, found, lock }))
}

/// Counts the files that were opened, and those that this machine generated since its dentries and inodes were last dropped.
fn preparation(plan: &Plan, choice: &Choice, ranks: &Ranks) -> anyhow::Result<Preparation> {
    if choice.foreign {
        let probed = if ranks.is_first() { choice.probed_files } else { 0 };
        return Ok(Preparation { opens: probed, opened_files: 0 });
    }
    let storage = storage::open(&plan.storage.kind, &choice.folder)?;
    let manifest = if needs_files(plan, &*storage) { Manifest::read(&*storage)? } else { None };
    let mark = system::drop_mark();
    let made_on = manifest.into_iter().flat_map(|manifest| manifest.made_on);
    let files = made_on.filter(|made| mark.as_ref() == Some(&made.mark)).map(|made| made.files);
    let opened_files = files.sum::<u64>().saturating_sub(plan.dataset.files_eval);
    Ok(Preparation { opens: 0, opened_files })
}

/// The lock of the dataset in `folder`; `None` without locks or files, and for reading files of others.
///
/// # Errors
/// The folder holds files of others and is to be changed, or the user interrupted the wait.
pub fn lock_for(
    plan: &Plan,
    folder: &Path,
    access: LockAccess,
    interrupted: &AtomicBool,
    listener: &dyn Listener,
) -> anyhow::Result<Option<DatasetLock>> {
    if !is_in_folder(plan) {
        return Ok(None);
    }
    if access == LockAccess::Shared
        && !folder.join(LOCK_FILE).exists()
        && Manifest::find_in(folder).is_none()
    {
        return Ok(None);
    }
    if access == LockAccess::Exclusive && !folder.join(LOCK_FILE).exists() {
        // Nothing is written into a folder of others, not even a lock file.
        let storage = storage::open(&plan.storage.kind, folder)?;
        let layout = Layout::new(&plan.dataset);
        let generation = Generation::new(&plan.dataset, &layout, &*storage)?;
        let look = generation.map_or(Ok(()), |generation| generation.inspect().map(drop));
        let is_refused = matches!(
            look,
            Err(DatasetError::ForeignFiles { .. } | DatasetError::BrokenManifest { .. })
        );
        // A lock that exists now is of another generator; the holder of the lock examines the folder again.
        if is_refused && !folder.join(LOCK_FILE).exists() {
            look.with_context(|| format!("cannot generate the dataset in `{}`", folder.display()))?;
        }
    }
    Ok(dataset_lock::wait(folder, access, interrupted, listener)?)
}

fn make(
    plan: &Plan,
    storage: &dyn Storage,
    ranks: &Ranks,
    interrupted: &AtomicBool,
    listener: &dyn Listener,
) -> anyhow::Result<Generated> {
    let layout = Layout::new(&plan.dataset);
    let Some(generation) = Generation::new(&plan.dataset, &layout, storage)? else {
        return Ok(Generated::default());
    };
    let comm = &*ranks.comm;
    // Each process has its own storage if that is not a folder.
    let shares = ranks.are_many() && is_in_folder(plan);
    let prepare = || Ok(generation.prepare()?);
    let (begun, share) = if shares {
        let share = FileShare { index: comm.rank().into(), count: comm.size().into() };
        (decided(comm, prepare)?, share)
    } else {
        (prepare()?, FileShare::ALL)
    };
    if begun == ExistingFiles::OlderVersion && ranks.is_first() {
        listener.important(
            "warning: an older feedrate made the dataset: its files are read as they are",
        );
    }
    let all = catalog::estimate(plan);
    if ranks.is_first() && begun == ExistingFiles::None && ANNOUNCED_BYTES <= all.file_bytes {
        let (files, bytes) = (units::counted(all.files, "file"), units::bytes(all.file_bytes));
        listener.note(format!("note: generating {bytes} in {files}"));
    }
    let mark = system::drop_mark();
    let bytes = all.file_bytes / share.count;
    let (text, done) = progress_text::files("generating", bytes);
    let line = ranks.is_first().then(|| listener.show_progress(text));
    let threads = threads().div_ceil(comm.node().local_size as usize);
    let show = |_files: u64, bytes: u64| done.store(bytes, Relaxed);
    let made = generation.write_files(begun, share, threads, &Watch::new(&show, interrupted));
    drop(line);
    let mut all = vec![(made?, mark)];
    if shares {
        all = ranks.gather(&all)?.into_iter().flatten().collect();
    }
    let made = all.iter().map(|(made, _)| *made).sum();
    if ranks.is_first() || !shares {
        generation.complete(made, made_on(all))?;
    }
    Ok(made)
}

/// Number of files that the processes of each machine generated.
fn made_on(all: Vec<(Generated, Option<DropMark>)>) -> Vec<MadeOn> {
    let mut machines: Vec<MadeOn> = Vec::new();
    for (made, mark) in all {
        let Some(mark) = mark else { continue };
        let files = made.files_written + made.files_kept;
        match machines.iter_mut().find(|machine| machine.mark == mark) {
            Some(machine) => machine.files += files,
            None => machines.push(MadeOn { mark, files }),
        }
    }
    machines
}

/// Whether the plan's storage keeps datasets in folders.
pub fn is_in_folder(plan: &Plan) -> bool {
    storage_has(plan, Ability::InFolder)
}

fn storage_has(plan: &Plan, ability: Ability) -> bool {
    let storage = catalog::catalog().storage(&plan.storage.kind);
    storage.is_some_and(|storage| storage.has(ability))
}

/// The engine of a plan; `None` for the default.
pub fn engine_of(plan: &Plan) -> Option<&'static dyn engine::Engine> {
    plan.storage.engine.as_deref().and_then(engine::find)
}

/// Whether the engine serves samples instead of bytes.
pub fn serves_samples(plan: &Plan) -> bool {
    engine_of(plan).is_some_and(|engine| engine.member().has(Ability::ServesSamples))
}

/// Whether the dataset has files.
pub fn needs_files(plan: &Plan, storage: &dyn Storage) -> bool {
    let format = feedrate_data::format::find(&plan.dataset.format);
    storage.member().has(Ability::KeepsBytes)
        && format.is_some_and(|format| !format.member().has(Ability::NoFiles))
}

fn is_complete(storage: &dyn Storage, plan: &Plan) -> anyhow::Result<bool> {
    Ok(Manifest::read(storage)?.is_some_and(|manifest| {
        manifest.state == State::Complete && manifest.differences(&plan.dataset).is_empty()
    }))
}

/// The folder of the dataset: `root` itself if it has a manifest, else a folder in it that is named by the settings.
///
/// # Errors
/// `root` holds something else.
pub fn folder(plan: &Plan, root: &Path) -> anyhow::Result<PathBuf> {
    if !is_in_folder(plan) {
        return Ok(root.to_path_buf());
    }
    if root.is_file() {
        return refuse(
            format!("the data folder `{}` is a file", root.display()),
            "point `--data` (or `dataset.data_folder`) at a folder",
        );
    }
    refuse_root(root, "`--data` (or `dataset.data_folder`)")?;
    if let Ok(storage) = storage::open(&plan.storage.kind, root)
        && root.join(manifest::FILE_NAME).exists()
    {
        let manifest = Manifest::read(&*storage)?;
        let differences =
            manifest.map_or_else(Vec::new, |manifest| manifest.differences(&plan.dataset));
        if !differences.is_empty() {
            let (root, differences) = (root.display(), differences.join("\n  "));
            return refuse(
                format!("the dataset in `{root}` does not fit the plan:\n  {differences}"),
                "point `--data` at the folder above it, where datasets lie side by side, or change the workload",
            );
        }
        return Ok(root.to_path_buf());
    }
    if root.join("train").is_dir() {
        return refuse(
            format!("`{}` holds files that no manifest describes", root.display()),
            "use `--foreign` to train on them as they are, or another `--data` folder",
        );
    }
    Ok(root.join(Manifest::folder_name(&plan.dataset)))
}
