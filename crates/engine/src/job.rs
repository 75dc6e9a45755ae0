//! A plan with the members it names: what every driver needs to read its samples.

use crate::loader::{self, Loader, Queue, Task};
use crate::reader::SampleReader;
use crate::sink::Sink;
use feedrate_data::content::Content;
use feedrate_data::format::{self, CursorOptions, Format, FormatError};
use feedrate_data::generate::generate;
use feedrate_data::storage::{self, ReadStorage, Storage, StorageError, engine};
use feedrate_spec::catalog::Ability;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::plan::order::{Order, SampleId, Share};
use feedrate_spec::plan::shards::FileSplit;
use feedrate_spec::plan::{Plan, StoragePlan};
use feedrate_spec::shape::FileShape;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Training or evaluations, as one process reads them.
pub struct ReadJob {
    /// The plan.
    pub plan: Plan,
    /// The plan's accelerators that are in this process; within it they are counted from 0.
    pub local: Range<u32>,
    /// Where the files are.
    pub layout: Layout,
    /// The place in the layout where those of the plan begin.
    first_file: u64,
    format: &'static Format,
    /// Who reads what.
    pub loader: &'static dyn Loader,
    /// Where the bytes come from, layers included.
    pub storage: Arc<dyn ReadStorage>,
    /// The files must be what the plan says; false for a foreign dataset.
    trusts_plan: bool,
}

/// The reason why samples cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
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
        /// The fault.
        source: FormatError,
    },
}

impl ReadError {
    /// The file that `reader` is at is not what its format says.
    pub fn new(reader: &SampleReader, source: FormatError) -> Self {
        ReadError::Format { path: reader.path().to_string(), source }
    }

    /// Advice, where the reason is a common one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ReadError::NoMember { .. } => Some("see `feedrate list`"),
            ReadError::Storage(error) => error.hint(),
            ReadError::Format { .. } => Some(
                "remove the file, or mend it; of a dataset that feedrate made `feedrate generate --verify` lists all damaged files, and `feedrate clean DIR --yes` removes it to have it made anew",
            ),
        }
    }
}

impl ReadJob {
    /// Training as `plan` has it, on the accelerators `local`.
    ///
    /// # Errors
    /// The plan names a member that is not built in.
    pub fn new(
        plan: &Plan,
        local: Range<u32>,
        storage: Arc<dyn ReadStorage>,
        trusts_plan: bool,
    ) -> Result<Self, ReadError> {
        let (format, loader) = (&plan.dataset.format, &plan.loader.kind);
        Ok(ReadJob {
            format: format::find(format)
                .ok_or_else(|| ReadError::NoMember { family: "format", name: format.clone() })?,
            loader: loader::find(loader)
                .ok_or_else(|| ReadError::NoMember { family: "loader", name: loader.clone() })?,
            plan: plan.clone(),
            local,
            layout: Layout::new(&plan.dataset),
            first_file: 0,
            storage,
            trusts_plan,
        })
    }

    /// Training as `plan` has it on all its accelerators, but with samples of the sizes alone: there are no files and no bytes, and
    /// a sample is an open and a read for each of its pieces.
    ///
    /// # Errors
    /// The plan names a member that is not built in.
    pub fn without_files(plan: &Plan) -> Result<Self, ReadError> {
        let mut plan = plan.clone();
        plan.dataset.format = "null".into();
        plan.storage = StoragePlan { kind: "null".into(), ..StoragePlan::default() };
        let storage: Arc<dyn Storage> = storage::open("null", Path::new("/"))?.into();
        ReadJob::new(&plan, 0..plan.accelerators, storage, true)
    }

    /// Training as `plan` has it on all its accelerators, on files of its dataset that are made in memory first; `None` where they cannot
    /// be made.
    pub fn in_memory(plan: &Plan) -> Option<Self> {
        let mut plan = plan.clone();
        plan.storage = StoragePlan { kind: "memory".into(), ..StoragePlan::default() };
        let storage: Arc<dyn Storage> = storage::open("memory", Path::new("/")).ok()?.into();
        let (layout, cancel) = (Layout::new(&plan.dataset), AtomicBool::new(false));
        generate(&plan.dataset, &layout, &*storage, 1, &|_, _| {}, &cancel).ok()?;
        ReadJob::new(&plan, 0..plan.accelerators, storage, true).ok()
    }

    /// The evaluations of `plan`; `None` where it has none.
    ///
    /// # Errors
    /// As of [`ReadJob::new`].
    pub fn for_evaluations(
        plan: &Plan,
        local: Range<u32>,
        storage: Arc<dyn ReadStorage>,
        trusts_plan: bool,
    ) -> Result<Option<Self>, ReadError> {
        let Some(evaluations) = plan.evaluation_plan() else { return Ok(None) };
        let job = ReadJob::new(&evaluations, local, storage, trusts_plan)?;
        let layout = Layout::new(&plan.dataset);
        Ok(Some(ReadJob { first_file: layout.files_train(), layout, ..job }))
    }

    /// Accelerators of this process.
    pub fn accelerators(&self) -> u32 {
        self.local.len() as u32
    }

