//! Runs a plan in virtual time on a modelled storage: few steps of few samples, from which the whole run follows.
//!
//! Many samples are read as one that takes as long as they: in a queue that serves one after another the sum is the same.

use super::NotPredictable;
use super::model::{SampleCost, StorageModel};
use feedrate_engine::job::ReadJob;
use feedrate_engine::loader;
use feedrate_engine::simulated::{SimulatedDriver, SimulatedStorage};
use feedrate_measure::histogram::Histogram;
use feedrate_measure::metric;
use feedrate_measure::record::{EpochRecord, Record};
use feedrate_measure::summary::Summary;
use feedrate_measure::verdict::Bound;
use feedrate_spec::plan::layout::Layout;
use feedrate_spec::plan::{ClientPlan, DatasetPlan, FileAccess, Plan, WorkerSplit};
use feedrate_spec::shape::{Element, FileShape};
use feedrate_spec::workload::TimeSpec;

/// Samples that are simulated, about: more take longer and tell no more.
const SAMPLES: u64 = 3000;
/// Steps of the shorter of two runs, at least: their difference is what a step takes.
const STEPS_MIN: u64 = 12;
/// Bytes of a simulated sample: the model's rates follow them.
const SAMPLE_BYTES: f64 = 1e6;
/// Accelerators that are simulated, at most: they stand for more of them on a storage as much larger.
const READERS_MAX: u32 = 32;
/// Reads of a simulated sample, at most.
const READS_MAX: f64 = 8.0;

/// An epoch as it would be, in the mean over the accelerators.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct EpochTimes {
    pub(super) steps: f64,
    pub(super) compute_s: f64,
    pub(super) length_s: f64,
}

/// A run as it would be.
#[derive(Debug)]
pub(super) struct Simulated {
    /// Each epoch.
    pub(super) epochs: Vec<EpochTimes>,
    /// Main wait of the first.
    pub(super) bound: Bound,
    /// Read calls of the first epoch: as many as were simulated.
    pub(super) read_latency: Histogram,
    /// A read, in the mean.
    pub(super) read_s: f64,
}

/// A plan, its costs, and what stands for its storage.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) plan: &'a Plan,
    pub(super) cost: &'a SampleCost,
    pub(super) model: &'a StorageModel,
    pub(super) cores: u32,
}

impl Simulated {
    /// `au_all_steps` of the run.
    pub(super) fn au_percent(&self) -> f64 {
        au_percent(&self.epochs)
    }
}

/// Mean over the epochs.
pub(super) fn au_percent(epochs: &[EpochTimes]) -> f64 {
    let each: Vec<f64> = epochs.iter().map(|one| 100.0 * one.compute_s / one.length_s).collect();
    metric::mean(&each).unwrap_or(0.0)
}

impl Scene<'_> {
    /// All epochs of the plan. Those after the first are alike; the last may be shorter.
    pub(super) fn run(self) -> Result<Simulated, NotPredictable> {
        let (train, loader) = (&self.plan.train, &self.plan.loader);
        let (first, simulated) = self.epoch_of(self.plan)?;
        let epochs = train.epochs_run().max(1);
        let mut later = first;
        if epochs > 1 && (loader.in_memory || loader.held_at_start != loader.held_batches) {
            let mut plan = self.plan.clone();
            plan.loader.held_at_start = loader.held_batches;
            let nothing = StorageModel::default();
            let model = if loader.in_memory { &nothing } else { self.model };
            let cost = SampleCost {
                cpu_s: if loader.in_memory { 0.0 } else { self.cost.cpu_s },
                ..*self.cost
            };
            (later, _) = Scene { plan: &plan, cost: &cost, model, ..self }.epoch_of(&plan)?;
        }
        let lengths = (1..=epochs).map(|epoch| {
            let line = if epoch == 1 { first } else { later };
            line.at(train.steps_in_epoch(epoch).max(1) as f64)
        });
        Ok(Simulated { epochs: lengths.collect(), ..simulated })
    }

    /// One epoch, of any number of steps: from a short run, and one twice as long, which is returned.
    fn epoch_of(self, plan: &Plan) -> Result<(Line, Simulated), NotPredictable> {
        let scale = Miniature::new(plan, self.cost);
        let all = plan.train.steps_per_epoch.max(1);
        if all <= 2 * scale.steps {
            let (times, simulated) = scale.run(self, all)?;
            return Ok((Line::through(times, times), simulated));
        }
        let (short, _) = scale.run(self, scale.steps)?;
        let (long, simulated) = scale.run(self, 2 * scale.steps)?;
        Ok((Line::through(short, long), simulated))
    }
}

/// The times of an epoch over its steps.
#[derive(Clone, Copy, Debug)]
struct Line {
    long: EpochTimes,
    step_compute_s: f64,
    step_length_s: f64,
}

