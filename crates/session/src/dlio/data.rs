//! Datasets of `dlio_benchmark`, which are exactly the files in `data_folder/{train,valid}`, as in DLIO.

use crate::dataset::{self, Choice, ProbedDataset};
use crate::output::refuse_root;
use anyhow::Context;
use feedrate_data::error::DatasetError;
use feedrate_data::generate;
use feedrate_data::lock::{DatasetLock, LockAccess};
use feedrate_data::manifest::{Manifest, State};
use feedrate_data::removal;
use feedrate_data::storage::{self, Storage};
use feedrate_spec::escape::bash_word;
use feedrate_spec::listener::Listener;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::plan::{DatasetPlan, Plan, PlanDoubt};
use feedrate_spec::refusal::Refusal;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Name of the doubt that only a part of the dataset was used.
pub(super) const SUBSET: &str = "dataset_subset";

/// Locks the dataset in `root` for reading, and removes the evaluations from the plan if there are no evaluation files.
pub(super) fn lock_for_reading(
    plan: &mut Plan,
    root: &Path,
    lock: &mut Option<DatasetLock>,
    interrupted: &AtomicBool,
    listener: &dyn Listener,
    warnings: &mut Vec<String>,
) -> anyhow::Result<()> {
    if !plan.is_checkpoint_only() {
        *lock = dataset::lock_dataset(plan, root, LockAccess::Shared, interrupted, listener)?;
    }
    let storage = storage::open(&plan.storage.kind, root)?;
    let evaluates = plan.evaluation.is_some() && dataset::needs_files(plan, &*storage);
    if evaluates && storage.list("valid")?.is_empty() {
        warnings.push(format!(
            "there are no evaluation files in `{}`, so nothing is evaluated",
            root.join("valid").display()
        ));
        plan.evaluation = None;
    }
    Ok(())
}

/// Chooses the existing files in `root`, and refuses files that do not match the plan. Removes evaluation files from the plan if they are
/// not used.
pub(super) fn choose_existing(
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
        // Another program's file of the same name does not describe the dataset.
        Err(DatasetError::ForeignFiles { .. }) => None,
        read => read?,
    };
    if manifest.as_ref().is_some_and(|manifest| mismatch(manifest, &plan.dataset).is_none()) {
        return Ok(Choice { folder, ..Choice::default() });
    }
    let full_dataset = use_subset(plan, &*storage, root, warnings)?;
    let mismatch =
        manifest.as_ref().and_then(|manifest| mismatch(manifest, &full_dataset)).map(|reason| {
            let root = root.display();
            format!("the dataset in `{root}` was generated for other settings: {reason}")
        });
    if plan.evaluation.is_none() {
        plan.dataset.files_eval = 0;
    }
    let probed = dataset::probe(plan, &*storage, root, None, listener);
    let overrides = manifest.as_ref().map(|manifest| overrides(&manifest.settings, &full_dataset));
    let overrides = overrides.unwrap_or_default();
    let ProbedDataset { probed_files, found, members } = match mismatch {
        Some(mismatch) => {
            let probed = probed.map_err(|error| explain(error, &mismatch, &overrides))?;
            warnings.push(mismatch);
            probed
        }
        None => probed?,
    };
    let found = manifest.map(|manifest| manifest.settings).or(found);
    Ok(Choice { folder, foreign: true, probed_files, found, members, ..Choice::default() })
}

/// Adds to the error of a probe that the dataset has other settings, and the overrides that plan them.
fn explain(error: anyhow::Error, mismatch: &str, overrides: &[String]) -> anyhow::Error {
    let is_of_files = match error.downcast_ref() {
        Some(DatasetError::Storage(_)) | None => false,
        Some(_) => true,
    };
    if overrides.is_empty() || !is_of_files {
        return error.context(mismatch.to_string());
    }
    let hint = format!(
        "to read this dataset, add `{}`; to read another one, point `++workload.dataset.data_folder=DIR` at it",
        overrides.join(" ")
    );
    Refusal::new(format!("{mismatch}: {error:#}"), hint).into()
}

/// Returns the overrides that change the settings of `planned` to those of `stored`, as far as DLIO has keys for them.
fn overrides(stored: &DatasetPlan, planned: &DatasetPlan) -> Vec<String> {
    let values = |dataset: &DatasetPlan| {
        [
            ("format", dataset.format.clone()),
            ("num_files_train", dataset.files_train.to_string()),
            ("num_files_eval", dataset.files_eval.to_string()),
            ("num_samples_per_file", dataset.samples_per_file.to_string()),
            ("record_length_bytes", dataset.record_bytes.to_string()),
            ("record_length_bytes_stdev", dataset.record_stdev_bytes.to_string()),
            ("num_subfolders_train", dataset.subfolders_train.to_string()),
            ("num_subfolders_eval", dataset.subfolders_eval.to_string()),
            ("file_prefix", dataset.prefix.clone()),
        ]
    };
    let planned = values(planned);
    let different = values(stored).into_iter().filter(|setting| !planned.contains(setting));
    different.map(|(key, value)| bash_word(&format!("++workload.dataset.{key}={value}"))).collect()
}

