//! What both drivers need to read the samples of a plan.

use super::sink::Sink;
use crate::buffer::{ALIGN, AlignedBuffer};
use crate::checkpoint::CheckpointError;
use crate::comm::{CommError, End};
use crate::loader::{self, Loader, Queue, Task};
use crate::reader::SampleReader;
use crate::wrap::GroupStorages;
use feedrate_data::content::Content;
use feedrate_data::format::{CursorOptions, Format, FormatError};
use feedrate_data::storage::{Storage, StorageError, engine};
use feedrate_spec::catalog::Ability;
use feedrate_spec::plan::Plan;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::plan::order::{Order, SampleId, Share};
use feedrate_spec::shape::FileShape;
use std::ops::Range;
use std::sync::Arc;

/// A plan with the members it names, and the storage it reads.
pub struct Job {
    /// What was decided.
    pub plan: Plan,
    /// The plan's accelerators that are in this process.
    pub own: Range<u32>,
    /// Where the files are.
    pub layout: Layout,
    /// Of the layout: where those of the plan begin.
    pub first_file: u64,
    /// How samples lie in them.
    pub format: &'static dyn Format,
    /// Who reads what.
    pub loader: &'static dyn Loader,
    /// Where the bytes come from, wrappers included.
    pub storage: Arc<dyn Storage>,
    /// Where they come from for groups in several processes.
    pub groups: GroupStorages,
    /// The files must be what the plan says; false for a foreign dataset.
    pub trusts_plan: bool,
    /// Reads begin and end at multiples of this.
    pub block_bytes: usize,
}

/// Why a run stopped.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan names a member that is not built in.
    #[error("there is no {family} `{name}`")]
    NoMember {
        /// `format`, `loader`.
        family: &'static str,
        /// The name in the plan.
        name: String,
    },
    /// The storage refused.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A file is not what its format or the plan says.
    #[error("`{path}`: {source}")]
    Format {
        /// The file, relative to the dataset's folder.
        path: String,
        /// What is wrong.
        source: FormatError,
    },
    /// A checkpoint could not be written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The processes of the run lost each other.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// A worker thread ended where it should not have.
    #[error(
        "worker thread {worker} of accelerator {accelerator} broke off; this is a fault of feedrate"
    )]
    Broken {
        /// Whose.
        accelerator: u32,
        /// Which.
        worker: u32,
    },
    /// The devices that carry steps out cannot, or can no more.
    #[error("compute `{compute}`: {problem}")]
    Device {
        /// The name in the plan.
        compute: String,
        /// In words.
        problem: String,
    },
    /// There is no memory to read into.
    #[error("cannot map a reading buffer of {bytes} bytes: {source}")]
    Memory {
        /// Of one worker.
        bytes: usize,
        /// The system's word.
        source: std::io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start worker thread {worker} of {workers}: {source}")]
    Thread {
        /// Which.
        worker: usize,
        /// Of how many.
        workers: usize,
        /// The system's word.
        source: std::io::Error,
    },
}

impl RunError {
    /// That of the ranks' work together, if it is this that ended the run.
    pub fn of_ranks(&self) -> Option<&CommError> {
        match self {
            RunError::Comm(error) | RunError::Checkpoint(CheckpointError::Comm(error)) => {
                Some(error)
            }
            _ => None,
        }
    }

    /// What the other ranks are to be told.
    pub fn end(&self) -> End {
        self.of_ranks().map_or_else(|| End::Failed(self.to_string()), CommError::end)
    }

    /// Advice, where the reason is a common one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            RunError::Storage(error) => error.hint(),
            RunError::Format { .. } => Some(
                "see what else is wrong with `feedrate verify`; remove the dataset's folder to have it made anew",
            ),
            RunError::Checkpoint(error) => error.hint(),
            RunError::Memory { .. } => {
                Some("use fewer accelerators or `reader.read_threads`, or raise `vm.max_map_count`")
            }
            RunError::Thread { .. } => {
                Some("use fewer accelerators or `reader.read_threads`, or raise `ulimit -u`")
            }
            RunError::Comm(error) => error.hint(),
            RunError::Device { .. } => Some(
                "see what `nvidia-smi` shows, use smaller batches or fewer accelerators, or leave `compute` out: steps are waits then",
            ),
            RunError::NoMember { .. } => Some("see `feedrate list`"),
            RunError::Broken { .. } => Some("report it, with the workload and the lines above"),
        }
    }
}

