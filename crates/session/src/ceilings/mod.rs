//! Measures ceilings: runs of the workload with one part replaced, and plain reads and opens of its files. The runs are not kept.

mod passes;
mod alone;
mod slices;
mod measure;

pub use measure::{DiagnosisRequest, MeasuredCeilings, SavedDiagnosis};

use crate::catalog;
use crate::dataset::{OpenDataset, needs_files};
use feedrate_data::storage::engine::{self, Engine};
use feedrate_data::storage::{self, ReadStorage, Storage};
use feedrate_results::diagnosis::{Ceiling, NotMeasured, ReadFrom, Rung};
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

/// Bytes that a worker reads of a file one after another, where samples are not shuffled.
const STRETCH_BYTES: u64 = 16 << 20;
/// Size of the part of the dataset that is read: bytes, most files and fewest steps.
const PART_BYTES: f64 = 512e6;
const PART_FILES_MAX: u64 = 2048;
const PART_STEPS_MIN: u64 = 4;
/// Files that plain reads hold open.
const OPEN_FILES_MAX: usize = 512;
/// Number of files that are checked for leaving the page cache.
const LOOKED_AT_MAX: usize = 64;
/// Share of the files that may still be there.
const RESIDENT_SHARE_MAX: f64 = 0.05;
/// Slices in which each part is measured.
const SLICES: usize = 5;
/// A first step, and all slices of a part with their preparation, may take this many times the time of a ceiling.
const PATIENCE: u32 = 4;
/// Time ends a run that need not be cold, not its epochs.
const EPOCHS: u32 = 1000;

/// The first files of a dataset, of which ceilings are measured.
struct Part<'a> {
    /// A run of one epoch of them that computes nothing.
    plan: Plan,
    /// Computed in a step of the slowest accelerator, for whom all wait.
    compute_s: f64,
    /// Share of a step in starting an epoch's workers.
    start_of_step_s: f64,
    /// Mean work of `reader.preprocess_time` on a sample.
    preprocess_s: f64,
    dataset: &'a OpenDataset,
    /// Cost of a sample; `None` before a run has measured it.
    per_sample: Option<PerSample>,
    /// The files of the part; empty if the dataset has none.
    files: Vec<PlainFile>,
    signals: &'a Signals,
    limit: Duration,
    listener: &'a dyn Listener,
    /// Cores that may decode.
    cores: u32,
    /// Throttle or delays stand for the storage in reads.
    is_emulated: bool,
    /// Dentries and inodes go with the page cache.
    drops_metadata: bool,
}

impl<'a> Part<'a> {
    /// The first files of the dataset of `plan`; each ceiling is measured for `limit`.
    fn new(
        plan: &Plan,
        dataset: &'a OpenDataset,
        signals: &'a Signals,
        limit: Duration,
        listener: &'a dyn Listener,
    ) -> anyhow::Result<Self> {
        let mut part = plan.clone();
        (part.checkpoint, part.evaluation, part.iostat_devices) = (None, None, None);
        part.stage = None;
        (part.timeline, part.loader.in_memory) = (false, false);
        part.train.epochs = 1;
        (part.train.total_steps, part.train.on_devices) = (None, None);
        part.train.compute = TimeSpec::None;
        // An epoch of the part is short.
        part.loader.client =
            part.loader.client.map(|client| ClientPlan { start_per_epoch_s: 0.0, ..client });
        let all = plan.dataset.files_train.max(1);
        let estimate = catalog::estimate(plan);
        let file_bytes = (estimate.file_bytes / estimate.files.max(1)).max(1) as f64;
        // No file of the part is read twice.
        part.loader.reread_share = 0.0;
        let once = schedule::steps_of_training(&plan.dataset, &part.loader, plan.accelerators);
        let steps = plan.train.steps_per_epoch.min(once).max(1);
        let for_steps = (PART_STEPS_MIN.saturating_mul(all)).div_ceil(steps);
        let for_bytes = ((PART_BYTES / file_bytes) as u64).min(PART_FILES_MAX);
        let files = for_bytes.max(for_steps).clamp(1, all);
        part.dataset.named_train.get_or_insert(all);
        part.dataset.files_train = files;
        let share = u128::from(steps) * u128::from(files) / u128::from(all);
        part.train.steps_per_epoch = share.max(1) as u64;
        let mut lengths = Vec::new();
        if needs_files(plan, &*dataset.storage) {
            let layout = Layout::new(&part.dataset);
            for file in 0..files {
                let mut path = String::new();
                layout.write_path(file, &mut path);
                if let Some(bytes) = dataset.storage.stat(&path)? {
                    lengths.push(PlainFile { path, bytes });
                }
            }
        }
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        Ok(Part {
            compute_s: plan.train.slowest_compute_s(),
            start_of_step_s: plan.loader.start_s() / plan.train.steps_per_epoch.max(1) as f64,
            preprocess_s: part.loader.preprocess.mean_s(),
            is_emulated: emulates_reads(&part.storage),
            drops_metadata: false,
            plan: part,
            dataset,
            per_sample: None,
            files: lengths,
            signals,
            limit,
            listener,
            cores,
        })
    }

