//! The plan: all decisions made before a run, with no default left open. Every rank computes the same plan. Orders and layouts are
//! computed from an index, so that no list of files or samples is stored.
//!
//! Long because it lists all fields of the plan.

pub mod mt19937;
pub mod sizes;
pub mod layout;
pub mod seeds;
mod permutation;
pub mod order;
mod interleave;
pub mod shards;
pub mod schedule;
mod draws;
mod client;
mod requests;
pub mod state;
mod evaluation;
mod checkpoint;
mod planner;
mod explain;
mod latency;
mod duration;

pub use crate::library::{
    Library, LibraryRequests, LibrarySizes, OpeningRequest, REQUEST_BYTES_MAX,
};
pub use crate::workload::{Shuffle, WriteInterface};
pub use checkpoint::{CheckpointOnlyPlan, CheckpointPlan};
pub use client::{CLIENT_PROFILES, ClientPlan, ClientProfile, ClientTimes, MEASURED_ON};
pub use duration::{Duration, duration, emulated_epoch_s};
pub use evaluation::EvaluationPlan;
pub use explain::{Estimate, PIECE_BYTES, estimate};
pub use latency::{ReadUnit, RequiredLatency, may_share_reads, required_latency};
pub use planner::{
    Context, FITS_PAGE_CACHE, PlanOptions, RECORDED_EPOCHS_MAX, RECORDED_STEPS_MAX, THREADS_MAX,
    build,
};
pub use requests::{ReadAhead, RequestPlan, RequestUnit};

use crate::catalog::FormatEntry;
use crate::mlperf::CoreConfig;
use crate::shape::{Compression, Element, Encoding, FileShape, Redundancy};
use crate::workload::{FOLDERS_MAX, TimeSpec};
use serde::{Deserialize, Deserializer, Serialize};

/// The plan of a run. Every record contains one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The workload's name: a bundled name, or the file's stem.
    pub workload: String,
    /// `model.name`; the results folder is named after it.
    pub model: String,
    /// `framework`, for the record.
    pub framework: String,
    /// The settings by which MLPerf Storage identifies the workload; `None` for other workloads and for files of other programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_config: Option<CoreConfig>,
    /// Number of emulated accelerators over all processes.
    pub accelerators: u32,
    /// The dataset.
    pub dataset: DatasetPlan,
    /// Storage of the dataset, and its emulated limits.
    pub storage: StoragePlan,
    /// The copy of the dataset that steps read; `None` if they read the dataset itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<StagePlan>,
    /// How samples are read.
    pub loader: LoaderPlan,
    /// Epochs, steps, compute.
    pub train: TrainPlan,
    /// Checkpoints; `None` if the run writes none.
    #[serde(default)]
    pub checkpoint: Option<CheckpointPlan>,
    /// Evaluations between epochs; `None` if the run has none.
    #[serde(default)]
    pub evaluation: Option<EvaluationPlan>,
    /// Target utilisation, and the steps left out of the measured window.
    pub metric: MetricPlan,
    /// Whether the run's activity is recorded in short intervals.
    #[serde(default)]
    pub timeline: bool,
    /// Disks in `iostat.json`; an empty list means all. `None` if the file is not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iostat_devices: Option<Vec<String>>,
    /// Name of DLIO's log; `None` for [`LOG_FILE`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_file: Option<String>,
    /// Doubts that are known before the run.
    pub doubts: Vec<PlanDoubt>,
}

/// Usual name of DLIO's log.
pub const LOG_FILE: &str = "dlio.log";

/// Whether a log may have this name: it is a file in the folder of the results, and no other file or folder there can have the name.
pub fn is_log_name(name: &str) -> bool {
    let is_result = [".json", ".csv", ".yaml", ".index"].iter().any(|end| name.ends_with(end));
    let is_folder = ["superseded", "incomplete", "dlio_config"].contains(&name);
    !name.is_empty() && !name.starts_with('.') && !name.contains('/') && !is_result && !is_folder
}

