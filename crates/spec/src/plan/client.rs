//! The client: the processor time that a training job's own code needs for its samples, in addition to the time of the storage. This file
//! has the table of measured clients; `feedrate calibrate` measures them.

use super::planner::WAIT_MAX_S;
use super::{LoaderPlan, Plan};
use serde::{Deserialize, Serialize};

/// The costs of a client in seconds of one core. Costs per byte are for the bytes read from storage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientPlan {
    /// Name of the profile; `None` if the workload gives costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Time of a worker for a sample: opening, reading from the page cache, decoding.
    pub per_sample_s: f64,
    /// Time of a worker for a byte.
    pub per_byte_s: f64,
    /// Time of a worker for a complete batch.
    pub per_batch_s: f64,
    /// Rate at which a worker hands a batch over to the training process; `None` if the handover takes no time, for example because
    /// the training process reads itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover_bytes_per_second: Option<f64>,
    /// Rate that the workers of all accelerators together do not exceed; `None` if they do not slow each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_bytes_per_second: Option<f64>,
    /// Rate of the thread that pins the batches of an accelerator, one after another; `None` without this thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin_bytes_per_second: Option<f64>,
    /// Time of the training process for receiving a batch from a worker; 0 if it reads itself.
    pub receive_per_batch_s: f64,
    /// Time of the training process for receiving a byte.
    pub receive_per_byte_s: f64,
    /// Share of the two receive times that the training process spends waiting for busy workers, without using a core.
    #[serde(default)]
    pub receive_wait_share: f64,
    /// Time of the training process for starting a worker, before any worker reads; 0 if it reads itself.
    pub start_per_epoch_s: f64,
}

/// A measured client.
#[derive(Clone, Copy, Debug)]
pub struct ClientProfile {
    /// Name, such as `pytorch-npz`.
    pub name: &'static str,
    /// The costs in the order of [`ClientPlan`]'s fields.
    costs: [f64; 8],
}

/// Maximum processor time of each cost of a client over a run: about thirty years, so that 64 bits can count the nanoseconds.
const RUN_MAX_S: f64 = 1e9;

/// Returns the maximum of each cost per batch and per epoch in a run of `steps` steps of all accelerators.
pub(super) fn cost_max_s(steps: u64) -> f64 {
    WAIT_MAX_S.min(RUN_MAX_S / steps.max(1) as f64)
}

/// A cost of a client for a batch, or for the start of an epoch.
pub(super) struct ClientCost {
    /// Key of the workload.
    pub(super) key: &'static str,
    pub(super) seconds: f64,
}

/// The machine and the versions with which `feedrate calibrate` measured the profiles.
pub const MEASURED_ON: &str = "AMD EPYC, 2 cores; PyTorch 2.15, numpy 2.4, h5py 3.16, Pillow 13.0, tfrecord 1.14, Python 3.11";

/// The measured clients: plain PyTorch, with files of different formats.
pub static CLIENT_PROFILES: &[ClientProfile] = &[
    profile("pytorch-npz", [7.4e-5, 3.8e-10, 3.1e-4, 1.4e9, 1e-3, 4.2e-10, 0.67, 0.014]),
    profile("pytorch-npy", [4.2e-5, 2.3e-10, 4.1e-4, 1.4e9, 0.0, 6.1e-10, 0.56, 0.015]),
    profile("pytorch-hdf5", [2.7e-4, 3.4e-10, 6.3e-4, 1.4e9, 0.0, 7.3e-10, 0.66, 0.029]),
    profile("pytorch-jpeg", [5e-5, 1.25e-8, 5.2e-4, 1.66e8, 8.9e-4, 2.3e-9, 0.44, 0.01]),
    profile("pytorch-png", [4.4e-4, 1.73e-8, 1.0e-3, 5.2e8, 1.2e-3, 3.5e-10, 0.0, 0.075]),
    profile("pytorch-tfrecord", [1.3e-5, 2.0e-10, 1.4e-4, 2.5e9, 5e-4, 2.0e-10, 0.0, 0.036]),
];

const fn profile(name: &'static str, costs: [f64; 8]) -> ClientProfile {
    ClientProfile { name, costs }
}

