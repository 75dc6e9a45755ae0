//! Simulates a scaled-down plan in virtual time on a modelled storage. A few steps of few samples represent the entire run.
//!
//! One simulated sample represents several real samples and takes as long as all of them. In a queue that serves one request after another,
//! the total time is the same. Workers that keep several requests in flight are simulated with every request, but for fewer accelerators.

use super::NotPredictable;
use super::model::{SampleCost, StorageModel};
use feedrate_engine::job::ReadJob;
use feedrate_engine::loader;
use feedrate_engine::simulated::{SimulatedDriver, SimulatedStorage};
use feedrate_measure::histogram::Histogram;
use feedrate_measure::metric::{self, AU_SUSTAINED};
use feedrate_measure::record::{EpochRecord, Record};
use feedrate_measure::summary::Summary;
use feedrate_measure::verdict::Bound;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::plan::shards::FileSplit;
use feedrate_spec::plan::{ClientPlan, DatasetPlan, FileAccess, Plan, WorkerSplit};
use feedrate_spec::shape::{Element, Encoding, FileShape};
use feedrate_spec::workload::TimeSpec;

/// Approximate number of simulated samples. More take longer without changing the result.
const SAMPLES: u64 = 3000;
/// Minimum number of steps of the shorter of two runs. The time of a step is computed from their difference.
const STEPS_MIN: u64 = 12;
/// Minimum number of steps of that run with several requests in flight, as a multiple of the batches that may be read ahead.
const STOCKS: u64 = 4;
/// Size of a simulated sample. The rates of the model are scaled to it.
const SAMPLE_BYTES: f64 = 1e6;
/// Maximum number of simulated accelerators. Each may represent several real accelerators, on a correspondingly faster storage.
const READERS_MAX: u32 = 32;
/// Maximum number of reads of a simulated sample.
const READS_MAX: f64 = 8.0;

/// Predicted or recorded times of an epoch: the mean over the accelerators.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct EpochTimes {
    pub(super) steps: f64,
    pub(super) compute_s: f64,
    pub(super) length_s: f64,
}

/// The result of a simulation.
#[derive(Debug)]
pub(super) struct SimulatedRun {
    /// All epochs of the run.
    pub(super) epochs: Vec<EpochTimes>,
    /// A step of the steady state; `None` if the run has too few steps to reach it.
    pub(super) steady: Option<EpochTimes>,
    /// What limits the first epoch.
    pub(super) bound: Bound,
    /// Times of the simulated reads of the first epoch.
    pub(super) read_latency: Histogram,
    /// Mean time of a read.
    pub(super) read_s: f64,
}

/// The input of a simulation: a plan, the cost of its samples, and a model of its storage.
#[derive(Clone, Copy)]
pub(super) struct Simulation<'a> {
    pub(super) plan: &'a Plan,
    pub(super) cost: &'a SampleCost,
    pub(super) model: &'a StorageModel,
    pub(super) cores: u32,
}

impl EpochTimes {
    /// A step that computes for `compute_s` at a sustained utilisation.
    pub(super) fn steady_step(compute_s: f64, au_sustained_percent: f64) -> Self {
        EpochTimes { steps: 1.0, compute_s, length_s: compute_s * 100.0 / au_sustained_percent }
    }
}

/// The mean utilisation of the epochs.
pub(super) fn au_percent(epochs: &[EpochTimes]) -> f64 {
    let percents: Vec<f64> =
        epochs.iter().map(|epoch| 100.0 * epoch.compute_s / epoch.length_s).collect();
    metric::mean(&percents).unwrap_or(0.0)
}

