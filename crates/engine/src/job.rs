//! A plan together with its format, loader and storage: everything a driver needs to read the samples.

use crate::loader::{self, Loader, Queue, Task};
use crate::reader::SampleReader;
use crate::sink::Sink;
use feedrate_data::content::Content;
use feedrate_data::format::{self, CursorOptions, FileRange, Format, FormatError, Lister};
use feedrate_data::generate::generate;
use feedrate_data::storage::{self, ReadStorage, Storage, StorageError, engine};
use feedrate_spec::catalog::Ability;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::plan::order::{Order, SampleId, Share};
use feedrate_spec::plan::shards::FileSplit;
use feedrate_spec::plan::{Plan, RequestUnit, StoragePlan};
use feedrate_spec::shape::FileShape;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The reads of training or of evaluations in one process.
pub struct ReadJob {
    /// The plan.
    pub plan: Plan,
    /// Accelerators of this process, numbered over the run. Within the process they are numbered from 0.
    pub local: Range<u32>,
    /// Layout of the dataset.
    pub layout: Layout,
    /// Number of the job's first file in the layout.
    first_file: u64,
    format: &'static Format,
    /// Divides the samples among workers.
    pub loader: &'static dyn Loader,
    /// The storage to read from, including layers.
    pub storage: Arc<dyn ReadStorage>,
    /// Whether the plan gives the shapes of files. False for a foreign dataset: the shapes are read from its files.
    trusts_plan: bool,
}

/// An error in reading samples.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The plan names a member that is not built in.
    #[error("there is no {family} `{name}`")]
    NoMember {
        /// `format` or `loader`.
        family: &'static str,
        /// The name in the plan.
        name: String,
    },
    /// The storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A file contradicts its format or the plan.
    #[error("`{path}`: {source}")]
    Format {
        /// The file, relative to the dataset's folder.
        path: String,
        /// What is wrong with the file.
        source: FormatError,
    },
}

impl ReadError {
    /// Creates the error of the file that `reader` is reading.
    pub fn new(reader: &SampleReader, source: FormatError) -> Self {
        ReadError::Format { path: reader.path().to_string(), source }
    }

    /// Returns advice, if the error is a common one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ReadError::NoMember { .. } => Some("see `feedrate list`"),
            ReadError::Storage(error) => error.hint(),
            ReadError::Format { .. } => Some(
                "remove or repair the file; for a dataset that feedrate generated, `feedrate generate --verify` lists all damaged files, and `feedrate clean DIR --yes` removes the dataset so that it can be generated again",
            ),
        }
    }
}

