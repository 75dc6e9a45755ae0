//! Measures the ceiling of each pipeline stage, with short runs of the workload and with plain reads and opens of its files. The runs are
//! not saved.

mod passes;
mod alone;
mod slices;
mod measure;

pub use measure::{DiagnosisRequest, MeasuredCeilings, SavedDiagnosis, plain_reads};

use crate::catalog;
use crate::dataset::{OpenDataset, needs_files};
use feedrate_data::storage::engine::{self, Engine};
use feedrate_data::storage::{self, ReadStorage, Storage};
use feedrate_results::diagnosis::{Ceiling, NotMeasured, PipelineStage, ReadFrom};
use feedrate_run::live::Signals;
use feedrate_run::probe::{Operations, PlainFile, PlainReads, Probe};
use feedrate_run::system;
use feedrate_spec::catalog::Ability;
use feedrate_spec::listener::Listener;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::plan::{Cache, ClientPlan, Plan, StoragePlan, schedule};
use feedrate_spec::workload::{Shuffle, TimeSpec};
use passes::{Passes, PerSample, run};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Number of consecutive bytes that a worker reads from a file, if samples are not shuffled.
const STRETCH_BYTES: u64 = 16 << 20;
/// Total size of the files that are read, unless the minimum number of steps needs more files.
const FILES_BYTES: f64 = 512e6;
/// Maximum number of files that are read.
const FILES_MAX: u64 = 2048;
/// Minimum number of steps of a run.
const STEPS_MIN: u64 = 4;
/// Maximum number of open files of plain reads.
const OPEN_FILES_MAX: usize = 512;
/// Maximum number of files that are checked for eviction.
const EVICTION_CHECKS_MAX: usize = 64;
/// Maximum share of the files that may stay in the page cache after eviction.
const RESIDENT_SHARE_MAX: f64 = 0.05;
/// Number of slices in which each ceiling is measured.
const SLICES: usize = 5;
/// Time after which a run without a finished step ends, and after which no more slices of a ceiling start. A multiple of the time for each ceiling.
const TIMEOUT_FACTOR: u32 = 4;
/// Number of epochs of runs with a warm page cache. No run reaches it, because the time limit ends them before.
const WARM_EPOCHS: u32 = 1000;

/// A measurement of ceilings with the first files of a dataset.
struct CeilingMeasurement<'a> {
    /// Plan of a run over these files: one epoch without compute.
    plan: Plan,
    /// Compute time of a step on the slowest accelerator.
    compute_s: f64,
    /// Time that the workers need to start in an epoch, divided by the steps of the epoch.
    start_per_step_s: f64,
    /// Mean preprocessing time of a sample.
    preprocess_s: f64,
    dataset: &'a OpenDataset,
    /// Mean costs of a sample; `None` before they are measured.
    per_sample: Option<PerSample>,
    /// The files that are read; empty if the dataset has no files.
    files: Vec<PlainFile>,
    signals: &'a Signals,
    /// Time for each ceiling.
    limit: Duration,
    listener: &'a dyn Listener,
    /// Number of cores that can decode.
    cores: u32,
    /// Whether reads are slowed down by a throttle or delays.
    is_emulated: bool,
    /// Whether dentries and inodes are dropped with the page cache.
    drops_metadata: bool,
}

