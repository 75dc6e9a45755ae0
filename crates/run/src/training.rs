//! One run: epoch after epoch, with what the machine did, into a record that is whole at every moment.

pub use crate::page_cache::Preparation;

use crate::aside::aside;
use crate::checkpoint::{CheckpointDue, Saved, Saver};
use crate::clock::Clock;
use crate::comm::{CommError, End};
use crate::driver::{Epoch, RealDriver, RunError};
use crate::live::{LivePhase, Signals};
use crate::page_cache::{Before, PageCache};
use crate::ranks::Ranks;
use crate::system::{DeviceReads, Sampler, TimelineSampler};
use crate::trace::TraceFile;
use feedrate_data::stage::{Copied, StageError};
use feedrate_data::storage::Storage;
use feedrate_measure::record::ranges::{FileRange, from_message, to_message};
use feedrate_measure::record::{AcceleratorEpoch, EpochRecord, Record, StagingRecord, StagingSpan};
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::plan::{CheckpointPlan, Plan};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// A run, beside what it trains on.
pub struct Session<'a> {
    /// The plan that is run.
    pub plan: &'a Plan,
    /// The processes of the run.
    pub ranks: &'a Ranks,
    /// The run's clock.
    pub clock: Clock,
    /// `major:minor` under what is tested.
    pub device: Option<&'a str>,
    /// Whether the kernel counts the device's bytes.
    pub device_reads: DeviceReads,
    /// Who samples what happens; `None` where nobody does.
    pub timeline: Option<&'a TimelineSampler>,
    /// Where what happens is written, event by event; `None` where it is not.
    pub trace: Option<&'a TraceFile>,
    /// Local time in DLIO's form.
    pub wall: &'a dyn Fn(SystemTime) -> String,
    /// The user's wishes.
    pub signals: &'a Signals,
    /// Called with the record so far, after each epoch; in a run of checkpoints only, after each of those.
    pub on_progress: &'a mut dyn FnMut(&Record),
}

/// A dataset, and the drivers that read it.
pub struct Training<'d> {
    /// The bare storage, for eviction and residency.
    pub storage: Arc<dyn Storage>,
    /// Files that were opened already.
    pub preparation: Preparation,
    /// Copies files before the first epoch; `None` where none are to be copied then.
    pub copying: Option<Copying>,
    /// Reads for the epochs.
    pub driver: &'d mut RealDriver,
    /// For evaluations, over their own files, where there are any.
    pub evaluation: Option<&'d mut RealDriver>,
}

/// The copying of a dataset, of this process's share.
pub struct Copying {
    /// The copy's folder.
    pub folder: String,
    /// When it was begun.
    pub begun_ns: u64,
    /// Copies, until it is told to end.
    pub work: CopyWork,
}

type CopyWork = Box<dyn FnOnce(&AtomicBool) -> Result<Copied, StageError> + Send>;

/// One thread at a time has it.
type SharedCache = Arc<Mutex<PageCache>>;

/// The end of a run in which nothing broke.
#[derive(PartialEq, Eq)]
pub(crate) enum RunOutcome {
    Complete,
    Interrupted,
}

