//! The input of the advice rules: a record with its metrics, answer and pipeline, and the figures that several rules share.
//!
//! This module contains no rule.

use crate::answer::Answer;
use crate::predict::{NotPredictable, Pipeline, PipelineChange, PipelinePool, Prediction};
use feedrate_measure::checkpoints::CheckpointSummary;
use feedrate_measure::derived::Derived;
use feedrate_measure::doubt::Doubt;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::{
    AU_ALL_STEPS, AU_SUSTAINED, COMPUTE_S, DELIVERED_WHOLE, DURATION_S,
};
use feedrate_measure::record::{Record, System};
use feedrate_measure::waits::{WaitCause, Waits};
use feedrate_spec::plan::{Plan, THREADS_MAX};

/// Share of the bandwidth above which reads count as limited by bandwidth.
const SATURATED_SHARE: f64 = 0.7;
/// Share of time that reading threads should be idle, as a reserve.
const SPARE_SHARE: f64 = 0.1;
/// Largest share of the machine's memory that a dataset may take.
const MEMORY_SHARE_MAX: f64 = 0.5;

/// A run to be advised on.
pub struct Case<'a> {
    /// The run's record, with its metrics.
    pub derived: &'a Derived<'a>,
    /// Whether the run's accelerators were fed.
    pub answer: &'a Answer,
    /// Reasons not to trust the run's numbers.
    pub doubts: &'a [Doubt],
    /// The fitted pipelines of the record and of its replicates; `None` if nothing can be predicted from the record.
    pub pool: Option<PipelinePool>,
    waits: Option<Waits>,
}

/// The limit of the reads of a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadLimit {
    Latency,
    Bandwidth,
    /// The storage serves a limited number of reads at a time.
    Concurrency,
    /// Latency or bandwidth; the record is consistent with both.
    Either,
}

/// Mean times and counts of one sample.
pub(super) struct SampleTimes {
    pub(super) open_s: f64,
    pub(super) read_s: f64,
    pub(super) decode_s: f64,
    pub(super) client_s: f64,
    /// Processor time spent emulating the client.
    pub(super) client_cpu_s: f64,
    /// Processor time of the loader's own work, if it counts as the client's work.
    pub(super) loader_cpu_s: f64,
    pub(super) reads: f64,
    pub(super) opens: f64,
}

impl SampleTimes {
    /// Time that one thread takes for a sample.
    pub(super) fn total_s(&self) -> f64 {
        self.open_s + self.read_s + self.decode_s + self.client_s
    }
}

impl<'a> Case<'a> {
    /// Creates the case of a record with its answer and doubts.
    pub fn new(derived: &'a Derived<'a>, answer: &'a Answer, doubts: &'a [Doubt]) -> Self {
        let pool = Pipeline::from_derived(derived).ok().map(PipelinePool::new);
        Case { derived, answer, doubts, pool, waits: Waits::new(derived) }
    }

    /// Adds further records of the same plan to predict from.
    #[must_use]
    pub fn with_replicates(self, replicates: &[Record]) -> Self {
        Case { pool: self.pool.map(|pool| pool.with_records(replicates)), ..self }
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.derived.record.plan
    }

    /// Predicts the deciding utilisation of the run with a changed plan or storage; `None` if the record has no pipeline.
    pub(super) fn predict(
        &self,
        plan: &Plan,
        changes: &[PipelineChange],
    ) -> Option<Result<Prediction, NotPredictable>> {
        let is_sustained = self.answer.au_kind == Some(AU_SUSTAINED.id.name());
        let metric = if is_sustained { &AU_SUSTAINED } else { &AU_ALL_STEPS };
        Some(self.pool.as_ref()?.predict(plan, changes, metric))
    }

    /// Mean compute time of an accelerator over the run.
    pub(super) fn compute_s(&self) -> f64 {
        self.derived.value(&COMPUTE_S).unwrap_or(0.0)
    }