impl<'a> CeilingMeasurement<'a> {
    /// Selects the first files of the dataset of `plan`. Each ceiling is measured for `limit`.
    fn new(
        plan: &Plan,
        dataset: &'a OpenDataset,
        signals: &'a Signals,
        limit: Duration,
        listener: &'a dyn Listener,
    ) -> anyhow::Result<Self> {
        let mut short_plan = plan.clone();
        short_plan.checkpoint = None;
        short_plan.evaluation = None;
        short_plan.iostat_devices = None;
        short_plan.stage = None;
        short_plan.timeline = false;
        short_plan.loader.in_memory = false;
        short_plan.train.epochs = 1;
        short_plan.train.total_steps = None;
        short_plan.train.on_devices = None;
        short_plan.train.compute = TimeSpec::None;
        // Starting workers would dominate the short epochs.
        short_plan.loader.client =
            short_plan.loader.client.map(|client| ClientPlan { start_per_epoch_s: 0.0, ..client });
        let dataset_files = plan.dataset.files_train.max(1);
        let estimate = catalog::estimate(plan);
        let file_bytes = (estimate.file_bytes / estimate.files.max(1)).max(1) as f64;
        // No file is read by two accelerators.
        short_plan.loader.reread_share = 0.0;
        let steps_without_rereads =
            schedule::steps_of_training(&plan.dataset, &short_plan.loader, plan.accelerators);
        let steps = plan.train.steps_per_epoch.min(steps_without_rereads).max(1);
        let files_for_steps = (STEPS_MIN.saturating_mul(dataset_files)).div_ceil(steps);
        let files_for_bytes = ((FILES_BYTES / file_bytes) as u64).min(FILES_MAX);
        let files = files_for_bytes.max(files_for_steps).clamp(1, dataset_files);
        short_plan.dataset.named_train.get_or_insert(dataset_files);
        short_plan.dataset.files_train = files;
        let scaled_steps = u128::from(steps) * u128::from(files) / u128::from(dataset_files);
        short_plan.train.steps_per_epoch = scaled_steps.max(1) as u64;
        let mut plain_files = Vec::new();
        if needs_files(plan, &*dataset.storage) {
            let layout = Layout::new(&short_plan.dataset);
            for file in 0..files {
                let mut path = String::new();
                layout.write_path(file, &mut path);
                if let Some(bytes) = dataset.storage.stat(&path)? {
                    plain_files.push(PlainFile { path, bytes });
                }
            }
        }
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        Ok(CeilingMeasurement {
            compute_s: plan.train.slowest_compute_s(),
            start_per_step_s: plan.loader.start_s() / plan.train.steps_per_epoch.max(1) as f64,
            preprocess_s: short_plan.loader.preprocess.mean_s(),
            is_emulated: emulates_reads(&short_plan.storage),
            drops_metadata: false,
            plan: short_plan,
            dataset,
            per_sample: None,
            files: plain_files,
            signals,
            limit,
            listener,
            cores,
        })
    }

    /// Measures one slice of a ceiling.
    fn measure_slice(&self, name: PipelineStage) -> anyhow::Result<Ceiling> {
        match name {
            PipelineStage::FileSystem => self.file_system_ceiling(),
            PipelineStage::Opens => self.opens_ceiling(),
            PipelineStage::Decode => self.decode_ceiling(),
            PipelineStage::Client => self.client_ceiling(),
            PipelineStage::Loader => {
                let passes = self.run_passes(&self.plan, Cache::Cold, self.slice_limit())?;
                Ok(self.loader_ceiling(&passes))
            }
        }
    }

    /// Returns the time for one slice.
    fn slice_limit(&self) -> Duration {
        self.limit / SLICES as u32
    }

    /// Whether the user interrupted the measurement.
    fn is_interrupted(&self) -> bool {
        self.signals.interrupted.load(Relaxed)
    }

    /// Measures one slice of the ceiling of plain reads.
    fn file_system_ceiling(&self) -> anyhow::Result<Ceiling> {
        let name = PipelineStage::FileSystem;
        if self.files.is_empty() {
            return Ok(Ceiling::not_measured(name, NotMeasured::NoFiles));
        }
        let Some(PerSample { request_bytes, bytes, .. }) = self.per_sample else {
            return Ok(Ceiling::not_measured(name, NotMeasured::SizesNotKnown));
        };
        let shuffled = self.plan.loader.sample_shuffle != Shuffle::Off
            && self.plan.dataset.samples_per_file > 1;
        let request_bytes = request_bytes.round().max(1.0) as u64;
        let block = (bytes * self.plan.loader.shuffle_block.unwrap_or(0) as f64) as u64;
        let stretch_bytes = if shuffled { request_bytes.max(block) } else { STRETCH_BYTES };
        let is_direct = engine_of(&self.plan.storage)
            .is_some_and(|engine| engine.member().has(Ability::BypassesPageCache));
        let storage = self.byte_storage()?;
        let in_flight = self.workers();
        let read_from = match (is_direct, self.can_evict()?) {
            _ if !storage.member().has(Ability::PageCache) => ReadFrom::Storage,
            (true, true) => ReadFrom::Direct,
            (false, true) => ReadFrom::Cold,
            (_, false) if self.is_emulated => ReadFrom::Emulated,
            // A tmpfs accepts O_DIRECT, but reads from memory.
            (_, false) => return Ok(Ceiling::not_measured(name, NotMeasured::StaysInMemory)),
        };
        let files = &self.files[..self.files.len().min(OPEN_FILES_MAX)];
        let is_cold = read_from == ReadFrom::Cold;
        let reads = PlainReads { request_bytes, stretch_bytes, shuffled, repeats: !is_cold };
        let sum = self.repeat_for(self.slice_limit(), |limit| {
            if is_cold {
                self.evict()?;
            }
            Ok(self.probe(storage.clone(), files, in_flight, limit).measure_reads(reads)?)
        })?;
        let Some(rate) = per_second(sum.bytes as f64, sum.ns) else {
            return Ok(Ceiling::not_measured(name, NotMeasured::TooSlow));
        };
        let is_device = matches!(read_from, ReadFrom::Direct | ReadFrom::Cold);
        let samples = self.per_sample.map(|sample| {
            // If the device's part is unknown or the page cache served all, the device is compared as if it had to deliver all bytes.
            let device_bytes =
                sample.device_bytes.filter(|bytes| is_device && !self.is_emulated && *bytes > 0.0);
            rate / device_bytes.unwrap_or(sample.bytes)
        });
        Ok(Ceiling {
            bytes_per_second: Some(rate),
            request_bytes: per_second(sum.bytes as f64, sum.count * 1_000_000_000),
            read_from: Some(read_from),
            ..self.new_ceiling(name, samples, sum.ns, in_flight)
        })
    }