impl Simulation<'_> {
    /// Simulates all epochs of the plan. Epochs after the first are equal, except that the last may be shorter.
    pub(super) fn run(self) -> Result<SimulatedRun, NotPredictable> {
        let plan = without_idle_workers(self.plan);
        let simulation = Simulation { plan: &plan, ..self };
        let Plan { train, loader, .. } = &plan;
        let (first, simulated) = simulation.run_epoch(&plan)?;
        let epoch_count = train.epochs_run().max(1);
        let mut later = first;
        if epoch_count > 1 && (loader.in_memory || loader.held_at_start != loader.held_batches) {
            let mut plan = plan.clone();
            plan.loader.held_at_start = loader.held_batches;
            let no_storage = StorageModel::default();
            let model = if loader.in_memory { &no_storage } else { self.model };
            let cpu_s = if loader.in_memory { 0.0 } else { self.cost.cpu_s };
            let cost = SampleCost { cpu_s, ..*self.cost };
            (later, _) = Simulation { plan: &plan, cost: &cost, model, ..self }.run_epoch(&plan)?;
        }
        let epochs = (1..=epoch_count).map(|epoch| {
            let times = if epoch == 1 { first } else { later };
            times.for_steps(train.steps_in_epoch(epoch).max(1) as f64)
        });
        Ok(SimulatedRun { epochs: epochs.collect(), ..simulated })
    }

    /// Simulates one epoch: a short run and one with twice as many steps. Returns the times for any number of steps, and the longer run.
    fn run_epoch(self, plan: &Plan) -> Result<(LinearTimes, SimulatedRun), NotPredictable> {
        let miniature = Miniature::new(plan, self.cost);
        let all_steps = plan.train.steps_per_epoch.max(1);
        if all_steps <= 2 * miniature.steps {
            let simulated = miniature.run(self, all_steps)?;
            let times = simulated.epochs[0];
            return Ok((LinearTimes::from_runs(times, times), simulated));
        }
        let short = miniature.run(self, miniature.steps)?;
        let long = miniature.run(self, 2 * miniature.steps)?;
        let times = LinearTimes::from_runs(short.epochs[0], long.epochs[0]);
        let steady = long.steady.unwrap_or(times.step());
        Ok((times, SimulatedRun { steady: Some(steady), ..long }))
    }
}

/// Returns the plan without the workers that have no file to read. The engine leaves them idle.
fn without_idle_workers(plan: &Plan) -> Plan {
    let idle = FileSplit::new(plan, 0).map_or(0, |split| split.idle_workers());
    let mut plan = plan.clone();
    if idle > 0 {
        let loader = &mut plan.loader;
        loader.workers = u64::from(loader.workers).saturating_sub(idle).max(1) as u32;
        loader.interleaved_files = loader.interleaved_files.min(loader.workers);
    }
    plan
}

/// The times of an epoch as a linear function of the number of steps.
#[derive(Clone, Copy, Debug)]
struct LinearTimes {
    long: EpochTimes,
    step_compute_s: f64,
    step_length_s: f64,
}

impl LinearTimes {
    /// The line through two runs, or through one run and the origin if both runs are the same.
    fn from_runs(short: EpochTimes, long: EpochTimes) -> Self {
        let base = if long.steps > short.steps { short } else { EpochTimes::default() };
        let steps = long.steps - base.steps;
        LinearTimes {
            long,
            step_compute_s: (long.compute_s - base.compute_s) / steps,
            step_length_s: (long.length_s - base.length_s) / steps,
        }
    }

    fn step(&self) -> EpochTimes {
        let LinearTimes { step_compute_s, step_length_s, .. } = *self;
        EpochTimes { steps: 1.0, compute_s: step_compute_s, length_s: step_length_s }
    }

    fn for_steps(&self, steps: f64) -> EpochTimes {
        let more_steps = steps - self.long.steps;
        EpochTimes {
            steps,
            compute_s: self.long.compute_s + more_steps * self.step_compute_s,
            length_s: self.long.length_s + more_steps * self.step_length_s,
        }
    }
}

/// The scale of the simulated run.
struct Miniature {
    readers: u32,
    /// Number of real accelerators that a simulated accelerator represents.
    real_accelerators_per_reader: f64,
    batch_size: u64,
    /// Number of real samples that a simulated sample represents.
    real_samples_per_sample: f64,
    /// Number of reads of a simulated sample. Below 1 if a read has several samples.
    reads: f64,
    /// Number of simulated samples that a worker reads together.
    samples_per_request: u64,
    /// Number of files from which a simulated accelerator reads in turn; `None` if it does not matter which worker reads which file.
    interleaved_files: Option<u64>,
    steps: u64,
}

