//! The pipeline of a record: what a sample takes by stage, how many requests were in flight, and how far the model of it is off.

use super::miniature::{EpochTimes, Scene, Simulated, mean_sample_bytes, mean_times};
use super::model::{AtDevice, DeviceRequests, SampleCost, StorageModel};
use super::shared_files::SampleWork;
use super::storage::Reads;
use super::{NotPredictable, Prediction, miniature};
use feedrate_measure::derived::Derived;
use feedrate_measure::record::Record;
use feedrate_spec::plan::{FileAccess, LoaderPlan, Plan};
use std::cell::OnceCell;

/// A record's pipeline: service times by stage, requests in flight, workers, and the storage that explains them.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// Logical CPUs of all machines.
    pub(super) cores: u32,
    /// A step's, as it was.
    compute_s: f64,
    /// Read per sample, headers and all.
    sample_bytes: f64,
    /// Files opened per sample.
    opens_per_sample: f64,
    /// Reads per sample.
    reads_per_sample: f64,
    /// Mean bytes of a read.
    request_bytes: f64,
    /// An open, with length and close; `None` where nothing was opened.
    open_s: Option<f64>,
    /// A read, waits in the storage included; `None` where nothing was read.
    read_s: Option<f64>,
    /// Decoding, checking and handing over of a sample.
    decode_s: f64,
    /// CPU time of a sample, whatever it was spent on; `None` where that is not known.
    cpu_s: Option<f64>,
    /// Reads under way at a time, in the mean over the epochs.
    pub(super) requests_in_flight: f64,
    /// All epochs.
    pub(super) length_s: f64,
    /// `au_all_steps`, as it was.
    pub(super) au_percent: f64,
    /// The storages that explain these times, the best supported first.
    pub(crate) storage: Vec<StorageModel>,
    /// Whether it was a throttle or delays that reads waited for.
    pub(super) is_emulated: bool,
    /// Work of the storage for its samples, counted as that of other plans is.
    work: OnceCell<Option<SampleWork>>,
    /// A read's turn where the machine told of a limit of requests; 0 is none.
    pub(super) limited_request_s: f64,
    /// Whether reads wait for a limit of requests, which the page cache makes of them.
    cache_asks: bool,
    /// Processor time of a sample that a worker takes itself; `None` where that is not known.
    own_cpu_s: Option<f64>,
    /// Processor time of a sample that the client was given beside.
    client_cpu_s: f64,
    /// Whether the cores had hardly a moment to spare.
    cores_are_busy: bool,
    /// The plan that was run.
    plan: Plan,
    /// Each model without what the plan emulates, and what its own prediction of the record lacks.
    pub(super) models: Vec<(StorageModel, Residual)>,
}

/// All processes each read, or one accelerator reads for others.
fn reads_together(plan: &Plan) -> bool {
    plan.loader.file_access == FileAccess::Mpio || plan.loader.is_broadcast()
}

/// Limits of the reads of a device.
#[derive(Default)]
struct Limits {
    model: StorageModel,
    reached: Reached,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Reached {
    #[default]
    None,
    Bytes,
    Requests,
}

/// How a record differs from what was predicted of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Residual {
    /// Waits of the record, in those predicted.
    stall_times: f64,
    /// Seconds of each step, where hardly any wait was predicted.
    step_s: f64,
    /// Points of utilisation by which the prediction was off.
    pub(super) missed_percent: f64,
}

/// From this share of the compute time on, predicted waits are compared with those of the record by their ratio.
const WAITS_SHARE: f64 = 0.25;

/// A limit is what reads wait for from this share of it on.
const REACHED_SHARE: f64 = 0.8;
/// From this share of all their time on cores are busy.
const BUSY_SHARE: f64 = 0.8;

impl Pipeline {
    /// Fit `record`.
    ///
    /// # Errors
    /// It does not tell.
    pub fn new(record: &Record) -> Result<Self, NotPredictable> {
        Pipeline::from_derived(&Derived::new(record))
    }

    /// The same of a record whose metrics are known.
    pub(crate) fn from_derived(derived: &Derived) -> Result<Self, NotPredictable> {
        let (pipeline, times) = Pipeline::counted(derived)?;
        if derived.is_memory_served() {
            return Err(NotPredictable::ServedFromMemory);
        }
        pipeline.fitted(derived, &times)
    }

    /// The run with an ideal client, whose samples cost what the loader takes for them. Where memory served them, it serves them then too.
    /// `None` where the client was ideal.
    pub fn with_ideal_client(derived: &Derived) -> Option<Result<Prediction, NotPredictable>> {
        let mut plan = derived.record.plan.clone();
        plan.loader.client.take()?;
        let predicted = Pipeline::counted(derived)
            .and_then(|of| of.0.fitted(derived, &of.1)?.predict(&plan, &[]));
        Some(predicted)
    }

