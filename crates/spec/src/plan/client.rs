//! The client of a training job: the processor time that its own code takes for the samples, on top of which the storage comes. A table of
//! those that have a name. Nothing is measured here.

use super::{LoaderPlan, Plan};
use serde::{Deserialize, Serialize};

/// The cost of a client, in processor time of one core. A byte is one that is read for the sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientPlan {
    /// The profile that it is; `None` where costs are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Worker's for a sample: opening, reading from the page cache, decoding.
    pub per_sample_s: f64,
    /// Worker's for a byte.
    pub per_byte_s: f64,
    /// Worker's for a batch that is whole.
    pub per_batch_s: f64,
    /// At which a worker puts the samples of a batch together where the training's process finds them; `None` takes no time, as where
    /// that process reads itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover_bytes_per_second: Option<f64>,
    /// Training process's for a batch of a worker, when it asks for it; 0 where it reads itself.
    pub receive_per_batch_s: f64,
    /// The same for a byte.
    pub receive_per_byte_s: f64,
    /// Share of these two in which it waits for workers that are at work on others, instead of computing.
    #[serde(default)]
    pub receive_wait_share: f64,
    /// Training process's for each worker, before any of them reads; 0 where it reads itself.
    pub start_per_epoch_s: f64,
}

/// A client that was measured.
#[derive(Clone, Copy, Debug)]
pub struct ClientProfile {
    /// `pytorch-npz`.
    pub name: &'static str,
    /// For a sample, a byte, a batch, its hand-over in bytes per second, a batch and a byte received, the share of it that is waiting, a
    /// worker started.
    costs: [f64; 8],
}

/// The machine and the versions that the profiles were measured on, by `feedrate calibrate`.
pub const MEASURED_ON: &str = "AMD EPYC, 2 cores; PyTorch 2.15, numpy 2.4, h5py 3.16, Pillow 13.0, tfrecord 1.14, Python 3.11";

/// Plain PyTorch, by the format of the files.
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
    /// The profile of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        CLIENT_PROFILES.iter().find(|profile| profile.name == name)
    }

    /// The one that was measured with the plan's loader, on files of its format.
    pub fn find_for(plan: &Plan) -> Option<&'static Self> {
        Self::find(&Self::name_for(plan))
    }

    /// The name that such a one has.
    pub(super) fn name_for(plan: &Plan) -> String {
        format!("{}-{}", plan.loader.kind, plan.dataset.format)
    }

    /// Its costs.
    pub fn plan(&self) -> ClientPlan {
        let [sample_s, byte_s, batch_s, handover, receive_s, receive_byte_s, wait_share, start_s] =
            self.costs;
        ClientPlan {
            name: Some(self.name.to_string()),
            per_sample_s: sample_s,
            per_byte_s: byte_s,
            per_batch_s: batch_s,
            handover_bytes_per_second: Some(handover),
            receive_per_batch_s: receive_s,
            receive_per_byte_s: receive_byte_s,
            receive_wait_share: wait_share,
            start_per_epoch_s: start_s,
        }
    }
}

impl ClientPlan {
    /// Worker's at the end of `share` of a batch, or of several, of which `bytes` were read.
    pub fn batch_s(&self, share: f64, bytes: f64) -> f64 {
        let handover_s = self.handover_bytes_per_second.map_or(0.0, |rate| bytes / rate);
        self.per_batch_s * share + handover_s
    }

    /// Worker's for so many samples in so many batches, of which `bytes` were read.
    pub fn worker_s(&self, samples: f64, batches: f64, bytes: f64) -> f64 {
        self.per_sample_s * samples + self.per_byte_s * bytes + self.batch_s(batches, bytes)
    }

    /// Training process's to take over a batch of `bytes`: computing, then waiting, where the workers are at work.
    pub fn receive_s(&self, bytes: f64) -> [f64; 2] {
        let all_s = self.receive_per_batch_s + self.receive_per_byte_s * bytes;
        let wait_s = all_s * self.receive_wait_share;
        [all_s - wait_s, wait_s]
    }

    /// As it is where the training's process reads itself: there is nobody to start, and nothing to hand over.
    #[must_use]
    pub(super) fn without_workers(self) -> Self {
        ClientPlan {
            handover_bytes_per_second: None,
            receive_per_batch_s: 0.0,
            receive_per_byte_s: 0.0,
            start_per_epoch_s: 0.0,
            ..self
        }
    }

    /// Whether it costs nothing.
    pub(super) fn is_ideal(&self) -> bool {
        let of_sample_s = self.per_sample_s + self.per_byte_s;
        let receive_s: f64 = self.receive_s(1.0).iter().sum();
        of_sample_s + self.batch_s(1.0, 1.0) + receive_s + self.start_per_epoch_s == 0.0
    }
}

impl LoaderPlan {
    /// As [`ClientPlan::receive_s`], when so many of its workers are at work: the process that hands the batch over needs a core as they do.
    pub fn receive_s(&self, bytes: f64, at_work: u32) -> [f64; 2] {
        let Some(client) = &self.client else { return [0.0; 2] };
        let [cpu_s, wait_s] = client.receive_s(bytes);
        let others = self.workers.saturating_sub(1).max(1);
        [cpu_s, wait_s * f64::from(at_work.min(others)) / f64::from(others)]
    }

    /// Times of the client where `bytes` are read for a batch; `None` of an ideal one.
    pub fn client_times(&self, bytes: f64) -> Option<ClientTimes> {
        let client = self.client.as_ref()?;
        Some(ClientTimes {
            worker_batch_s: client.worker_s(self.batch_size as f64, 1.0, bytes),
            receive_batch_s: client.receive_s(bytes).iter().sum(),
            receive_wait_share: client.receive_wait_share,
            start_s: self.start_s(),
        })
    }

    /// In which it starts the workers of an epoch.
    pub fn start_s(&self) -> f64 {
        let each_s = self.client.as_ref().map_or(0.0, |client| client.start_per_epoch_s);
        each_s * f64::from(self.workers)
    }
}

/// Processor time that a client takes, whatever the storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ClientTimes {
    /// That of workers for a batch.
    pub worker_batch_s: f64,
    /// That of the training's process for a batch, between two steps.
    pub receive_batch_s: f64,
    /// Share of the latter in which that process waits for workers that are at work.
    pub receive_wait_share: f64,
    /// That of the training's process before an epoch's first batch.
    pub start_s: f64,
}

impl ClientTimes {
    /// The least that a step of `compute_s` takes with `workers`, 0 where the training's process reads itself, and as many cores for an accelerator;
    /// infinitely many where that is not known.
    pub fn step_s(&self, compute_s: f64, workers: u32, cores: f64) -> f64 {
        // Workers that are not the bound are hardly waited for.
        let receive_cpu_s = self.receive_batch_s * (1.0 - self.receive_wait_share);
        let of_training_s = compute_s + receive_cpu_s;
        let step_s = match workers {
            0 => of_training_s + self.worker_batch_s,
            workers => of_training_s.max(self.worker_batch_s / f64::from(workers)),
        };
        step_s.max((self.worker_batch_s + receive_cpu_s) / cores)
    }

    /// The highest utilisation that this leaves, in percent.
    pub fn leaves_percent(&self, compute_s: f64, workers: u32, cores: f64) -> f64 {
        100.0 * compute_s / self.step_s(compute_s, workers, cores)
    }
}