impl Plan {
    /// Returns a message if the plan exceeds the planner's limits of the dataset and of the client. Check plans that were read from files:
    /// loops run up to the numbers of the dataset, and sums of the client's times must not overflow.
    pub fn limit_violation(&self) -> Option<String> {
        self.dataset.limit_violation().or_else(|| self.client_violation())
    }

    /// Returns the name of DLIO's log. Names that no workload can have, as in edited records, are ignored.
    pub fn log_name(&self) -> &str {
        self.log_file.as_deref().filter(|name| is_log_name(name)).unwrap_or(LOG_FILE)
    }
}

/// A doubt that is known before the run. It becomes one of the record's doubts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanDoubt {
    /// Stable name in snake_case, from the table of doubts.
    pub name: String,
    /// The observation, with numbers.
    pub evidence: String,
    /// The remedy.
    pub advice: String,
}

/// All settings that determine the files of a dataset and their content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatasetPlan {
    /// Format name.
    pub format: String,
    /// Extension of the data files, without the dot.
    pub extension: String,
    /// Number of training files.
    pub files_train: u64,
    /// Number of evaluation files.
    pub files_eval: u64,
    /// Number of training files that the file names give, if only the first of these files are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named_train: Option<u64>,
    /// Number of evaluation files that the file names give, if only the first of these files are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named_eval: Option<u64>,
    /// Samples in each file; their mean if the numbers differ.
    pub samples_per_file: u64,
    /// Samples in each training file of other programs, if the numbers differ. There may be more numbers than files are used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_samples: Vec<u64>,
    /// Mean bytes on storage of a sample in files of other programs whose size depends on their content; `None` if it is estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_sample_bytes: Option<u64>,
    /// Subfolders of `train/`; 0 and 1 mean flat.
    pub subfolders_train: u64,
    /// Subfolders of `valid/`; 0 and 1 mean flat.
    pub subfolders_eval: u64,
    /// File name prefix, `img`.
    pub prefix: String,
    /// Nominal bytes of a sample: `record_length_bytes`, after `--shrink-records`.
    pub record_bytes: f64,
    /// Standard deviation of the bytes of a sample: `record_length_bytes_stdev`, after `--shrink-records`.
    pub record_stdev_bytes: f64,
    /// `record_dims`; empty means a square of `isqrt(record_bytes)`.
    pub record_dims: Vec<u64>,
    /// Element type.
    pub element: Element,
    /// Compression, chunks and similar settings.
    pub encoding: Encoding,
    /// Seed of the content.
    pub content_seed: u64,
    /// Shares of the content that compression and deduplication can save.
    #[serde(default)]
    pub redundancy: Redundancy,
    /// `members`: names of the datasets, arrays or columns that are read in foreign files; empty if the format chooses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
}

/// Maximum number of files of a dataset.
const FILES_MAX: u64 = 1 << 40;
/// Maximum number of files whose sizes are drawn one by one.
const DRAWN_FILES_MAX: u64 = 100_000_000;

impl DatasetPlan {
    /// Returns the samples in each training file; `None` if all files have [`DatasetPlan::samples_per_file`].
    pub fn unequal_samples(&self) -> Option<&[u64]> {
        let files = usize::try_from(self.files_train).ok()?;
        self.file_samples.get(..files).filter(|samples| !samples.is_empty())
    }

    /// Returns the number of samples in all training files.
    pub fn samples_train(&self) -> u64 {
        match self.unequal_samples() {
            Some(samples) => samples.iter().fold(0, |sum, samples| sum.saturating_add(*samples)),
            None => self.files_train.saturating_mul(self.samples_per_file),
        }
    }

    /// Returns a message if the number of files or folders exceeds the planner's limits. Check plans that were read from files: loops run
    /// up to these numbers.
    pub fn limit_violation(&self) -> Option<String> {
        let files = self.files_train.saturating_add(self.files_eval);
        let folders = self.subfolders_train.max(self.subfolders_eval);
        let is_drawn = self.record_stdev_bytes > 0.0;
        let files_max = if is_drawn { DRAWN_FILES_MAX } else { FILES_MAX };
        if files > files_max {
            return Some(format!("it has {files} files, more than the limit of {files_max}"));
        }
        (folders > FOLDERS_MAX)
            .then(|| format!("it has {folders} subfolders, more than the limit of {FOLDERS_MAX}"))
    }

