//! The pipeline of a record: the time of a sample in each stage, the number of requests in flight, and the storage models that explain
//! these figures, with the error of each model.
//!
//! Long because the costs of a sample and the error of a model use the same figures of the record.

use super::miniature::{EpochTimes, SimulatedRun, Simulation, mean_sample_bytes, mean_times};
use super::model::{DeviceRequests, DeviceTraffic, SampleCost, StorageModel};
use super::shared_files::SampleWork;
use super::storage::Reads;
use super::{NotPredictable, Prediction, miniature};
use feedrate_measure::derived::Derived;
use feedrate_measure::metric::{AU_ALL_STEPS, AU_SUSTAINED, Metric, sustained_needs_steps};
use feedrate_measure::noise::Noise;
use feedrate_measure::record::Record;
use feedrate_measure::supply::deciding_metric;
use feedrate_measure::verdict::{self, Bound};
use feedrate_spec::plan::{FileAccess, LoaderPlan, Plan};
use feedrate_spec::workload::TimeSpec;
use std::cell::OnceCell;

/// The pipeline of a record: mean times by stage, requests in flight, and the storage models that explain these figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// Number of logical CPUs of all machines.
    pub(super) cores: u32,
    /// Compute time of a step.
    compute_s: f64,
    /// Bytes read per sample, headers included.
    sample_bytes: f64,
    opens_per_sample: f64,
    reads_per_sample: f64,
    /// Mean size of a read.
    request_bytes: f64,
    /// Time of an open, including the query of the length and the close; `None` if nothing was opened.
    open_s: Option<f64>,
    /// Time of a read, including waits in the storage; `None` if nothing was read.
    read_s: Option<f64>,
    /// Time to decode, check and deliver a sample.
    decode_s: f64,
    /// Processor time per sample for all purposes; `None` if unknown.
    cpu_s: Option<f64>,
    /// Mean number of reads in flight.
    pub(super) requests_in_flight: f64,
    /// Length of all epochs together.
    pub(super) length_s: f64,
    /// The epochs of the record that have steps.
    pub(super) epochs: Vec<EpochTimes>,
    /// A step of the record's steady state; `None` if `au_sustained` could not be measured.
    steady: Option<EpochTimes>,
    /// The storage models that explain the record, best first.
    pub(crate) storage: Vec<StorageModel>,
    /// Whether reads waited for an emulated limit or delay.
    pub(super) is_emulated: bool,
    /// Opens, reads and bytes per sample as [`SampleWork::count`] counts them for the plan of the record.
    work: OnceCell<Option<SampleWork>>,
    /// Whether memory served the samples, so that the record shows nothing about the storage.
    pub(super) is_cached: bool,
    /// Interval between two requests at the device's request limit; 0 if the machine reported no limit.
    pub(super) limited_request_s: f64,
    /// Whether reads wait for a request limit of the device and the page cache chooses the requests.
    is_limited_by_cache_requests: bool,
    /// Processor time per sample of a worker's own work; `None` if unknown.
    worker_cpu_s: Option<f64>,
    /// Processor time per sample of the emulated client.
    client_cpu_s: f64,
    /// Whether the run itself uses most of the processor time.
    uses_most_cpu: bool,
    /// The plan of the record.
    plan: Plan,
    /// The fitted models, in the order of `storage`.
    pub(super) models: Vec<FittedModel>,
}

/// A storage model with its error.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FittedModel {
    /// The storage without the part that the plan emulates.
    pub(super) storage: StorageModel,
    /// The error in the times of entire epochs.
    residual: Residual,
    /// The error in the steady state; `None` if it is unknown for the record.
    steady_residual: Option<Residual>,
}

/// A simulated run in terms of a metric of utilisation, corrected by the error of its model.
pub(super) struct CorrectedRun {
    pub(super) metric: &'static Metric,
    pub(super) epochs: Vec<EpochTimes>,
    /// The difference between record and simulation, in points of utilisation.
    pub(super) missed_percent: f64,
    /// The utilisation of the record.
    pub(super) recorded_percent: f64,
}

/// Whether all processes read together, or one accelerator reads and distributes samples to other accelerators.
fn has_collective_reads(plan: &Plan) -> bool {
    plan.loader.file_access == FileAccess::Mpio || plan.loader.is_broadcast()
}

/// The limits of a device.
#[derive(Default)]
struct DeviceLimits {
    model: StorageModel,
    reached: ReachedLimit,
}

