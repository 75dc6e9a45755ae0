//! A record with what follows from it, as rules look at it, and the few figures that several of them share. No rule.

use crate::answer::Answer;
use crate::predict::{Pipeline, PipelineChange, Prediction, Untold};
use feedrate_measure::checkpoints::CheckpointSummary;
use feedrate_measure::derived::Derived;
use feedrate_measure::doubt::Doubt;
use feedrate_measure::facts::Facts;
use feedrate_measure::metric::{COMPUTE_S, DELIVERED_WHOLE, DURATION_S};
use feedrate_measure::record::System;
use feedrate_measure::waits::{WaitCause, Waits};
use feedrate_spec::plan::{Plan, THREADS_MAX};

/// A storage that delivers this share of its bandwidth is held up by it.
const SATURATED_SHARE: f64 = 0.7;
/// Reading threads that feed have this share of their time to spare.
const SPARE_SHARE: f64 = 0.1;
/// Share of the machine's memory that a dataset may take.
const MEMORY_SHARE_MAX: f64 = 0.5;

/// A run that asks for advice.
pub struct Case<'a> {
    /// Its record, and its metrics.
    pub derived: &'a Derived<'a>,
    /// Whether its accelerators were fed.
    pub answer: &'a Answer,
    /// Reasons not to believe its numbers.
    pub doubts: &'a [Doubt],
    /// `None` where the record does not tell.
    pub pipeline: Option<Pipeline>,
    waits: Option<Waits>,
}

/// Limit of the reads of a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadLimit {
    Latency,
    Bandwidth,
    /// It serves few at a time, and more readers wait for a place.
    Places,
    /// The record allows both.
    Either,
}

/// Seconds of one thread for a sample, and the samples.
pub(super) struct SampleTimes {
    pub(super) open_s: f64,
    pub(super) read_s: f64,
    pub(super) decode_s: f64,
    pub(super) client_s: f64,
    /// Processor time burnt for the client.
    pub(super) burnt_s: f64,
    /// Processor time of the loader's own work, where that counts as the client's.
    pub(super) own_s: f64,
    pub(super) reads: f64,
    pub(super) opens: f64,
}

impl SampleTimes {
    pub(super) fn all_s(&self) -> f64 {
        self.open_s + self.read_s + self.decode_s + self.client_s
    }
}

impl<'a> Case<'a> {
    /// The case of a record whose answer is known.
    pub fn new(derived: &'a Derived<'a>, answer: &'a Answer, doubts: &'a [Doubt]) -> Self {
        let pipeline = Pipeline::of_derived(derived).ok();
        Case { derived, answer, doubts, pipeline, waits: Waits::new(derived) }
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.derived.record.plan
    }

    /// `None` where the record has no pipeline.
    pub(super) fn predict(
        &self,
        plan: &Plan,
        changes: &[PipelineChange],
    ) -> Option<Result<Prediction, Untold>> {
        Some(self.pipeline.as_ref()?.predict(plan, changes))
    }

    /// Computed by an accelerator over the run, in the mean.
    pub(super) fn compute_s(&self) -> f64 {
        self.derived.value(&COMPUTE_S).unwrap_or(0.0)
    }

    /// Seconds of the longest wait, in all, where its cause is one of `causes`.
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

    pub(super) fn data_s(&self) -> Option<f64> {
        Some(self.waits?.data_s())
    }

    /// `None` where nothing was read.
    pub(super) fn sample(&self) -> Option<SampleTimes> {
        let io = &self.derived.io;
        let samples = io.samples as f64;
        (samples > 0.0 && io.reads > 0).then(|| SampleTimes {
            open_s: io.open_ns as f64 / 1e9 / samples,
            read_s: io.read_ns as f64 / 1e9 / samples,
            decode_s: io.decode_ns as f64 / 1e9 / samples,
            client_s: io.client_ns as f64 / 1e9 / samples,
            burnt_s: io.client_burnt_ns as f64 / 1e9 / samples,
            own_s: io.client_own_ns as f64 / 1e9 / samples,
            reads: io.reads as f64 / samples,
            opens: io.opens as f64 / samples,
        })
    }

    /// Mean bytes of a read.
    pub(super) fn request_bytes(&self) -> Option<f64> {
        let io = &self.derived.io;
        (io.reads > 0).then(|| io.read_bytes as f64 / io.reads as f64)
    }

    /// Whether requests are as long as they may be. Those that are far shorter have another reason: a chunk, a record, the file's end.
    pub(super) fn is_cut(&self) -> bool {
        let piece_bytes = self.plan().loader.piece_bytes as f64;
        self.request_bytes().is_some_and(|bytes| piece_bytes <= 2.0 * bytes)
    }

