//! Runs all epochs of a plan, with evaluations and checkpoints, and measures what the machine does meanwhile. The record is updated
//! after every epoch, so an interrupted run has a readable record.

pub use crate::page_cache::Preparation;

use crate::abandonable::run_abandonable;
use crate::checkpoint::{CheckpointDue, SavedCheckpoint, Saver};
use crate::clock::Clock;
use crate::comm::{CommError, End};
use crate::driver::{Epoch, RealDriver, RunError};
use crate::live::{LivePhase, Signals};
use crate::page_cache::{CacheBefore, PageCache};
use crate::ranks::Ranks;
use crate::system::{DeviceReads, Sampler, TimelineSampler};
use crate::trace::TraceFile;
use feedrate_data::stage::{CopySummary, StageError};
use feedrate_data::storage::Storage;
use feedrate_measure::record::ranges::{FileRange, from_message, to_message};
use feedrate_measure::record::{AcceleratorEpoch, EpochRecord, Record, StagingRecord, StagingSpan};
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::plan::{CheckpointPlan, Plan};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// The plan and environment of a run, without its dataset.
pub struct Session<'a> {
    /// The plan to run.
    pub plan: &'a Plan,
    /// The processes of the run.
    pub ranks: &'a Ranks,
    /// The run's clock.
    pub clock: Clock,
    /// `major:minor` of the block device under the tested storage.
    pub device: Option<&'a str>,
    /// Whether the kernel counts bytes read from the device.
    pub device_reads: DeviceReads,
    /// Samples the timeline of the run, if it has one.
    pub timeline: Option<&'a TimelineSampler>,
    /// The trace of the run, if it has one.
    pub trace: Option<&'a TraceFile>,
    /// Formats a wall-clock time as local time in DLIO's form.
    pub format_time: &'a dyn Fn(SystemTime) -> String,
    /// Stop requests and live figures.
    pub signals: &'a Signals,
    /// Called with the record so far after each epoch, or after each checkpoint of a run that only writes checkpoints.
    pub on_progress: &'a mut dyn FnMut(&Record),
}

/// A dataset and the drivers that read it.
pub struct Training<'d> {
    /// The storage without layers, for eviction and residency.
    pub storage: Arc<dyn Storage>,
    /// Files opened before the run.
    pub preparation: Preparation,
    /// The copy to make before the first epoch, if any.
    pub copying: Option<Copying>,
    /// Driver of the training epochs.
    pub driver: &'d mut RealDriver,
    /// Driver of the evaluations, which read separate files.
    pub evaluation: Option<&'d mut RealDriver>,
}

/// This process's share of copying the dataset.
pub struct Copying {
    /// Folder of the copy.
    pub folder: String,
    /// Start of copying.
    pub start_ns: u64,
    /// Copies the files until the flag is set.
    pub work: CopyWork,
}

type CopyWork = Box<dyn FnOnce(&AtomicBool) -> Result<CopySummary, StageError> + Send>;

type SharedCache = Arc<Mutex<PageCache>>;

/// How a run without errors ended.
#[derive(PartialEq, Eq)]
pub(crate) enum RunOutcome {
    Complete,
    Interrupted,
}