impl ReadJob {
    /// Creates the job for the training of `plan` on the accelerators `local`.
    ///
    /// # Errors
    /// The plan names a member that is not built in.
    pub fn new(
        plan: &Plan,
        local: Range<u32>,
        storage: Arc<dyn ReadStorage>,
        trusts_plan: bool,
    ) -> Result<Self, ReadError> {
        let format = &plan.dataset.format;
        let loader = &plan.loader.kind;
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

    /// Creates the job for the training of `plan` on all its accelerators, without files. Only the sizes of samples count: each sample
    /// takes one open, and one read for each of its pieces.
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

    /// Creates the job for the training of `plan` on all its accelerators, with its dataset generated in memory. `None` if the dataset
    /// cannot be generated.
    pub fn in_memory(plan: &Plan) -> Option<Self> {
        let mut plan = plan.clone();
        plan.storage = StoragePlan { kind: "memory".into(), ..StoragePlan::default() };
        let storage: Arc<dyn Storage> = storage::open("memory", Path::new("/")).ok()?.into();
        let layout = Layout::new(&plan.dataset);
        let cancel = AtomicBool::new(false);
        generate(&plan.dataset, &layout, &*storage, 1, &|_, _| {}, &cancel).ok()?;
        ReadJob::new(&plan, 0..plan.accelerators, storage, true).ok()
    }

    /// Creates the job for the evaluations of `plan`; `None` if it has none.
    ///
    /// # Errors
    /// See [`ReadJob::new`].
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

    /// Returns the number of accelerators in this process.
    pub fn accelerators(&self) -> u32 {
        self.local.len() as u32
    }

    /// Whether this process emulates exactly one training process, and its client work takes time.
    pub fn emulates_single_client(&self) -> bool {
        self.plan.loader.client.is_some() && self.accelerators() == 1
    }

    /// Whether `accelerator` reads its data itself. Otherwise another accelerator of its group reads for it.
    pub fn reads_for_itself(&self, accelerator: u32) -> bool {
        let loader = &self.plan.loader;
        let is_group_leader =
            (self.local.start + accelerator).is_multiple_of(loader.group_accelerators.max(1));
        is_group_leader || !loader.is_broadcast()
    }

    /// Returns the number of reading threads of an accelerator. Without workers, one thread stands for the training process itself.
    pub fn workers(&self) -> u32 {
        self.plan.loader.workers.max(1)
    }

    /// Whether a thread of this process only delivers batches, while the other threads of its worker read ahead.
    pub fn delivers_only(&self, thread_index: usize) -> bool {
        let threads = self.plan.loader.threads_per_worker() as usize;
        threads > 1 && thread_index.is_multiple_of(threads)
    }

    /// Whether the format has files. Otherwise only the plan says what is read.
    pub fn has_files(&self) -> bool {
        !self.format.member().has(Ability::NoFiles)
    }

    /// Creates a lister of files, if their format has one.
    pub fn lister(&self) -> Option<Box<dyn Lister>> {
        self.format.lister.map(|lister| lister(&self.cursor_options()))
    }

    /// Returns the planned length of a sample of `file`; `None` if only the file says it.
    pub(crate) fn sample_bytes(&self, file: u64) -> Option<u64> {
        self.trusts_plan.then(|| self.layout.shape(file).sample_bytes())
    }

    /// Returns the bytes of a request for the sample `id` if there are no files: the sample, or its planned row group.
    pub(crate) fn planned_range(&self, id: SampleId) -> FileRange {
        let shape = self.layout.shape(id.file);
        let is_grouped = self
            .plan
            .loader
            .requests
            .is_some_and(|requests| requests.unit == RequestUnit::RowGroup);
        let group_samples =
            if is_grouped { self.plan.dataset.encoding.row_group_samples.max(1) } else { 1 };
        let first_sample = id.sample - id.sample % group_samples;
        let samples = group_samples.min(shape.samples.saturating_sub(first_sample)).max(1);
        let start = first_sample * shape.sample_bytes();
        FileRange { first_sample, samples, bytes: start..start + samples * shape.sample_bytes() }
    }

    /// Creates the error of a file.
    pub fn file_error(&self, file: u64, source: FormatError) -> ReadError {
        let mut path = String::new();
        self.layout.write_path(file, &mut path);
        ReadError::Format { path, source }
    }

    /// Returns the bytes of a batch with samples of mean size.
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

    /// Creates the queue of each accelerator.
    pub fn queues(&self) -> Vec<Queue> {
        let loader = &self.plan.loader;
        let train = &self.plan.train;
        let queue = |accelerator| {
            Queue::new(
                self.workers(),
                loader.batch_size,
                train.steps_per_epoch,
                train.steps(),
                loader.batches_in_flight,
                [loader.held_at_start, loader.held_batches],
            )
            .with_splits(FileSplit::for_epochs(&self.plan, accelerator))
        };
        self.local.clone().map(queue).collect()
    }

    /// Creates the reader of one worker.
    pub fn reader(&self) -> SampleReader {
        let options = self.cursor_options();
        let loader = &self.plan.loader;
        SampleReader::new(self.format, &options, self.trusts_plan)
            .with_head(loader.head)
            .with_library(loader.library)
            .with_verification(loader.verify)
    }

    fn cursor_options(&self) -> CursorOptions {
        let loader = &self.plan.loader;
        let engine = self.plan.storage.engine.as_deref().and_then(engine::find);
        CursorOptions {
            piece_bytes: loader.piece_bytes as usize,
            library: loader.library.map(|library| library.requests().sizes),
            check_crc: loader.check_crc,
            wants_payload: loader.materialize || loader.verify || loader.in_memory,
            is_payload_only: engine
                .is_some_and(|engine| engine.member().has(Ability::ServesSamples)),
            decodes_members: loader.decodes_members && !self.trusts_plan,
            members: self.plan.dataset.members.as_slice().into(),
            examines_members: false,
        }
    }

    /// Creates the sink of one worker.
    pub fn sink(&self) -> Sink {
        let dataset = &self.plan.dataset;
        Sink::new(self.plan.loader.verify.then(|| (Content::from_plan(dataset), dataset.element)))
    }

    /// Returns the path of the file with the number `part`, as returned by [`SampleReader::part`].
    pub fn path_of(&self, part: u64) -> String {
        let parts = self.format.parts;
        let mut data_path = String::new();
        let mut path = String::new();
        self.layout.write_path(part / parts.len() as u64, &mut data_path);
        parts[(part % parts.len() as u64) as usize].write_path(&data_path, &mut path);
        path
    }

    /// Returns the size of a worker's buffer.
    pub fn buffer_bytes(&self) -> usize {
        self.plan.loader.buffer_bytes() as usize
    }

    /// Returns the number of claims of all workers of an accelerator in `epoch`.
    pub fn claims_of_epoch(&self, queue: &Queue, epoch: u32) -> u64 {
        queue.claims(self.loader, epoch, self.plan.train.steps_in_epoch(epoch))
    }
}

/// Maps the batches of one accelerator to samples. Each sample is computed from its index; no list is stored.
pub struct Shard {
    first_file: u64,
    epoch: u32,
    order: Order,
    share: Share,
}

impl Shard {
    /// Creates the shard of `accelerator`, numbered within this process.
    pub fn new(job: &ReadJob, accelerator: u32) -> Self {
        let order = Order::for_epoch(&job.plan.dataset, &job.plan.loader, 1);
        let share = Share::new(&job.plan, job.local.start + accelerator);
        Shard { first_file: job.first_file, epoch: 1, order, share }
    }

