//! The copy of a dataset that a run reads instead of it: one on each machine, taken by its first process, made by all of them, and removed
//! by the first when none reads it any more.

use crate::catalog;
use crate::dataset::{self, OpenDataset};
use crate::dataset_lock::holder_text;
use crate::launch::agreed;
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

/// Time that other processes of the machine may go on reading the copy once this one is done.
const PATIENCE: Duration = Duration::from_secs(5);
/// Interval between two looks whether they do.
const LOOK: Duration = Duration::from_millis(20);

/// The copy, in one process.
pub(crate) struct Staging<'a> {
    plan: &'a Plan,
    wanted: &'a StagePlan,
    dataset: &'a OpenDataset,
    ranks: &'a Ranks,
    clock: Clock,
    signals: &'a Signals,
    listener: &'a dyn Listener,
    begun_ns: u64,
    stage: Arc<Stage>,
    /// Kept by the process that takes and removes it for its machine.
    taken: Option<Taken>,
    reader: Reader,
}

struct Taken {
    lock: DatasetLock,
    survey: Survey,
    /// The folder that the copy's lies in, if it was made for it.
    made: Option<PathBuf>,
}

/// A dataset, or the copy that is read instead of it.
#[derive(Clone, Copy)]
pub(crate) struct Reads<'a> {
    pub(crate) dataset: &'a OpenDataset,
    pub(crate) staging: Option<&'a Staging<'a>>,
}

/// The folder that is under test: the dataset's, or the one that it is copied to before training.
pub(crate) fn folder_under_test<'a>(plan: &'a Plan, dataset: &'a Path) -> &'a Path {
    plan.stage.as_ref().map_or(dataset, |stage| Path::new(&stage.folder))
}

impl<'a> Staging<'a> {
    /// Take the copy that `plan` asks for, on all machines or on none; `None` where it asks for none.
    pub(crate) fn begin(
        plan: &'a Plan,
        dataset: &'a OpenDataset,
        ranks: &'a Ranks,
        clock: Clock,
        signals: &'a Signals,
        listener: &'a dyn Listener,
    ) -> anyhow::Result<Option<Self>> {
        let Some(wanted) = &plan.stage else { return Ok(None) };
        let begun_ns = clock.now_ns();
        let place = Path::new(&wanted.folder);
        let engine = dataset::engine_of(plan);
        let stage = Stage::new(&plan.dataset, &dataset.folder, place, engine, wanted.limit_bytes);
        let own = stage.map_err(anyhow::Error::from).and_then(|stage| {
            let stage = stage.with_names_of(Arc::clone(&dataset.storage));
            let taken = ranks.is_first_of_node().then(|| Taken::new(&stage)).transpose()?;
            Ok((stage, taken))
        });
        let own = own.with_context(|| format!("cannot copy the dataset into `{}`", wanted.folder));
        let (own, refused) = match own {
            Ok(own) => (Some(own), None),
            Err(refused) => (None, Some(refused)),
        };
        let agreed = agreed(ranks, refused);
        let Some((stage, taken)) = own else {
            agreed?;
            bail!("this process has no copy");
        };
        if let Err(refused) = agreed {
            taken.map_or(Ok(()), |taken| taken.give_back(&stage, listener))?;
            return Err(refused);
        }
        if ranks.is_first() && listener.redraws_progress() {
            listener.note(format!("copying the dataset into `{}`", stage.folder().display()));
        }
        let reader = stage.reader()?;
        let stage = Arc::new(stage);
        Ok(Some(Staging {
            plan,
            wanted,
            dataset,
            ranks,
            clock,
            signals,
            listener,
            begun_ns,
            stage,
            taken,
            reader,
        }))
    }

    /// The files of the copy.
    pub(crate) fn storage(&self) -> Arc<dyn Storage> {
        Arc::clone(self.stage.storage())
    }

