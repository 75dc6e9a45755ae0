//! Copies a dataset to the folder that a run then reads. Each machine has one copy: its first process creates and removes the folder, and all
//! processes of the machine copy files.

use crate::catalog;
use crate::dataset::{self, OpenDataset};
use crate::dataset_lock::holder_text;
use crate::launch::refuse_if_any;
use anyhow::{Context, bail};
use feedrate_data::lock::{DatasetLock, LockAccess};
use feedrate_data::stage::{Reader, Stage, Survey};
use feedrate_data::storage::{self, Storage};
use feedrate_data::walk::{FileShare, Watch};
use feedrate_run::clock::Clock;
use feedrate_run::comm::RankNode;
use feedrate_run::layers;
use feedrate_run::live::{LivePhase, Signals};
use feedrate_run::ranks::Ranks;
use feedrate_run::system;
use feedrate_run::training::{Copying, Preparation};
use feedrate_spec::listener::Listener;
use feedrate_spec::plan::{Cache, Plan, StagePlan};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time to wait for other processes of the machine that still read the copy.
const READERS_WAIT: Duration = Duration::from_secs(5);
/// Interval between checks for such processes.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The copy of a dataset in one process.
pub(crate) struct Staging<'a> {
    plan: &'a Plan,
    stage_plan: &'a StagePlan,
    dataset: &'a OpenDataset,
    ranks: &'a Ranks,
    clock: Clock,
    signals: &'a Signals,
    listener: &'a dyn Listener,
    start_ns: u64,
    stage: Arc<Stage>,
    /// The folder of the copy, in the process that creates and removes it for its machine.
    owned: Option<OwnedCopy>,
    reader: Reader,
}

/// The folder of a copy, which this process must remove.
struct OwnedCopy {
    lock: DatasetLock,
    survey: Survey,
    /// The parent of the copy's folder, if it was created for the copy.
    created_parent: Option<PathBuf>,
}

/// The source of a run's reads: a dataset or its copy.
#[derive(Clone, Copy)]
pub(crate) struct ReadSource<'a> {
    pub(crate) dataset: &'a OpenDataset,
    pub(crate) staging: Option<&'a Staging<'a>>,
}

/// Returns the folder on the storage under test: the dataset's folder, or its copy's.
pub(crate) fn folder_under_test<'a>(plan: &'a Plan, dataset: &'a Path) -> &'a Path {
    plan.stage.as_ref().map_or(dataset, |stage| Path::new(&stage.folder))
}

impl<'a> Staging<'a> {
    /// Creates the folder of the copy in `plan`, on all machines or on none. Returns `None` if the plan has no copy.
    ///
    /// # Errors
    /// Fails if the folder cannot be created on a machine.
    pub(crate) fn begin(
        plan: &'a Plan,
        dataset: &'a OpenDataset,
        ranks: &'a Ranks,
        clock: Clock,
        signals: &'a Signals,
        listener: &'a dyn Listener,
    ) -> anyhow::Result<Option<Self>> {
        let Some(stage_plan) = &plan.stage else { return Ok(None) };
        let start_ns = clock.now_ns();
        let copy_outcome = begin_copy(plan, stage_plan, dataset, ranks)
            .with_context(|| format!("cannot copy the dataset into `{}`", stage_plan.folder));
        let (copy, refused) = match copy_outcome {
            Ok(copy) => (Some(copy), None),
            Err(refused) => (None, Some(refused)),
        };
        let agreement = refuse_if_any(ranks, refused);
        let Some((stage, owned)) = copy else {
            agreement?;
            bail!("this process has no copy");
        };
        if let Err(refused) = agreement {
            owned.map_or(Ok(()), |owned| owned.remove(&stage, listener))?;
            return Err(refused);
        }
        if ranks.is_first() && listener.redraws_progress() {
            listener.note(format!("copying the dataset into `{}`", stage.folder().display()));
        }
        let reader = stage.lock_for_reading()?;
        let stage = Arc::new(stage);
        Ok(Some(Staging {
            plan,
            stage_plan,
            dataset,
            ranks,
            clock,
            signals,
            listener,
            start_ns,
            stage,
            owned,
            reader,
        }))
    }

    /// Returns the storage of the copy.
    pub(crate) fn storage(&self) -> Arc<dyn Storage> {
        Arc::clone(self.stage.storage())
    }