impl Job {
    /// Look up the plan's members. `own` are the accelerators of this process.
    ///
    /// # Errors
    /// There is none of a name.
    pub fn new(
        plan: &Plan,
        own: Range<u32>,
        storage: Arc<dyn Storage>,
        trusts_plan: bool,
    ) -> Result<Self, RunError> {
        let no = |family, name: &str| RunError::NoMember { family, name: name.to_string() };
        let format = feedrate_data::format::find(&plan.dataset.format)
            .ok_or_else(|| no("format", &plan.dataset.format))?;
        let loader =
            loader::find(&plan.loader.kind).ok_or_else(|| no("loader", &plan.loader.kind))?;
        let engine = plan.storage.engine.as_deref().and_then(engine::find);
        let whole_blocks = engine.is_some_and(|e| e.member().has(Ability::BypassesPageCache));
        Ok(Job {
            block_bytes: if whole_blocks { ALIGN } else { 1 },
            plan: plan.clone(),
            own,
            layout: Layout::new(&plan.dataset),
            first_file: 0,
            format,
            loader,
            storage,
            groups: GroupStorages::default(),
            trusts_plan,
        })
    }

    /// For the evaluations of `plan`; `None` where it has none.
    ///
    /// # Errors
    /// As of [`Job::new`].
    pub fn of_evaluations(
        plan: &Plan,
        own: Range<u32>,
        storage: Arc<dyn Storage>,
        trusts_plan: bool,
    ) -> Result<Option<Self>, RunError> {
        let Some(evaluations) = plan.of_evaluations() else { return Ok(None) };
        let job = Job::new(&evaluations, own, storage, trusts_plan)?;
        let layout = Layout::new(&plan.dataset);
        Ok(Some(Job { first_file: layout.files_train(), layout, ..job }))
    }

    /// Accelerators of this process; within it they are counted from 0.
    pub fn accelerators(&self) -> u32 {
        self.own.len() as u32
    }

    /// Reading threads of one accelerator; without workers one thread stands for the training's own.
    pub fn workers(&self) -> u32 {
        self.plan.loader.workers.max(1)
    }

    /// Accelerators that share one that reads for them, itself among them.
    fn group(&self) -> u32 {
        self.plan.loader.group_accelerators.max(1)
    }

    /// Those of the first group that are in processes before this one.
    fn before(&self) -> u32 {
        self.own.start % self.group()
    }

    /// Groups that have accelerators here. One reads for those of its group that are here.
    pub(super) fn groups(&self) -> usize {
        (self.before() + self.accelerators()).div_ceil(self.group()) as usize
    }

    /// Worker threads of all accelerators that read.
    pub(super) fn places(&self) -> usize {
        self.groups() * self.workers() as usize
    }

    /// The group that a worker thread reads for.
    pub(super) fn group_of(&self, place: usize) -> usize {
        place / self.workers() as usize
    }

    /// The first worker thread of whoever reads for `accelerator`.
    pub(super) fn first_place(&self, accelerator: u32) -> u32 {
        (self.before() + accelerator) / self.group() * self.workers()
    }

    /// Whom a worker thread reads for.
    pub(super) fn accelerators_of(&self, place: usize) -> std::ops::Range<u32> {
        let first = self.group_of(place) as u32 * self.group();
        let here = |accelerator: u32| accelerator.saturating_sub(self.before());
        here(first)..here(first + self.group()).min(self.accelerators())
    }

    /// What a worker thread reads.
    pub(super) fn storage_of(&self, place: usize) -> &Arc<dyn Storage> {
        let (group, worker) = (self.group_of(place), place % self.workers() as usize);
        let GroupStorages { asked, served } = &self.groups;
        let asked = asked.get(worker).filter(|_| group == 0);
        let served = served.get(worker).filter(|_| group + 1 == self.groups());
        asked.or(served).unwrap_or(&self.storage)
    }

