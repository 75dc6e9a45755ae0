//! The files that DLIO would read and write: exactly those in `data_folder/{train,valid}`.

use crate::dataset::{self, Choice};
use anyhow::Context;
use feedrate_data::generate;
use feedrate_data::manifest::{Manifest, State};
use feedrate_data::storage::{self, Storage};
use feedrate_spec::plan::Plan;
use feedrate_spec::plan::layout::Layout;
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
        return Ok(Choice { folder, foreign: false, incomplete: false });
    }
    let mut misfit = None;
    if let Some(manifest) = Manifest::read(&*storage)? {
        let differences = manifest.differences(&plan.dataset);
        if differences.is_empty() && manifest.state == State::Complete {
            return Ok(Choice { folder, foreign: false, incomplete: false });
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
    match misfit {
        Some(misfit) => {
            probed.context(misfit.clone())?;
            warnings.push(misfit);
        }
        None => probed?,
    }
    Ok(Choice { folder, foreign: true, incomplete: false })
}

/// A dataset of other settings that feedrate made, and that gives way, as DLIO writes over what is there.
pub(super) struct Replaced(Manifest);

/// Where the dataset of `plan` is made, and what gives way to it. Files of others stay, and are refused.
pub(super) fn made(
    plan: &Plan,
    root: &Path,
    warnings: &mut Vec<String>,
) -> anyhow::Result<(Choice, Option<Replaced>)> {
    let storage = storage::open(&plan.storage.kind, root)?;
    let incomplete = dataset::needs_files(plan, &*storage);
    let choice = Choice { folder: root.to_path_buf(), foreign: false, incomplete };
    let Some(manifest) = Manifest::read(&*storage)? else { return Ok((choice, None)) };
    let differences = manifest.differences(&plan.dataset);
    if differences.is_empty() {
        return Ok((choice, None));
    }
    generate::refuse_replacing(&manifest, &plan.dataset, &*storage).with_context(|| {
        format!("cannot replace the dataset of other settings in `{}`", root.display())
    })?;
    warnings.push(format!(
        "the dataset of other settings in `{}` is replaced: {}",
        root.display(),
        differences.join("; ")
    ));
    Ok((choice, Some(Replaced(manifest))))
}

impl Replaced {
    /// Remove it from `root`.
    pub(super) fn remove(&self, plan: &Plan, root: &Path) -> anyhow::Result<()> {
        let storage = storage::open(&plan.storage.kind, root)?;
        remove(&self.0, &*storage, root)
            .with_context(|| format!("cannot remove the dataset in `{}`", root.display()))
    }
}

fn remove(manifest: &Manifest, storage: &dyn Storage, root: &Path) -> anyhow::Result<()> {
    generate::remove(manifest, storage)?;
    let mut folders = Layout::new(&manifest.settings).folders();
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.matches('/').count()));
    for folder in folders {
        // One in which something else lies stays.
        let _ = std::fs::remove_dir(root.join(folder));
    }
    Ok(())
}

/// Whether `plan` evaluates, and no files lie in the evaluation files' folder.
pub(super) fn lacks_evaluation_files(plan: &Plan, root: &Path) -> anyhow::Result<bool> {
    let storage = storage::open(&plan.storage.kind, root)?;
    let reads = plan.evaluation.is_some() && dataset::needs_files(plan, &*storage);
    Ok(reads && storage.list("valid")?.is_empty())
}