    /// Returns the bytes of a file as in [`FormatEntry::file_bytes`], minus the savings of compression for this content, or the mean bytes of
    /// existing files.
    pub fn file_bytes(&self, format: &FormatEntry, shape: &FileShape) -> u64 {
        if let Some(bytes) = self.stored_sample_bytes {
            return bytes.saturating_mul(shape.samples);
        }
        let bytes = (format.file_bytes)(shape, &self.encoding);
        if self.encoding.compression == Compression::None {
            return bytes;
        }
        let percent = u128::from(self.redundancy.compressible_percent);
        let saved = u128::from(shape.payload_bytes()) * percent / 100;
        bytes.saturating_sub(saved as u64)
    }
}

/// The storage of a dataset and its emulated limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoragePlan {
    /// Storage name: `file`, `memory`, `null`.
    pub kind: String,
    /// Whether the storage reaches no device. Its rates are then not rates of a device.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_no_device: bool,
    /// Engine that reads the files; `None` for storages without engines.
    pub engine: Option<String>,
    /// How the store of objects is reached; `None` for other storages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectPlan>,
    /// Whether that engine bypasses the page cache.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passes_page_cache: bool,
    /// Maximum bytes per second of all accelerators together; `None` for no limit.
    pub throttle_bytes_per_second: Option<f64>,
    /// Latency that the throttle adds to each read, in seconds.
    pub throttle_latency_s: f64,
    /// Maximum number of concurrent reads in the throttle; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle_concurrency: Option<u32>,
    /// Latency added to each operation, in seconds.
    pub delay_s: f64,
    /// Further latency added to each open, in seconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub open_delay_s: f64,
    /// Further latency added to each read, in seconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub read_delay_s: f64,
}

/// How a store of objects is reached. Contains no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectPlan {
    /// The bucket, such as `s3://data`.
    pub bucket: String,
    /// Endpoint; `None` for that of the cloud.
    pub endpoint: Option<String>,
    /// Setting or variable that determines the endpoint.
    pub endpoint_source: Option<String>,
    /// Region; `None` for the default.
    pub region: Option<String>,
    /// Setting or variable that contains the credentials.
    pub credentials_source: String,
}

/// A copy of the dataset on each machine. Steps read the copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagePlan {
    /// Folder that contains the folder of the copy (`reader.stage`).
    pub folder: String,
    /// When files are copied. Old records can have another value, for copying at the first read of a file. It is refused, because
    /// steps of these runs also read the dataset.
    #[serde(default)]
    pub when: StageMoment,
    /// Maximum bytes of the copy on each machine.
    pub limit_bytes: Option<u64>,
    /// Whether the copy is kept after the run.
    pub keep: bool,
}

/// When files are copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageMoment {
    /// Before training.
    #[default]
    Start,
}