    /// Of a batch of samples of the mean size.
    pub(super) fn batch_bytes(&self) -> u64 {
        let files = self.plan.dataset.files_train;
        let (mut bytes, mut samples) = (0_u128, 0_u128);
        if files > 0 {
            bytes = self.layout.sum(files, FileShape::payload_bytes);
            samples = self.layout.sum(files, |shape| shape.samples);
        }
        let batch = bytes * u128::from(self.plan.loader.batch_size) / samples.max(1);
        u64::try_from(batch).unwrap_or(u64::MAX)
    }

    pub(super) fn queues(&self) -> Vec<Queue> {
        let (loader, train) = (&self.plan.loader, &self.plan.train);
        (0..self.accelerators())
            .map(|_| {
                Queue::new(
                    self.workers(),
                    loader.batch_size,
                    train.steps_per_epoch,
                    train.steps(),
                    loader.stock_batches,
                    [loader.held_at_start, loader.held_batches],
                )
            })
            .collect()
    }

    pub(super) fn reader(&self) -> SampleReader {
        SampleReader::new(self.format, &self.cursor_options(), self.trusts_plan)
    }

    pub(super) fn sink(&self) -> Sink {
        let dataset = &self.plan.dataset;
        Sink::new(self.plan.loader.verify.then(|| (Content::from_plan(dataset), dataset.element)))
    }

    pub(super) fn piece_bytes(&self) -> usize {
        self.plan.loader.piece_bytes as usize
    }

    fn cursor_options(&self) -> CursorOptions {
        CursorOptions {
            piece_bytes: self.piece_bytes(),
            check_crc: self.plan.loader.check_crc,
            wants_payload: self.plan.loader.materialize
                || self.plan.loader.verify
                || self.plan.loader.in_memory,
            samples_alone: self.serves_samples(),
        }
    }

    /// Whether the engine reads by the format's library.
    fn serves_samples(&self) -> bool {
        let engine = self.plan.storage.engine.as_deref().and_then(engine::find);
        engine.is_some_and(|engine| engine.member().has(Ability::ServesSamples))
    }

    pub(super) fn claims_of_epoch(&self, epoch: u32) -> u64 {
        self.plan.train.steps_in_epoch(epoch)
            * self.loader.claims_per_batch(self.plan.loader.batch_size)
    }
}

/// A worker's memory to begin with, at most; it grows with the reads.
pub(super) const BUFFER_BYTES_MAX: usize = 64 << 20;

/// Memory to read pieces of `piece_bytes` into.
pub(super) fn buffer(piece_bytes: usize) -> Result<AlignedBuffer, RunError> {
    AlignedBuffer::new(piece_bytes + ALIGN)
        .map_err(|source| RunError::Memory { bytes: piece_bytes, source })
}

/// The file a reader is at is not what its format says.
pub(super) fn format_error(reader: &SampleReader, source: FormatError) -> RunError {
    RunError::Format { path: reader.path().to_string(), source }
}

/// Which samples the batches of one accelerator are, without a list.
pub(super) struct Shard {
    first_file: u64,
    epoch: u32,
    order: Order,
    share: Share,
}

impl Shard {
    pub(super) fn new(job: &Job, accelerator: u32) -> Self {
        let order = Order::of_epoch(&job.plan.dataset, &job.plan.loader, 1);
        let share = Share::new(&job.plan, job.own.start + accelerator);
        Shard { first_file: job.first_file, epoch: 1, order, share }
    }

    /// Make ready for the batch of a task.
    pub(super) fn turn_to(&mut self, plan: &Plan, epoch: u32) {
        if self.epoch != epoch {
            self.order = Order::of_epoch(&plan.dataset, &plan.loader, epoch);
            self.epoch = epoch;
        }
    }

    /// Sample `sample` of the batch of step `step`.
    pub(super) fn sample(&self, step: u64, sample: u64) -> SampleId {
        let id = self.order.at(self.share.position(step, sample));
        SampleId { file: self.first_file + id.file, ..id }
    }
}

/// A task being read, one sample after another.
pub(super) struct Reading {
    pub(super) task: Task,
    pub(super) epoch: u32,
    pub(super) step: u64,
}

impl Reading {
    pub(super) fn new(task: Task, queue: &Queue) -> Self {
        Reading { epoch: queue.epoch_of(task.batch), step: queue.step_of(task.batch), task }
    }
}