impl Session<'_> {
    /// Run all epochs of the plan into `record`.
    ///
    /// # Errors
    /// A sample could not be read; the record holds the epochs before, and what there is of this one.
    pub fn train(&mut self, training: Training<'_>, record: &mut Record) -> Result<(), RunError> {
        let checkpoint = self.plan.checkpoint.as_ref();
        let mut saver = checkpoint.map(|plan| self.saver(plan));
        let outcome = self.epochs(training, &mut saver, record);
        self.tell_others(&outcome);
        // What is being written is waited for however the run ended.
        let finished = match &mut saver {
            Some(saver) => TimelineSampler::apart(self.timeline, || saver.finish()),
            None => Ok(()),
        };
        place(&mut saver, record);
        let outcome = outcome.and_then(|ended| finished.map(|()| ended).map_err(RunError::from));
        self.end(outcome, record)
    }

    /// The other processes do not wait for one that does not come to the end.
    pub(crate) fn tell_others(&self, outcome: &Result<RunOutcome, RunError>) {
        match outcome {
            Ok(RunOutcome::Complete) => {}
            Ok(RunOutcome::Interrupted) => self.ranks.comm.give_up(End::Interrupted),
            Err(error) => self.ranks.comm.give_up(error.end()),
        }
    }

    /// Write down how it ended.
    pub(crate) fn end(
        &self,
        outcome: Result<RunOutcome, RunError>,
        record: &mut Record,
    ) -> Result<(), RunError> {
        if matches!(outcome, Ok(RunOutcome::Complete)) {
            TimelineSampler::finish(self.timeline, self.ranks, &mut record.timeline)?;
            record.complete = true;
            return Ok(());
        }
        self.copy_timeline(record);
        outcome.map(|_| record.stopped_because = Some("interrupted".into()))
    }

    fn epochs(
        &mut self,
        training: Training<'_>,
        saver: &mut Option<Saver>,
        record: &mut Record,
    ) -> Result<RunOutcome, RunError> {
        let Training { storage, preparation, copying, driver, mut evaluation } = training;
        if let Some(copying) = copying {
            self.copy(copying, record)?;
            if self.is_interrupted() {
                return Ok(RunOutcome::Interrupted);
            }
        }
        let (layout, wanted) = (Layout::new(&self.plan.dataset), self.plan.train.cache);
        let interrupted = Arc::clone(&self.signals.interrupted);
        let mut cache = PageCache::new(layout, storage, wanted, interrupted);
        (cache.acts, cache.known) = (self.ranks.is_first_of_node(), preparation);
        let cache = Arc::new(Mutex::new(cache));
        for number in 1..=self.plan.train.epochs_run() {
            self.signals.live.enter(LivePhase::Prepares);
            let before = self.look(&cache, PageCache::prepare)??;
            self.ranks.comm.barrier()?;
            let outcome = self.epoch(number, saver, driver, &cache, before, record);
            let outcome = outcome.and_then(|steps| {
                self.checkpoint(number, steps, saver)?;
                match &mut evaluation {
                    Some(driver) if !self.is_interrupted() => self.evaluate(number, driver, record),
                    _ => Ok(()),
                }
            });
            place(saver, record);
            self.copy_timeline(record);
            (self.on_progress)(record);
            outcome?;
            if self.is_interrupted() {
                return Ok(RunOutcome::Interrupted);
            }
        }
        Ok(RunOutcome::Complete)
    }

    /// Copy the dataset, all processes together.
    fn copy(&self, copying: Copying, record: &mut Record) -> Result<(), RunError> {
        let Copying { folder, begun_ns: start_ns, work } = copying;
        let interrupted = Arc::clone(&self.signals.interrupted);
        let copied =
            TimelineSampler::apart(self.timeline, || self.aside(move || work(&interrupted)))??;
        let mut parts = vec![copied];
        if !self.is_interrupted() {
            self.ranks.comm.barrier()?;
            parts = self.ranks.gather(&parts[0])?;
        }
        let span = StagingSpan { start_ns, end_ns: self.clock.now_ns() };
        let all = StagingRecord { folder, before_training: Some(span), ..StagingRecord::default() };
        record.staging = Some(parts.iter().fold(all, |all, part| {
            let Copied { files, bytes, kept_files, kept_bytes } = *part;
            all.with(&StagingRecord {
                files,
                bytes,
                kept_files,
                kept_bytes,
                ..StagingRecord::default()
            })
        }));
        Ok(())
    }

    /// Train for one epoch that finds the machine as `before`. Returns its steps.
    fn epoch(
        &self,
        number: u32,
        saver: &mut Option<Saver>,
        driver: &mut RealDriver,
        cache: &SharedCache,
        before: Before,
        record: &mut Record,
    ) -> Result<u64, RunError> {
        let steps = self.plan.train.steps_in_epoch(number);
        let mut looked = Ok(());
        let (own, outcome) = self.measured(
            number,
            driver,
            |driver| {
                driver.epoch(steps, &mut |step| {
                    self.save(saver, CheckpointDue { epoch: number, steps: step, step })
                })
            },
            |own| {
                before.tell(own);
                looked = self.look_after(cache, own);
            },
            record,
        );
        if self.ranks.is_first() && !self.is_interrupted() {
            let cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
            record.doubts.extend(cache.doubts(&own, record.machines()));
        }
        record.epochs.push(own);
        outcome.and(looked).map(|()| steps)
    }

    /// See how much of the dataset is in memory when an epoch ends. Of one that was broken off nobody asks, and a storage that
    /// hangs is not asked either.
    fn look_after(&self, cache: &SharedCache, own: &mut EpochRecord) -> Result<(), RunError> {
        if self.is_interrupted() {
            return Ok(());
        }
        // Several accelerators may have read the same files.
        let files_read = own.accelerators.iter().filter_map(|of| of.io.access.files).max();
        self.look(cache, move |cache| cache.after(files_read))?.tell(own);
        Ok(())
    }

    /// Look at the page cache, or change it, which asks the storage.
    fn look<T: Send + 'static>(
        &self,
        cache: &SharedCache,
        act: impl FnOnce(&mut PageCache) -> T + Send + 'static,
    ) -> Result<T, RunError> {
        let cache = Arc::clone(cache);
        self.aside(move || act(&mut cache.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Do `work` aside, and wait for it unless the run is to be left.
    pub(crate) fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RunError> {
        let done = aside(&self.signals.leave, work);
        let done = done.map_err(|source| RunError::Thread { worker: 0, workers: 1, source })?;
        Ok(done.ok_or(CommError::Stopped)?)
    }

    pub(crate) fn saver(&self, plan: &CheckpointPlan) -> Saver {
        Saver::new(plan, self.clock, self.ranks.clone(), self.signals)
    }

    /// The evaluation that is due after an epoch.
    fn evaluate(
        &self,
        number: u32,
        driver: &mut RealDriver,
        record: &mut Record,
    ) -> Result<(), RunError> {
        let Some(plan) = &self.plan.evaluation else { return Ok(()) };
        if !plan.is_due(number) {
            return Ok(());
        }
        self.ranks.comm.barrier()?;
        let steps = plan.train.steps_per_epoch;
        let (own, outcome) = self.measured(
            number,
            driver,
            |driver| driver.epoch(steps, &mut |_| Ok(())),
            |_| {},
            record,
        );
        record.evaluations.push(own);
        outcome
    }

    /// An epoch as the record has it: on rank 0 that of all processes, where all came to its end.
    fn measured(
        &self,
        number: u32,
        driver: &mut RealDriver,
        run: impl FnOnce(&mut RealDriver) -> Epoch,
        look: impl FnOnce(&mut EpochRecord),
        record: &Record,
    ) -> (EpochRecord, Result<(), RunError>) {
        let sampler = Sampler::start(self.device, self.device_reads, self.clock);
        let epoch = TimelineSampler::apart(self.timeline, || run(driver));
        let host = sampler.finish();
        let (start_ns, end_ns) = extent(&epoch.accelerators, driver.now_ns());
        let (accelerators, causes) = (epoch.accelerators, Some(epoch.causes));
        let mut own = EpochRecord {
            number,
            start_ns,
            end_ns,
            accelerators,
            causes,
            host,
            ..EpochRecord::default()
        };
        look(&mut own);
        if let Some(trace) = self.trace {
            let name = if driver.evaluates() { "evaluate" } else { "epoch.block" };
            trace.epoch(name, &own, &epoch.ops, &|part| driver.path_of(part));
        }
        let (epoch, outcome) = match epoch.failure {
            Some(failure) => (own, Err(failure)),
            None if !self.ranks.are_many() => {
                let files_read = driver.reads.add(vec![epoch.ranges]);
                (EpochRecord { files_read, ..own }, Ok(()))
            }
            None if self.is_interrupted() => (own, Ok(())),
            None => match self.of_all(&own, epoch.ranges, driver, record) {
                Ok(whole) => (whole.unwrap_or(own), Ok(())),
                Err(error) => (own, Err(error.into())),
            },
        };
        let started = (self.wall)(self.clock.wall_at(epoch.start_ns));
        let ended = (self.wall)(self.clock.wall_at(epoch.end_ns));
        (EpochRecord { started, ended, ..epoch }, outcome)
    }

    /// An epoch as all processes wrote it down, on rank 0.
    fn of_all(
        &self,
        own: &EpochRecord,
        ranges: Option<Vec<FileRange>>,
        driver: &mut RealDriver,
        record: &Record,
    ) -> Result<Option<EpochRecord>, CommError> {
        let parts = self.ranks.gather(own)?;
        let is_first = self.ranks.is_first();
        let told = if is_first { Vec::new() } else { to_message(ranges.as_deref()) };
        let others = self.ranks.comm.gather(&told)?.into_iter().skip(1);
        if parts.is_empty() {
            return Ok(None);
        }
        let whole = EpochRecord::of_processes(parts, &record.processes, record.machines());
        let of_others = others.map(|message| from_message(&message));
        let files_read = driver.reads.add(std::iter::once(ranges).chain(of_others));
        Ok(Some(EpochRecord { files_read, ..whole }))
    }

    /// The checkpoint that is due after an epoch.
    fn checkpoint(
        &self,
        epoch: u32,
        steps: u64,
        saver: &mut Option<Saver>,
    ) -> Result<(), RunError> {
        let Some(plan) = &self.plan.checkpoint else { return Ok(()) };
        match plan.step_after_epoch(epoch, steps) {
            Some(step) => self.save(saver, CheckpointDue { epoch, steps, step }),
            None => Ok(()),
        }
    }

    /// Save a checkpoint, unless the run is to stop.
    fn save(&self, saver: &mut Option<Saver>, due: CheckpointDue) -> Result<(), RunError> {
        match saver {
            Some(saver) if !self.is_interrupted() => {
                TimelineSampler::apart(self.timeline, || saver.save(due))?;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn copy_timeline(&self, record: &mut Record) {
        if let Some(timeline) = self.timeline {
            timeline.copy_to(&mut record.timeline);
        }
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.signals.interrupted.load(Relaxed)
    }
}

/// Put the checkpoints that are whole into their epochs, which may be over.
fn place(saver: &mut Option<Saver>, record: &mut Record) {
    let saved = saver.as_mut().map(Saver::take_saved).unwrap_or_default();
    for Saved { epoch, record: checkpoint } in saved {
        if let Some(epoch) = record.epochs.iter_mut().rev().find(|own| own.number == epoch) {
            epoch.checkpoints.push(checkpoint);
        }
    }
}

/// From the first block's start to the last block's end: what a driver does before and after is not the epoch's.
fn extent(accelerators: &[AcceleratorEpoch], now_ns: u64) -> (u64, u64) {
    let blocks = accelerators.iter().flat_map(|accelerator| &accelerator.blocks);
    let start_ns = blocks.clone().map(|block| block.start_ns).min().unwrap_or(now_ns);
    let end_ns = blocks.map(|block| block.end_ns).max().unwrap_or(now_ns);
    (start_ns, end_ns.max(start_ns))
}

/// Whether a conductor may spin before deadlines: never when the machine's accelerators outnumber its idle cores.
pub fn may_spin(ranks: &Ranks, idle_cores: u32) -> bool {
    (ranks.own.len() as u32).saturating_mul(ranks.comm.node().local_size) <= idle_cores
}