/// The limit that reads waited for.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ReachedLimit {
    #[default]
    None,
    Bytes,
    Requests,
}

/// The difference between a record and its simulation, which corrects predictions.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Residual {
    /// Ratio of the waits in the record to the simulated waits.
    stall_ratio: f64,
    /// Additional time per step. It is used instead of the ratio if there are hardly any simulated waits.
    step_s: f64,
    /// Difference of the utilisations in points.
    missed_percent: f64,
}

/// Ratio of simulated waits to compute time above which waits are corrected by a ratio instead of a difference.
const WAITS_SHARE: f64 = 0.25;

/// Minimum number of steps of an accelerator, over all epochs, from which a model is fitted.
const STEPS_MIN: f64 = 16.0;
/// Share of a limit above which reads count as waiting for it.
const REACHED_SHARE: f64 = 0.8;
/// Share of the available processor time above which the run itself limits its rate.
const OWN_CPU_SHARE_MIN: f64 = 0.8;

impl Pipeline {
    /// Fits the pipeline of a record.
    ///
    /// # Errors
    /// Nothing can be predicted from the record.
    pub fn new(record: &Record) -> Result<Self, NotPredictable> {
        Pipeline::from_derived(&Derived::new(record))
    }

    /// Fits the pipeline of a record whose metrics are known.
    pub(crate) fn from_derived(derived: &Derived) -> Result<Self, NotPredictable> {
        let epochs = trained_epochs(derived.record);
        let mut pipeline = Pipeline::from_counters(derived, &epochs)?;
        let bound = verdict::judge(derived, &[]).name;
        // Memory served samples faster than the client uses them, and would do so with a changed client.
        pipeline.is_cached = derived.is_memory_served();
        if pipeline.is_cached && bound != Bound::ClientBound {
            return Err(NotPredictable::ServedFromMemory);
        }
        let waited_for_cores = bound == Bound::CpuSaturated;
        let noise = waited_for_cores.then_some(Noise::BusyCores).or(Noise::in_record(derived));
        if let Some(noise) = noise {
            return Err(NotPredictable::TooNoisy { noise });
        }
        pipeline.fit(derived, &epochs)
    }

    /// Predicts the deciding utilisation of the run with an ideal client, whose samples cost only the loader's own work. If memory served the samples, it is
    /// assumed to serve them again. `None` if the record has no client.
    pub fn with_ideal_client(derived: &Derived) -> Option<Result<Prediction, NotPredictable>> {
        let mut plan = derived.record.plan.clone();
        plan.loader.client.take()?;
        let epochs = trained_epochs(derived.record);
        let pipeline = Pipeline::from_counters(derived, &epochs)
            .and_then(|counted| counted.fit(derived, &epochs));
        let metric = deciding_metric(derived).unwrap_or(&AU_ALL_STEPS);
        Some(pipeline.and_then(|pipeline| pipeline.predict_metric(&plan, &[], metric)))
    }

