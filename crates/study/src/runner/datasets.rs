//! Datasets of runs: made once for all runs that share one, deleted by the study's policy, never half there under their name.

use super::host::{DatasetPlan, Ended, Job, News, RowPlan, Task};
use super::{Rows, Runner, RunnerError};
use crate::datasets::{Owned, Policy, Room, to_delete};
use crate::state::{Event, RowId};
use feedrate_spec::units;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

impl Runner<'_> {
    /// Make the dataset of a row unless it is there, and room for it first. `pending` are the rows to run, this one the first.
    pub(super) fn make_dataset(
        &mut self,
        (rows, index): (&Rows, usize),
        (plan, attempt): (&RowPlan, u64),
        pending: &[usize],
    ) -> Result<Result<(), Ended>, RunnerError> {
        let Some(dataset) = &plan.dataset else { return Ok(Ok(())) };
        let row = &rows.all[index];
        let is_whole = self.host.is_whole(row, &self.settings);
        if let Err(reason) = self.make_room(rows, dataset, is_whole, pending)? {
            return Ok(Err(Ended::Failed(reason)));
        }
        if is_whole {
            return Ok(Ok(()));
        }
        let DatasetPlan { folder, fingerprint, bytes } = dataset.clone();
        // What others began is not this study's to delete.
        if !folder.exists() {
            self.add(Event::Claimed { folder: folder.clone(), fingerprint, bytes })?;
        }
        self.host.tell(News::Generating { folder: folder.clone(), bytes });
        let begun_s = self.host.now_s();
        let job = Job { row, plan, settings: &self.settings, attempt };
        if let Err(ended) = self.host.execute(&job, Task::Generate) {
            return Ok(Err(ended));
        }
        let duration_s = self.host.now_s() - begun_s;
        self.add(Event::Generated { folder, duration_s })?;
        Ok(Ok(()))
    }

    /// The inner error says in words that there is too little room.
    fn make_room(
        &mut self,
        rows: &Rows,
        dataset: &DatasetPlan,
        is_whole: bool,
        pending: &[usize],
    ) -> Result<Result<(), String>, RunnerError> {
        let next_uses = self.next_uses(rows, pending);
        let mut owned = self.owned(&next_uses);
        // What lies elsewhere makes no room here.
        owned.retain(|of| {
            of.folder != dataset.folder && of.folder.parent() == dataset.folder.parent()
        });
        let free_bytes = self.host.free_bytes(&dataset.folder);
        let needed_bytes = if is_whole { 0 } else { dataset.bytes };
        match to_delete(self.options.datasets, &owned, Room { needed_bytes, free_bytes }) {
            Ok(folders) => {
                for folder in folders {
                    self.delete(&folder)?;
                }
                Ok(Ok(()))
            }
            Err(too_little) => Ok(Err(format!(
                "its dataset needs {}, {} more than there is room for in `{}`",
                units::bytes(needed_bytes),
                units::bytes(too_little.short_bytes),
                dataset.folder.display(),
            ))),
        }
    }

    /// At the end, delete what nobody needs, if that is the policy.
    pub(super) fn delete_unneeded(&mut self) -> Result<(), RunnerError> {
        if self.options.datasets != Policy::DeleteUnneeded {
            return Ok(());
        }
        let rows = Rows::of(self.files)?;
        let open: Vec<usize> = (0..rows.all.len()).filter(|&index| !rows.all[index].done).collect();
        for &index in &open {
            // A row that cannot be planned needs no dataset.
            if let Ok(plan) = self.host.plan(&rows.all[index], &self.settings) {
                self.plans.insert(rows.ids[index].clone(), plan);
            }
        }
        let next_uses = self.next_uses(&rows, &open);
        let needless = self.owned(&next_uses).into_iter().filter(|of| of.next_use.is_none());
        for of in needless.collect::<Vec<_>>() {
            self.delete(&of.folder)?;
        }
        Ok(())
    }

    /// For each dataset that is still needed, how many runs come before.
    fn next_uses(&self, rows: &Rows, pending: &[usize]) -> BTreeMap<PathBuf, usize> {
        let mut uses = BTreeMap::new();
        for (n, &index) in pending.iter().enumerate() {
            let id: &RowId = &rows.ids[index];
            let dataset = self.plans.get(id).and_then(|plan| plan.dataset.as_ref());
            if let Some(dataset) = dataset {
                uses.entry(dataset.folder.clone()).or_insert(n);
            }
        }
        uses
    }

    fn owned(&self, next_uses: &BTreeMap<PathBuf, usize>) -> Vec<Owned> {
        let of = self.history.datasets.iter().map(|(folder, dataset)| Owned {
            folder: folder.clone(),
            bytes: dataset.bytes,
            next_use: next_uses.get(folder).copied(),
        });
        of.collect()
    }

    fn delete(&mut self, folder: &Path) -> Result<(), RunnerError> {
        let bytes = self.history.datasets.get(folder).map_or(0, |dataset| dataset.bytes);
        self.host.tell(News::Deleting { folder: folder.to_path_buf(), bytes });
        self.remove(folder)
    }

    /// Under another name first: half of a dataset must not be taken for one.
    fn remove(&mut self, folder: &Path) -> Result<(), RunnerError> {
        let going = going(folder);
        let removed = absent_is_fine(fs::rename(folder, &going))
            .and_then(|()| absent_is_fine(fs::remove_dir_all(&going)));
        removed.map_err(|source| RunnerError::Io {
            doing: "delete",
            path: folder.to_path_buf(),
            source,
        })?;
        Ok(self.add(Event::Deleted { folder: folder.to_path_buf() })?)
    }

    /// What an earlier runner began to delete.
    pub(super) fn remove_half_deleted(&mut self) -> Result<(), RunnerError> {
        let begun: Vec<PathBuf> =
            self.history.datasets.keys().filter(|folder| going(folder).exists()).cloned().collect();
        for folder in begun {
            if folder.exists() {
                absent_is_fine(fs::remove_dir_all(going(&folder)))
                    .map_err(|source| RunnerError::Io { doing: "delete", path: folder, source })?;
            } else {
                self.remove(&folder)?;
            }
        }
        Ok(())
    }
}

fn going(folder: &Path) -> PathBuf {
    let mut name = folder.as_os_str().to_os_string();
    name.push(".deleted");
    name.into()
}

fn absent_is_fine(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}