    /// Measures one slice of the ceiling of opens.
    fn opens_ceiling(&self) -> anyhow::Result<Ceiling> {
        if self.files.is_empty() {
            return Ok(Ceiling::not_measured(PipelineStage::Opens, NotMeasured::NoFiles));
        }
        let in_flight = self.workers();
        let storage = self.dataset.storage.clone();
        let mut is_cold = self.drops_metadata;
        let sum = self.repeat_for(self.slice_limit(), |limit| {
            let repeats = !(is_cold && system::drop_metadata().is_ok());
            is_cold &= !repeats;
            Ok(self.probe(storage.clone(), &self.files, in_flight, limit).measure_opens(repeats)?)
        })?;
        let Some(rate) = per_second(sum.count as f64, sum.ns) else {
            return Ok(Ceiling::not_measured(PipelineStage::Opens, NotMeasured::TooSlow));
        };
        let samples =
            self.per_sample.filter(|sample| sample.opens > 0.0).map(|sample| rate / sample.opens);
        let ceiling = self.new_ceiling(PipelineStage::Opens, samples, sum.ns, in_flight);
        let read_from = is_cold.then_some(ReadFrom::Cold);
        Ok(Ceiling { own_per_second: Some(rate), read_from, ..ceiling })
    }

    /// Repeats runs of `plan` for `limit`. With a cold `cache`, the files are evicted before each run.
    fn run_passes(&self, plan: &Plan, cache: Cache, limit: Duration) -> anyhow::Result<Passes> {
        let is_cold = cache == Cache::Cold;
        let mut run_plan = plan.clone();
        // A cold run would drop dentries and inodes of the whole machine.
        run_plan.train.cache = Cache::AsIs;
        run_plan.train.epochs = if is_cold { 1 } else { WARM_EPOCHS };
        let mut all = Passes::new();
        let first_step_timeout = self.limit * TIMEOUT_FACTOR;
        self.repeat_for(limit, |limit| {
            if is_cold {
                self.evict()?;
            }
            let (record, elapsed) = run(
                &run_plan,
                self.dataset,
                [limit, first_step_timeout],
                self.signals,
                self.listener,
            )?;
            Ok(Operations { ns: all.add(&record, elapsed), ..Operations::default() })
        })?;
        Ok(all)
    }

    /// Repeats `work` until its measured times add up to `limit`, or until twice that time has passed. Returns the sum.
    fn repeat_for(
        &self,
        limit: Duration,
        mut work: impl FnMut(Duration) -> anyhow::Result<Operations>,
    ) -> anyhow::Result<Operations> {
        let start = Instant::now();
        let mut all = Vec::new();
        loop {
            let sum: Operations = all.iter().copied().sum();
            let remaining = limit.saturating_sub(Duration::from_nanos(sum.ns));
            let is_late = limit * 2 <= start.elapsed() && !all.is_empty();
            if remaining < limit / 20 || is_late || self.is_interrupted() {
                return Ok(sum);
            }
            all.push(work(remaining)?);
        }
    }

