//! Everything decided before a run. No default is left open; every rank makes the same plan.

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
pub mod state;
mod evaluation;
mod checkpoint;
mod planner;
mod explain;
mod duration;

pub use crate::workload::{Shuffle, WriteInterface};
pub use checkpoint::{CheckpointPlan, CheckpointsAlone};
pub use client::{CLIENT_PROFILES, ClientPlan, ClientProfile, ClientTimes, MEASURED_ON};
pub use duration::{Duration, duration};
pub use evaluation::EvaluationPlan;
pub use explain::{Estimate, PIECE_BYTES, estimate};
pub use planner::{Context, PlanOptions, RECORDED_STEPS_MAX, THREADS_MAX, build};

use crate::catalog::FormatEntry;
use crate::shape::{Compression, Element, Encoding, FileShape, Redundancy};
use crate::workload::{FOLDERS_MAX, TimeSpec};
use serde::{Deserialize, Deserializer, Serialize};

/// One plan. Written into every record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The workload's name: a bundled name, or the file's stem.
    pub workload: String,
    /// `model.name`, which names the results folder.
    pub model: String,
    /// `framework`, for the record.
    pub framework: String,
    /// Emulated accelerators over all processes.
    pub accelerators: u32,
    /// The dataset.
    pub dataset: DatasetPlan,
    /// Where the dataset lies and what slows it down.
    pub storage: StoragePlan,
    /// Where it is copied to, and read from then; `None` reads it where it lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<StagePlan>,
    /// How samples are read.
    pub loader: LoaderPlan,
    /// Epochs, steps, compute.
    pub train: TrainPlan,
    /// Checkpoints between epochs; `None` where the run writes none.
    #[serde(default)]
    pub checkpoint: Option<CheckpointPlan>,
    /// Evaluations between epochs; `None` where the run has none.
    #[serde(default)]
    pub evaluation: Option<EvaluationPlan>,
    /// The target for utilisation, and the steps left out of the window.
    pub metric: MetricPlan,
    /// Whether what happens is sampled while the run goes on.
    #[serde(default)]
    pub timeline: bool,
    /// Disks that `iostat.json` tells of, of none all; `None` writes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iostat_devices: Option<Vec<String>>,
    /// Doubts that are known before running: (name, what was seen, advice).
    pub doubts: Vec<PlanDoubt>,
}

/// A doubt known at planning; becomes one of the record's doubts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanDoubt {
    /// Stable name in snake_case, one of the doubt table's.
    pub name: String,
    /// The observation, with figures.
    pub evidence: String,
    /// The remedy.
    pub advice: String,
}

/// Everything that decides the bytes of a dataset, and where its files lie.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatasetPlan {
    /// Format name.
    pub format: String,
    /// Extension of its data files, without the dot.
    pub extension: String,
    /// Training files.
    pub files_train: u64,
    /// Evaluation files.
    pub files_eval: u64,
    /// Training files that the names tell of, where only the first of them are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named_train: Option<u64>,
    /// The same of evaluation files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named_eval: Option<u64>,
    /// Samples in each file.
    pub samples_per_file: u64,
    /// Subfolders of `train/`; 0 and 1 mean flat.
    pub subfolders_train: u64,
    /// Subfolders of `valid/`; 0 and 1 mean flat.
    pub subfolders_eval: u64,
    /// File name prefix, `img`.
    pub prefix: String,
    /// `record_length_bytes` as configured, after `--shrink-records`; the nominal bytes of a sample.
    pub record_bytes: f64,
    /// `record_length_bytes_stdev`, likewise.
    pub record_stdev_bytes: f64,
    /// `record_dims`; empty means a square of `isqrt(record_bytes)`.
    pub record_dims: Vec<u64>,
    /// Element type.
    pub element: Element,
    /// Compression, chunks.
    pub encoding: Encoding,
    /// Seed of the content.
    pub content_seed: u64,
    /// Share of the content that compression and deduplication save.
    #[serde(default)]
    pub redundancy: Redundancy,
}

/// Files of a dataset, at most.
const FILES_MAX: u64 = 1 << 40;
/// Files whose sizes are drawn one by one, at most.
const DRAWN_FILES_MAX: u64 = 100_000_000;

impl DatasetPlan {
    /// Whatever no plan of ours asks for, so that nobody who reads another's walks for ever.
    pub fn beyond_all_bounds(&self) -> Option<String> {
        let files = self.files_train.saturating_add(self.files_eval);
        let folders = self.subfolders_train.max(self.subfolders_eval);
        let is_drawn = self.record_stdev_bytes > 0.0;
        let files_max = if is_drawn { DRAWN_FILES_MAX } else { FILES_MAX };
        if files > files_max {
            return Some(format!(
                "it names {files} files, and no dataset has more than {files_max}"
            ));
        }
        (folders > FOLDERS_MAX).then(|| {
            format!("it names {folders} subfolders, and no dataset has more than {FOLDERS_MAX}")
        })
    }