impl ClientProfile {
    /// Returns the profile called `name`.
    pub fn find(name: &str) -> Option<&'static Self> {
        CLIENT_PROFILES.iter().find(|profile| profile.name == name)
    }

    /// Returns the profile that was measured with the plan's loader and format.
    pub fn find_for(plan: &Plan) -> Option<&'static Self> {
        Self::find(&Self::name_for(plan))
    }

    /// Returns the name of the profile for the plan's loader and format.
    pub(super) fn name_for(plan: &Plan) -> String {
        format!("{}-{}", plan.loader.kind, plan.dataset.format)
    }

    /// Returns the costs of the profile.
    pub fn plan(&self) -> ClientPlan {
        let [sample_s, byte_s, batch_s, handover, receive_s, receive_byte_s, wait_share, start_s] =
            self.costs;
        ClientPlan {
            name: Some(self.name.to_string()),
            per_sample_s: sample_s,
            per_byte_s: byte_s,
            per_batch_s: batch_s,
            handover_bytes_per_second: Some(handover),
            shared_bytes_per_second: None,
            pin_bytes_per_second: None,
            receive_per_batch_s: receive_s,
            receive_per_byte_s: receive_byte_s,
            receive_wait_share: wait_share,
            start_per_epoch_s: start_s,
        }
    }
}

impl ClientPlan {
    /// Returns the time of a worker for completing `batches` batches (a fraction for a part of a batch), for which `bytes` were read.
    pub fn batch_s(&self, batches: f64, bytes: f64) -> f64 {
        let handover_s = seconds_at(self.handover_bytes_per_second, bytes);
        self.per_batch_s * batches + handover_s
    }

    /// Returns the time of a worker for `samples` samples in `batches` batches, for which `bytes` were read.
    pub fn worker_s(&self, samples: f64, batches: f64, bytes: f64) -> f64 {
        self.per_sample_s * samples + self.per_byte_s * bytes + self.batch_s(batches, bytes)
    }

    /// Returns the share of a sample's `bytes` that passes the shared rate beside the work on the sample. The rest passes beside the work on
    /// its batch of `batch_size`, if the former is too short for all bytes.
    pub fn sample_share(&self, batch_size: u64, bytes: f64) -> f64 {
        let sample_s = self.per_sample_s + self.per_byte_s * bytes;
        if sample_s >= seconds_at(self.shared_bytes_per_second, bytes) {
            return 1.0;
        }
        let all_s = sample_s + self.batch_s(1.0 / batch_size.max(1) as f64, bytes);
        if all_s > 0.0 { sample_s / all_s } else { 0.0 }
    }

    /// Returns the shortest time between two batches of `bytes` of an accelerator, if each of `accelerators` accelerators gets one.
    fn batch_interval_s(&self, bytes: f64, accelerators: u32) -> f64 {
        let shared_s = seconds_at(self.shared_bytes_per_second, bytes) * f64::from(accelerators);
        shared_s.max(seconds_at(self.pin_bytes_per_second, bytes))
    }

    /// Returns the time of the training process for receiving a batch of `bytes` while all workers are busy: [computing, waiting].
    pub fn receive_s(&self, bytes: f64) -> [f64; 2] {
        let total_s = self.receive_per_batch_s + self.receive_per_byte_s * bytes;
        let wait_s = total_s * self.receive_wait_share;
        [total_s - wait_s, wait_s]
    }

    /// Returns the costs for a batch of `loader` with samples of `sample_bytes`, and for the start of an epoch.
    pub(super) fn costs(&self, loader: &LoaderPlan, sample_bytes: f64) -> [ClientCost; 9] {
        let samples = loader.batch_size as f64;
        let bytes = samples * sample_bytes;
        [
            ("client.per_sample", self.per_sample_s * samples),
            ("client.per_byte", self.per_byte_s * bytes),
            ("client.per_batch", self.per_batch_s),
            ("client.handover_bytes_per_second", self.batch_s(0.0, bytes)),
            ("client.shared_bytes_per_second", seconds_at(self.shared_bytes_per_second, bytes)),
            ("client.pin_bytes_per_second", seconds_at(self.pin_bytes_per_second, bytes)),
            ("client.receive_per_batch", self.receive_per_batch_s),
            ("client.receive_per_byte", self.receive_per_byte_s * bytes),
            ("client.start_per_epoch", self.start_per_epoch_s * f64::from(loader.workers)),
        ]
        .map(|(key, seconds)| ClientCost { key, seconds })
    }

    /// Removes the costs of communication between processes, for a training process that reads itself.
    #[must_use]
    pub(super) fn without_workers(self) -> Self {
        ClientPlan {
            handover_bytes_per_second: None,
            shared_bytes_per_second: None,
            pin_bytes_per_second: None,
            receive_per_batch_s: 0.0,
            receive_per_byte_s: 0.0,
            start_per_epoch_s: 0.0,
            ..self
        }
    }

    /// Whether all costs are 0.
    pub(super) fn is_ideal(&self) -> bool {
        let sample_s = self.per_sample_s + self.per_byte_s;
        let receive_s: f64 = self.receive_s(1.0).iter().sum();
        let batch_s = self.batch_s(1.0, 1.0) + self.batch_interval_s(1.0, 1);
        sample_s + batch_s + receive_s + self.start_per_epoch_s == 0.0
    }
}

