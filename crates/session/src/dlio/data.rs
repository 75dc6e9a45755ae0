//! The files that DLIO would read and write: exactly those in `data_folder/{train,valid}`.

use crate::dataset::{self, Choice};
use crate::output::refuse_root;
use anyhow::Context;
use feedrate_data::error::DatasetError;
use feedrate_data::generate;
use feedrate_data::lock::{DatasetLock, LockAccess};
use feedrate_data::manifest::{Manifest, State};
use feedrate_data::removal;
use feedrate_data::storage::{self, Storage};
use feedrate_spec::listener::Listener;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::plan::{DatasetPlan, Plan, PlanDoubt};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The doubt of a dataset that is used in part.
pub(super) const SUBSET: &str = "dataset_subset";

/// Locks the dataset in `root`, and leaves evaluations out of the plan if there are no files for them.
pub(super) fn begin_reading(
    plan: &mut Plan,
    root: &Path,
    lock: &mut Option<DatasetLock>,
    interrupted: &AtomicBool,
    listener: &dyn Listener,
    warnings: &mut Vec<String>,
) -> anyhow::Result<()> {
    if !plan.is_checkpoint_only() {
        *lock = dataset::lock_for(plan, root, LockAccess::Shared, interrupted, listener)?;
    }
    let storage = storage::open(&plan.storage.kind, root)?;
    let evaluates = plan.evaluation.is_some() && dataset::needs_files(plan, &*storage);
    if evaluates && storage.list("valid")?.is_empty() {
        let folder = root.join("valid");
        let folder = folder.display();
        warnings.push(format!("there are no evaluation files in `{folder}`: nothing is evaluated"));
        plan.evaluation = None;
    }
    Ok(())
}

/// Chooses the files in `root` to train on; files that do not fit the plan are refused. May leave unused evaluation files out of the plan.
pub(super) fn found(
    plan: &mut Plan,
    root: &Path,
    listener: &dyn Listener,
    warnings: &mut Vec<String>,
) -> anyhow::Result<Choice> {
    let folder = root.to_path_buf();
    let storage = storage::open(&plan.storage.kind, root)?;
    if !dataset::needs_files(plan, &*storage) {
        return Ok(Choice { folder, ..Choice::default() });
    }
    let manifest = match Manifest::read(&*storage) {
        // A file of that name by another program does not describe the dataset.
        Err(DatasetError::ForeignFiles { .. }) => None,
        read => read?,
    };
    if manifest.as_ref().is_some_and(|manifest| misfit(manifest, &plan.dataset).is_none()) {
        return Ok(Choice { folder, ..Choice::default() });
    }
    let whole = name_all(plan, &*storage, root, warnings)?;
    let misfit = manifest.as_ref().and_then(|manifest| misfit(manifest, &whole)).map(|why| {
        format!("the dataset in `{}` was made for other settings: {why}", root.display())
    });
    if plan.evaluation.is_none() {
        plan.dataset.files_eval = 0;
    }
    let probed = dataset::probe(plan, &*storage, root, None, listener);
    let probed_files = match misfit {
        Some(misfit) => {
            let probed = probed.context(misfit.clone())?;
            warnings.push(misfit);
            probed
        }
        None => probed?,
    };
    let found = manifest.map(|manifest| manifest.settings);
    Ok(Choice { folder, foreign: true, probed_files, found, ..Choice::default() })
}

/// Reason why what `manifest` describes is not the whole of `dataset`.
fn misfit(manifest: &Manifest, dataset: &DatasetPlan) -> Option<String> {
    let differences = manifest.differences(dataset);
    match manifest.state {
        State::Complete if differences.is_empty() => None,
        _ if differences.is_empty() => Some("its generation was broken off".into()),
        _ => Some(differences.join("; ")),
    }
}

/// Where there are more files than `plan` uses, DLIO takes the first by name, and says so. Returns the dataset of all files.
fn name_all(
    plan: &mut Plan,
    storage: &dyn Storage,
    root: &Path,
    warnings: &mut Vec<String>,
) -> anyhow::Result<DatasetPlan> {
    let there = generate::files_there(storage, &plan.dataset, &Layout::new(&plan.dataset))?;
    let evaluates = plan.evaluation.is_some();
    let DatasetPlan { files_train, files_eval, named_train, named_eval, .. } = &mut plan.dataset;
    for (what, folder, found, wanted, named) in [
        ("training", "train", there[0], *files_train, named_train),
        ("evaluation", "valid", if evaluates { there[1] } else { 0 }, *files_eval, named_eval),
    ] {
        if found <= wanted {
            continue;
        }
        *named = Some(found);
        let folder = root.join(folder);
        warnings.push(format!(
            "Number of files for {what} in {} ({found}) is more than requested ({wanted}). A subset of files will be used ",
            folder.display()
        ));
        plan.doubts.push(PlanDoubt {
            name: SUBSET.into(),
            evidence: format!("{wanted} of {found} {what} files were used"),
            advice:
                "set the number of files to what is there, or compare only runs of the same files"
                    .into(),
        });
    }
    let mut whole = plan.dataset.clone();
    whole.files_train = whole.named_train.take().unwrap_or(whole.files_train);
    whole.files_eval = whole.named_eval.take().unwrap_or(whole.files_eval);
    Ok(whole)
}

/// Where the dataset of `plan` is made. One of other settings that feedrate made gives way, as DLIO writes over what is there: `lock` is
/// held where there is one. Files of others stay, and are refused.
pub(super) fn made(
    plan: &Plan,
    root: &Path,
    lock: &mut Option<DatasetLock>,
    interrupted: &AtomicBool,
    listener: &dyn Listener,
    warnings: &mut Vec<String>,
) -> anyhow::Result<Choice> {
    let storage = storage::open(&plan.storage.kind, root)?;
    let incomplete = dataset::needs_files(plan, &*storage);
    if incomplete && dataset::is_in_folder(plan) {
        refuse_root(root, "`dataset.data_folder`")?;
        *lock = dataset::lock_for(plan, root, LockAccess::Exclusive, interrupted, listener)?;
    }
    if incomplete && let Some(older) = other(plan, root)? {
        removal::check_replacement(&older, &plan.dataset, &*storage).with_context(|| {
            format!("cannot replace the dataset of other settings in `{}`", root.display())
        })?;
        warnings.push(format!(
            "the dataset of other settings in `{}` is replaced: {}",
            root.display(),
            older.differences(&plan.dataset).join("; ")
        ));
    }
    let folder = root.to_path_buf();
    Ok(Choice { folder, incomplete, check_files: incomplete, ..Choice::default() })
}

/// Removes a dataset with other settings from the folder of the plan's.
pub(super) fn remove_other(plan: &Plan, root: &Path) -> anyhow::Result<()> {
    let Some(older) = other(plan, root)? else { return Ok(()) };
    removal::remove(&older, &*storage::open(&plan.storage.kind, root)?)
        .with_context(|| format!("cannot remove the dataset in `{}`", root.display()))?;
    Ok(())
}

fn other(plan: &Plan, root: &Path) -> anyhow::Result<Option<Manifest>> {
    let manifest = Manifest::read(&*storage::open(&plan.storage.kind, root)?)?;
    Ok(manifest.filter(|manifest| !manifest.differences(&plan.dataset).is_empty()))
}