    /// Computes the figures that follow from the counters of the record, without storage models.
    fn from_counters(derived: &Derived, epochs: &[EpochTimes]) -> Result<Self, NotPredictable> {
        let record = derived.record;
        let plan = &record.plan;
        let io = &derived.io;
        let sum = |value: fn(&EpochTimes) -> f64| epochs.iter().map(value).sum::<f64>();
        let steps = sum(|epoch| epoch.steps);
        let compute_s = sum(|epoch| epoch.compute_s);
        let length_s = sum(|epoch| epoch.length_s);
        if steps == 0.0 || compute_s == 0.0 {
            return Err(NotPredictable::NothingTrained);
        }
        if record.watched.is_some() {
            return Err(NotPredictable::OnlyWatched);
        }
        if steps < STEPS_MIN {
            let [steps, needed] = [steps, STEPS_MIN].map(|steps| steps as u64);
            return Err(NotPredictable::TooFewSteps { steps, needed });
        }
        if io.access.samples_read == 0 || io.reads == 0 {
            return Err(NotPredictable::NotCounted);
        }
        if has_collective_reads(plan) {
            return Err(NotPredictable::CollectiveReads);
        }
        let samples = io.access.samples_read as f64;
        let mean_s = |ns: u64, count: u64| (count > 0).then(|| ns as f64 / 1e9 / count as f64);
        // A busy loop that emulates compute takes processor time that is not work, so the processor time is unknown.
        let cpu_ns = if record.compute_spins {
            None
        } else {
            derived.sum_over_epochs(|host| host.process_cpu_ns)
        };
        let cpu_s = cpu_ns.and_then(|ns| mean_s(ns, io.samples));
        let worked_s = mean_s(io.open_ns + io.read_ns + io.decode_ns, io.samples);
        let worker_cpu_s = match plan.loader.client {
            Some(_) => mean_s(io.client_own_ns, io.samples),
            // The process has other threads too, so a worker took at most the time that it worked.
            None => cpu_s.map(|cpu_s| worked_s.map_or(cpu_s, |worked_s| cpu_s.min(worked_s))),
        };
        let batch_size = plan.loader.batch_size.max(1) as f64;
        let batch_bytes = io.read_bytes as f64 / samples * batch_size;
        let [receive_cpu_s, _] = plan.loader.receive_s(batch_bytes, 0);
        let epoch_count = record.epochs.len() as f64;
        let starts_s = plan.loader.start_s() * f64::from(plan.accelerators) * epoch_count;
        let cores = record.machines().iter().map(|machine| machine.cpus).sum::<u32>().max(1);
        let available_s = length_s * f64::from(cores);
        Ok(Pipeline {
            cores,
            compute_s: compute_s / steps,
            sample_bytes: io.read_bytes as f64 / samples,
            opens_per_sample: io.opens as f64 / samples,
            reads_per_sample: io.reads as f64 / samples,
            request_bytes: io.read_bytes as f64 / io.reads as f64,
            open_s: mean_s(io.open_ns, io.opens),
            read_s: mean_s(io.read_ns, io.reads),
            decode_s: io.decode_ns as f64 / 1e9 / samples,
            cpu_s,
            requests_in_flight: io.read_ns as f64 / 1e9 / length_s,
            length_s,
            epochs: epochs.to_vec(),
            steady: derived
                .value(&AU_SUSTAINED)
                .filter(|percent| *percent > 0.0)
                .map(|percent| EpochTimes::steady_step(compute_s / steps, percent)),
            storage: Vec::new(),
            is_emulated: derived.reads_are_emulated(),
            work: OnceCell::new(),
            is_cached: false,
            limited_request_s: 0.0,
            is_limited_by_cache_requests: false,
            worker_cpu_s,
            client_cpu_s: mean_s(io.client_burnt_ns, io.samples).unwrap_or(0.0)
                + receive_cpu_s / batch_size
                + starts_s / samples,
            uses_most_cpu: cpu_ns
                .is_some_and(|ns| ns as f64 / 1e9 > OWN_CPU_SHARE_MIN * available_s),
            plan: plan.clone(),
            models: Vec::new(),
        })
    }

    /// Adds the storage models that explain the reads, with their errors.
    fn fit(mut self, derived: &Derived, epochs: &[EpochTimes]) -> Result<Self, NotPredictable> {
        let plan = self.with_compute(&self.plan);
        let cost = self.cost(&plan)?;
        let emulated = StorageModel::from_emulation(&plan.storage_of_steps());
        let open_s = self.open_s.unwrap_or_default();
        let limits = self.device_limits(derived);
        self.limited_request_s = limits.model.request_s;
        self.is_limited_by_cache_requests =
            limits.reached == ReachedLimit::Requests && !plan.storage.passes_page_cache;
        let known = if self.is_emulated { emulated } else { limits.model };
        let reads = Reads {
            io: &derived.io,
            read_s: self.read_s.unwrap_or_default(),
            bytes: self.request_bytes,
            threads: plan.readers() * plan.loader.streams(),
            known: StorageModel { open_s, ..known },
        };
        let simulation =
            Simulation { plan: &plan, cost: &cost, model: &reads.known, cores: self.cores };
        let candidates = match limits.reached {
            _ if self.is_emulated => vec![reads.fit_remainder(simulation)?],
            ReachedLimit::Bytes | ReachedLimit::Requests => vec![reads.fit_beside_limits()],
            ReachedLimit::None => reads.find_models(simulation)?,
        };
        for candidate in candidates {
            let mut storage = candidate.combine_with(limits.model);
            storage.open_s = open_s - emulated.open_s;
            let model = storage.combine_with(emulated);
            let simulated = Simulation { model: &model, ..simulation }.run()?;
            let steady = self.steady.zip(simulated.steady);
            self.models.push(FittedModel {
                storage,
                residual: Residual::new(epochs, &simulated.epochs),
                steady_residual: steady
                    .map(|(recorded, simulated)| Residual::new(&[recorded], &[simulated])),
            });
            self.storage.push(model);
        }
        Ok(self)
    }