    /// Returns the work that copies this process's share of the files, with as many threads as its accelerators have workers.
    pub(crate) fn copying(&self) -> anyhow::Result<Copying> {
        let Staging { plan, ranks, signals, .. } = *self;
        let bytes: Arc<dyn Storage> = if dataset::serves_samples(plan) {
            Arc::from(storage::open(&plan.storage.kind, &self.dataset.folder)?)
        } else {
            Arc::clone(&self.dataset.storage)
        };
        let accelerators = u64::from(ranks.local.start)..u64::from(ranks.local.end);
        let storage_share = ranks.storage_share(&plan.storage, &accelerators);
        let original =
            layers::emulate(&storage_share, bytes.clone(), self.clock, &signals.interrupted);
        let RankNode { local_rank, local_size, .. } = ranks.comm.node();
        let share = FileShare { index: local_rank.into(), count: local_size.into() };
        let threads = ranks.local.len() * plan.loader.workers.max(1) as usize;
        let evict = (plan.train.cache == Cache::Cold).then_some(bytes);
        let stage = Arc::clone(&self.stage);
        let live = Arc::clone(&signals.live);
        let clock = self.clock;
        let total_bytes = catalog::estimate(plan).file_bytes / share.count;
        Ok(Copying {
            folder: stage.folder().display().to_string(),
            start_ns: self.start_ns,
            work: Box::new(move |interrupted| {
                live.bytes.begin(Some(total_bytes), clock.now_ns());
                let show = |_files: u64, bytes: u64| live.bytes.done.store(bytes, Relaxed);
                let watch = Watch::new(&show, interrupted);
                live.run_in_phase(LivePhase::Copies, || {
                    stage.copy(&*original, evict.as_deref(), share, threads, &watch)
                })
            }),
        })
    }

    /// Waits until no process reads the copy any more, and removes it unless the plan keeps it.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        let Staging { stage_plan, listener, stage, owned, reader, .. } = self;
        drop(reader);
        let Some(owned) = owned else { return Ok(()) };
        let deadline = Instant::now() + READERS_WAIT;
        while stage.has_readers() && Instant::now() < deadline {
            thread::sleep(CHECK_INTERVAL);
        }
        if stage_plan.keep {
            return Ok(stage.complete(&owned.survey)?);
        }
        owned.remove(&stage, listener)
    }
}

/// Sets up the copy in this process. The first process of each machine creates its folder.
fn begin_copy(
    plan: &Plan,
    stage_plan: &StagePlan,
    dataset: &OpenDataset,
    ranks: &Ranks,
) -> anyhow::Result<(Stage, Option<OwnedCopy>)> {
    let folder = Path::new(&stage_plan.folder);
    let engine = dataset::engine_of(plan);
    let stage = Stage::new(&plan.dataset, &dataset.folder, folder, engine, stage_plan.limit_bytes)?
        .with_names_of(Arc::clone(&dataset.storage));
    let owned = ranks.is_first_of_node().then(|| OwnedCopy::create(&stage)).transpose()?;
    Ok((stage, owned))
}

impl OwnedCopy {
    fn create(stage: &Stage) -> anyhow::Result<Self> {
        let survey = stage.survey()?;
        let parent = stage.folder().parent().unwrap_or(stage.folder());
        let free_bytes = system::available_bytes(parent);
        let created_parent = (!parent.exists()).then(|| parent.to_path_buf());
        let boot_id = system::drop_mark().map(|mark| mark.boot_id).unwrap_or_default();
        let holder = holder_text(LockAccess::Exclusive);
        let lock = stage
            .begin(&survey, free_bytes, &boot_id, &holder)
            .inspect_err(|_| remove_if_empty(created_parent.as_deref()))?;
        Ok(OwnedCopy { lock, survey, created_parent })
    }

    /// Removes the files of the copy, and its folder. Warns about foreign files, which stay.
    fn remove(self, stage: &Stage, listener: &dyn Listener) -> anyhow::Result<()> {
        let found = stage.remove(self.lock)?;
        for path in found.foreign_files {
            listener.important(format!(
                "warning: `{}` is not a file of the copy and was not removed",
                stage.folder().join(path).display()
            ));
        }
        remove_if_empty(self.created_parent.as_deref());
        Ok(())
    }
}

fn remove_if_empty(folder: Option<&Path>) {
    if let Some(folder) = folder {
        // This fails if another program uses the folder.
        let _ = std::fs::remove_dir(folder);
    }
}

impl ReadSource<'_> {
    /// Returns the storage of the files that are read, without emulated costs.
    pub(crate) fn storage(&self) -> Arc<dyn Storage> {
        self.staging.map_or_else(|| Arc::clone(&self.dataset.storage), Staging::storage)
    }

    /// Returns the number of files that were opened or generated before.
    pub(crate) fn preparation(&self) -> Preparation {
        self.staging.map_or(self.dataset.preparation, |staging| Preparation {
            opens: 0,
            opened_files: staging.stage.files_train(),
        })
    }

    /// Returns a function that maps a path of the storage to the path of its file.
    pub(crate) fn real_path_function(&self) -> impl Fn(&str) -> PathBuf + 'static {
        let folder = self.folder().to_path_buf();
        let storage = self.storage();
        move |path| folder.join(storage.real_path(path))
    }

    /// Returns the folder of the files that are read.
    pub(crate) fn folder(&self) -> &Path {
        self.staging.map_or(&*self.dataset.folder, |staging| staging.stage.folder())
    }
}