    /// Payload of a sample in the mean.
    pub(super) fn sample_bytes(&self) -> f64 {
        let dataset = &self.plan().dataset;
        let samples = dataset.files_train.saturating_mul(dataset.samples_per_file).max(1);
        self.derived.dataset_bytes as f64 / samples as f64
    }

    /// `None` where it is not known how much memory there is.
    pub(super) fn fits_into_memory(&self) -> Option<bool> {
        let memory_bytes = self.derived.record.system.memory_bytes? as f64;
        Some(self.derived.dataset_bytes as f64 <= MEMORY_SHARE_MAX * memory_bytes)
    }

    /// Time of an accelerator's compute for a sample.
    pub(super) fn compute_of_sample_s(&self) -> Option<f64> {
        let samples = self.derived.io.samples as f64 / f64::from(self.plan().accelerators.max(1));
        (samples > 0.0 && self.compute_s() > 0.0).then(|| self.compute_s() / samples)
    }

    /// Seconds of a thread for a sample. Of the client the processor time is known: whoever waits for a core does no work.
    fn alone_s(&self) -> Option<f64> {
        let (sample, loader) = (self.sample()?, &self.plan().loader);
        if loader.client.is_none() {
            return Some(sample.all_s());
        }
        let decode_s = sample.decode_s.min(sample.own_s + loader.preprocess.mean_s());
        Some(sample.open_s + sample.read_s + decode_s + sample.burnt_s)
    }

    /// Cores that the client's work of all accelerators takes where they are fed.
    pub(super) fn cores_of_client(&self) -> Option<u32> {
        let sample = self.sample()?;
        let each = (sample.burnt_s + sample.own_s) / self.compute_of_sample_s()?;
        Some((each / (1.0 - SPARE_SHARE) * f64::from(self.plan().accelerators)).ceil() as u32)
    }

    /// Seconds that workers were waited for which did the client's work, where that was the longest wait.
    pub(super) fn lost_to_client_s(&self) -> Option<f64> {
        let waits = self.waits.filter(|waits| !waits.are_for_training())?;
        Some(self.lost_s(&[WaitCause::Client])? - waits.receive_s)
    }

    /// Threads of an accelerator that would keep it fed, if each of them took no longer than now: the utilisation law.
    pub(super) fn threads_needed(&self) -> Option<u32> {
        let threads = self.alone_s()? / self.compute_of_sample_s()? / (1.0 - SPARE_SHARE);
        // No process may have more: then no number of threads feeds it.
        let is_possible = threads * f64::from(self.plan().accelerators) <= THREADS_MAX as f64;
        is_possible.then(|| (threads.ceil() as u32).max(1))
    }

    /// Share of their time in which the threads had something to do.
    pub(super) fn busy_share(&self) -> Option<f64> {
        let io = &self.derived.io;
        let threads = self.plan().readers() * self.plan().loader.workers.max(1);
        let all_s = f64::from(threads) * self.derived.value(&DURATION_S)?;
        let busy_ns = io.open_ns + io.read_ns + io.decode_ns + io.client_ns;
        (all_s > 0.0).then(|| busy_ns as f64 / 1e9 / all_s)
    }

    /// Logical CPUs that the run may use.
    pub(super) fn cores(&self) -> u32 {
        self.derived.record.machines().iter().map(|machine: &System| machine.cpus).sum()
    }

    /// Whether more reads at a time would bring more.
    pub(super) fn has_more(&self) -> bool {
        !matches!(self.read_limit(), ReadLimit::Bandwidth | ReadLimit::Places)
    }

    /// The limit of reads: by what stands for the storage, or by each storage that explains the record.
    pub(super) fn read_limit(&self) -> ReadLimit {
        let Some(delivered) = self.derived.value(&DELIVERED_WHOLE) else {
            return ReadLimit::Either;
        };
        let emulated = self.plan().storage.throttle_bytes_per_second;
        let full_rate = delivered / SATURATED_SHARE;
        if emulated.is_some_and(|rate| rate <= full_rate) {
            return ReadLimit::Bandwidth;
        }
        let readers = self.plan().readers().saturating_mul(self.plan().loader.workers);
        if self.plan().storage.throttle_concurrency.is_some_and(|places| places <= readers) {
            return ReadLimit::Places;
        }
        if self.derived.reads_are_emulated() {
            return ReadLimit::Latency;
        }
        let Some(pipeline) = &self.pipeline else { return ReadLimit::Either };
        let rates = pipeline.storage.iter().map(|model| model.bytes_per_second);
        let full = rates.clone().flatten().filter(|rate| *rate <= full_rate).count();
        match full {
            0 => ReadLimit::Latency,
            all if all == rates.count() => ReadLimit::Bandwidth,
            _ => ReadLimit::Either,
        }
    }
}