    /// Whether this process stands for one training loop that has costs of its own.
    pub fn is_one_training(&self) -> bool {
        self.plan.loader.client.is_some() && self.accelerators() == 1
    }

    /// Whether what `accelerator` reads is counted as its own, not as another's of which it is told.
    pub fn reads_for_itself(&self, accelerator: u32) -> bool {
        let loader = &self.plan.loader;
        let leads =
            (self.local.start + accelerator).is_multiple_of(loader.group_accelerators.max(1));
        leads || !loader.is_broadcast()
    }

    /// Reading threads of one accelerator; without workers one thread stands for the training's own.
    pub fn workers(&self) -> u32 {
        self.plan.loader.workers.max(1)
    }

    /// Bytes of a batch of samples of the mean size.
    pub fn batch_bytes(&self) -> u64 {
        let files = self.plan.dataset.files_train;
        if files == 0 {
            return 0;
        }
        let bytes = self.layout.sum(files, FileShape::payload_bytes);
        let samples = self.layout.sum(files, |shape| shape.samples);
        let batch = bytes * u128::from(self.plan.loader.batch_size) / samples.max(1);
        u64::try_from(batch).unwrap_or(u64::MAX)
    }

    /// One for each accelerator.
    pub fn queues(&self) -> Vec<Queue> {
        let (loader, train) = (&self.plan.loader, &self.plan.train);
        let held = [loader.held_at_start, loader.held_batches];
        let mut queues = Vec::new();
        queues.extend(self.local.clone().map(|accelerator| {
            let (steps, batches) = (train.steps_per_epoch, train.steps());
            let (batch_size, in_flight) = (loader.batch_size, loader.batches_in_flight);
            Queue::new(self.workers(), batch_size, steps, batches, in_flight, held)
                .split_by(FileSplit::new(&self.plan, accelerator))
        }));
        queues
    }

    /// Reads the samples of one worker.
    pub fn reader(&self) -> SampleReader {
        let loader = &self.plan.loader;
        let engine = self.plan.storage.engine.as_deref().and_then(engine::find);
        let options = CursorOptions {
            piece_bytes: loader.piece_bytes as usize,
            check_crc: loader.check_crc,
            wants_payload: loader.materialize || loader.verify || loader.in_memory,
            samples_alone: engine.is_some_and(|e| e.member().has(Ability::ServesSamples)),
            decodes_members: loader.decodes_members && !self.trusts_plan,
        };
        SampleReader::new(self.format, &options, self.trusts_plan).with_head(loader.head)
    }

    /// Takes the payload of one worker.
    pub fn sink(&self) -> Sink {
        let dataset = &self.plan.dataset;
        Sink::new(self.plan.loader.verify.then(|| (Content::from_plan(dataset), dataset.element)))
    }

    /// Path of a part by [`SampleReader::part`].
    pub fn path_of(&self, part: u64) -> String {
        let parts = self.format.parts;
        let (mut data, mut path) = (String::new(), String::new());
        self.layout.write_path(part / parts.len() as u64, &mut data);
        parts[(part % parts.len() as u64) as usize].write_path(&data, &mut path);
        path
    }

    /// Bytes of a worker's buffer.
    pub fn buffer_bytes(&self) -> usize {
        self.plan.loader.buffer_bytes() as usize
    }

    /// Claims of all workers of an accelerator in `epoch`.
    pub fn claims_of_epoch(&self, queue: &Queue, epoch: u32) -> u64 {
        queue.claims(self.loader, self.plan.train.steps_in_epoch(epoch))
    }
}

/// The samples of one accelerator's batches, without a list.
pub struct Shard {
    first_file: u64,
    epoch: u32,
    order: Order,
    share: Share,
}

impl Shard {
    /// For `accelerator`, counted within this process.
    pub fn new(job: &ReadJob, accelerator: u32) -> Self {
        let order = Order::for_epoch(&job.plan.dataset, &job.plan.loader, 1);
        let share = Share::new(&job.plan, job.local.start + accelerator);
        Shard { first_file: job.first_file, epoch: 1, order, share }
    }

    /// Make ready for the batches of `epoch`.
    pub fn turn_to(&mut self, plan: &Plan, epoch: u32) {
        if self.epoch != epoch {
            self.order = Order::for_epoch(&plan.dataset, &plan.loader, epoch);
            self.epoch = epoch;
        }
    }

    /// Sample `sample` of the batch that is read.
    pub fn sample(&self, reading: &Reading, sample: u64) -> SampleId {
        let task = &reading.task;
        let position = match task.position {
            Some(first) => self.share.read_position(first + (sample - task.samples.start)),
            None => self.share.position(reading.step, sample),
        };
        let id = self.order.at(position);
        SampleId { file: self.first_file + id.file, ..id }
    }
}

/// A task being read, one sample after another.
pub struct Reading {
    /// The claimed task.
    pub task: Task,
    /// Its epoch, from 1.
    pub epoch: u32,
    /// Its step of the epoch, from 0.
    pub step: u64,
}

impl Reading {
    /// For a task of `queue`.
    pub fn new(task: Task, queue: &Queue) -> Self {
        Reading { epoch: queue.epoch_of(task.batch), step: queue.step_of(task.batch), task }
    }
}