    /// As [`FormatEntry::file_bytes`], less what compression saves of this content.
    pub fn file_bytes(&self, format: &FormatEntry, shape: &FileShape) -> u64 {
        let bytes = (format.file_bytes)(shape, &self.encoding);
        if self.encoding.compression == Compression::None {
            return bytes;
        }
        let percent = u128::from(self.redundancy.compressible_percent);
        let saved = u128::from(shape.payload_bytes()) * percent / 100;
        bytes.saturating_sub(saved as u64)
    }
}

/// The storage and its wrappers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoragePlan {
    /// Storage name: `file`, `memory`, `null`.
    pub kind: String,
    /// Engine that reads its files; `None` where the storage has none.
    pub engine: Option<String>,
    /// Whether that engine reads past the page cache.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passes_page_cache: bool,
    /// Bytes per second, all accelerators together; `None` is unthrottled.
    pub throttle_bytes_per_second: Option<f64>,
    /// Added to each operation behind the throttle, in seconds.
    pub throttle_latency_s: f64,
    /// Reads that the throttle serves at a time; `None` is any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle_concurrency: Option<u32>,
    /// Added to each operation, in seconds.
    pub delay_s: f64,
    /// Added to each open beside that, in seconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub open_delay_s: f64,
    /// Added to each read beside that, in seconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub read_delay_s: f64,
}

/// A copy of the dataset on each machine, which is read instead of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagePlan {
    /// `reader.stage`: the folder that the copy's folder lies in.
    pub folder: String,
    /// When it is made. Records of copies made at the first read of a file are refused: their steps read the dataset too.
    #[serde(default)]
    pub when: StageMoment,
    /// Bytes of it on a machine, at most.
    pub limit_bytes: Option<u64>,
    /// Whether it stays when the run ends.
    pub keep: bool,
}

/// When files are copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageMoment {
    /// All before training.
    #[default]
    Start,
}

/// How samples are read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoaderPlan {
    /// Loader name.
    pub kind: String,
    /// Samples in a batch.
    pub batch_size: u64,
    /// Reading threads of each accelerator; 0 reads in the training thread.
    pub workers: u32,
    /// `prefetch_size` as configured.
    pub prefetch_size: u32,
    /// Batches in flight or stocked, of one accelerator; the loader's own rule applied.
    #[serde(alias = "stock_batches")]
    pub batches_in_flight: u32,
    /// How accelerators share the samples of an epoch.
    pub file_access: FileAccess,
    /// How workers of an accelerator share its samples.
    #[serde(default)]
    pub split: WorkerSplit,
    /// Accelerators of which one reads for all; 1 where each reads for itself.
    pub group_accelerators: u32,
    /// Files that an accelerator reads side by side, sample by sample; 1 reads one after another.
    pub interleaved_files: u32,
    /// Batches that must be there beyond the one that is delivered: a shuffle buffer, or a whole epoch read at start.
    pub held_batches: u32,
    /// The same in the first epoch: more where all of it is read before its first step.
    pub held_at_start: u32,
    /// Workers of an accelerator that may decode at once; `None` is all.
    pub decode_threads: Option<u32>,
    /// Each sample is read once, and comes from memory from then on.
    pub in_memory: bool,
    /// Work on each sample in its worker.
    pub preprocess: TimeSpec,
    /// Seed of the drawn preprocessing times.
    pub preprocess_seed: u64,
    /// The job's own code; `None` is an ideal client, which takes no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientPlan>,
    /// Order of files.
    pub file_shuffle: Shuffle,
    /// Order of samples.
    pub sample_shuffle: Shuffle,
    /// Samples are shuffled as they come, in a buffer of `held_batches`.
    pub shuffles_in_buffer: bool,
    /// Seed of the first epoch's order.
    pub order_seed: u64,
    /// Whether each epoch has a seed of its own.
    pub seed_change_epoch: bool,
    /// Shuffled samples that stay in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shuffle_block: Option<u64>,
    /// Share of the files that a second accelerator reads too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reread_share: f64,
    /// Reads of the head of each file that is opened; `None` where the format alone decides what is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<HeadReads>,
    /// Bytes read at once, at most: `reader.transfer_size`, else the format's own; whole pages where the page cache is passed by.
    pub piece_bytes: u64,
    /// Whole batches are kept in memory, as a framework does.
    pub materialize: bool,
    /// Every byte is compared with what generation wrote.
    pub verify: bool,
    /// Checksums of the format are checked (npz's CRC-32).
    pub check_crc: bool,
    /// Samples of a foreign dataset that are files of their own are decoded. No plan before 0.2 did.
    #[serde(default)]
    pub decodes_members: bool,
}