/// A file of shards is about as long.
const SHARD_BYTES: f64 = (64 << 20) as f64;
/// Shards for each reading thread, at least: fewer cannot be shuffled or shared out.
const SHARDS_EACH_MIN: u64 = 4;

/// Opens that cost this share of what reading does are what small files are waited for.
const OPENS_SHARE_MIN: f64 = 0.5;
/// Files and requests up to here are small for every storage: drishti and dfanalyzer begin at 1 MiB, where latency shows.
pub(super) const TINY_BYTES: f64 = 65_536.0;

/// Seconds that files are waited for rather than what is in them: opens, and where files are tiny, the one read of each.
pub(super) fn lost_to_files_s(case: &Case) -> Option<f64> {
    let sample = case.sample()?;
    let each_bytes = case.derived.io.read_bytes as f64 / case.derived.io.opens.max(1) as f64;
    let are_tiny = each_bytes <= TINY_BYTES
        && OPENS_SHARE_MIN * sample.read_s <= sample.open_s
        && case.read_limit() != ReadLimit::Bandwidth;
    let causes =
        if are_tiny { &[WaitCause::Open, WaitCause::Read][..] } else { &[WaitCause::Open] };
    case.lost_s(causes)
}

/// The same samples in fewer files, and how many files and opens there were. `None` where files are large or few.
pub(super) fn fewer_files(case: &Case) -> Option<(Vec<String>, Facts)> {
    let (plan, dataset) = (case.plan(), &case.plan().dataset);
    let (files, each) = (dataset.files_train, dataset.samples_per_file.max(1));
    let threads = u64::from(plan.accelerators) * u64::from(plan.loader.workers.max(1));
    let file_bytes = case.sample_bytes() * each as f64;
    let most = (SHARD_BYTES / file_bytes.max(1.0)) as u64;
    let most = most.min(files / (SHARDS_EACH_MIN * threads));
    // Without a rest no sample is added.
    let joined = (2..=most.min(1 << 16)).rev().find(|joined| files % joined == 0)?;
    let evidence = Facts::new()
        .with("files", files)
        .with("file_bytes", file_bytes as u64)
        .with("opened_files", case.derived.io.opens)
        .with("open_s", case.derived.io.open_ns as f64 / 1e9 / case.derived.io.opens.max(1) as f64)
        .with("shards", files / joined)
        .with("shard_samples", each * joined);
    let overrides = vec![
        format!("dataset.num_files_train={}", files / joined),
        format!("dataset.num_samples_per_file={}", each * joined),
    ];
    Some((overrides, evidence))
}

/// Share of the run that waiting for checkpoints is worth a change from.
const STALL_SHARE_MIN: f64 = 0.1;

/// Training that waits for checkpoints for a large part of a run.
pub(super) struct CheckpointStall {
    pub(super) all_s: f64,
    /// As much of it as training meanwhile would take.
    pub(super) hidden_s: f64,
    pub(super) evidence: Facts,
}

impl CheckpointStall {
    pub(super) fn new(case: &Case) -> Option<Self> {
        let record = case.derived.record;
        let saved = CheckpointSummary::new(record)?.save?;
        let ends = record
            .epochs
            .iter()
            .flat_map(|epoch| epoch.checkpoints.iter().map(|one| one.end_ns).chain([epoch.end_ns]));
        let all_ns = ends.max()?.checked_sub(record.epochs.first()?.start_ns)?;
        let run_s = all_ns as f64 / 1e9;
        let trains_s = (run_s - saved.stall_s).max(0.0);
        let evidence = Facts::new()
            .with("checkpoints", saved.count)
            .with("checkpoint_bytes", saved.bytes)
            .with("stall_s", saved.stall_s)
            .with("run_percent", 100.0 * saved.stall_s / run_s)
            .with("trains_s", trains_s / saved.count as f64)
            .with_known("duration_s", saved.duration_s)
            .with_known("sync_percent", saved.fsync_share.map(|share| 100.0 * share));
        let hidden_s = saved.stall_s.min(trains_s);
        let stall = CheckpointStall { all_s: saved.stall_s, hidden_s, evidence };
        (STALL_SHARE_MIN * run_s <= saved.stall_s).then_some(stall)
    }
}