    /// The limits that the machine reports for the device, and the limit that reads waited for.
    fn device_limits(&self, derived: &Derived) -> DeviceLimits {
        let record = derived.record;
        let io = &derived.io;
        let mount = record.system.data_mount.as_ref();
        // A limit of 0 cannot be correct, since the run read something.
        let is_possible = |limit: Option<u64>| limit != Some(0);
        let reported = mount.and_then(|mount| mount.read_limits).filter(|limits| {
            is_possible(limits.bytes_per_second) && is_possible(limits.requests_per_second)
        });
        let device_bytes = derived.sum_over_epochs(|host| host.process_device_read_bytes);
        let Some((limits, device_bytes)) = reported.zip(device_bytes) else {
            return DeviceLimits::default();
        };
        if self.is_emulated || device_bytes == 0 {
            return DeviceLimits::default();
        }
        // The limits apply to each machine separately.
        let machines = record.machines().len() as f64;
        let length_s = self.length_s * machines;
        let is_direct = self.plan.storage.passes_page_cache;
        let request_count = if is_direct {
            io.reads as f64
        } else {
            // The device also serves other processes. The run is attributed a share of the requests in proportion to its bytes, at
            // most what the limit permits.
            let all_bytes = derived.sum_over_epochs(|host| host.device_read_bytes);
            let share = all_bytes
                .filter(|bytes| *bytes > 0)
                .map(|bytes| (device_bytes as f64 / bytes as f64).min(1.0));
            let all_requests = derived.sum_over_epochs(|host| host.device_reads);
            let permitted =
                limits.requests_per_second.map_or(f64::INFINITY, |limit| limit as f64 * length_s);
            all_requests
                .zip(share)
                .map_or(0.0, |(requests, share)| requests as f64 * share)
                .min(permitted)
        };
        let is_reached = |limit: Option<u64>, count: f64| {
            limit.is_some_and(|limit| REACHED_SHARE * limit as f64 * length_s <= count)
        };
        let reached = if is_reached(limits.bytes_per_second, device_bytes as f64) {
            ReachedLimit::Bytes
        } else if is_reached(limits.requests_per_second, request_count) {
            ReachedLimit::Requests
        } else {
            ReachedLimit::None
        };
        let per_byte = |count: f64| count / io.read_bytes as f64 / machines;
        let requests = if is_direct {
            DeviceRequests::PerRead(1.0 / machines)
        } else {
            DeviceRequests::PerByte(per_byte(request_count))
        };
        let traffic = DeviceTraffic { bytes_per_byte: per_byte(device_bytes as f64), requests };
        DeviceLimits { model: StorageModel::from_limits(&limits, &traffic), reached }
    }

    /// The cost of a sample of `plan`, derived from the samples of the record.
    pub(super) fn cost(&self, plan: &Plan) -> Result<SampleCost, NotPredictable> {
        let cost = self.cost_without_client(plan)?;
        let Some(client) = &plan.loader.client else { return Ok(cost) };
        let batch_size = plan.loader.batch_size.max(1) as f64;
        let configured_s = client.worker_s(1.0, 1.0 / batch_size, cost.bytes);
        let worker_s = self.worker_cpu_s.unwrap_or(0.0) * cost.bytes / self.sample_bytes;
        let client_s = (configured_s - worker_s.max(cost.cpu_s)).max(0.0);
        Ok(SampleCost { client_s, ..cost })
    }

    /// Processor time of a sample of `plan` for all purposes. Unknown times count as 0.
    pub(super) fn cpu_per_sample_s(&self, plan: &Plan, cost: &SampleCost) -> f64 {
        let batch_size = plan.loader.batch_size.max(1) as f64;
        let [receive_s, _] = plan.loader.receive_s(cost.bytes * batch_size, 0);
        self.cpu_without_client_s().unwrap_or(0.0) + cost.client_s + receive_s / batch_size
    }

    /// Processor time of a sample without the client's work; `None` if unknown.
    fn cpu_without_client_s(&self) -> Option<f64> {
        self.cpu_s.map(|cpu_s| (cpu_s - self.client_cpu_s).max(0.0))
    }