impl Line {
    fn through(short: EpochTimes, long: EpochTimes) -> Self {
        let steps = long.steps - short.steps;
        let (less, each) =
            if steps > 0.0 { (short, steps) } else { (EpochTimes::default(), long.steps) };
        Line {
            long,
            step_compute_s: (long.compute_s - less.compute_s) / each,
            step_length_s: (long.length_s - less.length_s) / each,
        }
    }

    fn at(&self, steps: f64) -> EpochTimes {
        let more = steps - self.long.steps;
        EpochTimes {
            steps,
            compute_s: self.long.compute_s + more * self.step_compute_s,
            length_s: self.long.length_s + more * self.step_length_s,
        }
    }
}

/// How much smaller the simulated run is.
struct Miniature {
    readers: u32,
    /// Accelerators that one stands for.
    readers_each: f64,
    batch: u64,
    /// Samples that one stands for.
    samples_each: f64,
    /// Reads of what one stands for that one of its reads stands for.
    reads: f64,
    steps: u64,
}

impl Miniature {
    fn new(plan: &Plan, cost: &SampleCost) -> Self {
        let loader = &plan.loader;
        let all = plan.readers().max(1);
        let readers = all.min(READERS_MAX);
        let shared = loader.group_accelerators.max(1).min(plan.accelerators.max(1));
        let batch = loader.batch_size.max(1) * u64::from(shared);
        let workers = u64::from(loader.workers.max(1));
        let ahead = u64::from(loader.batches_in_flight);
        let steps_min = (ahead + workers).max(STEPS_MIN).min(plan.train.steps_per_epoch.max(1));
        let alone =
            loader::find(&loader.kind).is_some_and(|kind| kind.claims_per_batch(batch) == 1);
        // Workers that share a batch find as much to do as they have.
        let wanted = if alone { 1 } else { 2 * workers };
        let room = SAMPLES / (3 * steps_min * u64::from(readers)).max(1);
        let simulated = batch.min(room.max(wanted));
        let steps = (SAMPLES / (3 * simulated * u64::from(readers)).max(1)).max(steps_min);
        let samples_each = batch as f64 / simulated as f64;
        let reads = (cost.reads * samples_each).round().clamp(1.0, READS_MAX);
        Miniature {
            readers,
            readers_each: f64::from(all) / f64::from(readers),
            batch: simulated,
            samples_each,
            reads,
            steps: steps.next_multiple_of(workers),
        }
    }

    fn run(&self, scene: Scene, steps: u64) -> Result<(EpochTimes, Simulated), NotPredictable> {
        let plan = self.plan(scene, steps);
        let job = ReadJob::without_files(&plan).map_err(|_| NotPredictable::OtherFiles)?;
        let mut driver = SimulatedDriver::new(job, self.storage(&plan, scene));
        let accelerators = driver.epoch(steps).map_err(|_| NotPredictable::OtherFiles)?;
        let end_ns =
            accelerators.iter().flat_map(|one| &one.blocks).map(|block| block.end_ns).max();
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
        let reads = scene.cost.reads * self.samples_each * io.samples as f64;
        let simulated = Simulated {
            epochs: vec![times],
            bound: Summary::new(&record).verdict.name,
            read_s: io.read_ns as f64 / 1e9 / reads.max(1.0),
            read_latency: io.read_latency,
        };
        Ok((times, simulated))
    }

    /// The plan that is simulated.
    fn plan(&self, scene: Scene, steps: u64) -> Plan {
        let mut plan = scene.plan.clone();
        let (dataset, loader, train) = (&mut plan.dataset, &mut plan.loader, &mut plan.train);
        let spread =
            dataset.record_stdev_bytes / dataset.record_bytes.max(1.0) / self.samples_each.sqrt();
        let is_drawn = dataset.record_dims.is_empty() && spread > 0.0;
        *dataset = DatasetPlan {
            files_train: steps * self.batch * u64::from(self.readers),
            samples_per_file: 1,
            record_bytes: SAMPLE_BYTES,
            record_stdev_bytes: if is_drawn { spread * SAMPLE_BYTES } else { 0.0 },
            element: Element::Uint8,
            ..DatasetPlan::default()
        };
        plan.accelerators = self.readers;
        loader.batch_size = self.batch;
        (loader.group_accelerators, loader.interleaved_files) = (1, 1);
        (loader.file_access, loader.split) = (FileAccess::Multi, WorkerSplit::Samples);
        (loader.in_memory, loader.materialize, loader.verify) = (false, false, false);
        // Counted in what a sample costs, and in the steps.
        (loader.head, loader.shuffle_block, loader.reread_share) = (None, None, 0.0);
        loader.piece_bytes = (SAMPLE_BYTES / self.reads).ceil() as u64;
        // Where a whole epoch is read at start, so it is here.
        for held in [&mut loader.held_batches, &mut loader.held_at_start] {
            if train.steps_per_epoch <= u64::from(*held) + 1 {
                *held = (steps - 1).min(u64::from(*held)) as u32;
            }
        }
        loader.preprocess = scaled(loader.preprocess, self.samples_each);
        // What decoding takes is part of the client's work.
        let (cost, longer) = (scene.cost, self.longer(scene.cores.max(1)));
        let sample_s = (cost.cpu_s + cost.client_s) * self.samples_each * longer;
        let batch_bytes = cost.bytes * scene.plan.loader.batch_size as f64;
        loader.client = scene.plan.loader.client.as_ref().map(|client| ClientPlan {
            per_sample_s: sample_s,
            receive_per_batch_s: client.receive_s(batch_bytes).iter().sum::<f64>() * longer,
            receive_wait_share: client.receive_wait_share,
            start_per_epoch_s: client.start_per_epoch_s * longer,
            ..ClientPlan::default()
        });
        (train.epochs, train.steps_per_epoch, train.total_steps) = (1, steps, None);
        (plan.checkpoint, plan.evaluation) = (None, None);
        plan
    }