/// The loader: how and in which order samples are read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoaderPlan {
    /// Loader name.
    pub kind: String,
    /// Samples in a batch.
    pub batch_size: u64,
    /// Number of reading threads per accelerator; with 0 the training thread reads.
    pub workers: u32,
    /// `prefetch_size` as configured.
    pub prefetch_size: u32,
    /// Maximum number of batches in flight or ready per accelerator, by the loader's rule.
    #[serde(alias = "stock_batches")]
    pub batches_in_flight: u32,
    /// Division of an epoch's samples among accelerators.
    pub file_access: FileAccess,
    /// Division of an accelerator's samples among its workers.
    #[serde(default)]
    pub split: WorkerSplit,
    /// Size of the groups in which one accelerator reads for all accelerators; 1 if each accelerator reads for itself.
    pub group_accelerators: u32,
    /// Number of files from which an accelerator reads samples in turn; 1 if it reads one file after another.
    pub interleaved_files: u32,
    /// Number of batches that must be ready in addition to the delivered batch, for a shuffle buffer.
    pub held_batches: u32,
    /// Value of `held_batches` in the first epoch, which may be read completely before its first step.
    pub held_at_start: u32,
    /// Maximum number of workers per accelerator that decode at the same time; `None` for all.
    pub decode_threads: Option<u32>,
    /// Whether samples stay in memory after their first read.
    pub in_memory: bool,
    /// Preprocessing time of each sample in its worker.
    pub preprocess: TimeSpec,
    /// Seed for drawing preprocessing times.
    pub preprocess_seed: u64,
    /// Costs of the job's code; `None` for an ideal client, which takes no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientPlan>,
    /// Order of files.
    pub file_shuffle: Shuffle,
    /// Order of samples.
    pub sample_shuffle: Shuffle,
    /// Whether samples are shuffled on arrival, in a buffer of `held_batches`.
    pub shuffles_in_buffer: bool,
    /// Seed of the first epoch's order.
    pub order_seed: u64,
    /// Whether each epoch uses a different seed.
    pub seed_change_epoch: bool,
    /// Number of consecutive samples that shuffling keeps together; `None` for 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shuffle_block: Option<u64>,
    /// Share of the files that a second accelerator also reads.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reread_share: f64,
    /// Additional reads from the start of each opened file; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<HeadReads>,
    /// Reads of whole files or row groups without decoding; `None` if samples are read one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestPlan>,
    /// The library whose requests are made; `None` if all requests have up to `piece_bytes` bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<Library>,
    /// Maximum bytes per read: `reader.transfer_size`, else the library's or the format's default. A multiple of the page size if the page cache is
    /// bypassed.
    pub piece_bytes: u64,
    /// Whether complete batches are kept in memory, as in a framework.
    pub materialize: bool,
    /// Whether every byte is compared with the generated content.
    pub verify: bool,
    /// Whether checksums of the format are verified, such as the CRC-32 of npz.
    pub check_crc: bool,
    /// Whether samples that are encoded in foreign files are decoded: images, and files inside of containers. Plans before 0.2 lack the field; their runs did not decode these files.
    #[serde(default)]
    pub decodes_members: bool,
}

impl LoaderPlan {
    /// Returns the size of a worker's buffer: the length of the worker's longest read.
    pub fn buffer_bytes(&self) -> u64 {
        self.piece_bytes.max(self.head.map_or(0, |head| head.bytes))
    }

    /// Whether one accelerator of each group reads the samples that all of them need, and sends them to the other accelerators.
    pub fn is_broadcast(&self) -> bool {
        self.file_access == FileAccess::Same && self.group_accelerators > 1
    }
}

/// Sequential reads from the start of a file when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadReads {
    /// Number of reads; fewer if the file ends earlier.
    pub reads: u32,
    /// Bytes of each read.
    pub bytes: u64,
}

/// Division of an epoch's samples among accelerators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileAccess {
    /// Each accelerator reads a contiguous range of samples, from its own files.
    #[default]
    Multi,
    /// All accelerators read the same files at the same time, but different samples.
    Shared,
    /// All accelerators read the same samples.
    Same,
    /// As in `Shared`, with collective reads of all processes through MPI-IO.
    Mpio,
}

/// Division of an accelerator's samples among its workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerSplit {
    /// By the loader's rule, independent of files.
    #[default]
    Samples,
    /// Each worker reads whole files.
    Shards,
}

/// The training: epochs, steps and compute.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrainPlan {
    /// Number of epochs.
    pub epochs: u32,
    /// Number of steps of a complete epoch.
    pub steps_per_epoch: u64,
    /// Maximum number of steps of the run; `None` if all epochs are complete.
    pub total_steps: Option<u64>,
    /// Emulated compute time of a step.
    pub compute: TimeSpec,
    /// Seed for drawing compute times.
    pub compute_seed: u64,
    /// Factors for the compute time of individual accelerators: (accelerator, factor).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow_accelerators: Vec<(u32, f64)>,
    /// Compute member that executes steps on devices; `None` if steps only wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_devices: Option<String>,
    /// Preparation of the page cache. Plans before 0.2 have a flag `cold` instead.
    #[serde(default, alias = "cold", deserialize_with = "cache_or_cold")]
    pub cache: Cache,
    /// Synchronization of accelerators.
    #[serde(default)]
    pub barrier: Barrier,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