    /// Total wait for the main cause if it is one of `causes`, otherwise `None`.
    pub(super) fn lost_s(&self, causes: &[WaitCause]) -> Option<f64> {
        let waits = self.waits?;
        let cause = waits.main_part()?.cause;
        causes.contains(&cause).then_some(match cause {
            WaitCause::Open => waits.open_s,
            WaitCause::Read => waits.read_s,
            WaitCause::Decode => waits.decode_s,
            WaitCause::Client => waits.client_s,
            WaitCause::Skew => waits.skew_s,
        })
    }

    /// Total wait for data.
    pub(super) fn data_wait_s(&self) -> Option<f64> {
        Some(self.waits?.data_s())
    }

    /// Mean times and counts of one sample; `None` if nothing was read.
    pub(super) fn sample(&self) -> Option<SampleTimes> {
        let io = &self.derived.io;
        let samples = io.samples as f64;
        (samples > 0.0 && io.reads > 0).then(|| SampleTimes {
            open_s: io.open_ns as f64 / 1e9 / samples,
            read_s: io.read_ns as f64 / 1e9 / samples,
            decode_s: io.decode_ns as f64 / 1e9 / samples,
            client_s: io.client_ns as f64 / 1e9 / samples,
            client_cpu_s: io.client_burnt_ns as f64 / 1e9 / samples,
            loader_cpu_s: io.client_own_ns as f64 / 1e9 / samples,
            reads: io.reads as f64 / samples,
            opens: io.opens as f64 / samples,
        })
    }

    /// Mean size of a read.
    pub(super) fn request_bytes(&self) -> Option<f64> {
        let io = &self.derived.io;
        (io.reads > 0).then(|| io.read_bytes as f64 / io.reads as f64)
    }

    /// Whether the transfer size limits the size of requests. If requests are much shorter, chunks, records or files limit it.
    pub(super) fn is_limited_by_transfer_size(&self) -> bool {
        let piece_bytes = self.plan().loader.piece_bytes as f64;
        self.request_bytes().is_some_and(|bytes| piece_bytes <= 2.0 * bytes)
    }

    /// Mean payload of a sample.
    pub(super) fn sample_bytes(&self) -> f64 {
        let dataset = &self.plan().dataset;
        let samples = dataset.samples_train().max(1);
        self.derived.dataset_bytes as f64 / samples as f64
    }

    /// Whether the dataset fits into half of the memory; `None` if the memory size is unknown.
    pub(super) fn fits_into_memory(&self) -> Option<bool> {
        let memory_bytes = self.derived.record.system.memory_bytes? as f64;
        Some(self.derived.dataset_bytes as f64 <= MEMORY_SHARE_MAX * memory_bytes)
    }

    /// Compute time of an accelerator per sample.
    pub(super) fn compute_per_sample_s(&self) -> Option<f64> {
        let samples = self.derived.io.samples as f64 / f64::from(self.plan().accelerators.max(1));
        (samples > 0.0 && self.compute_s() > 0.0).then(|| self.compute_s() / samples)
    }

    /// Time that a thread takes for a sample. With a client, waits for a processor are excluded, as the client's processor time is recorded.
    fn thread_s(&self) -> Option<f64> {
        let sample = self.sample()?;
        let loader = &self.plan().loader;
        if loader.client.is_none() {
            return Some(sample.total_s());
        }
        let decode_s = sample.decode_s.min(sample.loader_cpu_s + loader.preprocess.mean_s());
        Some(sample.open_s + sample.read_s + decode_s + sample.client_cpu_s)
    }

    /// Number of cores that the client's work needs for feeding all accelerators.
    pub(super) fn client_cores(&self) -> Option<u32> {
        let sample = self.sample()?;
        let cores = (sample.client_cpu_s + sample.loader_cpu_s) / self.compute_per_sample_s()?;
        Some((cores / (1.0 - SPARE_SHARE) * f64::from(self.plan().accelerators)).ceil() as u32)
    }

    /// Wait for workers that did the client's work, if this was the main cause.
    pub(super) fn lost_to_client_s(&self) -> Option<f64> {
        let waits = self.waits.filter(|waits| !waits.is_client_in_training_process())?;
        Some(self.lost_s(&[WaitCause::Client])? - waits.receive_s)
    }