    /// The copying of this process's share before training. Threads are as many as read for its accelerators.
    pub(crate) fn copying(&self) -> anyhow::Result<Copying> {
        let Staging { plan, ranks, signals, .. } = *self;
        let bytes: Arc<dyn Storage> = if dataset::serves_samples(plan) {
            Arc::from(storage::open(&plan.storage.kind, &self.dataset.folder)?)
        } else {
            Arc::clone(&self.dataset.storage)
        };
        let own = u64::from(ranks.local.start)..u64::from(ranks.local.end);
        let share = ranks.storage(&plan.storage, &own);
        let original = layers::emulated(&share, bytes.clone(), self.clock, &signals.interrupted);
        let RankNode { local_rank, local_size, .. } = ranks.comm.node();
        let share = FileShare { index: local_rank.into(), count: local_size.into() };
        let threads = ranks.local.len() * plan.loader.workers.max(1) as usize;
        let evict = (plan.train.cache == Cache::Cold).then_some(bytes);
        let stage = Arc::clone(&self.stage);
        let (live, clock) = (Arc::clone(&signals.live), self.clock);
        let total_bytes = catalog::estimate(plan).file_bytes / share.count;
        Ok(Copying {
            folder: stage.folder().display().to_string(),
            begun_ns: self.begun_ns,
            work: Box::new(move |interrupted| {
                live.bytes.begin(Some(total_bytes), clock.now_ns());
                let show = |_files: u64, bytes: u64| live.bytes.done.store(bytes, Relaxed);
                let watch = Watch::new(&show, interrupted);
                live.during(LivePhase::Copies, || {
                    stage.copy(&*original, evict.as_deref(), share, threads, &watch)
                })
            }),
        })
    }

    /// Remove the copy once no process reads it, unless it is to stay.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        let Staging { wanted, listener, stage, taken, reader, .. } = self;
        drop(reader);
        let Some(taken) = taken else { return Ok(()) };
        let until = Instant::now() + PATIENCE;
        while stage.has_readers() && Instant::now() < until {
            thread::sleep(LOOK);
        }
        if wanted.keep {
            return Ok(stage.complete(&taken.survey)?);
        }
        taken.give_back(&stage, listener)
    }
}

impl Taken {
    fn new(stage: &Stage) -> anyhow::Result<Self> {
        let survey = stage.survey()?;
        let place = stage.folder().parent().unwrap_or(stage.folder());
        let room_bytes = system::available_bytes(place);
        let made = (!place.exists()).then(|| place.to_path_buf());
        let boot_id = system::drop_mark().map(|mark| mark.boot_id).unwrap_or_default();
        let holder = holder_text(LockAccess::Exclusive);
        let lock = stage.begin(&survey, room_bytes, &boot_id, &holder);
        let lock = lock.inspect_err(|_| remove_made(made.as_deref()))?;
        Ok(Taken { lock, survey, made })
    }

    fn give_back(self, stage: &Stage, listener: &dyn Listener) -> anyhow::Result<()> {
        let found = stage.remove(self.lock)?;
        for path in found.foreign_files {
            let path = stage.folder().join(path);
            listener.important(format!(
                "warning: `{}` is no file of the copy: it stays",
                path.display()
            ));
        }
        remove_made(self.made.as_deref());
        Ok(())
    }
}

fn remove_made(folder: Option<&Path>) {
    if let Some(folder) = folder {
        // Others may use it by now.
        let _ = std::fs::remove_dir(folder);
    }
}

impl Reads<'_> {
    /// Storage of the files that are read, without emulated cost.
    pub(crate) fn storage(&self) -> Arc<dyn Storage> {
        self.staging.map_or_else(|| Arc::clone(&self.dataset.storage), Staging::storage)
    }

    /// Number of these files that were opened or made.
    pub(crate) fn preparation(&self) -> Preparation {
        self.staging.map_or(self.dataset.preparation, |staging| Preparation {
            opens: 0,
            opened_files: staging.stage.files_train(),
        })
    }

    /// Function from a path of the storage to its file.
    pub(crate) fn file_of(&self) -> impl Fn(&str) -> PathBuf + 'static {
        let (folder, storage) = (self.folder().to_path_buf(), self.storage());
        move |path| folder.join(storage.real_path(path))
    }

    /// Folder of these files.
    pub(crate) fn folder(&self) -> &Path {
        self.staging.map_or(&*self.dataset.folder, |staging| staging.stage.folder())
    }
}
