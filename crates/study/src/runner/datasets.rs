//! Datasets of runs: made once for all runs that share one, deleted by the study's policy.

use super::env::{RowDataset, RowJob, RowPlan, RunnerEvent, RunnerTask, TaskEnd};
use super::{Broken, RowRef, Runner, RunnerError};
use crate::datasets::{Owned, to_delete};
use feedrate_results::row::Row;
use feedrate_spec::units;
use std::collections::BTreeMap;
use std::path::PathBuf;

impl Runner<'_> {
    /// Let the first of `pending` whose dataset nobody else is making come first of all.
    pub(super) fn prefer_free(&mut self, rows: &[Row], pending: &mut [usize]) {
        for at in 0..pending.len() {
            let next = RowRef { rows, index: pending[at] };
            let dataset = self.plans.get(next.row()).and_then(|plan| plan.dataset.as_ref());
            let Some((folder, holder)) =
                dataset.and_then(|of| Some((of.folder.clone(), self.env.maker(&of.folder)?)))
            else {
                return pending[..=at].rotate_right(1);
            };
            let label = next.label();
            if self.reported.insert(format!("{label}: {holder}")) {
                self.env.tell(RunnerEvent::Busy { label, folder, holder });
            }
        }
    }

    /// Make the dataset of a row unless it is there, and room for it first. `pending` are the rows to run, this one the first; where its
    /// last run failed, every file is looked at.
    pub(super) fn make_dataset(
        &mut self,
        next: RowRef,
        plan: &RowPlan,
        at: usize,
        pending: &[usize],
        has_failed: bool,
    ) -> Result<(), Broken> {
        let Some(dataset) = &plan.dataset else { return Ok(()) };
        let row = next.row();
        let is_whole = self.env.has_complete_dataset(row, &self.settings);
        self.make_room(next.rows, dataset, is_whole, pending)?;
        if is_whole && !has_failed {
            return Ok(());
        }
        let RowDataset { folder, bytes, .. } = dataset.clone();
        if !is_whole {
            self.env.tell(RunnerEvent::Generating { folder, bytes });
        }
        let begun_s = self.env.now_s();
        let attempt = self.state.attempts[at].number;
        let job = RowJob { row, plan, settings: &self.settings, attempt };
        self.env.execute(&job, RunnerTask::Generate)?;
        if !is_whole {
            self.plans.generated(bytes, self.env.now_s() - begun_s);
        }
        Ok(())
    }

    fn make_room(
        &mut self,
        rows: &[Row],
        dataset: &RowDataset,
        is_whole: bool,
        pending: &[usize],
    ) -> Result<(), Broken> {
        if is_whole {
            return Ok(());
        }
        let mut owned = self.owned(rows, pending);
        // The part that an earlier start has made is kept.
        let begun = owned.iter().find(|other| other.folder == dataset.folder);
        let needed_bytes = dataset.bytes.saturating_sub(begun.map_or(0, |begun| begun.bytes));
        // A dataset on another storage makes no room here.
        owned.retain(|other| {
            other.folder != dataset.folder && other.folder.parent() == dataset.folder.parent()
        });
        let free_bytes = self.env.free_bytes(&dataset.folder);
        let folders = to_delete(self.options.datasets, &owned, needed_bytes, free_bytes);
        let folders = folders.map_err(|short_bytes| {
            TaskEnd::Failed(format!(
                "its dataset needs {}, {} more than there is room for in `{}`\n  hint: free space, or let `--datasets` be `make-room`",
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

    /// Datasets of the study, each with how many runs come before the next that needs it.
    fn owned(&mut self, rows: &[Row], pending: &[usize]) -> Vec<Owned> {
        let next_uses = self.next_uses(rows, pending);
        let own = self.env.own_datasets(&self.plans.dataset_roots(), &self.settings.id);
        let owned = own.into_iter().map(|(folder, bytes)| {
            let next_use = next_uses.get(&folder).copied();
            Owned { folder, bytes, next_use }
        });
        owned.collect()
    }

    /// For each dataset that is still needed, how many runs come before: first those that are to be run now, then all others that are not
    /// done.
    fn next_uses(&self, rows: &[Row], pending: &[usize]) -> BTreeMap<PathBuf, usize> {
        let open = (0..rows.len()).filter(|index| !rows[*index].done);
        let others = open.filter(|index| !pending.contains(index));
        let mut uses = BTreeMap::new();
        for (n, index) in pending.iter().copied().chain(others).enumerate() {
            let dataset = self.plans.get(&rows[index]).and_then(|plan| plan.dataset.as_ref());
            if let Some(dataset) = dataset {
                uses.entry(dataset.folder.clone()).or_insert(n);
            }
        }
        uses
    }

    fn delete(&mut self, dataset: &Owned) -> Result<(), RunnerError> {
        let Owned { folder, bytes, .. } = dataset.clone();
        let is_deleted = self.env.delete_dataset(&folder).map_err(|source| RunnerError::Io {
            doing: "delete",
            path: folder.clone(),
            source,
        })?;
        self.env.tell(if is_deleted {
            RunnerEvent::Deleted { folder, bytes }
        } else {
            RunnerEvent::InUse { folder }
        });
        Ok(())
    }
}
