//! The storage from which the processes of a run read: each process reads itself, reads through another process, or all read together.

use crate::dataset::OpenDataset;
use crate::staging::Staging;
use anyhow::Context;
use feedrate_data::storage::ReadStorage;
use feedrate_run::clock::Clock;
use feedrate_run::layers::{self, Collective, GroupStorages, SharedFileStorage};
use feedrate_run::live::Signals;
use feedrate_run::ranks::Ranks;
use feedrate_spec::plan::{FileAccess, LoaderPlan, Plan, StoragePlan};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Release;

/// Shared reading in one process. All processes must create one and call its methods in the same order.
pub(crate) struct Sharing<'a> {
    dataset: &'a OpenDataset,
    ranks: &'a Ranks,
    clock: Clock,
    signals: &'a Signals,
    /// This process's share of the emulated storage.
    plan: StoragePlan,
    /// Storage of this process; `None` if all processes read together.
    storage: Option<Arc<dyn ReadStorage>>,
    /// Reading for accelerators of other processes, if groups span several processes.
    collective: Option<Collective>,
    complete: Arc<AtomicBool>,
}

impl<'a> Sharing<'a> {
    /// Sets up reading for `plan`.
    pub(crate) fn begin(
        plan: &Plan,
        dataset: &'a OpenDataset,
        ranks: &'a Ranks,
        clock: Clock,
        signals: &'a Signals,
        staging: Option<&Staging>,
    ) -> anyhow::Result<Self> {
        let rank = ranks.comm.rank();
        let size = ranks.comm.size();
        let LoaderPlan { group_accelerators: group, file_access, .. } = plan.loader;
        let served = layers::served_accelerators(rank, size, plan.accelerators, group);
        let collective = Collective::begin(ranks, plan, &signals.stop)
            .context("one accelerator of a group cannot read for those of other processes")?;
        let storage_plan = ranks.storage(&plan.storage, &served);
        let storage = (file_access != FileAccess::Mpio).then(|| match staging {
            Some(staging) => staging.storage(),
            None => layers::emulated(&storage_plan, dataset.storage.clone(), clock, &signals.stop),
        });
        Ok(Sharing {
            dataset,
            ranks,
            clock,
            signals,
            plan: storage_plan,
            storage,
            collective,
            complete: Arc::default(),
        })
    }

    /// The storage for a job.
    pub(crate) fn storage(&self) -> anyhow::Result<Arc<dyn ReadStorage>> {
        if let Some(storage) = &self.storage {
            return Ok(Arc::clone(storage));
        }
        let files = self.ranks.comm.files().context("processes cannot read together")?;
        let stop = &self.signals.stop;
        let complete = Arc::clone(&self.complete);
        let OpenDataset { storage, folder, .. } = self.dataset;
        let together =
            SharedFileStorage::new(Arc::clone(storage), files, folder, Arc::clone(stop), complete);
        Ok(layers::emulated(&self.plan, Arc::new(together), self.clock, stop))
    }

    /// The storages that a job reads instead of `storage` if its groups span several processes.
    pub(crate) fn groups(
        &mut self,
        storage: &Arc<dyn ReadStorage>,
    ) -> anyhow::Result<GroupStorages> {
        match &mut self.collective {
            Some(collective) => collective
                .storages(storage)
                .context("cannot start a thread that reads for other processes"),
            None => Ok(GroupStorages::default()),
        }
    }

    /// Records that all processes have finished reading, so that they close files together from now on.
    pub(crate) fn mark_complete(&self) {
        self.complete.store(true, Release);
    }

    /// Ends reading. If the run is complete, this waits for the processes that this one reads for.
    pub(crate) fn end(self, is_complete: bool) -> anyhow::Result<()> {
        match self.collective {
            Some(collective) if is_complete => Ok(collective.finish()?),
            _ => Ok(()),
        }
    }
}