    fn cost_without_client(&self, plan: &Plan) -> Result<SampleCost, NotPredictable> {
        let recorded = &self.plan;
        self.check_predictable(plan)?;
        let decode_s = (self.decode_s - recorded.loader.preprocess.mean_s()).max(0.0);
        // Workers that waited for a core took longer than the processor time they used.
        let processor_s = match recorded.loader.client {
            Some(_) => self.worker_cpu_s,
            None if self.uses_most_cpu => self.cpu_without_client_s(),
            None => None,
        };
        let cpu_s = processor_s.unwrap_or(decode_s).min(decode_s);
        let growth = mean_sample_bytes(plan) / mean_sample_bytes(recorded).max(1.0);
        if plan.loader.requests.is_some() {
            // Each file or row group is opened and read once, whichever worker does it.
            return Ok(SampleCost {
                opens: self.opens_per_sample,
                reads: self.reads_per_sample,
                bytes: self.sample_bytes * growth,
                cpu_s: cpu_s * growth,
                client_s: 0.0,
            });
        }
        if has_several_samples_per_file(recorded, plan) && !reads_the_same(recorded, plan) {
            let recorded_work = *self.work.get_or_init(|| SampleWork::count(recorded));
            let work = recorded_work.zip(SampleWork::count(plan));
            let (before, after) = work.ok_or(NotPredictable::OtherFiles)?;
            return Ok(SampleCost {
                opens: self.opens_per_sample * after.opens / before.opens,
                reads: self.reads_per_sample * after.reads / before.reads,
                bytes: self.sample_bytes * after.bytes / before.bytes,
                cpu_s: cpu_s * after.bytes / before.bytes,
                client_s: 0.0,
            });
        }
        let bytes = self.sample_bytes * growth;
        // The number of requests for the payload changes; the number of requests for headers stays.
        let requests = |bytes: f64, plan: &Plan| {
            let loader = &plan.loader;
            loader.payload_reads(bytes) + loader.opening_reads(bytes) as f64 * self.opens_per_sample
        };
        let reads =
            self.reads_per_sample - requests(self.sample_bytes, recorded) + requests(bytes, plan);
        Ok(SampleCost {
            opens: self.opens_per_sample,
            reads: reads.max(self.opens_per_sample),
            bytes,
            cpu_s: cpu_s * growth,
            client_s: 0.0,
        })
    }

    /// Checks that the reads of `plan` can be predicted from the reads of the record.
    fn check_predictable(&self, plan: &Plan) -> Result<(), NotPredictable> {
        let recorded = &self.plan;
        let unit = |plan: &Plan| plan.loader.requests.map(|requests| requests.unit);
        let has_other_files = recorded.dataset.format != plan.dataset.format
            // A whole request is read differently, and is not decoded.
            || unit(recorded) != unit(plan)
            || recorded.dataset.encoding != plan.dataset.encoding
            // A staged copy of the dataset is on other storage, whose speed is unknown.
            || recorded.stage != plan.stage
            || recorded.loader.head != plan.loader.head;
        if has_other_files {
            return Err(NotPredictable::OtherFiles);
        }
        // Memory need not serve other files.
        let has_other_storage =
            recorded.dataset != plan.dataset || recorded.storage != plan.storage;
        if self.is_cached && has_other_storage {
            return Err(NotPredictable::ServedFromMemory);
        }
        // Memory may serve samples that are read again.
        if !self.is_emulated && recorded.loader.reread_share != plan.loader.reread_share {
            return Err(NotPredictable::OtherOrder);
        }
        let order = |plan: &Plan| (plan.loader.shuffles_samples(), plan.loader.shuffle_block);
        if has_several_samples_per_file(recorded, plan) && order(recorded) != order(plan) {
            return Err(NotPredictable::OtherOrder);
        }
        // It is unknown which requests the page cache would make for reads of another size.
        let has_other_requests = recorded.loader.piece_bytes != plan.loader.piece_bytes
            || recorded.loader.library != plan.loader.library;
        if self.is_limited_by_cache_requests && has_other_requests {
            return Err(NotPredictable::OtherFiles);
        }
        // The speed of another I/O engine is unknown.
        if !self.is_emulated && recorded.storage.engine != plan.storage.engine {
            return Err(NotPredictable::OtherFiles);
        }
        if has_collective_reads(plan) {
            return Err(NotPredictable::CollectiveReads);
        }
        Ok(())
    }

    /// The plan, with the compute time of the record if the plan does not define one.
    pub(super) fn with_compute(&self, plan: &Plan) -> Plan {
        let mut with_compute = plan.clone();
        let train = &mut with_compute.train;
        if train.compute.mean_s() == 0.0 || train.on_devices.is_some() {
            train.compute = TimeSpec::Constant { mean: self.compute_s };
        }
        with_compute
    }
}

