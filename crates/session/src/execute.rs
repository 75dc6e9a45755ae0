//! Executes a planned run, from its dataset to its record, in each of its processes.

use crate::dataset::OpenDataset;
use crate::failure::rank_error;
use crate::launch::decide_on_rank_0;
use crate::live_table::LiveDoubt;
use crate::request::Request;
use crate::resolve::Resolved;
use crate::result_folder::{self, Results};
use crate::sharing::Sharing;
use crate::staging::{ReadSource, Staging, folder_under_test};
use crate::store;
use crate::{dataset_lock, hung, progress_text};
use anyhow::Context;
use feedrate_data::lock::DatasetLock;
use feedrate_data::storage::Storage;
use feedrate_data::storage::object::Access;
use feedrate_engine::job::{ReadError, ReadJob};
use feedrate_measure::dlio::IOSTAT;
use feedrate_measure::record::{RECORD_VERSION, Record, System};
use feedrate_run::checkpoint::refuse_foreign_files;
use feedrate_run::clock::Clock;
use feedrate_run::comm::CommError;
use feedrate_run::driver::{DriverOptions, RealDriver, RunError, WorkProgress};
use feedrate_run::live::Signals;
use feedrate_run::new_file::NewFile;
use feedrate_run::ranks::Ranks;
use feedrate_run::system::{self, DeviceReads, Iostat, TimelineSampler};
use feedrate_run::trace::{TraceCounts, TraceFile, TraceOrigin};
use feedrate_run::training::{self, Session, Training};
use feedrate_spec::listener::Listener;
use feedrate_spec::plan::{Plan, PlanDoubt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Minimum interval between saves of the results during a run.
const SAVE_INTERVAL_MIN: Duration = Duration::from_secs(5);

/// Observes a run on rank 0.
pub trait RunObserver {
    /// Called when a request is planned, before anything is written.
    fn after_planning(&mut self, _resolved: &Resolved, _request: &Request) {}
    /// Called after each epoch. It is the last epoch in `record`.
    fn after_epoch(&mut self, record: &Record);
    /// Called after each checkpoint that a run without training writes or reads. It is the last in `record`.
    fn after_checkpoint(&mut self, record: &Record);
}

/// A run that is being executed.
pub struct Execution<'a> {
    /// The processes of the run.
    pub ranks: &'a Ranks,
    /// Measurements so far: of all ranks on rank 0, else of this rank.
    pub record: Record,
    /// Destination of the results; `None` on ranks other than 0.
    pub results: Option<&'a Results>,
    /// Observes epochs and checkpoints.
    pub observer: &'a mut dyn RunObserver,
    /// Receives messages, and on rank 0 the progress.
    pub listener: &'a dyn Listener,
    /// The user's signals, and the state for the progress line.
    pub signals: &'a Signals,
    /// File for this process's trace, until the trace begins.
    pub trace: Option<NewFile>,
    /// Set after the run if its results could not be saved.
    pub unsaved: Option<Unsaved>,
}

/// Results that could not be saved in their folder.
pub struct Unsaved {
    /// The reason.
    pub error: anyhow::Error,
    /// Temporary folder with the results; `None` if that failed too.
    pub temporary_folder: Option<PathBuf>,
}

impl From<Unsaved> for anyhow::Error {
    fn from(Unsaved { error, temporary_folder }: Unsaved) -> Self {
        match temporary_folder {
            Some(folder) => error.context(format!("the results are in `{}`", folder.display())),
            None => error.context("the results are lost, except for the printed ones"),
        }
    }
}