    /// The modelled storage: latencies and rates for what one sample stands for.
    fn storage(&self, plan: &Plan, scene: Scene) -> SimulatedStorage {
        let (cost, model) = (scene.cost, scene.model);
        let bytes = mean_sample_bytes(plan);
        let rate = |takes_s: f64| (takes_s > 0.0).then(|| bytes / takes_s);
        let samples = self.samples_each;
        let together = cost.reads * samples / self.reads;
        let stream_s = model.stream_bytes_per_second.map_or(0.0, |rate| cost.bytes / rate)
            * samples
            / self.reads;
        let latency_s = together * model.latency_s + stream_s;
        let each = self.readers_each;
        let (cores, places) = (scene.cores.max(1), model.concurrency);
        let latency_s = latency_s * places.map_or(1.0, |places| self.longer(places));
        let bytes_s = model.bytes_per_second.map_or(0.0, |rate| cost.bytes / rate);
        SimulatedStorage {
            bytes_per_second: rate((bytes_s + cost.reads * model.request_s) * samples * each),
            latency: drawn(latency_s, model.latency_spread / together.max(1.0).sqrt()),
            concurrency: places.map(|places| self.shared(places) as u32),
            open: constant(cost.opens * samples * model.open_s),
            decode_bytes_per_second: rate(cost.cpu_s * samples * self.longer(cores)),
            cores: Some(self.shared(cores) as u32),
        }
    }

    /// As many as stand for so many that all readers share.
    fn shared(&self, number: u32) -> f64 {
        (f64::from(number) / self.readers_each).round().max(1.0)
    }

    /// Fewer than one of what is shared takes as much longer.
    fn longer(&self, number: u32) -> f64 {
        (self.shared(number) * self.readers_each / f64::from(number)).max(1.0)
    }
}

fn constant(mean: f64) -> TimeSpec {
    TimeSpec::Constant { mean }
}

/// Lengths of a mean, with a coefficient of variation.
fn drawn(mean_s: f64, spread: f64) -> TimeSpec {
    if mean_s <= 0.0 || spread < 0.05 {
        return constant(mean_s);
    }
    TimeSpec::Gamma { shape: spread.powi(-2), scale: mean_s * spread * spread }
}

/// Each so many times as long.
pub(super) fn scaled(spec: TimeSpec, times: f64) -> TimeSpec {
    if times == 1.0 || spec == TimeSpec::None { spec } else { constant(spec.mean_s() * times) }
}

/// Compute and length in the mean over accelerators.
pub(super) fn mean_times(epoch: &EpochRecord) -> EpochTimes {
    let accelerators = epoch.accelerators.len().max(1) as f64;
    let blocks =
        || epoch.accelerators.iter().flat_map(|one| &one.blocks).filter(|block| block.steps() > 0);
    let seconds = |ns: u64| ns as f64 / 1e9 / accelerators;
    EpochTimes {
        steps: blocks().map(|block| block.steps()).sum::<usize>() as f64 / accelerators,
        compute_s: seconds(blocks().flat_map(|block| &block.compute_ns).sum()),
        length_s: seconds(blocks().map(|block| block.end_ns.saturating_sub(block.start_ns)).sum()),
    }
}

/// Payload of a training sample, in the mean.
pub(super) fn mean_sample_bytes(plan: &Plan) -> f64 {
    let layout = Layout::new(&plan.dataset);
    let sum = |measure: fn(&FileShape) -> u64| layout.sum(layout.files_train(), measure) as f64;
    sum(FileShape::payload_bytes) / sum(|shape| shape.samples).max(1.0)
}