impl Miniature {
    fn new(plan: &Plan, cost: &SampleCost) -> Self {
        let loader = &plan.loader;
        let all_readers = plan.readers().max(1);
        let group = loader.group_accelerators.max(1).min(plan.accelerators.max(1));
        let all_samples = loader.batch_size.max(1) * u64::from(group);
        let workers = u64::from(loader.workers.max(1));
        // What is read ahead at the start does not show the rate of the steady state.
        let stocks = if loader.requests.is_some() { STOCKS } else { 1 };
        let steps_min = (stocks * plan.stock_batches() + workers)
            .max(STEPS_MIN)
            .min(plan.train.steps_per_epoch.max(1));
        let samples_per_request = plan.samples_per_request();
        if loader.requests.is_some() {
            let requests = (3 * steps_min * all_samples).div_ceil(samples_per_request);
            let readers_affordable = (SAMPLES / requests).clamp(1, READERS_MAX.into()) as u32;
            let readers = all_readers.min(readers_affordable);
            return Miniature {
                readers,
                real_accelerators_per_reader: f64::from(all_readers) / f64::from(readers),
                batch_size: all_samples,
                real_samples_per_sample: 1.0,
                reads: 1.0 / samples_per_request as f64,
                samples_per_request,
                interleaved_files: None,
                steps: steps_min.next_multiple_of(workers),
            };
        }
        let readers = all_readers.min(READERS_MAX);
        let claims_entire_batches =
            loader::find(&loader.kind).is_some_and(|kind| kind.claims_per_batch(all_samples) == 1);
        // Workers that share a batch need enough samples for all of them.
        let samples_wanted = if claims_entire_batches { 1 } else { 2 * workers };
        let samples_affordable = SAMPLES / (3 * steps_min * u64::from(readers)).max(1);
        let batch_size = all_samples.min(samples_affordable.max(samples_wanted));
        let steps = (SAMPLES / (3 * batch_size * u64::from(readers)).max(1)).max(steps_min);
        let real_samples_per_sample = all_samples as f64 / batch_size as f64;
        // While the last files are read, the other workers are idle. With more files than simulated samples, this hardly matters.
        let interleaved_files = match FileSplit::new(plan, 0) {
            Some(FileSplit::Interleave(interleave)) => Some(interleave.files()),
            _ => None,
        };
        Miniature {
            readers,
            real_accelerators_per_reader: f64::from(all_readers) / f64::from(readers),
            batch_size,
            real_samples_per_sample,
            reads: (cost.reads * real_samples_per_sample).round().clamp(1.0, READS_MAX),
            samples_per_request,
            interleaved_files: interleaved_files.filter(|files| *files <= steps * batch_size),
            steps: steps.next_multiple_of(workers),
        }
    }

    /// Simulates an epoch of `steps` steps. The result has one epoch.
    fn run(&self, simulation: Simulation, steps: u64) -> Result<SimulatedRun, NotPredictable> {
        let plan = self.plan(simulation, steps);
        let job = ReadJob::without_files(&plan).map_err(|_| NotPredictable::OtherFiles)?;
        let mut driver = SimulatedDriver::new(job, self.storage(&plan, simulation));
        let accelerators = driver.run_epoch(steps).map_err(|_| NotPredictable::OtherFiles)?;
        let blocks = accelerators.iter().flat_map(|accelerator| &accelerator.blocks);
        let end_ns = blocks.map(|block| block.end_ns).max();
        let epoch = EpochRecord {
            number: 1,
            end_ns: end_ns.unwrap_or_default(),
            causes: Some(driver.take_causes()),
            accelerators,
            ..EpochRecord::default()
        };
        let times = mean_times(&epoch);
        let record = Record {
            plan,
            complete: true,
            simulated: true,
            epochs: vec![epoch],
            ..Record::default()
        };
        let io = metric::counters_of_run(&record);
        let reads = self.real_reads_per_read(simulation.cost) * io.reads as f64;
        let sustained = AU_SUSTAINED.run_value(&record).filter(|percent| *percent > 0.0);
        Ok(SimulatedRun {
            epochs: vec![times],
            steady: sustained
                .map(|percent| EpochTimes::steady_step(times.compute_s / times.steps, percent)),
            bound: Summary::new(&record).verdict.name,
            read_s: io.read_ns as f64 / 1e9 / reads.max(1.0),
            read_latency: io.read_latency,
        })
    }