/// Returns the time for `bytes` at `rate`; 0 without a rate.
pub(super) fn seconds_at(rate: Option<f64>, bytes: f64) -> f64 {
    rate.map_or(0.0, |bytes_per_second| bytes / bytes_per_second)
}

impl Plan {
    /// Returns a message if a cost of the client is not a time that a workload may have.
    pub(super) fn client_violation(&self) -> Option<String> {
        let client = self.loader.client.as_ref()?;
        if !(0.0..=1.0).contains(&client.receive_wait_share) {
            let share = client.receive_wait_share;
            return Some(format!("its `client.receive_wait_share` of {share} is not from 0 to 1"));
        }
        let steps = self.train.steps().saturating_mul(self.accelerators.into());
        let cost_max_s = cost_max_s(steps);
        let mut costs = client.costs(&self.loader, self.dataset.record_bytes).into_iter();
        let ClientCost { key, seconds } =
            costs.find(|cost| !(0.0..=cost_max_s).contains(&cost.seconds))?;
        Some(format!("`{key}` takes {seconds:.3e} s, which is not from 0 to {cost_max_s:.3}"))
    }
}

impl LoaderPlan {
    /// Returns the time of the training process for receiving a batch of `bytes` while `busy_workers` workers are busy: [computing,
    /// waiting]. The waiting time is proportional to the number of busy workers, because they compete with the sender for cores.
    pub fn receive_s(&self, bytes: f64, busy_workers: u32) -> [f64; 2] {
        let Some(client) = &self.client else { return [0.0; 2] };
        let [cpu_s, wait_s] = client.receive_s(bytes);
        let others = self.workers.saturating_sub(1).max(1);
        [cpu_s, wait_s * f64::from(busy_workers.min(others)) / f64::from(others)]
    }

    /// Returns the times of the client if `bytes` are read for each batch of each of `accelerators` accelerators; `None` for an ideal client.
    pub fn client_times(&self, bytes: f64, accelerators: u32) -> Option<ClientTimes> {
        let client = self.client.as_ref()?;
        Some(ClientTimes {
            worker_batch_s: client.worker_s(self.batch_size as f64, 1.0, bytes),
            receive_batch_s: client.receive_s(bytes).iter().sum(),
            receive_wait_share: client.receive_wait_share,
            batch_interval_s: client.batch_interval_s(bytes, accelerators),
            pin_batch_s: seconds_at(client.pin_bytes_per_second, bytes),
            start_s: self.start_s(),
        })
    }

    /// Returns the time of the training process for starting the workers of an epoch.
    pub fn start_s(&self) -> f64 {
        let worker_s = self.client.as_ref().map_or(0.0, |client| client.start_per_epoch_s);
        worker_s * f64::from(self.workers)
    }
}

/// Processor times of a client, independent of the storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ClientTimes {
    /// Time of workers for a batch.
    pub worker_batch_s: f64,
    /// Time of the training process for receiving a batch, between two steps.
    pub receive_batch_s: f64,
    /// Share of the receive time that the training process spends waiting for busy workers.
    pub receive_wait_share: f64,
    /// Shortest time between two batches, because of what the workers share and of the thread that pins batches.
    pub batch_interval_s: f64,
    /// Time of the thread that pins batches for a batch.
    pub pin_batch_s: f64,
    /// Time of the training process for starting workers, before the first batch of an epoch.
    pub start_s: f64,
}

impl ClientTimes {
    /// Returns the minimum duration of a step with the compute time `compute_s`, and `workers` workers and `cores` cores per accelerator.
    /// With 0 workers the training process reads itself. Pass infinity for an unknown number of cores.
    pub fn step_s(&self, compute_s: f64, workers: u32, cores: f64) -> f64 {
        // The training process waits for workers only if they are the bottleneck.
        let receive_cpu_s = self.receive_batch_s * (1.0 - self.receive_wait_share);
        let training_s = compute_s + receive_cpu_s;
        let step_s = match workers {
            0 => training_s + self.worker_batch_s,
            workers => training_s.max(self.worker_batch_s / f64::from(workers)),
        };
        step_s.max(self.batch_interval_s).max((self.worker_batch_s + receive_cpu_s) / cores)
    }

    /// Returns the maximum utilisation with this client, in percent.
    pub fn utilisation_max_percent(&self, compute_s: f64, workers: u32, cores: f64) -> f64 {
        100.0 * compute_s / self.step_s(compute_s, workers, cores)
    }
}
