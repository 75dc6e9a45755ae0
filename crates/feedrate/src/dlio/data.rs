//! Which files DLIO would read and write: exactly those in `data_folder/{train,valid}`.

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
        let why = match differences.is_empty() {
            true => "its generation was broken off".to_string(),
            false => differences.join("; "),
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

/// `root` made ready for the dataset of `plan`: one of other settings that feedrate made is removed, as DLIO writes over what is
/// there. Files of others stay, and are refused by whoever generates.
pub(super) fn cleared(
    plan: &Plan,
    root: &Path,
    warnings: &mut Vec<String>,
) -> anyhow::Result<Choice> {
    let storage = storage::open(&plan.storage.kind, root)?;
    if let Some(manifest) = Manifest::read(&*storage)? {
        let differences = manifest.differences(&plan.dataset);
        if !differences.is_empty() {
            warnings.push(format!(
                "the dataset of other settings in `{}` is replaced: {}",
                root.display(),
                differences.join("; ")
            ));
            remove(&manifest, &*storage, root)
                .with_context(|| format!("cannot remove the dataset in `{}`", root.display()))?;
        }
    }
    let incomplete = dataset::needs_files(plan, &*storage);
    Ok(Choice { folder: root.to_path_buf(), foreign: false, incomplete })
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

/// Whether nothing lies in the evaluation files' folder.
pub(super) fn has_no_evaluation_files(root: &Path) -> bool {
    let entries = std::fs::read_dir(root.join("valid"));
    entries.map_or(true, |mut entries| entries.next().is_none())
}
