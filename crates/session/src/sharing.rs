//! Sets up the storage that the processes of a run read. A process reads for itself, through another process, or together with all others.

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

/// One process's part in shared reading. All processes must call the functions of this type in the same order.
pub(crate) struct Sharing<'a> {
    dataset: &'a OpenDataset,
    ranks: &'a Ranks,
    clock: Clock,
    signals: &'a Signals,
    /// This process's share of the emulated storage.
    plan: StoragePlan,
    /// Storage that this process reads; `None` if all processes read together.
    storage: Option<Arc<dyn ReadStorage>>,
    /// Reading for accelerators of other processes, if groups span several processes.
    collective: Option<Collective>,
    /// Whether all processes have finished reading.
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
            .context("an accelerator cannot read for accelerators of other processes")?;
        let storage_plan = ranks.storage_share(&plan.storage, &served);
        let storage = (file_access != FileAccess::Mpio).then(|| match staging {
            Some(staging) => staging.storage(),
            None => layers::emulate(&storage_plan, dataset.storage.clone(), clock, &signals.stop),
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

    /// Returns the storage for a job.
    pub(crate) fn storage(&self) -> anyhow::Result<Arc<dyn ReadStorage>> {
        if let Some(storage) = &self.storage {
            return Ok(Arc::clone(storage));
        }
        let files = self.ranks.comm.files().context("processes cannot read together")?;
        let stop = &self.signals.stop;
        let complete = Arc::clone(&self.complete);
        let OpenDataset { storage, folder, .. } = self.dataset;
        let shared_files =
            SharedFileStorage::new(Arc::clone(storage), files, folder, Arc::clone(stop), complete);
        Ok(layers::emulate(&self.plan, Arc::new(shared_files), self.clock, stop))
    }

    /// Returns the storages that a job reads instead of `storage` if its groups span several processes.
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

    /// Records that all processes have finished reading. From then on, they close files together.
    pub(crate) fn mark_complete(&self) {
        self.complete.store(true, Release);
    }

    /// Ends reading. If the run is complete, waits for the other processes that read through this one.
    pub(crate) fn end(self, is_complete: bool) -> anyhow::Result<()> {
        match self.collective {
            Some(collective) if is_complete => Ok(collective.finish()?),
            _ => Ok(()),
        }
    }
}