impl FittedModel {
    /// Corrects a simulated run of `plan`. A sustained utilisation that the run cannot measure is replaced by that over all steps, as in
    /// answers.
    pub(super) fn correct(
        &self,
        pipeline: &Pipeline,
        simulated: &SimulatedRun,
        plan: &Plan,
        metric: &'static Metric,
    ) -> CorrectedRun {
        // The steady state of the first epoch says nothing about later epochs without reads.
        let is_sustained = metric.id == AU_SUSTAINED.id
            && !plan.loader.in_memory
            && sustained_needs_steps(plan) <= plan.train.steps_per_epoch;
        let steady = pipeline.steady.zip(simulated.steady).zip(self.steady_residual);
        let corrected =
            |metric, residual: Residual, recorded: &[_], simulated: &[_]| CorrectedRun {
                metric,
                epochs: simulated.iter().map(|epoch| residual.correct(epoch)).collect(),
                missed_percent: residual.missed_percent,
                recorded_percent: miniature::au_percent(recorded),
            };
        match steady.filter(|_| is_sustained) {
            Some(((recorded, step), residual)) => {
                corrected(&AU_SUSTAINED, residual, &[recorded], &[step])
            }
            None => corrected(&AU_ALL_STEPS, self.residual, &pipeline.epochs, &simulated.epochs),
        }
    }
}

/// The times of the epochs of a record that have steps.
fn trained_epochs(record: &Record) -> Vec<EpochTimes> {
    record.epochs.iter().map(mean_times).filter(|epoch| epoch.steps > 0.0).collect()
}

/// Whether the files of at least one of two plans hold several samples.
fn has_several_samples_per_file(a: &Plan, b: &Plan) -> bool {
    a.dataset.samples_per_file.max(b.dataset.samples_per_file) > 1
}

/// Whether two plans make the same number of requests for their samples. Their clients and seeds may differ, and also their numbers of workers
/// if each file is read by one worker.
fn reads_the_same(recorded: &Plan, plan: &Plan) -> bool {
    let mut loader = LoaderPlan {
        client: plan.loader.client.clone(),
        order_seed: plan.loader.order_seed,
        ..recorded.loader.clone()
    };
    if reads_files_by_one_worker(recorded) && reads_files_by_one_worker(plan) {
        let LoaderPlan { batch_size, workers, prefetch_size, batches_in_flight, .. } = plan.loader;
        let LoaderPlan { interleaved_files, decode_threads, .. } = plan.loader;
        let LoaderPlan { held_batches, held_at_start, .. } = plan.loader;
        loader = LoaderPlan {
            batch_size,
            workers,
            prefetch_size,
            batches_in_flight,
            interleaved_files,
            decode_threads,
            held_batches,
            held_at_start,
            ..loader
        };
    }
    recorded.dataset == plan.dataset
        && loader == plan.loader
        && recorded.accelerators == plan.accelerators
}

/// Whether each file of an accelerator is read by one worker, in the order of its samples.
fn reads_files_by_one_worker(plan: &Plan) -> bool {
    let loader = &plan.loader;
    loader.interleaved_files > 1 || loader.workers <= 1 && !loader.shuffles_samples()
}

impl Residual {
    fn new(recorded: &[EpochTimes], simulated: &[EpochTimes]) -> Self {
        let stall_s = |epochs: &[EpochTimes]| {
            epochs.iter().map(|epoch| epoch.length_s - epoch.compute_s).sum::<f64>()
        };
        let compute_s: f64 = simulated.iter().map(|epoch| epoch.compute_s).sum();
        let steps: f64 = simulated.iter().map(|epoch| epoch.steps).sum();
        let recorded_s = stall_s(recorded);
        let simulated_s = stall_s(simulated);
        let has_waits = simulated_s > WAITS_SHARE * compute_s;
        Residual {
            stall_ratio: if has_waits { recorded_s / simulated_s } else { 1.0 },
            step_s: if has_waits { 0.0 } else { (recorded_s - simulated_s) / steps },
            missed_percent: miniature::au_percent(recorded) - miniature::au_percent(simulated),
        }
    }

    /// Corrects a simulated epoch.
    fn correct(&self, epoch: &EpochTimes) -> EpochTimes {
        let stall_s =
            (epoch.length_s - epoch.compute_s) * self.stall_ratio + self.step_s * epoch.steps;
        EpochTimes { length_s: epoch.compute_s + stall_s.max(0.0), ..*epoch }
    }
}