    fn probe<'p>(
        &'p self,
        storage: Arc<dyn ReadStorage>,
        files: &'p [PlainFile],
        in_flight: u32,
        limit: Duration,
    ) -> Probe<'p> {
        let interrupted = &*self.signals.interrupted;
        Probe { storage, plan: &self.plan.storage, files, in_flight, limit, interrupted }
    }

    /// Computes the ceiling of the loader from its runs.
    fn loader_ceiling(&self, passes: &Passes) -> Ceiling {
        let Some(rate) = per_second(passes.samples as f64, passes.ns) else {
            return Ceiling::not_measured(PipelineStage::Loader, NotMeasured::TooSlow);
        };
        self.new_ceiling(PipelineStage::Loader, Some(rate), passes.ns, self.workers())
    }

    /// Creates a ceiling with the measured rate.
    fn new_ceiling(
        &self,
        name: PipelineStage,
        samples_per_second: Option<f64>,
        ns: u64,
        in_flight: u32,
    ) -> Ceiling {
        let bytes =
            samples_per_second.zip(self.per_sample).map(|(rate, sample)| rate * sample.bytes);
        Ceiling {
            name,
            samples_per_second,
            bytes_per_second: bytes,
            own_per_second: None,
            slices_samples_per_second: Vec::new(),
            measured_s: Some(ns as f64 / 1e9),
            in_flight: Some(in_flight),
            request_bytes: None,
            read_from: None,
            cpu_busy_share: None,
            own_cpu_share: None,
            is_emulated: self.is_emulated_in(name),
            not_measured: None,
        }
    }

    /// Whether times of a stage are emulated.
    fn is_emulated_in(&self, name: PipelineStage) -> bool {
        let storage = &self.plan.storage;
        let opens_wait = storage.delay_s + storage.open_delay_s > 0.0;
        match name {
            PipelineStage::FileSystem => self.is_emulated,
            PipelineStage::Opens => opens_wait,
            PipelineStage::Decode => self.preprocess_s > 0.0,
            PipelineStage::Client => true,
            PipelineStage::Loader => {
                let has_client = self.plan.loader.client.is_some();
                self.is_emulated || opens_wait || self.preprocess_s > 0.0 || has_client
            }
        }
    }

    /// Returns the number of reading threads of all accelerators.
    fn workers(&self) -> u32 {
        self.plan.readers().saturating_mul(self.plan.loader.streams())
    }

    /// Returns a storage whose engine reads bytes: the dataset's, unless its engine serves samples.
    fn byte_storage(&self) -> anyhow::Result<Arc<dyn Storage>> {
        let engine = engine_of(&self.plan.storage);
        let serves_samples =
            engine.is_some_and(|engine| engine.member().has(Ability::ServesSamples));
        if !serves_samples {
            return Ok(Arc::clone(&self.dataset.storage));
        }
        let StoragePlan { kind, .. } = &self.plan.storage;
        Ok(Arc::from(storage::open(kind, &self.dataset.folder)?))
    }

    /// Evicts the files from the page cache, and with `drops_metadata` drops dentries and inodes.
    fn evict(&self) -> anyhow::Result<()> {
        for file in &self.files {
            self.dataset.storage.evict(&file.path)?;
        }
        if self.drops_metadata {
            // Without permission this fails, and opens report that they were not cold.
            let _ = system::drop_metadata();
        }
        Ok(())
    }

    /// Whether eviction of the files is known to work.
    fn can_evict(&self) -> anyhow::Result<bool> {
        self.evict()?;
        let mut resident = 0;
        let mut bytes = 0;
        for file in self.files.iter().take(EVICTION_CHECKS_MAX) {
            let Some(file_resident) = self.dataset.storage.resident_bytes(&file.path)? else {
                return Ok(false);
            };
            resident += file_resident;
            bytes += file.bytes;
        }
        Ok(resident as f64 <= RESIDENT_SHARE_MAX * bytes as f64)
    }
}

fn per_second(amount: f64, ns: u64) -> Option<f64> {
    (amount > 0.0 && ns > 0).then(|| amount * 1e9 / ns as f64)
}

fn engine_of(plan: &StoragePlan) -> Option<&'static dyn Engine> {
    plan.engine.as_deref().and_then(engine::find)
}

/// Whether a throttle or delays slow reads down.
fn emulates_reads(plan: &StoragePlan) -> bool {
    let waits_s = plan.throttle_latency_s + plan.delay_s + plan.read_delay_s;
    plan.throttle_bytes_per_second.is_some() || waits_s > 0.0
}