    /// One slice of one part.
    fn slice(&self, name: Rung) -> anyhow::Result<Ceiling> {
        match name {
            Rung::FileSystem => self.file_system(),
            Rung::Opens => self.opens(),
            Rung::Decode => self.decode(),
            Rung::Client => self.client(),
            Rung::Loader => {
                let passes = self.passes(&self.plan, Cache::Cold, self.slice_limit())?;
                Ok(self.loader_ceiling(&passes))
            }
        }
    }

    fn slice_limit(&self) -> Duration {
        self.limit / SLICES as u32
    }

    /// Whether the user interrupted the measurement.
    fn is_interrupted(&self) -> bool {
        self.signals.interrupted.load(Relaxed)
    }

    fn file_system(&self) -> anyhow::Result<Ceiling> {
        let name = Rung::FileSystem;
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
        let storage = self.bytes_of_files()?;
        let in_flight = self.workers();
        let read_from = match (is_direct, self.is_emptied()?) {
            _ if !storage.member().has(Ability::PageCache) => ReadFrom::Storage,
            (true, true) => ReadFrom::Direct,
            (false, true) => ReadFrom::Cold,
            (_, false) if self.is_emulated => ReadFrom::Emulated,
            // A tmpfs takes O_DIRECT too, and copies from memory.
            (_, false) => return Ok(Ceiling::not_measured(name, NotMeasured::StaysInMemory)),
        };
        let files = &self.files[..self.files.len().min(OPEN_FILES_MAX)];
        let is_cold = read_from == ReadFrom::Cold;
        let how = PlainReads { request_bytes, stretch_bytes, shuffled, repeats: !is_cold };
        let sum = self.until_over(self.slice_limit(), |limit| {
            if is_cold {
                self.evict()?;
            }
            Ok(self.probe(storage.clone(), files, in_flight, limit).reads(how)?)
        })?;
        let Some(rate) = per_second(sum.bytes as f64, sum.ns) else {
            return Ok(Ceiling::not_measured(name, NotMeasured::TooSlow));
        };
        let is_device = matches!(read_from, ReadFrom::Direct | ReadFrom::Cold);
        let samples = self.per_sample.map(|sample| {
            rate / if is_device && !self.is_emulated { sample.device_bytes } else { sample.bytes }
        });
        Ok(Ceiling {
            bytes_per_second: Some(rate),
            request_bytes: per_second(sum.bytes as f64, sum.count * 1_000_000_000),
            read_from: Some(read_from),
            ..self.measured(name, samples, sum.ns, in_flight)
        })
    }

    fn opens(&self) -> anyhow::Result<Ceiling> {
        if self.files.is_empty() {
            return Ok(Ceiling::not_measured(Rung::Opens, NotMeasured::NoFiles));
        }
        let in_flight = self.workers();
        let storage = self.dataset.storage.clone();
        let mut is_cold = self.drops_metadata;
        let sum = self.until_over(self.slice_limit(), |limit| {
            let again = !(is_cold && system::drop_metadata().is_ok());
            is_cold &= !again;
            Ok(self.probe(storage.clone(), &self.files, in_flight, limit).opens(again)?)
        })?;
        let Some(rate) = per_second(sum.count as f64, sum.ns) else {
            return Ok(Ceiling::not_measured(Rung::Opens, NotMeasured::TooSlow));
        };
        let samples =
            self.per_sample.filter(|sample| sample.opens > 0.0).map(|sample| rate / sample.opens);
        let ceiling = self.measured(Rung::Opens, samples, sum.ns, in_flight);
        let read_from = is_cold.then_some(ReadFrom::Cold);
        Ok(Ceiling { own_per_second: Some(rate), read_from, ..ceiling })
    }