impl LoaderPlan {
    /// Bytes of a worker's buffer, which holds its longest read.
    pub fn buffer_bytes(&self) -> u64 {
        self.piece_bytes.max(self.head.map_or(0, |head| head.bytes))
    }

    /// Whether one of each group reads the samples of all, which are the same, and sends them to the others.
    pub fn is_broadcast(&self) -> bool {
        self.file_access == FileAccess::Same && self.group_accelerators > 1
    }
}

/// Reads of the head of a file, one after another from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadReads {
    /// So many, or as many as the file has bytes for.
    pub reads: u32,
    /// Length of each.
    pub bytes: u64,
}

/// How accelerators share the samples of an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileAccess {
    /// Each has a run of them: files of its own.
    #[default]
    Multi,
    /// All read the same files at the same time, each its own samples.
    Shared,
    /// All read the same samples.
    Same,
    /// As in `Shared`, and each read is one of all processes together, through MPI-IO.
    Mpio,
}

/// How workers of an accelerator share its samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerSplit {
    /// As the loader has it, whatever file they lie in.
    #[default]
    Samples,
    /// Each has whole files.
    Shards,
}

/// Epochs, steps, compute.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrainPlan {
    /// Epochs.
    pub epochs: u32,
    /// Steps of a whole epoch.
    pub steps_per_epoch: u64,
    /// Steps over the run, at most; `None` runs all epochs whole.
    pub total_steps: Option<u64>,
    /// Emulated compute of a step.
    pub compute: TimeSpec,
    /// Seed of the drawn compute times.
    pub compute_seed: u64,
    /// Factors of the compute of single accelerators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow_accelerators: Vec<(u32, f64)>,
    /// The compute that carries steps out on devices; without it they are waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_devices: Option<String>,
    /// State of the page cache before epochs. Plans of before 0.2 have a flag `cold`.
    #[serde(default, alias = "cold", deserialize_with = "cache_or_cold")]
    pub cache: Cache,
    /// When accelerators wait for each other.
    #[serde(default)]
    pub barrier: Barrier,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

/// State of the page cache before epochs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// Left as it is.
    #[default]
    AsIs,
    /// It is emptied of the dataset before each epoch.
    Cold,
    /// The dataset is read into it before the first epoch.
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

/// When accelerators wait for each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Barrier {
    /// After each step, as for a reduction of gradients.
    #[default]
    EachStep,
    /// After the last, as in an evaluation.
    AtEnd,
}

/// The target for utilisation, and the window it is judged in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MetricPlan {
    /// `metric.au` in percent.
    pub au_target_percent: f64,
    /// Steps left out at the start of each block.
    pub exclude_start_steps: u64,
    /// Steps left out at the end of each block.
    pub exclude_end_steps: u64,
}

impl Plan {
    /// Checkpoints are all there is: nothing is trained, no dataset read.
    pub fn is_checkpoints_alone(&self) -> bool {
        self.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.alone.is_some())
    }

    /// Whether the costs of its client, which are those of a format, are those of `changed` too.
    pub fn knows_client_of(&self, changed: &Plan) -> bool {
        self.loader.client.is_none() || self.dataset.format == changed.dataset.format
    }

    /// Whether the run writes a checkpoint whose folder is called after `epoch` and `step`.
    pub fn writes_checkpoint(&self, epoch: u32, step: u64) -> bool {
        let Some(checkpoint) = &self.checkpoint else { return false };
        if let Some(alone) = &checkpoint.alone {
            return epoch == 1 && (1..=alone.writes).contains(&step);
        }
        let is_run = (1..=self.train.epochs_run()).contains(&epoch);
        let steps = self.train.steps_in_epoch(epoch.max(1));
        is_run
            && match checkpoint.steps_between {
                Some(between) => (1..=steps).contains(&step) && step.is_multiple_of(between),
                None => checkpoint.step_after_epoch(epoch, steps) == Some(step),
            }
    }

    /// The storage that steps read from. Reads of a copy have no emulated cost.
    pub fn storage_of_steps(&self) -> StoragePlan {
        let StoragePlan { kind, engine, passes_page_cache, .. } = self.storage.clone();
        match &self.stage {
            Some(_) => StoragePlan { kind, engine, passes_page_cache, ..StoragePlan::default() },
            None => self.storage.clone(),
        }
    }

    /// Accelerators that read, for themselves or for their group.
    pub fn readers(&self) -> u32 {
        self.accelerators.div_ceil(self.loader.group_accelerators.max(1))
    }
}
