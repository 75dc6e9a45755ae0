//! Prepares changes of a workload as candidates of `advise --try`, or finds why a change cannot be tried. Also removes the datasets of the changes.

use crate::chooser::Candidate;
use crate::chosen::{self, ChosenStudy};
use crate::keys::DATA;
use feedrate_data::manifest::{self, Manifest};
use feedrate_data::stage::Stage;
use feedrate_results::setting::Setting;
use feedrate_session::dataset::{self, is_in_folder};
use feedrate_session::failure::on_one_line;
use feedrate_session::resolve::Resolved;
use feedrate_session::room::{self, Reserved};
use feedrate_session::template::RunTemplate;
use feedrate_spec::plan::{DatasetPlan, Plan};
use std::collections::BTreeSet;
use std::path::Path;

/// Prepares a change of a workload for a trial, or finds why it cannot be tried.
pub fn candidate(template: &RunTemplate, change: &[String]) -> Candidate {
    let mut candidate = Candidate { change: change.to_vec(), ..Candidate::default() };
    let prepared = template.resolve(change).and_then(|changed| {
        candidate.uses_copy = changed.plan.stage.is_some() || changed.plan.loader.in_memory;
        refuse_impossible_change(template, &changed)?;
        let mut row = chosen::row(&template.with_change(change), changed.plan.accelerators)?;
        // If the data folder is itself a dataset, another dataset needs a folder beside it.
        let root = &changed.data_root;
        if !has_same_content(&changed.plan.dataset, &template.unchanged.plan.dataset)
            && root.join(manifest::FILE_NAME).exists()
            && let Some(beside) = std::path::absolute(root)?.parent()
        {
            row.settings.push(Setting::new(DATA, beside.display().to_string()));
        }
        Ok(row)
    });
    match prepared {
        Ok(row) => Candidate { row: Some(row), ..candidate },
        Err(error) => Candidate { skip_reason: Some(on_one_line(&error)), ..candidate },
    }
}

/// Refuses a change that would destroy a copy, or whose dataset cannot be generated.
fn refuse_impossible_change(template: &RunTemplate, changed: &Resolved) -> anyhow::Result<()> {
    let Resolved { plan, data_root, workload, .. } = changed;
    if plan.stage != template.unchanged.plan.stage {
        let source = if workload.dataset_foreign {
            data_root.clone()
        } else {
            dataset::dataset_folder(plan, data_root)?
        };
        refuse_kept_copy(plan, &source)?;
    }
    let has_other_dataset = !has_same_content(&plan.dataset, &template.unchanged.plan.dataset);
    if has_other_dataset && workload.dataset_foreign {
        anyhow::bail!("it needs other files, which are not generated for a foreign dataset");
    }
    let reserved = Reserved::default();
    if let Some(short) = room::shortage(plan, data_root, &reserved).filter(|_| has_other_dataset) {
        anyhow::bail!("{short}");
    }
    Ok(())
}

/// Whether two datasets have the same content.
fn has_same_content(first: &DatasetPlan, second: &DatasetPlan) -> bool {
    Manifest::fingerprint_of(first) == Manifest::fingerprint_of(second)
}

/// Refuses a change whose copy of the dataset in `source` already exists, because a run would remove the copy.
fn refuse_kept_copy(plan: &Plan, source: &Path) -> anyhow::Result<()> {
    let Some(stage) = plan.stage.as_ref().filter(|stage| !stage.keep) else { return Ok(()) };
    let copy = Stage::new(&plan.dataset, source, Path::new(&stage.folder), None, None)?;
    if copy.folder().exists() {
        let folder = copy.folder().display();
        anyhow::bail!("`{folder}` already exists, and a run would remove it: use another folder");
    }
    Ok(())
}

/// Removes the datasets that only the changes needed.
pub fn remove_unneeded_datasets(
    template: &RunTemplate,
    study: &mut ChosenStudy,
    candidates: &[Candidate],
) -> anyhow::Result<()> {
    let plan = &template.unchanged.plan;
    let root = &template.unchanged.data_root;
    let is_generated = is_in_folder(plan) && !template.unchanged.workload.dataset_foreign;
    if !is_generated || candidates.is_empty() {
        return Ok(());
    }
    let kept = std::path::absolute(dataset::dataset_folder(plan, root)?)?;
    let changed =
        candidates.iter().filter_map(|candidate| template.resolve(&candidate.change).ok());
    let mut roots = BTreeSet::new();
    for data_root in changed.map(|changed| changed.data_root).chain([root.clone()]) {
        let absolute = std::path::absolute(data_root)?;
        roots.extend(absolute.parent().map(Path::to_path_buf));
        roots.insert(absolute);
    }
    study.remove_datasets(&roots, &kept)
}