    /// Selects the order of `epoch`.
    pub fn select_epoch(&mut self, plan: &Plan, epoch: u32) {
        if self.epoch != epoch {
            self.order = Order::for_epoch(&plan.dataset, &plan.loader, epoch);
            self.epoch = epoch;
        }
    }

    /// Returns the files at `positions` of this accelerator, which are read in the order of their files.
    pub(crate) fn files_of(&self, positions: Range<u64>) -> Vec<u64> {
        let mut files = Vec::new();
        let mut next = positions.start;
        while next < positions.end {
            let position = self.share.read_position(next);
            files.push(self.first_file + self.order.sample_at(position).file);
            next += self.order.file_end(position).saturating_sub(position).max(1);
        }
        files
    }

    /// Returns sample number `sample` of the batch being read.
    pub fn sample(&self, claimed_task: &ClaimedTask, sample: u64) -> SampleId {
        let task = &claimed_task.task;
        let position = match task.position {
            Some(first) => self.share.read_position(first + (sample - task.samples.start)),
            None => self.share.position(claimed_task.step, sample),
        };
        let id = self.order.sample_at(position);
        SampleId { file: self.first_file + id.file, ..id }
    }
}

/// A task that a worker has claimed, with its position in the run.
pub struct ClaimedTask {
    /// The claimed task.
    pub task: Task,
    /// Epoch of the task, from 1.
    pub epoch: u32,
    /// Step of the task within the epoch, from 0.
    pub step: u64,
}

impl ClaimedTask {
    /// Finds the epoch and step of a task of `queue`.
    pub fn new(task: Task, queue: &Queue) -> Self {
        ClaimedTask { epoch: queue.epoch_of(task.batch), step: queue.step_of(task.batch), task }
    }

    /// Returns the number of its samples.
    pub(crate) fn samples(&self) -> u64 {
        self.task.samples.end - self.task.samples.start
    }
}