impl Execution<'_> {
    /// Saves the record in its current state.
    fn save(&self) -> anyhow::Result<()> {
        self.results.map_or(Ok(()), |results| results.save(&self.record))
    }

    /// Trains on `dataset`, or writes checkpoints if it is `None`, and saves the results.
    ///
    /// # Errors
    /// Fails if the run fails.
    pub fn run(&mut self, plan: &Plan, dataset: Option<&OpenDataset>) -> anyhow::Result<()> {
        let begin_outcome = self.results.map_or(Ok(()), |results| results.begin(&self.record));
        let work_outcome = begin_outcome.and_then(|()| {
            let clock = self.exchange_facts()?;
            let _lock = self.lock_checkpoints(plan)?;
            match dataset {
                Some(dataset) => self.train(plan, dataset, clock),
                None => self.write_checkpoints(plan, clock),
            }
        });
        // A lost rank stops the others in the same way as an interruption.
        let lost = if self.record.complete { None } else { self.ranks.comm.end_reason() };
        let outcome = if is_interruption(lost.as_ref(), &work_outcome) {
            self.record.stopped_because = Some("interrupted".into());
            Ok(())
        } else {
            work_outcome.and(lost.map_or(Ok(()), |lost| Err(lost.into())))
        };
        self.record.ended = result_folder::local_time_now();
        if let Err(error) = &outcome {
            self.record.stopped_because = Some(format!("{error:#}"));
        }
        self.unsaved = self
            .save()
            .err()
            .map(|error| Unsaved { error, temporary_folder: self.save_in_temporary_folder() });
        outcome
    }

    /// Saves the results into a temporary folder. Does nothing in a study, because a study repeats failed runs.
    fn save_in_temporary_folder(&self) -> Option<PathBuf> {
        if self.record.study.is_some() {
            return None;
        }
        let results = self.results?;
        let folder = result_folder::make_folder(&std::env::temp_dir(), "feedrate-").ok()?;
        let temporary_folder = Results { folder, invocation: results.invocation.clone() };
        temporary_folder.save(&self.record).ok().map(|()| temporary_folder.folder)
    }

    /// Returns the message about a failed run, with the folder of its results.
    pub fn failure_message(&self) -> String {
        let Some(results) = self.results else { return "the run failed".into() };
        let folder = match &self.unsaved {
            None => Some(&results.folder),
            Some(unsaved) => unsaved.temporary_folder.as_ref(),
        };
        match folder {
            _ if self.record.epochs.is_empty() => "the run failed; nothing was measured".into(),
            Some(folder) => {
                format!("the run failed; what was measured is in `{}`", folder.display())
            }
            None => "the run failed, and what was measured could not be written".into(),
        }
    }

    /// Collects the facts of all processes and machines, and synchronises their clocks.
    fn exchange_facts(&mut self) -> anyhow::Result<Clock> {
        let mut clock = Clock::new();
        self.record.processes = self.ranks.processes(&mut clock)?;
        self.record.doubts.extend(self.ranks.comm.slow_barrier_reason().map(|reason| PlanDoubt {
            name: "ranks_share_no_memory".into(),
            evidence: format!("shared memory was refused: {reason}"),
            advice: "free or enlarge /dev/shm (`--shm-size` of a container)".into(),
        }));
        if self.ranks.is_distributed() {
            let this_machine = self.ranks.is_first_of_node().then(|| self.record.system.clone());
            let nodes: Vec<System> =
                self.ranks.gather(&this_machine)?.into_iter().flatten().collect();
            if nodes.len() > 1 {
                self.record.nodes = nodes;
            }
        }
        Ok(clock)
    }

    /// Locks the folder of the checkpoints, and refuses a folder with files of other programs.
    fn lock_checkpoints(&self, plan: &Plan) -> anyhow::Result<Option<DatasetLock>> {
        let Some(checkpoint) = &plan.checkpoint else { return Ok(None) };
        let mut lock = None;
        decide_on_rank_0(&*self.ranks.comm, || {
            let only_reads = checkpoint.alone.as_ref().is_some_and(|alone| alone.writes == 0);
            let access = if only_reads { Access::Read } else { Access::Write };
            store::check(Path::new(&checkpoint.folder), access)?;
            lock = dataset_lock::lock_checkpoints(checkpoint, self.listener)?;
            Ok(refuse_foreign_files(plan)?)
        })?;
        Ok(lock)
    }

    fn train(&mut self, plan: &Plan, dataset: &OpenDataset, clock: Clock) -> anyhow::Result<()> {
        let staging =
            Staging::begin(plan, dataset, self.ranks, clock, self.signals, self.listener)?;
        let outcome = self.train_staged(plan, dataset, clock, staging.as_ref());
        let end_outcome = staging.map_or(Ok(()), Staging::end);
        outcome.and(end_outcome)
    }

    fn train_staged(
        &mut self,
        plan: &Plan,
        dataset: &OpenDataset,
        clock: Clock,
        staging: Option<&Staging<'_>>,
    ) -> anyhow::Result<()> {
        let ranks = self.ranks;
        let signals = self.signals;
        let accelerators = &ranks.local;
        let trusts_plan = dataset.trusts_plan;
        let mut sharing = Sharing::begin(plan, dataset, ranks, clock, signals, staging)?;
        let job = ReadJob::new(plan, accelerators.clone(), sharing.storage()?, trusts_plan)?;
        self.record.compute_spins =
            !job.emulates_single_client() && training::may_spin(ranks, system::idle_cores());
        let mut training = self.new_driver(&mut sharing, job, clock)?;
        let mut evaluation = None;
        if plan.evaluation.is_some() {
            let evaluation_job = ReadJob::for_evaluations(
                plan,
                accelerators.clone(),
                sharing.storage()?,
                trusts_plan,
            )?;
            evaluation =
                evaluation_job.map(|job| self.new_driver(&mut sharing, job, clock)).transpose()?;
        }
        let reads = ReadSource { dataset, staging };
        let outcome = self.run_epochs(plan, reads, clock, &mut training, &mut evaluation);
        if outcome.is_ok() && self.record.complete {
            sharing.mark_complete();
        }
        drop((training, evaluation));
        let end_outcome = sharing.end(self.record.complete);
        outcome.and(end_outcome)
    }

    fn new_driver(
        &self,
        sharing: &mut Sharing,
        job: ReadJob,
        clock: Clock,
    ) -> anyhow::Result<RealDriver> {
        let groups = sharing.groups(&job.storage)?;
        let comm = Arc::clone(&self.ranks.comm);
        let signals = self.signals.clone();
        let options =
            DriverOptions { spins: self.record.compute_spins, traces: self.trace.is_some() };
        Ok(RealDriver::new(job, groups, clock, comm, signals, options)?)
    }

    /// Runs all epochs.
    fn run_epochs(
        &mut self,
        plan: &Plan,
        reads: ReadSource<'_>,
        clock: Clock,
        training: &mut RealDriver,
        evaluation: &mut Option<RealDriver>,
    ) -> anyhow::Result<()> {
        let drivers = [Some(&*training), evaluation.as_ref()].into_iter().flatten();
        let work_progress: Vec<_> = drivers.map(RealDriver::progress).collect();
        let copying = reads.staging.map(Staging::copying).transpose()?;
        let trace = self.begin_trace(clock, reads.real_path_function())?;
        let outcome = self.measure(
            plan,
            clock,
            work_progress,
            trace,
            |observer, record| observer.after_epoch(record),
            |session, record| {
                let training = Training {
                    storage: reads.storage(),
                    preparation: reads.preparation(),
                    copying,
                    driver: &mut *training,
                    evaluation: evaluation.as_mut(),
                };
                session.train(training, record)
            },
        );
        let storage = reads.storage();
        let hung_files = evaluation
            .iter()
            .chain([&*training])
            .flat_map(RealDriver::hung_files)
            .map(|file| reads.folder().join(storage.real_path(file)));
        hung::report(self.signals, hung_files, self.listener);
        outcome.map_err(|error| with_real_path(error, &*storage))
    }

    /// Runs checkpoints without training.
    fn write_checkpoints(&mut self, plan: &Plan, clock: Clock) -> anyhow::Result<()> {
        let Some(checkpoint) = &plan.checkpoint else { return Ok(()) };
        let trace = self.begin_trace(clock, |path| path.into())?;
        let outcome = self.measure(
            plan,
            clock,
            Vec::new(),
            trace,
            |observer, record| observer.after_checkpoint(record),
            |session, record| session.write_checkpoints(checkpoint, record),
        );
        hung::report(self.signals, std::iter::empty(), self.listener);
        outcome
    }

    /// Begins this process's trace, if there is one. `real_path` maps a path of the storage to the path of its file.
    fn begin_trace(
        &mut self,
        clock: Clock,
        real_path: impl Fn(&str) -> PathBuf + 'static,
    ) -> anyhow::Result<Option<TraceFile>> {
        let Some(file) = self.trace.take() else { return Ok(None) };
        let since_1970 = || Ok(clock.wall_at(0).duration_since(UNIX_EPOCH)?.as_nanos() as u64);
        let origin = TraceOrigin {
            wall_ns: decide_on_rank_0(&*self.ranks.comm, since_1970)?,
            first_accelerator: self.ranks.local.start,
            hostname: self.record.system.hostname.clone(),
            real_path: Box::new(real_path),
        };
        Ok(Some(TraceFile::begin(file, origin)))
    }

    /// Ends the trace. If it cannot be written, only warns, because the measurements do not depend on it.
    fn end_trace(&self, trace: TraceFile) {
        let path = trace.file().to_path_buf();
        let file = path.display();
        match trace.finish(&self.record) {
            Ok(TraceCounts { dropped: 0, .. }) => {}
            Ok(TraceCounts { events, dropped }) => self.listener.important(format!(
                "warning: `{file}` has {events} events; {dropped} operations are missing because their epochs had too many for the memory"
            )),
            Err(error) => self.listener.important(format!("warning: cannot write `{file}`: {error}")),
        }
    }

    /// Runs `work` while the timeline, the disk statistics and the progress line are active, and saves the results at intervals.
    fn measure(
        &mut self,
        plan: &Plan,
        clock: Clock,
        work_progress: Vec<WorkProgress>,
        trace: Option<TraceFile>,
        observe: fn(&mut dyn RunObserver, &Record),
        work: impl FnOnce(&mut Session<'_>, &mut Record) -> Result<(), RunError>,
    ) -> anyhow::Result<()> {
        let mount = self.record.system.data_mount.as_ref();
        let device = mount.map(|mount| mount.device.clone());
        let device_reads = DeviceReads::from_mount(mount);
        let shown_work = work_progress.clone();
        let timeline = plan
            .timeline
            .then(|| {
                TimelineSampler::start(
                    clock,
                    device.as_deref(),
                    device_reads,
                    work_progress,
                    system::nvml_gpus,
                )
            })
            .transpose()
            .context("cannot start the thread that samples the timeline")?;
        let iostat = self.start_iostat(plan)?;
        let doubt = LiveDoubt::default();
        doubt.set(&self.record.doubts);
        let progress = self.ranks.is_first().then(|| {
            let live = Arc::clone(&self.signals.live);
            let accelerators = self.ranks.local.len();
            let train = plan.train.clone();
            let text =
                progress_text::run(live, clock, train, accelerators, shown_work, doubt.clone());
            self.listener.show_progress(text)
        });
        let mut periodic_save = PeriodicSave::new(self.results, self.listener);
        let observer = &mut *self.observer;
        let is_first = self.ranks.is_first();
        let mut session = Session {
            plan,
            ranks: self.ranks,
            clock,
            device: device.as_deref(),
            device_reads,
            timeline: timeline.as_ref(),
            trace: trace.as_ref(),
            format_time: &result_folder::local_time,
            signals: self.signals,
            on_progress: &mut |record| {
                if is_first {
                    observe(observer, record);
                    doubt.set(&record.doubts);
                }
                periodic_save.save_if_due(record);
            },
        };
        let outcome = work(&mut session, &mut self.record);
        drop(progress);
        if let Some(Err(error)) = iostat.map(Iostat::finish) {
            self.listener.important(format!("warning: cannot write `{IOSTAT}`: {error}"));
        }
        if let Some(trace) = trace {
            self.end_trace(trace);
        }
        Ok(outcome?)
    }

    /// Starts the disk and processor statistics if the plan has them.
    fn start_iostat(&self, plan: &Plan) -> anyhow::Result<Option<Iostat>> {
        let Some(devices) = &plan.iostat_devices else { return Ok(None) };
        let Some(results) = self.results else { return Ok(None) };
        let file = results.folder.join(IOSTAT);
        let started = Iostat::start(&file, devices, result_folder::iostat_now);
        Ok(Some(started.with_context(|| format!("cannot start writing `{}`", file.display()))?))
    }
}