/// Preparation of the page cache before epochs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// No change.
    #[default]
    AsIs,
    /// The dataset is evicted before each epoch.
    Cold,
    /// The dataset is read into the page cache before the first epoch.
    Warm,
}

fn cache_or_cold<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cache, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Cold(bool),
        Cache(Cache),
    }
    Ok(match Either::deserialize(deserializer)? {
        Either::Cold(false) => Cache::AsIs,
        Either::Cold(true) => Cache::Cold,
        Either::Cache(cache) => cache,
    })
}

/// Synchronization of accelerators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Barrier {
    /// Accelerators wait for each other after each step, as for a reduction of gradients.
    #[default]
    EachStep,
    /// Accelerators wait for each other only after the last step, as in an evaluation.
    AtEnd,
}

/// The target utilisation and the window of steps in which it is measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MetricPlan {
    /// `metric.au` in percent.
    pub au_target_percent: f64,
    /// Steps left out at the start of each block.
    pub exclude_start_steps: u64,
    /// Steps left out at the end of each block.
    pub exclude_end_steps: u64,
    /// Limits that a run must keep.
    #[serde(default, skip_serializing_if = "Expectations::is_empty")]
    pub expect: Expectations,
}

/// The limits of the workload's section `expect`, which decide exit codes and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Expectations {
    /// Lowest utilisation in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub au_percent: Option<f64>,
    /// Lowest rate of reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<f64>,
    /// Lowest number of samples per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples_per_second: Option<f64>,
    /// Highest 99th percentile of read latency, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_latency_p99_s: Option<f64>,
}

impl Expectations {
    /// Whether there is no limit.
    pub fn is_empty(&self) -> bool {
        *self == Expectations::default()
    }
}

impl Plan {
    /// Whether the run only writes or reads checkpoints: nothing is trained, and no dataset is read.
    pub fn is_checkpoint_only(&self) -> bool {
        self.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.alone.is_some())
    }

    /// Whether the costs of this plan's client also apply to `changed`. Costs depend on the format.
    pub fn client_applies_to(&self, changed: &Plan) -> bool {
        self.loader.client.is_none() || self.dataset.format == changed.dataset.format
    }

    /// Whether the run writes a checkpoint named after `epoch` and `step`.
    pub fn writes_checkpoint(&self, epoch: u32, step: u64) -> bool {
        let Some(checkpoint) = &self.checkpoint else { return false };
        if let Some(alone) = &checkpoint.alone {
            return epoch == 1 && (1..=alone.writes).contains(&step);
        }
        let is_executed = (1..=self.train.epochs_run()).contains(&epoch);
        let steps = self.train.steps_in_epoch(epoch.max(1));
        is_executed
            && match checkpoint.steps_between {
                Some(between) => (1..=steps).contains(&step) && step.is_multiple_of(between),
                None => checkpoint.step_after_epoch(epoch, steps) == Some(step),
            }
    }

    /// Returns the storage that steps read. A copy of the dataset has no emulated limits.
    pub fn storage_of_steps(&self) -> StoragePlan {
        let StoragePlan { kind, has_no_device, engine, passes_page_cache, .. } =
            self.storage.clone();
        match &self.stage {
            Some(_) => StoragePlan {
                kind,
                has_no_device,
                engine,
                passes_page_cache,
                ..StoragePlan::default()
            },
            None => self.storage.clone(),
        }
    }

    /// Returns the number of accelerators that read, for themselves or for their group.
    pub fn readers(&self) -> u32 {
        self.accelerators.div_ceil(self.loader.group_accelerators.max(1))
    }
}
