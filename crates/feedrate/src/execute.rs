//! A run from its dataset to its record, in each of its processes, whatever the command that wants it.

use crate::dataset::OpenDataset;
use crate::exit::of_ranks;
use crate::results::{self, Results};
use crate::sharing::Sharing;
use crate::{messages, progress};
use anyhow::Context;
use feedrate_engine::job::ReadJob;
use feedrate_measure::record::{Record, System};
use feedrate_run::checkpoint_only::CheckpointOnly;
use feedrate_run::clock::Clock;
use feedrate_run::comm::CommError;
use feedrate_run::driver::{Progress, RealDriver, Signals};
use feedrate_run::ranks::Ranks;
use feedrate_run::session::{self, Drivers, Session};
use feedrate_run::system::{self, TimelineSampler};
use feedrate_spec::plan::{Cache, Plan};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// The results are rewritten while the run goes, but not more often than this.
const SAVE_EVERY: Duration = Duration::from_secs(5);

/// Who tells the user what happens, on rank 0.
pub(crate) trait Talk {
    /// An epoch is over, the last of the record.
    fn epoch(&mut self, record: &Record);
    /// A checkpoint is written or read, the last of the record.
    fn checkpoint(&mut self, record: &Record);
    /// Whether a live line may be drawn.
    fn draws(&self) -> bool;
}

/// A run on its way to its results.
pub(crate) struct Execution<'a> {
    /// The processes.
    pub(crate) ranks: &'a Ranks,
    /// Measurements so far: on rank 0 of all ranks, elsewhere of this one.
    pub(crate) record: Record,
    /// Where it goes; `None` where another process keeps it.
    pub(crate) results: Option<&'a Results>,
    /// How the user is told.
    pub(crate) talk: &'a mut dyn Talk,
    /// The user's wishes, and what they may look at.
    pub(crate) signals: &'a Signals,
}

impl Execution<'_> {
    /// Write the record as it is.
    fn save(&self) -> anyhow::Result<()> {
        self.results.map_or(Ok(()), |results| results.save(&self.record))
    }

    /// Train on `dataset`, or without one write checkpoints; then write down what came of it.
    ///
    /// # Errors
    /// The run failed, or its results could not be written.
    pub(crate) fn run(&mut self, plan: &Plan, dataset: Option<&OpenDataset>) -> anyhow::Result<()> {
        let outcome = self.save().and_then(|()| {
            let clock = self.meet()?;
            match dataset {
                Some(dataset) => self.train(plan, dataset, clock),
                None => self.write_checkpoints(plan, clock),
            }
        });
        // A lost rank stops the others as an interruption does.
        let lost = if self.record.complete { None } else { self.ranks.comm.ended() };
        let outcome = if is_interruption(lost.as_ref(), &outcome) {
            self.record.stopped_because = Some("interrupted".into());
            Ok(())
        } else {
            outcome.and(lost.map_or(Ok(()), |lost| Err(lost.into())))
        };
        self.record.ended = results::wall_now();
        if let Err(error) = &outcome {
            self.record.stopped_because = Some(format!("{error:#}"));
        }
        let saved = self.save();
        if let (Err(_), Err(unsaved)) = (&outcome, &saved) {
            messages::say(format!("warning: {unsaved:#}"));
        }
        outcome.and(saved)
    }

    /// All processes tell of themselves and their machines, and set their clocks alike.
    fn meet(&mut self) -> anyhow::Result<Clock> {
        let mut clock = Clock::new();
        self.record.processes = self.ranks.processes(&mut clock)?;
        if self.ranks.are_many() {
            let own = self.ranks.is_first_of_node().then(|| self.record.system.clone());
            let nodes: Vec<System> = self.ranks.gather(&own)?.into_iter().flatten().collect();
            if nodes.len() > 1 {
                self.record.nodes = nodes;
            }
        }
        Ok(clock)
    }

    fn train(&mut self, plan: &Plan, dataset: &OpenDataset, clock: Clock) -> anyhow::Result<()> {
        let (ranks, signals) = (self.ranks, self.signals);
        let (own, trusts) = (&ranks.own, dataset.trusts_plan);
        let mut sharing = Sharing::begin(plan, dataset, ranks, clock, signals)?;
        self.record.compute_spins = session::may_spin(ranks, system::idle_cores());
        let job = ReadJob::new(plan, own.clone(), sharing.storage()?, trusts)?;
        let mut training = self.driver(&mut sharing, job, clock)?;
        let mut evaluation = None;
        if plan.evaluation.is_some() {
            let job = ReadJob::for_evaluations(plan, own.clone(), sharing.storage()?, trusts)?;
            evaluation = job.map(|job| self.driver(&mut sharing, job, clock)).transpose()?;
        }
        let outcome = self.epochs(plan, dataset, clock, &mut training, &mut evaluation);
        if outcome.is_ok() && self.record.complete {
            sharing.completed();
        }
        drop((training, evaluation));
        let ended = sharing.end(self.record.complete);
        outcome.and(ended)
    }

    fn driver(
        &self,
        sharing: &mut Sharing,
        job: ReadJob,
        clock: Clock,
    ) -> anyhow::Result<RealDriver> {
        let groups = sharing.groups(&job.storage)?;
        let (comm, signals) = (Arc::clone(&self.ranks.comm), self.signals.clone());
        Ok(RealDriver::new(job, groups, clock, comm, signals, self.record.compute_spins)?)
    }

    /// Epoch after epoch, until the end or until something breaks.
    fn epochs(
        &mut self,
        plan: &Plan,
        dataset: &OpenDataset,
        clock: Clock,
        training: &mut RealDriver,
        evaluation: &mut Option<RealDriver>,
    ) -> anyhow::Result<()> {
        let signals = self.signals;
        let silent = self.results.is_none() || !self.talk.draws();
        let epochs = plan.train.epochs_run();
        let line = progress::training(Arc::clone(&signals.live), epochs, silent);
        let device = self.device();
        let work = [Some(&*training), evaluation.as_ref()].into_iter().flatten();
        let work: Vec<_> = work.map(RealDriver::progress).collect();
        let timeline = timeline(plan, clock, device.as_deref(), work)?;
        let mut keeper = Keeper::new(self.results);
        let talk = &mut *self.talk;
        let mut session = Session {
            plan,
            ranks: self.ranks,
            layout: &dataset.layout,
            storage: &*dataset.storage,
            clock,
            device: device.as_deref(),
            timeline: timeline.as_ref(),
            wall: &results::wall,
            interrupted: &|| signals.interrupted.load(Relaxed),
            on_epoch: &mut |record| {
                talk.epoch(record);
                keeper.keep(record);
            },
        };
        let drivers = Drivers { training: &mut *training, evaluation: evaluation.as_mut() };
        let outcome = session.run(drivers, &mut self.record);
        line.finish_and_clear();
        drop(timeline);
        let left_behind =
            training.left_behind() + evaluation.as_ref().map_or(0, RealDriver::left_behind);
        if left_behind > 0 {
            messages::say(format!(
                "warning: {left_behind} of the workers hang in a read that does not come back"
            ));
        }
        Ok(outcome?)
    }

    /// A run of checkpoints only.
    fn write_checkpoints(&mut self, plan: &Plan, clock: Clock) -> anyhow::Result<()> {
        let Some(checkpoint) = &plan.checkpoint else { return Ok(()) };
        let device = self.device();
        let mut keeper = Keeper::new(self.results);
        let timeline = timeline(plan, clock, device.as_deref(), Vec::new())?;
        let (talk, signals) = (&mut *self.talk, self.signals);
        let mut run = CheckpointOnly {
            plan: checkpoint,
            ranks: self.ranks,
            cold: plan.train.cache == Cache::Cold,
            clock,
            timeline: timeline.as_ref(),
            device: device.as_deref(),
            wall: &results::wall,
            interrupted: &|| signals.interrupted.load(Relaxed),
            on_checkpoint: &mut |record| {
                talk.checkpoint(record);
                keeper.keep(record);
            },
        };
        Ok(run.run(&mut self.record)?)
    }

    /// `major:minor` under what is tested.
    fn device(&self) -> Option<String> {
        self.record.system.data_mount.as_ref().map(|mount| mount.device.clone())
    }
}