    /// The plan that is simulated.
    fn plan(&self, simulation: Simulation, steps: u64) -> Plan {
        let mut plan = simulation.plan.clone();
        plan.accelerators = self.readers;
        plan.checkpoint = None;
        plan.evaluation = None;

        let dataset = &mut plan.dataset;
        let relative_stdev = dataset.record_stdev_bytes / dataset.record_bytes.max(1.0);
        let spread = relative_stdev / self.real_samples_per_sample.sqrt();
        let is_drawn = dataset.record_dims.is_empty() && spread > 0.0;
        let readers = u64::from(self.readers);
        let reader_samples = steps * self.batch_size;
        let [reader_files, samples_per_file] = match self.interleaved_files {
            Some(files) => {
                let real_samples = plan.train.steps_per_epoch * plan.loader.batch_size;
                let share = reader_samples as f64 / real_samples.max(1) as f64;
                [files, (dataset.samples_per_file as f64 * share).ceil() as u64]
            }
            None if self.samples_per_request == 1 => [reader_samples, 1],
            // With row groups, each worker reads a file of its own.
            None => {
                let files = u64::from(plan.loader.workers.max(1));
                [files, reader_samples.div_ceil(files)]
            }
        };
        *dataset = DatasetPlan {
            files_train: reader_files * readers,
            samples_per_file,
            record_bytes: SAMPLE_BYTES,
            record_stdev_bytes: if is_drawn { spread * SAMPLE_BYTES } else { 0.0 },
            element: Element::Uint8,
            encoding: Encoding {
                row_group_samples: self.samples_per_request,
                ..Encoding::default()
            },
            ..DatasetPlan::default()
        };

        let loader = &mut plan.loader;
        loader.batch_size = self.batch_size;
        loader.group_accelerators = 1;
        if self.interleaved_files.is_none() {
            loader.interleaved_files = 1;
        }
        loader.file_access = FileAccess::Multi;
        if loader.requests.is_none() {
            loader.split = WorkerSplit::Samples;
        }
        loader.in_memory = false;
        loader.materialize = false;
        loader.verify = false;
        // The cost of a sample and the number of steps include the effects of these settings.
        loader.head = None;
        loader.library = None;
        loader.shuffle_block = None;
        loader.reread_share = 0.0;
        loader.piece_bytes = (SAMPLE_BYTES / self.reads).ceil() as u64;
        // If an entire epoch is read at the start, it is also read at the start of the simulation.
        for held in [&mut loader.held_batches, &mut loader.held_at_start] {
            if plan.train.steps_per_epoch <= u64::from(*held) + 1 {
                *held = (steps - 1).min(u64::from(*held)) as u32;
            }
        }
        loader.preprocess = scale_time(loader.preprocess, self.real_samples_per_sample);

        // Decoding is included in the client's work.
        let cost = simulation.cost;
        let delay = self.rounding_factor(simulation.cores.max(1));
        let batch_bytes = cost.bytes * simulation.plan.loader.batch_size as f64;
        // Rates for the bytes of a simulated sample.
        let scale = mean_sample_bytes(&plan) / (cost.bytes * self.real_samples_per_sample);
        let shared_scale = scale / self.real_accelerators_per_reader;
        let loader = &mut plan.loader;
        loader.client = simulation.plan.loader.client.as_ref().map(|client| ClientPlan {
            shared_bytes_per_second: client.shared_bytes_per_second.map(|rate| rate * shared_scale),
            pin_bytes_per_second: client.pin_bytes_per_second.map(|rate| rate * scale),
            per_sample_s: (cost.cpu_s + cost.client_s) * self.real_samples_per_sample * delay,
            receive_per_batch_s: client.receive_s(batch_bytes).iter().sum::<f64>() * delay,
            receive_wait_share: client.receive_wait_share,
            start_per_epoch_s: client.start_per_epoch_s * delay,
            ..ClientPlan::default()
        });

        let train = &mut plan.train;
        train.epochs = 1;
        train.steps_per_epoch = steps;
        train.total_steps = None;
        plan
    }