    /// The figures that the record counts, and its epochs.
    fn counted(derived: &Derived) -> Result<(Self, Vec<EpochTimes>), NotPredictable> {
        let record = derived.record;
        let (plan, io) = (&record.plan, &derived.io);
        let times: Vec<EpochTimes> =
            record.epochs.iter().map(mean_times).filter(|one| one.steps > 0.0).collect();
        let sum = |value: fn(&EpochTimes) -> f64| times.iter().map(value).sum::<f64>();
        let (steps, compute_s, length_s) =
            (sum(|one| one.steps), sum(|one| one.compute_s), sum(|one| one.length_s));
        if steps == 0.0 || compute_s == 0.0 {
            return Err(NotPredictable::NothingTrained);
        }
        if record.watched.is_some() {
            return Err(NotPredictable::OnlyWatched);
        }
        if io.access.samples_read == 0 || io.reads == 0 {
            return Err(NotPredictable::NotCounted);
        }
        if reads_together(plan) {
            return Err(NotPredictable::CollectiveReads);
        }
        let samples = io.access.samples_read as f64;
        let each_s = |ns: u64, count: u64| (count > 0).then(|| ns as f64 / 1e9 / count as f64);
        // Waits that spin are no work.
        let cpu_ns = if record.compute_spins {
            None
        } else {
            derived.sum_of_host(|host| host.process_cpu_ns)
        };
        let worked_s = each_s(io.open_ns + io.read_ns + io.decode_ns, io.samples);
        let own_cpu_s = match plan.loader.client {
            Some(_) => each_s(io.client_own_ns, io.samples),
            // The process has other threads too.
            None => cpu_ns
                .and_then(|ns| each_s(ns, io.samples))
                .map(|cpu_s| worked_s.map_or(cpu_s, |worked_s| cpu_s.min(worked_s))),
        };
        let batch = plan.loader.batch_size.max(1) as f64;
        let [receive_cpu_s, _] = plan.loader.receive_s(io.read_bytes as f64 / samples * batch, 0);
        let epochs = record.epochs.len() as f64;
        let starts_s = plan.loader.start_s() * f64::from(plan.accelerators) * epochs;
        let mut pipeline = Pipeline {
            cores: record.machines().iter().map(|machine| machine.cpus).sum::<u32>().max(1),
            compute_s: compute_s / steps,
            sample_bytes: io.read_bytes as f64 / samples,
            opens_per_sample: io.opens as f64 / samples,
            reads_per_sample: io.reads as f64 / samples,
            request_bytes: io.read_bytes as f64 / io.reads as f64,
            open_s: each_s(io.open_ns, io.opens),
            read_s: each_s(io.read_ns, io.reads),
            decode_s: io.decode_ns as f64 / 1e9 / samples,
            cpu_s: cpu_ns.and_then(|ns| each_s(ns, io.samples)),
            requests_in_flight: io.read_ns as f64 / 1e9 / length_s,
            length_s,
            au_percent: miniature::au_percent(&times),
            storage: Vec::new(),
            is_emulated: derived.reads_are_emulated(),
            work: OnceCell::new(),
            limited_request_s: 0.0,
            cache_asks: false,
            own_cpu_s,
            client_cpu_s: each_s(io.client_burnt_ns, io.samples).unwrap_or(0.0)
                + receive_cpu_s / batch
                + starts_s / samples,
            cores_are_busy: false,
            plan: plan.clone(),
            models: Vec::new(),
        };
        let of_cores = length_s * f64::from(pipeline.cores);
        pipeline.cores_are_busy = cpu_ns.is_some_and(|ns| ns as f64 / 1e9 > BUSY_SHARE * of_cores);
        Ok((pipeline, times))
    }

    /// Find what explains the reads, and how well.
    fn fitted(mut self, derived: &Derived, times: &[EpochTimes]) -> Result<Self, NotPredictable> {
        let plan = self.with_compute(&self.plan);
        let cost = self.cost(&plan)?;
        let emulated = StorageModel::emulated(&plan.storage_of_steps());
        let open_s = self.open_s.unwrap_or_default();
        let limits = self.limits(derived);
        self.limited_request_s = limits.model.request_s;
        self.cache_asks = limits.reached == Reached::Requests && !plan.storage.passes_page_cache;
        let reads = Reads {
            io: &derived.io,
            read_s: self.read_s.unwrap_or_default(),
            bytes: self.request_bytes,
            threads: plan.readers() * plan.loader.workers.max(1),
            known: if self.is_emulated {
                StorageModel { open_s, ..emulated }
            } else {
                StorageModel { open_s, ..limits.model }
            },
        };
        let scene = Scene { plan: &plan, cost: &cost, model: &reads.known, cores: self.cores };
        let rests = match limits.reached {
            _ if self.is_emulated => reads.rest(scene)?,
            Reached::Bytes | Reached::Requests => vec![reads.beside_limits()],
            Reached::None => reads.explained(scene)?,
        };
        for rest in rests {
            let mut rest = rest.behind(limits.model);
            rest.open_s = open_s - emulated.open_s;
            let model = rest.behind(emulated);
            let simulated = Scene { model: &model, ..scene }.run()?;
            self.models.push((rest, Residual::new(times, &simulated)));
        }
        self.storage = self.models.iter().map(|(rest, _)| rest.behind(emulated)).collect();
        Ok(self)
    }