/// Whether the ranks' work ended because one was told to stop, and nothing else went wrong.
fn is_interruption(lost: Option<&CommError>, outcome: &anyhow::Result<()>) -> bool {
    let own = outcome.as_ref().err();
    match (lost, own) {
        (Some(lost), own) => {
            lost.is_interruption() && own.is_none_or(|own| of_ranks(own).is_some())
        }
        (None, own) => own.and_then(of_ranks).is_some_and(CommError::is_interruption),
    }
}

/// Sampler of the run, unless the plan wants none.
fn timeline(
    plan: &Plan,
    clock: Clock,
    device: Option<&str>,
    work: Vec<Progress>,
) -> anyhow::Result<Option<TimelineSampler>> {
    plan.timeline
        .then(|| TimelineSampler::start(clock, device, work, system::nvml_gpus))
        .transpose()
        .context("cannot start the thread that samples the timeline")
}

/// Keeps the results of what was, while the run goes on.
struct Keeper<'a> {
    results: Option<&'a Results>,
    next_save: Instant,
}

impl<'a> Keeper<'a> {
    fn new(results: Option<&'a Results>) -> Self {
        Keeper { results, next_save: Instant::now() + SAVE_EVERY }
    }

    fn keep(&mut self, record: &Record) {
        let begun = Instant::now();
        if begun < self.next_save {
            return;
        }
        let Some(results) = self.results else { return };
        if let Err(error) = results.save(record) {
            messages::say(format!("warning: {error:#}"));
        }
        // Of many accelerators there is much to write: it must stay a small part of the run.
        self.next_save = Instant::now() + SAVE_EVERY.max(20 * begun.elapsed());
    }
}

/// The record of a run that begins.
pub(crate) fn new_record(
    plan: &Plan,
    dataset: Option<&OpenDataset>,
    results: Option<&Path>,
) -> Record {
    // Under test is the dataset's folder, or the checkpoints' where there is none.
    let checkpoints = plan.checkpoint.as_ref().map(|checkpoint| Path::new(&checkpoint.folder));
    let folder = dataset.map_or(checkpoints, |dataset| Some(&dataset.folder));
    let program = concat!("feedrate ", env!("CARGO_PKG_VERSION"));
    let record = Record::new(program, plan.clone(), system::system(folder, results));
    Record { started: results::wall_now(), ..record }
}