/// Replaces the plan's path of a file in an error with the real path.
fn with_real_path(mut error: anyhow::Error, storage: &dyn Storage) -> anyhow::Error {
    if let Some(RunError::Read(ReadError::Format { path, .. })) = error.downcast_mut() {
        *path = storage.real_path(path);
    }
    error
}

/// Whether the work ended because a rank was interrupted, without another failure.
fn is_interruption(lost: Option<&CommError>, outcome: &anyhow::Result<()>) -> bool {
    let error = outcome.as_ref().err();
    match lost {
        Some(lost) => {
            lost.is_interruption() && error.is_none_or(|error| rank_error(error).is_some())
        }
        None => error.and_then(rank_error).is_some_and(CommError::is_interruption),
    }
}

/// Saves the results at intervals during a run.
struct PeriodicSave<'a> {
    results: Option<&'a Results>,
    listener: &'a dyn Listener,
    next_save: Instant,
}

impl<'a> PeriodicSave<'a> {
    fn new(results: Option<&'a Results>, listener: &'a dyn Listener) -> Self {
        PeriodicSave { results, listener, next_save: Instant::now() + SAVE_INTERVAL_MIN }
    }

    fn save_if_due(&mut self, record: &Record) {
        let start = Instant::now();
        if start < self.next_save {
            return;
        }
        let Some(results) = self.results else { return };
        if let Err(error) = results.save(record) {
            self.listener.important(format!("warning: {error:#}"));
        }
        // Results of many accelerators take long to write. The factor limits saving to about 5 % of the run.
        self.next_save = Instant::now() + SAVE_INTERVAL_MIN.max(20 * start.elapsed());
    }
}

/// Creates the record of a run that is about to begin.
pub fn new_record(plan: &Plan, dataset: Option<&OpenDataset>, results: Option<&Path>) -> Record {
    // The folder under test contains the dataset, or the checkpoints if there is no dataset.
    let checkpoints = plan.checkpoint.as_ref().map(|checkpoint| Path::new(&checkpoint.folder));
    let folder =
        dataset.map_or(checkpoints, |dataset| Some(folder_under_test(plan, &dataset.folder)));
    // A store is on no file system of this machine.
    let folder = folder.filter(|folder| !store::is_url(folder));
    Record {
        version: RECORD_VERSION,
        program: concat!("feedrate ", env!("CARGO_PKG_VERSION")).into(),
        plan: plan.clone(),
        system: system::system(folder, results),
        started: result_folder::local_time_now(),
        found_dataset: dataset.and_then(|dataset| dataset.found.clone()),
        members: dataset.and_then(|dataset| dataset.members.clone()),
        ..Record::default()
    }
}