    /// Limits that the machine told of the device, and whether they are what reads waited for.
    fn limits(&self, derived: &Derived) -> Limits {
        let (record, io) = (derived.record, &derived.io);
        let known = record.system.data_mount.as_ref().and_then(|mount| mount.read_limits);
        // No reads were made below a limit of 0: the record is not to be believed there.
        let is_possible = |limit: Option<u64>| limit != Some(0);
        let known = known.filter(|limits| {
            is_possible(limits.bytes_per_second) && is_possible(limits.requests_per_second)
        });
        let device_bytes = derived.sum_of_host(|host| host.process_device_read_bytes);
        let Some((limits, device_bytes)) = known.zip(device_bytes) else {
            return Limits::default();
        };
        if self.is_emulated || device_bytes == 0 {
            return Limits::default();
        }
        // Each machine has its own device, or its own part of one.
        let machines = record.machines().len() as f64;
        let length_s = self.length_s * machines;
        let all = derived.sum_of_host(|host| host.device_reads);
        let all_bytes = derived.sum_of_host(|host| host.device_read_bytes).filter(|all| *all > 0);
        // The device serves others too, but no more of these than the limit allows.
        let may = limits.requests_per_second.map_or(f64::INFINITY, |limit| limit as f64 * length_s);
        let share = all_bytes.map(|all_bytes| (device_bytes as f64 / all_bytes as f64).min(1.0));
        let of_cache = all.zip(share).map(|(all, share)| all as f64 * share);
        let is_direct = self.plan.storage.passes_page_cache;
        let requests = if is_direct { io.reads as f64 } else { of_cache.unwrap_or(0.0).min(may) };
        let is_reached = |limit: Option<u64>, count: f64| {
            limit.is_some_and(|limit| REACHED_SHARE * limit as f64 * length_s <= count)
        };
        let reached = match () {
            () if is_reached(limits.bytes_per_second, device_bytes as f64) => Reached::Bytes,
            () if is_reached(limits.requests_per_second, requests) => Reached::Requests,
            () => Reached::None,
        };
        let of_byte = |count: f64| count / io.read_bytes as f64 / machines;
        let requests = if is_direct {
            DeviceRequests::OfRead(1.0 / machines)
        } else {
            DeviceRequests::OfByte(of_byte(requests))
        };
        let device = AtDevice { bytes_of_byte: of_byte(device_bytes as f64), requests };
        Limits { model: StorageModel::limited(&limits, &device), reached }
    }

    /// A sample of `plan`, from those of the record.
    pub(super) fn cost(&self, plan: &Plan) -> Result<SampleCost, NotPredictable> {
        let cost = self.cost_of_files(plan)?;
        let Some(client) = &plan.loader.client else { return Ok(cost) };
        let batch = plan.loader.batch_size.max(1) as f64;
        let asked_s = client.worker_s(1.0, 1.0 / batch, cost.bytes);
        let own_s = self.own_cpu_s.unwrap_or(0.0) * cost.bytes / self.sample_bytes;
        Ok(SampleCost { client_s: (asked_s - own_s.max(cost.cpu_s)).max(0.0), ..cost })
    }

    /// Processor time of a sample of `plan`, whatever it is spent on; 0 where nothing is known.
    pub(super) fn all_cpu_s(&self, plan: &Plan, cost: &SampleCost) -> f64 {
        let batch = plan.loader.batch_size.max(1) as f64;
        let [receive_s, _] = plan.loader.receive_s(cost.bytes * batch, 0);
        self.work_s().unwrap_or(0.0) + cost.client_s + receive_s / batch
    }

    /// Processor time of a sample but for the client's, where it is known.
    fn work_s(&self) -> Option<f64> {
        self.cpu_s.map(|cpu_s| (cpu_s - self.client_cpu_s).max(0.0))
    }

