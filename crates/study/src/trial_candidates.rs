//! Changes of a workload as candidates of trials: the row of each, and reasons why a change cannot be tried.

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

/// Prepares a change of a workload for a trial, or states why it cannot be tried.
pub fn candidate(template: &RunTemplate, change: &[String]) -> Candidate {
    let mut candidate = Candidate { change: change.to_vec(), ..Candidate::default() };
    let prepared = template.resolve(change).and_then(|changed| {
        candidate.is_copied = changed.plan.stage.is_some() || changed.plan.loader.in_memory;
        refuse_untriable(template, &changed)?;
        let mut row = chosen::row(&template.with(change), changed.plan.accelerators)?;
        // A dataset that fills the folder of the data leaves no place in it for another.
        let root = &changed.data_root;
        if !is_same(&changed.plan.dataset, &template.unchanged.plan.dataset)
            && root.join(manifest::FILE_NAME).exists()
            && let Some(beside) = std::path::absolute(root)?.parent()
        {
            row.settings.push(Setting::new(DATA, beside.display().to_string()));
        }
        Ok(row)
    });
    match prepared {
        Ok(row) => Candidate { row: Some(row), ..candidate },
        Err(error) => Candidate { hindrance: Some(on_one_line(&error)), ..candidate },
    }
}

fn refuse_untriable(template: &RunTemplate, changed: &Resolved) -> anyhow::Result<()> {
    let Resolved { plan, data_root, workload, .. } = changed;
    if plan.stage != template.unchanged.plan.stage {
        refuse_kept_copy(plan, data_root)?;
    }
    let is_other = !is_same(&plan.dataset, &template.unchanged.plan.dataset);
    if is_other && workload.dataset_foreign {
        anyhow::bail!("it needs other files than those that others made");
    }
    let reserved = Reserved::default();
    if let Some(short) = room::shortage(plan, data_root, &reserved).filter(|_| is_other) {
        anyhow::bail!("{short}");
    }
    Ok(())
}

/// Whether the bytes of two datasets are the same.
fn is_same(first: &DatasetPlan, second: &DatasetPlan) -> bool {
    Manifest::fingerprint_of(first) == Manifest::fingerprint_of(second)
}

/// Refuse a copy that is there already: a run would remove it.
fn refuse_kept_copy(plan: &Plan, data_root: &Path) -> anyhow::Result<()> {
    let Some(stage) = plan.stage.as_ref().filter(|stage| !stage.keep) else { return Ok(()) };
    let source = dataset::folder(plan, data_root)?;
    let copy = Stage::new(&plan.dataset, &source, Path::new(&stage.folder), None, None)?;
    if copy.folder().exists() {
        let folder = copy.folder().display();
        anyhow::bail!(
            "`{folder}` is there already, and a run would remove it: give another folder"
        );
    }
    Ok(())
}

/// Removes datasets that only the changes needed.
pub fn remove_unneeded_datasets(
    template: &RunTemplate,
    study: &mut ChosenStudy,
    candidates: &[Candidate],
) -> anyhow::Result<()> {
    let (plan, root) = (&template.unchanged.plan, &template.unchanged.data_root);
    let is_made = is_in_folder(plan) && !template.unchanged.workload.dataset_foreign;
    if !is_made || candidates.is_empty() {
        return Ok(());
    }
    let kept = std::path::absolute(dataset::folder(plan, root)?)?;
    let changed =
        candidates.iter().filter_map(|candidate| template.resolve(&candidate.change).ok());
    let mut roots = BTreeSet::new();
    for root in changed.map(|changed| changed.data_root).chain([root.clone()]) {
        let root = std::path::absolute(root)?;
        roots.extend(root.parent().map(Path::to_path_buf));
        roots.insert(root);
    }
    study.remove_datasets(&roots, &kept)
}