/// Returns the reason why the files of `manifest` are not the complete `dataset`; `None` if they are.
fn mismatch(manifest: &Manifest, dataset: &DatasetPlan) -> Option<String> {
    let differences = manifest.differences(dataset);
    match manifest.state {
        State::Complete if differences.is_empty() => None,
        _ if differences.is_empty() => Some("its generation was interrupted".into()),
        _ => Some(differences.join("; ")),
    }
}

/// If there are more files than `plan` uses, plans the first files by name and warns, as DLIO does. Returns the dataset plan for all files.
fn use_subset(
    plan: &mut Plan,
    storage: &dyn Storage,
    root: &Path,
    warnings: &mut Vec<String>,
) -> anyhow::Result<DatasetPlan> {
    let [found_train, found_valid] =
        generate::count_files(storage, &plan.dataset, &Layout::new(&plan.dataset))?;
    let evaluates = plan.evaluation.is_some();
    let DatasetPlan { files_train, files_eval, named_train, named_eval, .. } = &mut plan.dataset;
    let found_eval = if evaluates { found_valid } else { 0 };
    for (use_name, subfolder, found, requested, named) in [
        ("training", "train", found_train, *files_train, named_train),
        ("evaluation", "valid", found_eval, *files_eval, named_eval),
    ] {
        if found <= requested {
            continue;
        }
        *named = Some(found);
        let folder = root.join(subfolder);
        warnings.push(format!(
            "Number of files for {use_name} in {} ({found}) is more than requested ({requested}). A subset of files will be used ",
            folder.display()
        ));
        plan.doubts.push(PlanDoubt {
            name: SUBSET.into(),
            evidence: format!("{requested} of {found} {use_name} files were used"),
            advice:
                "set the number of files to the number of existing files, or compare only runs with the same files"
                    .into(),
        });
    }
    let mut full_dataset = plan.dataset.clone();
    full_dataset.files_train = full_dataset.named_train.take().unwrap_or(full_dataset.files_train);
    full_dataset.files_eval = full_dataset.named_eval.take().unwrap_or(full_dataset.files_eval);
    Ok(full_dataset)
}

/// Chooses `root` for generating the dataset of `plan`, and takes its `lock` if there are locks. Warns about a generated dataset with
/// other settings, which will be replaced because DLIO overwrites files. Refuses foreign files.
pub(super) fn choose_for_generation(
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
        *lock = dataset::lock_dataset(plan, root, LockAccess::Exclusive, interrupted, listener)?;
    }
    if incomplete && let Some(existing) = dataset_with_other_settings(plan, root)? {
        removal::check_replacement(&existing, &plan.dataset, &*storage).with_context(|| {
            format!("cannot replace the dataset with other settings in `{}`", root.display())
        })?;
        warnings.push(format!(
            "the dataset with other settings in `{}` is replaced: {}",
            root.display(),
            existing.differences(&plan.dataset).join("; ")
        ));
    }
    let folder = root.to_path_buf();
    Ok(Choice { folder, incomplete, check_files: incomplete, ..Choice::default() })
}

/// Removes a dataset with other settings from `root`.
pub(super) fn remove_other_dataset(plan: &Plan, root: &Path) -> anyhow::Result<()> {
    let Some(existing) = dataset_with_other_settings(plan, root)? else { return Ok(()) };
    removal::remove(&existing, &*storage::open(&plan.storage.kind, root)?)
        .with_context(|| format!("cannot remove the dataset in `{}`", root.display()))?;
    Ok(())
}

/// Returns the manifest of a dataset in `root` with other settings than the plan's.
fn dataset_with_other_settings(plan: &Plan, root: &Path) -> anyhow::Result<Option<Manifest>> {
    let manifest = Manifest::read(&*storage::open(&plan.storage.kind, root)?)?;
    Ok(manifest.filter(|manifest| !manifest.differences(&plan.dataset).is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_name_each_different_setting_by_its_key_in_dlio() {
        let planned = DatasetPlan {
            files_train: 168,
            samples_per_file: 1,
            record_bytes: 146_600_628.0,
            record_stdev_bytes: 68_341_808.0,
            ..DatasetPlan::default()
        };
        let stored = DatasetPlan {
            files_train: 28,
            record_bytes: 1e6,
            record_stdev_bytes: 0.0,
            ..planned.clone()
        };
        let expected = [
            "++workload.dataset.num_files_train=28",
            "++workload.dataset.record_length_bytes=1000000",
            "++workload.dataset.record_length_bytes_stdev=0",
        ];
        assert_eq!(overrides(&stored, &planned), expected);
        assert!(overrides(&planned, &planned).is_empty());
        let few = || DatasetError::TooFew {
            purpose: "train",
            extension: "npz".into(),
            wanted: 168,
            found: 28,
        };
        let hint = |overrides: &[String]| {
            let error = explain(few().into(), "other settings", overrides);
            error.downcast_ref::<Refusal>().and_then(|refusal| refusal.hint.clone())
        };
        let hints = hint(&overrides(&stored, &planned)).unwrap();
        assert!(hints.contains(&format!("add `{}`", expected.join(" "))), "{hints}");
        assert_eq!(hint(&[]), None);
    }
}