    fn cost_of_files(&self, plan: &Plan) -> Result<SampleCost, NotPredictable> {
        let (was, is) = (&self.plan, plan);
        if was.dataset.format != is.dataset.format || was.dataset.encoding != is.dataset.encoding {
            return Err(NotPredictable::OtherFiles);
        }
        // Nothing is known of the storage that a copy would lie on.
        if was.stage != is.stage {
            return Err(NotPredictable::OtherFiles);
        }
        if was.loader.head != is.loader.head {
            return Err(NotPredictable::OtherFiles);
        }
        // Memory may serve what is read again.
        if !self.is_emulated && was.loader.reread_share != is.loader.reread_share {
            return Err(NotPredictable::OtherOrder);
        }
        let order = |plan: &Plan| (plan.loader.shuffles_samples(), plan.loader.shuffle_block);
        let is_shared = was.dataset.samples_per_file.max(is.dataset.samples_per_file) > 1;
        if is_shared && order(was) != order(is) {
            return Err(NotPredictable::OtherOrder);
        }
        // Who knows which requests the page cache makes of other reads?
        if self.cache_asks && was.loader.piece_bytes != is.loader.piece_bytes {
            return Err(NotPredictable::OtherFiles);
        }
        // Nothing is known of another way into the storage either.
        if !self.is_emulated && was.storage.engine != is.storage.engine {
            return Err(NotPredictable::OtherFiles);
        }
        if reads_together(is) {
            return Err(NotPredictable::CollectiveReads);
        }
        let decode_s = (self.decode_s - was.loader.preprocess.mean_s()).max(0.0);
        // Workers that waited for a core took longer than the core did.
        let of_cores_s = match was.loader.client {
            Some(_) => self.own_cpu_s,
            None if self.cores_are_busy => self.work_s(),
            None => None,
        };
        let cpu_s = of_cores_s.unwrap_or(decode_s).min(decode_s);
        let is_read_alike = was.dataset == is.dataset
            && LoaderPlan { client: is.loader.client.clone(), ..was.loader.clone() } == is.loader
            && was.accelerators == is.accelerators;
        if is_shared && !is_read_alike {
            let was = *self.work.get_or_init(|| SampleWork::counted(was));
            let work = was.zip(SampleWork::counted(is));
            let (was, is) = work.ok_or(NotPredictable::OtherFiles)?;
            return Ok(SampleCost {
                opens: self.opens_per_sample * is.opens / was.opens,
                reads: self.reads_per_sample * is.reads / was.reads,
                bytes: self.sample_bytes * is.bytes / was.bytes,
                cpu_s: cpu_s * is.bytes / was.bytes,
                client_s: 0.0,
            });
        }
        let [bytes_were, bytes] = [was, is].map(mean_sample_bytes);
        let grows = bytes / bytes_were.max(1.0);
        // Headers are read with the payload, or count as reads beside it.
        let pieces =
            |bytes: f64, plan: &Plan| (bytes / plan.loader.piece_bytes.max(1) as f64).ceil();
        let reads = self.reads_per_sample - pieces(self.sample_bytes, was)
            + pieces(self.sample_bytes * grows, is);
        Ok(SampleCost {
            opens: self.opens_per_sample,
            reads: reads.max(self.opens_per_sample),
            bytes: self.sample_bytes * grows,
            cpu_s: cpu_s * grows,
            client_s: 0.0,
        })
    }

    /// The plan, and where it does not say how long a step computes, as long as those of the record did.
    pub(super) fn with_compute(&self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        if plan.train.compute.mean_s() == 0.0 || plan.train.on_devices.is_some() {
            plan.train.compute =
                feedrate_spec::workload::TimeSpec::Constant { mean: self.compute_s };
        }
        plan
    }
}

impl Residual {
    fn new(record: &[EpochTimes], simulated: &Simulated) -> Self {
        let stall_s = |epochs: &[EpochTimes]| {
            epochs.iter().map(|one| one.length_s - one.compute_s).sum::<f64>()
        };
        let compute_s: f64 = simulated.epochs.iter().map(|one| one.compute_s).sum();
        let steps: f64 = simulated.epochs.iter().map(|one| one.steps).sum();
        let (was_s, is_s) = (stall_s(record), stall_s(&simulated.epochs));
        let waits = is_s > WAITS_SHARE * compute_s;
        Residual {
            stall_times: if waits { was_s / is_s } else { 1.0 },
            step_s: if waits { 0.0 } else { (was_s - is_s) / steps },
            missed_percent: miniature::au_percent(record) - simulated.au_percent(),
        }
    }

    /// A predicted epoch, corrected by it.
    pub(super) fn corrected(&self, epoch: &EpochTimes) -> EpochTimes {
        let stall_s =
            (epoch.length_s - epoch.compute_s) * self.stall_times + self.step_s * epoch.steps;
        EpochTimes { length_s: epoch.compute_s + stall_s.max(0.0), ..*epoch }
    }
}