impl Session<'_> {
    /// Runs all epochs of the plan and adds them to `record`.
    ///
    /// # Errors
    /// The run failed. The record then has the finished epochs and the finished part of the current one.
    pub fn train(&mut self, training: Training<'_>, record: &mut Record) -> Result<(), RunError> {
        let checkpoint = self.plan.checkpoint.as_ref();
        let mut saver = checkpoint.map(|plan| self.saver(plan));
        let outcome = self.run_epochs(training, &mut saver, record);
        self.notify_others(&outcome);
        // Whether or not the run failed, a checkpoint that is being written is finished.
        let finished = match &mut saver {
            Some(saver) => TimelineSampler::sample_separately(self.timeline, || saver.finish()),
            None => Ok(()),
        };
        record_checkpoints(&mut saver, record);
        let outcome = outcome.and_then(|ended| finished.map(|()| ended).map_err(RunError::from));
        self.end(outcome, record)
    }

    /// Notifies the other processes if this one ended early, so that they do not wait for it.
    pub(crate) fn notify_others(&self, outcome: &Result<RunOutcome, RunError>) {
        match outcome {
            Ok(RunOutcome::Complete) => {}
            Ok(RunOutcome::Interrupted) => self.ranks.comm.give_up(End::Interrupted),
            Err(error) => self.ranks.comm.give_up(error.end()),
        }
    }

    /// Records how the run ended.
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

    fn run_epochs(
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
        let mut cache = PageCache::new(
            Layout::new(&self.plan.dataset),
            storage,
            self.plan.train.cache,
            Arc::clone(&self.signals.interrupted),
        );
        cache.is_responsible = self.ranks.is_first_of_node();
        cache.preparation = preparation;
        let cache = Arc::new(Mutex::new(cache));
        for number in 1..=self.plan.train.epochs_run() {
            self.signals.live.set_phase(LivePhase::Prepares);
            let before = self.with_cache(&cache, PageCache::prepare)??;
            self.ranks.comm.barrier()?;
            let outcome = self.train_epoch(number, saver, driver, &cache, before, record);
            let outcome = outcome.and_then(|steps| {
                self.save_after_epoch(number, steps, saver)?;
                match &mut evaluation {
                    Some(driver) if !self.is_interrupted() => self.evaluate(number, driver, record),
                    _ => Ok(()),
                }
            });
            record_checkpoints(saver, record);
            self.copy_timeline(record);
            (self.on_progress)(record);
            outcome?;
            if self.is_interrupted() {
                return Ok(RunOutcome::Interrupted);
            }
        }
        Ok(RunOutcome::Complete)
    }

    /// Copies the dataset together with the other processes and records the sum.
    fn copy(&self, copying: Copying, record: &mut Record) -> Result<(), RunError> {
        let Copying { folder, start_ns, work } = copying;
        let interrupted = Arc::clone(&self.signals.interrupted);
        let copied = TimelineSampler::sample_separately(self.timeline, || {
            self.run_abandonable(move || work(&interrupted))
        })??;
        let mut parts = vec![copied];
        if !self.is_interrupted() {
            self.ranks.comm.barrier()?;
            parts = self.ranks.gather(&parts[0])?;
        }
        let span = StagingSpan { start_ns, end_ns: self.clock.now_ns() };
        let empty =
            StagingRecord { folder, before_training: Some(span), ..StagingRecord::default() };
        record.staging = Some(parts.iter().fold(empty, |sum, part| {
            let CopySummary { files, bytes, kept_files, kept_bytes } = *part;
            sum.with_counts_of(&StagingRecord {
                files,
                bytes,
                kept_files,
                kept_bytes,
                ..StagingRecord::default()
            })
        }));
        Ok(())
    }

    /// Runs training epoch `number`, records it with the cache state `before` it, and returns its number of steps.
    fn train_epoch(
        &self,
        number: u32,
        saver: &mut Option<Saver>,
        driver: &mut RealDriver,
        cache: &SharedCache,
        before: CacheBefore,
        record: &mut Record,
    ) -> Result<u64, RunError> {
        let steps = self.plan.train.steps_in_epoch(number);
        let mut cache_outcome = Ok(());
        let (epoch, outcome) = self.measure(
            number,
            driver,
            |driver| {
                driver.run_epoch(steps, &mut |step| {
                    self.save(saver, CheckpointDue { epoch: number, steps: step, step })
                })
            },
            |epoch| {
                before.write_to(epoch);
                cache_outcome = self.record_cache_after(cache, epoch);
            },
            record,
        );
        if self.ranks.is_first() && !self.is_interrupted() {
            let cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
            record.doubts.extend(cache.doubts(&epoch, record.machines()));
        }
        record.epochs.push(epoch);
        outcome.and(cache_outcome).map(|()| steps)
    }

    /// Records the cache state after an epoch. Does nothing after an interrupted epoch, because the storage may hang.
    fn record_cache_after(
        &self,
        cache: &SharedCache,
        epoch: &mut EpochRecord,
    ) -> Result<(), RunError> {
        if self.is_interrupted() {
            return Ok(());
        }
        // Several accelerators may have read the same files, so their counts cannot be added.
        let files_read =
            epoch.accelerators.iter().filter_map(|accelerator| accelerator.io.access.files).max();
        self.with_cache(cache, move |cache| cache.measure_after(files_read))?.write_to(epoch);
        Ok(())
    }

    /// Calls `work` with the page cache on a separate thread, because storage calls may hang.
    fn with_cache<T: Send + 'static>(
        &self,
        cache: &SharedCache,
        work: impl FnOnce(&mut PageCache) -> T + Send + 'static,
    ) -> Result<T, RunError> {
        let cache = Arc::clone(cache);
        self.run_abandonable(move || {
            work(&mut cache.lock().unwrap_or_else(PoisonError::into_inner))
        })
    }

    /// Runs `work` on a separate thread. Fails if the run is stopped before the work is finished.
    pub(crate) fn run_abandonable<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RunError> {
        let result = run_abandonable(&self.signals.abandon, work)
            .map_err(|source| RunError::Thread { worker: 0, workers: 1, source })?;
        Ok(result.ok_or(CommError::Stopped)?)
    }

    pub(crate) fn saver(&self, plan: &CheckpointPlan) -> Saver {
        Saver::new(plan, self.clock, self.ranks.clone(), self.signals)
    }

    /// Runs and records the evaluation after epoch `number`, if one is due.
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
        let (epoch, outcome) = self.measure(
            number,
            driver,
            |driver| driver.run_epoch(steps, &mut |_| Ok(())),
            |_| {},
            record,
        );
        record.evaluations.push(epoch);
        outcome
    }

    /// Runs an epoch with `run` and creates its record; `complete` may add to it. On rank 0, returns the merged record of all processes
    /// if all of them finished the epoch.
    fn measure(
        &self,
        number: u32,
        driver: &mut RealDriver,
        run: impl FnOnce(&mut RealDriver) -> Epoch,
        complete: impl FnOnce(&mut EpochRecord),
        record: &Record,
    ) -> (EpochRecord, Result<(), RunError>) {
        let sampler = Sampler::start(self.device, self.device_reads, self.clock);
        let epoch = TimelineSampler::sample_separately(self.timeline, || run(driver));
        let host = sampler.finish();
        let (start_ns, end_ns) = extent(&epoch.accelerators, driver.now_ns());
        let mut local = EpochRecord {
            number,
            start_ns,
            end_ns,
            accelerators: epoch.accelerators,
            causes: Some(epoch.causes),
            transfers: epoch.transfers,
            host,
            ..EpochRecord::default()
        };
        complete(&mut local);
        if let Some(trace) = self.trace {
            let name = if driver.evaluates() { "evaluate" } else { "epoch.block" };
            trace.write_epoch(name, &local, &epoch.ops, &|part| driver.path_of(part));
        }
        let (merged, outcome) = match epoch.failure {
            Some(failure) => (local, Err(failure)),
            None if !self.ranks.is_distributed() => {
                let files_read = driver.reads.add(vec![epoch.ranges]);
                (EpochRecord { files_read, ..local }, Ok(()))
            }
            None if self.is_interrupted() => (local, Ok(())),
            None => match self.merge_epoch(&local, epoch.ranges, driver, record) {
                Ok(merged) => (merged.unwrap_or(local), Ok(())),
                Err(error) => (local, Err(error.into())),
            },
        };
        let started = (self.format_time)(self.clock.wall_at(merged.start_ns));
        let ended = (self.format_time)(self.clock.wall_at(merged.end_ns));
        (EpochRecord { started, ended, ..merged }, outcome)
    }

    /// Gathers an epoch's records of all processes and merges them on rank 0; returns `None` on the other ranks.
    fn merge_epoch(
        &self,
        local: &EpochRecord,
        ranges: Option<Vec<FileRange>>,
        driver: &mut RealDriver,
        record: &Record,
    ) -> Result<Option<EpochRecord>, CommError> {
        let parts = self.ranks.gather(local)?;
        let is_first = self.ranks.is_first();
        let message = if is_first { Vec::new() } else { to_message(ranges.as_deref()) };
        let other_messages = self.ranks.comm.gather(&message)?.into_iter().skip(1);
        if parts.is_empty() {
            return Ok(None);
        }
        let merged = EpochRecord::from_processes(parts, &record.processes, record.machines());
        let other_ranges = other_messages.map(|message| from_message(&message));
        let files_read = driver.reads.add(std::iter::once(ranges).chain(other_ranges));
        Ok(Some(EpochRecord { files_read, ..merged }))
    }

    /// Saves the checkpoint after an epoch, if one is due.
    fn save_after_epoch(
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

    /// Saves a checkpoint unless the run is interrupted.
    fn save(&self, saver: &mut Option<Saver>, due: CheckpointDue) -> Result<(), RunError> {
        match saver {
            Some(saver) if !self.is_interrupted() => {
                TimelineSampler::sample_separately(self.timeline, || saver.save(due))?;
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

/// Adds finished checkpoints to the records of their epochs, which may have ended earlier.
fn record_checkpoints(saver: &mut Option<Saver>, record: &mut Record) {
    let saved = saver.as_mut().map(Saver::take_saved).unwrap_or_default();
    for SavedCheckpoint { epoch: number, record: checkpoint } in saved {
        if let Some(epoch) = record.epochs.iter_mut().rev().find(|epoch| epoch.number == number) {
            epoch.checkpoints.push(checkpoint);
        }
    }
}

/// Returns the start and end of an epoch: from the start of its first block to the end of its last. Work of the driver before and
/// after the blocks is not a part of the epoch.
fn extent(accelerators: &[AcceleratorEpoch], now_ns: u64) -> (u64, u64) {
    let blocks = accelerators.iter().flat_map(|accelerator| &accelerator.blocks);
    let start_ns = blocks.clone().map(|block| block.start_ns).min().unwrap_or(now_ns);
    let end_ns = blocks.map(|block| block.end_ns).max().unwrap_or(now_ns);
    (start_ns, end_ns.max(start_ns))
}

/// Whether a conductor may spin before deadlines: only if the machine has an idle core for each accelerator.
pub fn may_spin(ranks: &Ranks, idle_cores: u32) -> bool {
    (ranks.local.len() as u32).saturating_mul(ranks.comm.node().local_size) <= idle_cores
}
