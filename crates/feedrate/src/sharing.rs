//! The storage that the processes of a run read from: each from its own, from another's, or all together from one.

use crate::dataset::Dataset;
use anyhow::Context;
use feedrate_data::storage::ReadStorage;
use feedrate_run::clock::Clock;
use feedrate_run::driver::Signals;
use feedrate_run::layers::{self, Collective, GroupStorages, Together};
use feedrate_run::ranks::Ranks;
use feedrate_spec::plan::{FileAccess, Plan, StoragePlan};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Release;

/// State of one process. Every process makes one, and asks it for the same things in the same order.
pub(crate) struct Sharing<'a> {
    dataset: &'a Dataset,
    ranks: &'a Ranks,
    clock: Clock,
    signals: &'a Signals,
    /// Its share of the emulated storage.
    plan: StoragePlan,
    /// Storage of this process; `None` where all read together.
    own: Option<Arc<dyn ReadStorage>>,
    /// Where groups are in several processes.
    collective: Option<Collective>,
    complete: Arc<AtomicBool>,
}

impl<'a> Sharing<'a> {
    /// As `plan` says.
    pub(crate) fn begin(
        plan: &Plan,
        dataset: &'a Dataset,
        ranks: &'a Ranks,
        clock: Clock,
        signals: &'a Signals,
    ) -> anyhow::Result<Self> {
        let (rank, size) = (ranks.comm.rank(), ranks.comm.size());
        let group = plan.loader.group_accelerators;
        let share = layers::share_read(rank, size, plan.accelerators, group);
        let own_plan = ranks.storage(&plan.storage, share);
        let collective = Collective::begin(ranks, plan, &signals.stop)
            .context("one accelerator of a group cannot read for those of other processes")?;
        let own = (plan.loader.file_access != FileAccess::Mpio)
            .then(|| layers::emulated(&own_plan, dataset.storage.clone(), clock, &signals.stop));
        Ok(Sharing {
            dataset,
            ranks,
            clock,
            signals,
            plan: own_plan,
            own,
            collective,
            complete: Arc::default(),
        })
    }

    /// Storage that one job reads.
    pub(crate) fn storage(&self) -> anyhow::Result<Arc<dyn ReadStorage>> {
        if let Some(own) = &self.own {
            return Ok(Arc::clone(own));
        }
        let files = self.ranks.comm.files().context("processes cannot read together")?;
        let (stop, complete) = (&self.signals.stop, &self.complete);
        let together = Together::new(
            Arc::clone(&self.dataset.storage),
            files,
            &self.dataset.folder,
            Arc::clone(stop),
            Arc::clone(complete),
        );
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

    /// All processes have read all they wanted: what is closed from here on is closed by all.
    pub(crate) fn completed(&self) {
        self.complete.store(true, Release);
    }

    /// Nobody reads any more. Waits for those that this process reads for, if the run is complete.
    pub(crate) fn end(self, is_complete: bool) -> anyhow::Result<()> {
        match self.collective {
            Some(collective) if is_complete => Ok(collective.finish()?),
            _ => Ok(()),
        }
    }
}
