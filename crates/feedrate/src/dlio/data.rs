//! The files that DLIO would read and write: exactly those in `data_folder/{train,valid}`.

use crate::dataset::{self, Choice};
use crate::interrupt;
use crate::output::refuse_root;
use anyhow::Context;
use feedrate_data::lock::{DatasetLock, LockAccess};
use feedrate_data::manifest::{Manifest, State};
use feedrate_data::removal;
use feedrate_data::storage;
use feedrate_spec::plan::Plan;
use std::path::Path;

/// The files in `root` to train on; what is not as `plan` wants it is refused. May leave evaluation files that nobody reads out
/// of the plan.
pub(super) fn found(
    plan: &mut Plan,
    root: &Path,
    warnings: &mut Vec<String>,
) -> anyhow::Result<Choice> {
    let folder = root.to_path_buf();
    let storage = storage::open(&plan.storage.kind, root)?;
    if !dataset::needs_files(plan, &*storage) {
        return Ok(Choice { folder, ..Choice::default() });
    }
    let mut misfit = None;
    if let Some(manifest) = Manifest::read(&*storage)? {
        let differences = manifest.differences(&plan.dataset);
        if differences.is_empty() && manifest.state == State::Complete {
            return Ok(Choice { folder, ..Choice::default() });
        }
        let why = if differences.is_empty() {
            "its generation was broken off".to_string()
        } else {
            differences.join("; ")
        };
        misfit =
            Some(format!("the dataset in `{}` was made for other settings: {why}", root.display()));
    }
    if plan.evaluation.is_none() {
        plan.dataset.files_eval = 0;
    }
    let probed = dataset::probe(plan, &*storage, root);
    let probed_files = match misfit {
        Some(misfit) => {
            let probed = probed.context(misfit.clone())?;
            warnings.push(misfit);
            probed
        }
        None => probed?,
    };
    Ok(Choice { folder, foreign: true, probed_files, ..Choice::default() })
}

/// Where the dataset of `plan` is made. One of other settings that feedrate made gives way, as DLIO writes over what is there: `lock` is
/// held where there is one. Files of others stay, and are refused.
pub(super) fn made(
    plan: &Plan,
    root: &Path,
    lock: &mut Option<DatasetLock>,
    warnings: &mut Vec<String>,
) -> anyhow::Result<Choice> {
    let storage = storage::open(&plan.storage.kind, root)?;
    let incomplete = dataset::needs_files(plan, &*storage);
    if incomplete && dataset::is_in_folder(plan) {
        refuse_root(root, "`dataset.data_folder`")?;
        *lock = dataset::lock_for(plan, root, LockAccess::Exclusive, &interrupt::flag())?;
    }
    if let Some(older) = other(plan, root)? {
        removal::refuse_replacing(&older, &plan.dataset, &*storage).with_context(|| {
            format!("cannot replace the dataset of other settings in `{}`", root.display())
        })?;
        warnings.push(format!(
            "the dataset of other settings in `{}` is replaced: {}",
            root.display(),
            older.differences(&plan.dataset).join("; ")
        ));
    }
    let folder = root.to_path_buf();
    Ok(Choice { folder, incomplete, check_files: true, ..Choice::default() })
}

/// Remove the dataset of other settings that lies in the place of that of `plan`.
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

/// Whether `plan` evaluates, and no files lie in the evaluation files' folder.
pub(super) fn lacks_evaluation_files(plan: &Plan, root: &Path) -> anyhow::Result<bool> {
    let storage = storage::open(&plan.storage.kind, root)?;
    let reads = plan.evaluation.is_some() && dataset::needs_files(plan, &*storage);
    Ok(reads && storage.list("valid")?.is_empty())
}