    /// Runs of `plan`, one after another until time is over, each from a page cache as `cache` says.
    fn passes(&self, plan: &Plan, cache: Cache, limit: Duration) -> anyhow::Result<Passes> {
        let (mut plan, is_cold) = (plan.clone(), cache == Cache::Cold);
        // A cold run would drop dentries and inodes of the whole machine.
        plan.train.cache = Cache::AsIs;
        plan.train.epochs = if is_cold { 1 } else { EPOCHS };
        let mut all = Passes::default();
        let patience = self.limit * PATIENCE;
        self.until_over(limit, |limit| {
            if is_cold {
                self.evict()?;
            }
            let (record, elapsed) =
                run(&plan, self.dataset, [limit, patience], self.signals, self.listener)?;
            Ok(Operations { ns: all.add(&record, elapsed), ..Operations::default() })
        })?;
        Ok(all)
    }

    /// Do it again until the times of all sum up to `limit`, or it takes too long.
    fn until_over(
        &self,
        limit: Duration,
        mut act: impl FnMut(Duration) -> anyhow::Result<Operations>,
    ) -> anyhow::Result<Operations> {
        let (begun, mut all) = (Instant::now(), Vec::new());
        loop {
            let sum: Operations = all.iter().copied().sum();
            let left = limit.saturating_sub(Duration::from_nanos(sum.ns));
            let is_late = limit * 2 <= begun.elapsed() && !all.is_empty();
            if left < limit / 20 || is_late || self.is_interrupted() {
                return Ok(sum);
            }
            all.push(act(left)?);
        }
    }

    fn probe<'p>(
        &'p self,
        storage: Arc<dyn ReadStorage>,
        files: &'p [PlainFile],
        in_flight: u32,
        limit: Duration,
    ) -> Probe<'p> {
        let (plan, interrupted) = (&self.plan.storage, &*self.signals.interrupted);
        Probe { storage, plan, files, in_flight, limit, interrupted }
    }

    fn loader_ceiling(&self, passes: &Passes) -> Ceiling {
        let Some(rate) = per_second(passes.samples as f64, passes.ns) else {
            return Ceiling::not_measured(Rung::Loader, NotMeasured::TooSlow);
        };
        self.measured(Rung::Loader, Some(rate), passes.ns, self.workers())
    }

    fn measured(
        &self,
        name: Rung,
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
            not_measured: None,
        }
    }

    /// Reading threads of all accelerators.
    fn workers(&self) -> u32 {
        self.plan.readers().saturating_mul(self.plan.loader.workers.max(1))
    }

    /// A storage whose engine reads bytes, the plan's own where it does.
    fn bytes_of_files(&self) -> anyhow::Result<Arc<dyn Storage>> {
        let engine = engine_of(&self.plan.storage);
        let serves_samples =
            engine.is_some_and(|engine| engine.member().has(Ability::ServesSamples));
        if !serves_samples {
            return Ok(Arc::clone(&self.dataset.storage));
        }
        let StoragePlan { kind, .. } = &self.plan.storage;
        Ok(Arc::from(storage::open(kind, &self.dataset.folder)?))
    }

    /// Drop these files, and nothing else, from the page cache.
    fn evict(&self) -> anyhow::Result<()> {
        for file in &self.files {
            self.dataset.storage.evict(&file.path)?;
        }
        if self.drops_metadata {
            // Where it is not allowed, opens say that they were not cold.
            let _ = system::drop_metadata();
        }
        Ok(())
    }

    /// Whether they are known to leave it.
    fn is_emptied(&self) -> anyhow::Result<bool> {
        self.evict()?;
        let mut resident = 0;
        let mut bytes = 0;
        for file in self.files.iter().take(LOOKED_AT_MAX) {
            let Some(of_file) = self.dataset.storage.resident_bytes(&file.path)? else {
                return Ok(false);
            };
            resident += of_file;
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

/// Whether throttle or delays stand for the storage in reads.
fn emulates_reads(plan: &StoragePlan) -> bool {
    let waits_s = plan.throttle_latency_s + plan.delay_s + plan.read_delay_s;
    plan.throttle_bytes_per_second.is_some() || waits_s > 0.0
}
