//! Generates each dataset once for all runs that share it, and deletes datasets by the study's policy.

use super::env::{RowDataset, RowJob, RowPlan, RunnerEvent, RunnerTask, TaskEnd};
use super::{AttemptError, RowRef, Runner, RunnerError};
use crate::datasets::{OwnedDataset, datasets_to_delete};
use feedrate_results::row::Row;
use feedrate_spec::units;
use std::collections::BTreeMap;
use std::path::PathBuf;

impl Runner<'_> {
    /// Moves the first row whose dataset no other process is generating to the front of `pending`. Without such a row, the order stays.
    pub(super) fn prefer_available_dataset(&mut self, rows: &[Row], pending: &mut [usize]) {
        for position in 0..pending.len() {
            let next = RowRef { rows, index: pending[position] };
            let dataset = self.plans.get(next.row()).and_then(|plan| plan.dataset.as_ref());
            let Some((folder, holder)) = dataset.and_then(|dataset| {
                let holder = self.env.dataset_writer(&dataset.folder)?;
                Some((dataset.folder.clone(), holder))
            }) else {
                return pending[..=position].rotate_right(1);
            };
            let label = next.label();
            if self.reported.insert(format!("{label}: {holder}")) {
                self.env.report(RunnerEvent::Busy { label, folder, holder });
            }
        }
    }

    /// Generates the dataset of a row unless it is complete, and makes room for it first. `pending` starts with this row. If the row's last run failed
    /// (`has_failed`), every file of the dataset is checked.
    pub(super) fn generate_dataset(
        &mut self,
        next: RowRef,
        plan: &RowPlan,
        attempt: usize,
        pending: &[usize],
        has_failed: bool,
    ) -> Result<(), AttemptError> {
        let Some(dataset) = &plan.dataset else { return Ok(()) };
        let row = next.row();
        let is_complete = self.env.has_complete_dataset(row, &self.settings);
        self.make_room(next.rows, dataset, is_complete, pending)?;
        if is_complete && !has_failed {
            return Ok(());
        }
        let RowDataset { folder, bytes, .. } = dataset.clone();
        if !is_complete {
            self.env.report(RunnerEvent::Generating { folder, bytes });
        }
        let started_s = self.env.now_s();
        let number = self.state.attempts[attempt].number;
        let job = RowJob { row, plan, settings: &self.settings, attempt: number };
        self.env.execute(&job, RunnerTask::Generate)?;
        if !is_complete {
            self.plans.record_generation(bytes, self.env.now_s() - started_s);
        }
        Ok(())
    }

    /// Deletes datasets of the study until `dataset` fits.
    fn make_room(
        &mut self,
        rows: &[Row],
        dataset: &RowDataset,
        is_complete: bool,
        pending: &[usize],
    ) -> Result<(), AttemptError> {
        if is_complete {
            return Ok(());
        }
        let mut owned = self.owned_datasets(rows, pending);
        // Files that an earlier command generated are kept.
        let partial = owned.iter().find(|other| other.folder == dataset.folder);
        let needed_bytes = dataset.bytes.saturating_sub(partial.map_or(0, |begun| begun.bytes));
        // Deleting a dataset on another storage would free no space here.
        owned.retain(|other| {
            other.folder != dataset.folder && other.folder.parent() == dataset.folder.parent()
        });
        let free_bytes = self.env.free_bytes(&dataset.folder);
        let deletable = datasets_to_delete(self.options.datasets, &owned, needed_bytes, free_bytes);
        let folders = deletable.map_err(|short_bytes| {
            TaskEnd::Failed(format!(
                "its dataset needs {}, {} more than fits in `{}`\n  hint: free space, or use `--datasets make-room`",
                units::bytes(needed_bytes),
                units::bytes(short_bytes),
                dataset.folder.display(),
            ))
        })?;
        for dataset in owned.iter().filter(|other| folders.contains(&other.folder)) {
            self.delete(dataset)?;
        }
        Ok(())
    }

    /// Datasets of the study, each with the number of runs before the next run that needs it.
    fn owned_datasets(&mut self, rows: &[Row], pending: &[usize]) -> Vec<OwnedDataset> {
        let next_uses = self.next_uses(rows, pending);
        let datasets = self.env.own_datasets(&self.plans.dataset_roots(), &self.settings.id);
        let owned = datasets.into_iter().map(|(folder, bytes)| {
            let next_use = next_uses.get(&folder).copied();
            OwnedDataset { folder, bytes, next_use }
        });
        owned.collect()
    }

    /// Number of runs before the first run that needs a dataset, by folder. The `pending` rows run first, then all other unfinished rows.
    fn next_uses(&self, rows: &[Row], pending: &[usize]) -> BTreeMap<PathBuf, usize> {
        let open = (0..rows.len()).filter(|index| !rows[*index].done);
        let others = open.filter(|index| !pending.contains(index));
        let mut uses = BTreeMap::new();
        for (position, index) in pending.iter().copied().chain(others).enumerate() {
            let dataset = self.plans.get(&rows[index]).and_then(|plan| plan.dataset.as_ref());
            if let Some(dataset) = dataset {
                uses.entry(dataset.folder.clone()).or_insert(position);
            }
        }
        uses
    }

    fn delete(&mut self, dataset: &OwnedDataset) -> Result<(), RunnerError> {
        let OwnedDataset { folder, bytes, .. } = dataset.clone();
        let is_deleted = self.env.delete_dataset(&folder).map_err(|source| RunnerError::Io {
            doing: "delete",
            path: folder.clone(),
            source,
        })?;
        self.env.report(if is_deleted {
            RunnerEvent::Deleted { folder, bytes }
        } else {
            RunnerEvent::InUse { folder }
        });
        Ok(())
    }
}