    /// Time of the training process for a batch, if most of the client's work was there.
    pub(super) fn receive_s(&self) -> Option<f64> {
        self.waits.filter(Waits::is_client_in_training_process)?;
        let io = &self.derived.io;
        let batches = io.samples as f64 / self.plan().loader.batch_size.max(1) as f64;
        (batches > 0.0).then(|| io.receive_ns as f64 / 1e9 / batches)
    }

    /// The rate of the client that alone keeps batches from coming as fast as accelerators compute, and the time between two batches at this
    /// rate. Neither more workers nor more cores shorten it.
    pub(super) fn client_limit(&self) -> Option<ClientLimit> {
        let loader = &self.plan().loader;
        let io = &self.derived.io;
        let batch_size = loader.batch_size as f64;
        let batch_bytes = io.read_bytes as f64 / io.samples as f64 * batch_size;
        let times = loader.client_times(batch_bytes, self.plan().accelerators)?;
        let interval_s = times.batch_interval_s;
        let name = if times.pin_batch_s < interval_s {
            "the rate that all workers share"
        } else {
            "the thread that pins batches"
        };
        (self.compute_per_sample_s()? * batch_size < interval_s)
            .then_some(ClientLimit { name, interval_s })
    }

    /// Number of workers that keep an accelerator fed if a read takes as long for a sample as in this run (utilisation law). `None` if a
    /// process must not have that many threads.
    pub(super) fn threads_needed(&self) -> Option<u32> {
        let reads = self.thread_s()? / self.compute_per_sample_s()? / (1.0 - SPARE_SHARE);
        let is_possible = reads * f64::from(self.plan().accelerators) <= THREADS_MAX as f64;
        let workers = reads / f64::from(self.plan().loader.in_flight());
        is_possible.then(|| (workers.ceil() as u32).max(1))
    }

    /// Share of time that the reading threads were busy.
    pub(super) fn busy_share(&self) -> Option<f64> {
        let io = &self.derived.io;
        let threads = self.plan().readers().saturating_mul(self.plan().loader.streams());
        let thread_time_s = f64::from(threads) * self.derived.value(&DURATION_S)?;
        let busy_ns = io.open_ns + io.read_ns + io.decode_ns + io.client_ns;
        (thread_time_s > 0.0).then(|| busy_ns as f64 / 1e9 / thread_time_s)
    }

    /// Number of logical CPUs that the run may use.
    pub(super) fn cores(&self) -> u32 {
        self.derived.record.machines().iter().map(|machine: &System| machine.cpus).sum()
    }

    /// Whether the storage may deliver more bytes per second with more reads in flight.
    pub(super) fn gains_from_more_reads(&self) -> bool {
        !matches!(self.read_limit(), ReadLimit::Bandwidth | ReadLimit::Concurrency)
    }

    /// The limit of reads: of the emulated storage if there is one, otherwise of the storage models that explain the record.
    pub(super) fn read_limit(&self) -> ReadLimit {
        let Some(delivered) = self.derived.value(&DELIVERED_WHOLE) else {
            return ReadLimit::Either;
        };
        let emulated = self.plan().storage.throttle_bytes_per_second;
        let full_rate = delivered / SATURATED_SHARE;
        if emulated.is_some_and(|rate| rate <= full_rate) {
            return ReadLimit::Bandwidth;
        }
        let readers = self.plan().readers().saturating_mul(self.plan().loader.streams());
        if self.plan().storage.throttle_concurrency.is_some_and(|slots| slots <= readers) {
            return ReadLimit::Concurrency;
        }
        if self.derived.reads_are_emulated() {
            return ReadLimit::Latency;
        }
        let Some(pool) = &self.pool else { return ReadLimit::Either };
        let rates = pool.first().storage.iter().map(|model| model.bytes_per_second);
        let saturated = rates.clone().flatten().filter(|rate| *rate <= full_rate).count();
        match saturated {
            0 => ReadLimit::Latency,
            count if count == rates.count() => ReadLimit::Bandwidth,
            _ => ReadLimit::Either,
        }
    }
}

/// A limit of the client that more workers do not raise.
pub(super) struct ClientLimit {
    pub(super) name: &'static str,
    /// Shortest time between two batches of an accelerator.
    pub(super) interval_s: f64,
}