    /// The simulated storage. Its latencies and rates account for the real samples that a simulated sample represents.
    fn storage(&self, plan: &Plan, simulation: Simulation) -> SimulatedStorage {
        let cost = simulation.cost;
        let model = simulation.model;
        let samples = self.real_samples_per_sample;
        let sample_bytes = mean_sample_bytes(plan);
        let rate = |sample_s: f64| (sample_s > 0.0).then(|| sample_bytes / sample_s);
        let real_reads_per_read = self.real_reads_per_read(cost);
        let stream_s = model.stream_bytes_per_second.map_or(0.0, |rate| cost.bytes / rate)
            * samples
            / self.reads;
        let delay = model.concurrency.map_or(1.0, |slots| self.rounding_factor(slots));
        let latency_s = (real_reads_per_read * model.latency_s + stream_s) * delay;
        let latency_spread = model.latency_spread / real_reads_per_read.max(1.0).sqrt();
        let bytes_s = model.bytes_per_second.map_or(0.0, |rate| cost.bytes / rate);
        let shared_s =
            (bytes_s + cost.reads * model.request_s) * samples * self.real_accelerators_per_reader;
        let cores = simulation.cores.max(1);
        SimulatedStorage {
            bytes_per_second: rate(shared_s),
            latency: random_time(latency_s, latency_spread),
            concurrency: model.concurrency.map(|slots| self.scale_down(slots) as u32),
            open: constant(cost.opens * samples * self.samples_per_request as f64 * model.open_s),
            decode_bytes_per_second: rate(cost.cpu_s * samples * self.rounding_factor(cores)),
            cores: Some(self.scale_down(cores) as u32),
        }
    }

    /// Number of real reads that a simulated read represents.
    fn real_reads_per_read(&self, cost: &SampleCost) -> f64 {
        cost.reads * self.real_samples_per_sample / self.reads
    }

    /// Scales a real number of cores or concurrent reads to the simulation; at least one.
    fn scale_down(&self, number: u32) -> f64 {
        (f64::from(number) / self.real_accelerators_per_reader).round().max(1.0)
    }

    /// The factor by which work takes longer, to compensate if [`Self::scale_down`] rounded up.
    fn rounding_factor(&self, number: u32) -> f64 {
        (self.scale_down(number) * self.real_accelerators_per_reader / f64::from(number)).max(1.0)
    }
}

fn constant(mean: f64) -> TimeSpec {
    TimeSpec::Constant { mean }
}

/// Random times with this mean and coefficient of variation; constant if the variation is small.
fn random_time(mean_s: f64, spread: f64) -> TimeSpec {
    if mean_s <= 0.0 || spread < 0.05 {
        return constant(mean_s);
    }
    TimeSpec::Gamma { shape: spread.powi(-2), scale: mean_s * spread * spread }
}

/// Multiplies a time by a factor. A random time becomes constant.
pub(super) fn scale_time(spec: TimeSpec, factor: f64) -> TimeSpec {
    if factor == 1.0 || spec == TimeSpec::None { spec } else { constant(spec.mean_s() * factor) }
}

/// Mean steps, compute time and length of an epoch over the accelerators.
pub(super) fn mean_times(epoch: &EpochRecord) -> EpochTimes {
    let accelerators = epoch.accelerators.len().max(1) as f64;
    let blocks = || {
        let blocks = epoch.accelerators.iter().flat_map(|accelerator| &accelerator.blocks);
        blocks.filter(|block| block.steps() > 0)
    };
    let mean_s = |ns: u64| ns as f64 / 1e9 / accelerators;
    EpochTimes {
        steps: blocks().map(|block| block.steps()).sum::<usize>() as f64 / accelerators,
        compute_s: mean_s(blocks().flat_map(|block| &block.compute_ns).sum()),
        length_s: mean_s(blocks().map(|block| block.end_ns.saturating_sub(block.start_ns)).sum()),
    }
}

/// Mean payload of a training sample.
pub(super) fn mean_sample_bytes(plan: &Plan) -> f64 {
    let layout = Layout::new(&plan.dataset);
    let sum = |measure: fn(&FileShape) -> u64| layout.sum(layout.files_train(), measure) as f64;
    sum(FileShape::payload_bytes) / sum(|shape| shape.samples).max(1.0)
}
