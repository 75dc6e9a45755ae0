//! Datasets of runs: made once for all runs that share one, deleted by the study's policy, never half there under their name.

use super::host::{DatasetPlan, Ended, Job, News, RowPlan, Task};
use super::{Rows, Runner, RunnerError};
use crate::datasets::{Owned, Policy, Room, to_delete};
use feedrate_results::state::Event;
use feedrate_spec::units;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// In the folder of a dataset that a study made: which one, by its id.
const CLAIM: &str = "made-by-study";

impl Runner<'_> {
    /// Make the dataset of a row unless it is there, and room for it first. `pending` are the rows to run, this one the first; where its
    /// last run failed, every file is looked at.
    pub(super) fn make_dataset(
        &mut self,
        (rows, index): (&Rows, usize),
        (plan, attempt): (&RowPlan, u64),
        (pending, has_failed): (&[usize], bool),
    ) -> Result<Result<(), Ended>, RunnerError> {
        let Some(dataset) = &plan.dataset else { return Ok(Ok(())) };
        let row = &rows.all[index];
        let is_whole = self.host.is_whole(row, &self.settings);
        if let Err(reason) = self.make_room(rows, dataset, is_whole, pending)? {
            return Ok(Err(Ended::Failed(reason)));
        }
        if is_whole && !has_failed {
            return Ok(Ok(()));
        }
        let DatasetPlan { folder, fingerprint, bytes } = dataset.clone();
        // What others began is not this study's to delete.
        if !folder.exists() {
            self.add(Event::Claimed { folder: folder.clone(), fingerprint, bytes })?;
            self.claim(&folder)?;
        }
        if !is_whole {
            self.host.tell(News::Generating { folder: folder.clone(), bytes });
        }
        let begun_s = self.host.now_s();
        let job = Job { row, plan, settings: &self.settings, attempt };
        if let Err(ended) = self.host.execute(&job, Task::Generate) {
            return Ok(Err(ended));
        }
        if !is_whole {
            let duration_s = self.host.now_s() - begun_s;
            self.add(Event::Generated { folder, duration_s })?;
        }
        Ok(Ok(()))
    }

    fn claim(&self, folder: &Path) -> Result<(), RunnerError> {
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(folder.join(CLAIM), &self.settings.id))
            .map_err(|source| RunnerError::Io { doing: "make", path: folder.into(), source })
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
        let needed_bytes = match is_whole {
            true => 0,
            // What an earlier start has made of it is kept.
            false => dataset.bytes.saturating_sub(bytes_in(&dataset.folder)),
        };
        match to_delete(self.options.datasets, &owned, Room { needed_bytes, free_bytes }) {
            Ok(folders) => {
                for folder in folders {
                    self.delete(&folder)?;
                }
                Ok(Ok(()))
            }
            Err(too_little) => Ok(Err(format!(
                "its dataset needs {}, {} more than there is room for in `{}`\n  hint: free space, or let `--datasets` be `make-room`",
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
        let rows = Rows::of(self.files, &self.history)?;
        let next_uses = self.next_uses(&rows, &[]);
        let needless = self.owned(&next_uses).into_iter().filter(|of| of.next_use.is_none());
        for of in needless.collect::<Vec<_>>() {
            self.delete(&of.folder)?;
        }
        Ok(())
    }

    /// For each dataset that is still needed, how many runs come before: first those that are to be run now, then all others that are not
    /// done.
    fn next_uses(&self, rows: &Rows, pending: &[usize]) -> BTreeMap<PathBuf, usize> {
        let open = (0..rows.all.len()).filter(|index| !rows.all[*index].done);
        let others = open.filter(|index| !pending.contains(index));
        let mut uses = BTreeMap::new();
        for (n, index) in pending.iter().copied().chain(others).enumerate() {
            let dataset = self.plan_of(rows, index).and_then(|plan| plan.dataset.as_ref());
            if let Some(dataset) = dataset {
                uses.entry(dataset.folder.clone()).or_insert(n);
            }
        }
        uses
    }

    /// What this study made and may delete: a folder that was made anew by others since does not say its name.
    fn owned(&self, next_uses: &BTreeMap<PathBuf, usize>) -> Vec<Owned> {
        let is_own = |folder: &Path| {
            fs::read_to_string(folder.join(CLAIM)).is_ok_and(|id| id == self.settings.id)
        };
        let of = self.history.datasets.iter().filter(|(folder, _)| is_own(folder));
        let of = of.map(|(folder, dataset)| Owned {
            folder: folder.clone(),
            bytes: dataset.bytes,
            next_use: next_uses.get(folder).copied(),
        });
        of.collect()
    }

    fn delete(&mut self, folder: &Path) -> Result<(), RunnerError> {
        // Whoever makes or reads a dataset holds its lock.
        if let Ok(lock) = fs::File::open(folder.join(".feedrate.lock"))
            && lock.try_lock().is_err()
        {
            self.host.tell(News::InUse { folder: folder.to_path_buf() });
            return Ok(());
        }
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

/// Of all files below a folder; 0 where there is none.
fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let of = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_in(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    of.sum()
}

fn going(folder: &Path) -> PathBuf {
    let mut name = folder.as_os_str().to_os_string();
    name.push(".deleted");
    name.into()
}

fn absent_is_fine(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}