/// Approximate size of a shard.
const SHARD_BYTES: f64 = (64 << 20) as f64;
/// Minimum number of shards per reading thread: fewer cannot be shuffled or distributed.
const SHARDS_PER_THREAD_MIN: u64 = 4;

/// Minimum ratio of open time to read time at which waits for tiny files count as waits for opens.
const OPENS_SHARE_MIN: f64 = 0.5;
/// Largest size of a tiny file or request, well below the 1 MiB at which drishti and dfanalyzer call requests small.
pub(super) const TINY_BYTES: f64 = 65_536.0;

/// Time lost because there are many files: the wait for opens and, for tiny files, also the wait for reads.
pub(super) fn lost_to_files_s(case: &Case) -> Option<f64> {
    let sample = case.sample()?;
    let bytes_per_open = case.derived.io.read_bytes as f64 / case.derived.io.opens.max(1) as f64;
    let are_tiny = bytes_per_open <= TINY_BYTES
        && OPENS_SHARE_MIN * sample.read_s <= sample.open_s
        && case.read_limit() != ReadLimit::Bandwidth;
    let causes =
        if are_tiny { &[WaitCause::Open, WaitCause::Read][..] } else { &[WaitCause::Open] };
    case.lost_s(causes)
}

/// Overrides that put the same samples into fewer files, with the evidence. `None` if files are large or there are few.
pub(super) fn fewer_files(case: &Case) -> Option<(Vec<String>, Facts)> {
    let plan = case.plan();
    let files = plan.dataset.files_train;
    let samples_per_file = plan.dataset.samples_per_file.max(1);
    let threads = u64::from(plan.accelerators) * u64::from(plan.loader.workers.max(1));
    let file_bytes = case.sample_bytes() * samples_per_file as f64;
    let merged_by_size = (SHARD_BYTES / file_bytes.max(1.0)) as u64;
    let merged_max = merged_by_size.min(files / (SHARDS_PER_THREAD_MIN * threads));
    // Only a divisor of the number of files keeps the number of samples.
    let merged_files = (2..=merged_max.min(1 << 16))
        .rev()
        .find(|merged_files| files.is_multiple_of(*merged_files))?;
    let evidence = Facts::new()
        .with("files", files)
        .with("file_bytes", file_bytes as u64)
        .with("opened_files", case.derived.io.opens)
        .with("open_s", case.derived.io.open_ns as f64 / 1e9 / case.derived.io.opens.max(1) as f64)
        .with("shards", files / merged_files)
        .with("shard_samples", samples_per_file * merged_files);
    let overrides = vec![
        format!("dataset.num_files_train={}", files / merged_files),
        format!("dataset.num_samples_per_file={}", samples_per_file * merged_files),
    ];
    Some((overrides, evidence))
}

/// Minimum share of the run that must be lost to checkpoints before a change is proposed.
const STALL_SHARE_MIN: f64 = 0.1;

/// The wait of training for checkpoints, if it takes a large part of the run.
pub(super) struct CheckpointStall {
    pub(super) total_s: f64,
    /// The part of the wait that training could overlap with writing.
    pub(super) hideable_s: f64,
    pub(super) evidence: Facts,
}

impl CheckpointStall {
    pub(super) fn new(case: &Case) -> Option<Self> {
        let saved = CheckpointSummary::new(case.derived.record)?.save?;
        let run_s = case.answer.time_budget?.total_s;
        let training_s = (run_s - saved.stall_s).max(0.0);
        let evidence = Facts::new()
            .with("checkpoints", saved.count)
            .with("checkpoint_bytes", saved.bytes)
            .with("stall_s", saved.stall_s)
            .with("run_percent", 100.0 * saved.stall_s / run_s)
            .with("trains_s", training_s / saved.count as f64)
            .with_known("duration_s", saved.duration_s)
            .with_known("sync_percent", saved.fsync_share.map(|share| 100.0 * share));
        let hideable_s = saved.stall_s.min(training_s);
        let stall = CheckpointStall { total_s: saved.stall_s, hideable_s, evidence };
        (STALL_SHARE_MIN * run_s <= saved.stall_s).then_some(stall)
    }
}
