//! The storage that the processes of a run read from: each from its own, from another's, or all together from one.

use crate::dataset::OpenDataset;
use crate::staging::Staging;
use anyhow::Context;
use feedrate_data::storage::ReadStorage;
use feedrate_run::clock::Clock;
use feedrate_run::layers::{self, Collective, GroupStorages, Together};
use feedrate_run::live::Signals;
use feedrate_run::ranks::Ranks;
use feedrate_spec::plan::{FileAccess, LoaderPlan, Plan, StoragePlan};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Release;

/// State of one process. All processes make one and call its methods in the same order.
pub(crate) struct Sharing<'a> {
    dataset: &'a OpenDataset,
    ranks: &'a Ranks,
    clock: Clock,
    signals: &'a Signals,
    /// Its share of the emulated storage.
    plan: StoragePlan,
    /// Storage of this process; `None` where all read together.
    storage: Option<Arc<dyn ReadStorage>>,
    /// Where groups are in several processes.
    collective: Option<Collective>,
    complete: Arc<AtomicBool>,
}

impl<'a> Sharing<'a> {
    /// As `plan` says.
    pub(crate) fn begin(
        plan: &Plan,
        dataset: &'a OpenDataset,
        ranks: &'a Ranks,
        clock: Clock,
        signals: &'a Signals,
        staging: Option<&Staging>,
    ) -> anyhow::Result<Self> {
        let (rank, size) = (ranks.comm.rank(), ranks.comm.size());
        let LoaderPlan { group_accelerators: group, file_access, .. } = plan.loader;
        let read_for = layers::read_for(rank, size, plan.accelerators, group);
        let collective = Collective::begin(ranks, plan, &signals.stop)
            .context("one accelerator of a group cannot read for those of other processes")?;
        let plan = ranks.storage(&plan.storage, &read_for);
        let storage = (file_access != FileAccess::Mpio).then(|| match staging {
            Some(staging) => staging.storage(),
            None => layers::emulated(&plan, dataset.storage.clone(), clock, &signals.stop),
        });
        let complete = Arc::default();
        Ok(Sharing { dataset, ranks, clock, signals, plan, storage, collective, complete })
    }

    /// Storage that one job reads.
    pub(crate) fn storage(&self) -> anyhow::Result<Arc<dyn ReadStorage>> {
        if let Some(storage) = &self.storage {
            return Ok(Arc::clone(storage));
        }
        let files = self.ranks.comm.files().context("processes cannot read together")?;
        let (stop, complete) = (&self.signals.stop, Arc::clone(&self.complete));
        let OpenDataset { storage, folder, .. } = self.dataset;
        let together =
            Together::new(Arc::clone(storage), files, folder, Arc::clone(stop), complete);
        Ok(layers::emulated(&self.plan, Arc::new(together), self.clock, stop))
    }

    /// Storage that a job reads instead of `storage` where its groups are in several processes.
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

    /// All processes have finished reading, and close their files together from now on.
    pub(crate) fn completed(&self) {
        self.complete.store(true, Release);
    }

    /// Ends reading. If the run is complete, waits for the processes that this one reads for.
    pub(crate) fn end(self, is_complete: bool) -> anyhow::Result<()> {
        match self.collective {
            Some(collective) if is_complete => Ok(collective.finish()?),
            _ => Ok(()),
        }
    }
}
