//! Every key of a workload: one table, which is the typed [`Workload`], the reference page and the spelling
//! of every message. A new key costs one row. Nothing is decided here.
//!
//! A row: `field: type = ValueKind, "path" ["alias"], "default as YAML", "unit", effect, "meaning";`

use super::overrides::literal;
use super::time::{Time, TimeSpec};
use super::tree::{Content, Node};
use super::value::*;
use crate::problem::{Place, Problems};
use crate::shape::{Compression, Element, StateType};
use std::collections::BTreeMap;

/// Description of one key.
#[derive(Debug)]
pub struct KeyInfo {
    /// The dotted key.
    pub path: &'static str,
    /// Other dotted keys that mean it.
    pub aliases: &'static [&'static str],
    /// Kind of value it takes.
    pub kind: &'static str,
    /// The default as YAML text.
    pub default: &'static str,
    /// Unit of a number; empty for none.
    pub unit: &'static str,
    /// Its meaning, in one sentence.
    pub meaning: &'static str,
    /// Its effect in this version.
    pub effect: Effect,
    /// Program that reads it.
    pub origin: Origin,
}

/// Effect of a key in this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It takes effect.
    Now,
    /// It belongs to something that is not built yet; a plan that would reach it is refused.
    NotYet {
        /// The missing feature.
        feature: &'static str,
    },
    /// It is accepted and changes nothing.
    Nothing {
        /// The reason.
        reason: &'static str,
    },
}

/// Program that reads a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// DLIO reads it.
    Dlio,
    /// Only feedrate has it.
    Feedrate,
    /// Users' files carry it and DLIO ignores it; giving it is a warning.
    Ignored,
}

/// Whole sections with a second name.
pub const SECTION_ALIASES: &[(&str, &str)] = &[("data_reader", "reader")];

/// Keys of `client` beside its name: the cost of each.
pub fn client_costs() -> impl Iterator<Item = &'static str> {
    let keys = KEYS.iter().filter_map(|key| key.path.strip_prefix("client."));
    keys.filter(|key| *key != "name")
}

/// Keys that file and overrides give.
#[derive(Clone, Debug)]
pub(super) struct Given {
    /// Under the names that they use.
    pub(super) written: Node,
    /// Aliases renamed.
    pub(super) tree: Node,
    /// Where each key was written.
    pub(super) places: BTreeMap<String, Place>,
}

const fn not_yet(feature: &'static str) -> Effect {
    Effect::NotYet { feature }
}

const fn nothing(reason: &'static str) -> Effect {
    Effect::Nothing { reason }
}

macro_rules! keys {
    (
        dlio { $($field:ident: $type:ty = $kind:ident, $path:literal $([$alias:literal])?, $default:literal, $unit:literal, $effect:expr, $meaning:literal;)* }
        feedrate { $($our_field:ident: $our_type:ty = $our_kind:ident, $our_path:literal, $our_default:literal, $our_unit:literal, $our_meaning:literal;)* }
        ignored { $($old_path:literal, $old_meaning:literal;)* }
    ) => {
        /// Every key of a workload, with its default where it is not given.
        #[derive(Clone, Debug)]
        pub struct Workload {
            $(#[doc = concat!("`", $path, "`: ", $meaning)] pub $field: $type,)*
            $(#[doc = concat!("`", $our_path, "`: ", $our_meaning)] pub $our_field: $our_type,)*
            pub(super) given: Given,
        }

        impl Workload {
            /// Read every key of the tree; what is wrong becomes a problem, and its default is taken.
            pub(super) fn read(given: Given, problems: &mut Problems) -> Self {
                let tree = &given.tree;
                Workload {
                    $($field: value::<$kind>(tree, $path, $default, problems),)*
                    $($our_field: value::<$our_kind>(tree, $our_path, $our_default, problems),)*
                    given,
                }
            }
        }

        /// Every key, DLIO's first.
        pub static KEYS: &[KeyInfo] = &[
            $(KeyInfo {
                path: $path, aliases: &[$($alias)?], kind: <$kind as ValueKind>::NAME, default: $default,
                unit: $unit, meaning: $meaning, effect: $effect, origin: Origin::Dlio,
            },)*
            $(KeyInfo {
                path: $our_path, aliases: &[], kind: <$our_kind as ValueKind>::NAME, default: $our_default,
                unit: $our_unit, meaning: $our_meaning, effect: Effect::Now, origin: Origin::Feedrate,
            },)*
            $(KeyInfo {
                path: $old_path, aliases: &[], kind: "anything", default: "null",
                unit: "", meaning: $old_meaning, effect: nothing("DLIO ignores it too"), origin: Origin::Ignored,
            },)*
        ];
    };
}

/// The value of one key, its default where it is not given or is wrong.
fn value<K: ValueKind>(
    tree: &Node,
    path: &str,
    default: &str,
    problems: &mut Problems,
) -> K::Value {
    if let Some(node) = tree.at(path) {
        match K::parse(node) {
            Ok(value) => return value,
            Err(problem) => {
                let mut problem = problem.of_key(path, &node.place);
                problem
                    .hint
                    .get_or_insert_with(|| format!("leave it out for the default, `{default}`"));
                problems.push(problem);
            }
        }
    }
    match literal(default).map(|node| K::parse(&node)) {
        Some(Ok(value)) => value,
        _ => unreachable!("every default of the table parses, by test: {path}"),
    }
}

impl Workload {
    /// Where a key, or a section, was written.
    pub fn place(&self, key: &str) -> Option<&Place> {
        self.given.places.get(key)
    }

    /// Whether a key, or a section, was written.
    pub fn is_given(&self, key: &str) -> bool {
        self.given.places.contains_key(key)
    }

    /// The tree of file and overrides, aliases renamed.
    pub fn tree(&self) -> &Node {
        &self.given.tree
    }

    /// The given keys that do not take effect, in the order of the table, but for those that are given their default.
    pub fn given_without_effect(&self) -> impl Iterator<Item = &'static KeyInfo> {
        KEYS.iter().filter(|key| {
            key.effect != Effect::Now && self.is_given(key.path) && !self.is_default(key)
        })
    }

    fn is_default(&self, key: &KeyInfo) -> bool {
        let (given, default) = (self.given.tree.at(key.path), literal(key.default));
        given.zip(default.as_ref()).is_some_and(|(given, default)| {
            match (&given.content, &default.content) {
                (Content::Scalar { text, .. }, Content::Scalar { text: default, .. }) => {
                    text.eq_ignore_ascii_case(default)
                }
                _ => false,
            }
        })
    }
}

const MERGING: Effect =
    nothing("tensors are made piece by piece and never held, so no equal memory is there to merge");
const OBJECT_STORE: Effect = not_yet("object storage");
const NO_PYTHON: Effect = nothing("no Python class is loaded");
const NO_TENSOR: Effect = nothing("no tensor is handed to training");
const UNUSED: Effect = nothing("DLIO reads it and never uses it");

keys! {
    dlio {
        framework: Framework = FrameworkName, "framework", "tensorflow", "", Effect::Now,
            "The framework that is emulated; picks the loader where `reader.data_loader` is not given.";

        workflow_generate_data: bool = Flag, "workflow.generate_data", "false", "", Effect::Now, "Generate the dataset; `feedrate run` generates what is missing in any case.";
        workflow_train: bool = Flag, "workflow.train", "true", "", Effect::Now, "Train.";
        workflow_evaluation: bool = Flag, "workflow.evaluation", "false", "", Effect::Now, "Evaluate between epochs.";
        workflow_checkpoint: bool = Flag, "workflow.checkpoint", "false", "", Effect::Now, "Write checkpoints.";
        workflow_profiling: bool = Flag, "workflow.profiling", "false", "", Effect::Now,
            "Write `iostat.json` beside the results: what disks and processors did in each second.";
        workflow_debug: bool = Flag, "workflow.debug", "false", "", nothing("DLIO never reads it"), "Left in DLIO's bert.";
        workflow_query: Option<String> = OptionalText, "workflow.query", "null", "",
            nothing("only `dlio_benchmark_query` reads it"), "The key that `dlio_benchmark_query` prints.";

        model_name: String = Text, "model.name", "default", "", Effect::Now, "The model's name, which names the results folder.";
        model_type: Option<String> = OptionalText, "model.type", "null", "", Effect::Now,
            "`transformer` derives the checkpoint from the dimensions of the model.";
        model_model_size_bytes: u64 = WholeBytes, "model.model_size_bytes" ["model.model_size"], "10240", "bytes", Effect::Now,
            "Size of the model in a checkpoint.";
        model_optimization_groups: Vec<u64> = Counts, "model.optimization_groups", "[]", "elements", Effect::Now,
            "Sizes of the optimizer's groups in a checkpoint; bytes, unless `model.optimizer_datatype` is given.";
        model_num_layers: Option<u64> = OptionalCount, "model.num_layers", "-1", "layers", Effect::Now, "Layers of the model.";
        model_layer_parameters: Vec<u64> = Counts, "model.layer_parameters", "[]", "elements", Effect::Now,
            "Sizes of the parameters of one layer in a checkpoint; bytes, unless `model.model_datatype` is given.";
        model_model_datatype: StateType = Datatype, "model.model_datatype", "fp16", "", Effect::Now, "Element type of the model in a checkpoint.";
        model_optimizer_datatype: StateType = Datatype, "model.optimizer_datatype", "fp32", "", Effect::Now,
            "Element type of the optimizer in a checkpoint.";
        model_parallelism_tensor: u32 = Count32, "model.parallelism.tensor", "1", "ranks", Effect::Now, "Tensor parallelism.";
        model_parallelism_pipeline: u32 = Count32, "model.parallelism.pipeline", "1", "ranks", Effect::Now, "Pipeline parallelism.";
        model_parallelism_data: Option<u64> = OptionalCount, "model.parallelism.data", "-1", "ranks", Effect::Now,
            "Data parallelism; needed in checkpoint mode `subset` only.";
        model_parallelism_zero_stage: u32 = ZeroStage, "model.parallelism.zero_stage", "0", "", Effect::Now, "ZeRO stage.";
        model_transformer_vocab_size: u64 = Count, "model.transformer.vocab_size", "32000", "", Effect::Now, "Words of the vocabulary.";
        model_transformer_hidden_size: u64 = Count, "model.transformer.hidden_size", "2048", "", Effect::Now, "Width of the model.";
        model_transformer_ffn_hidden_size: u64 = Count, "model.transformer.ffn_hidden_size", "8192", "", Effect::Now,
            "Width of the feed-forward layers.";
        model_transformer_num_attention_heads: u64 = Count, "model.transformer.num_attention_heads", "32", "", Effect::Now, "Attention heads.";
        model_transformer_num_kv_heads: u64 = Count, "model.transformer.num_kv_heads", "8", "", Effect::Now, "Key and value heads.";

        dataset_record_length_bytes: f64 = Bytes, "dataset.record_length_bytes" ["dataset.record_length"], "65536", "bytes", Effect::Now,
            "Mean size of a sample in bytes, whatever the element type (DLIO counts elements).";
        dataset_record_length_bytes_stdev: f64 = Bytes, "dataset.record_length_bytes_stdev" ["dataset.record_length_stdev"], "0", "bytes", Effect::Now,
            "Deviation of the size of samples from file to file.";
        dataset_record_length_bytes_resize: f64 = Bytes, "dataset.record_length_bytes_resize" ["dataset.record_length_resize"], "0", "bytes", NO_TENSOR,
            "Size of the tensor that DLIO hands to the training.";
        dataset_num_files_train: u64 = Count, "dataset.num_files_train", "8", "files", Effect::Now, "Training files.";
        dataset_num_files_eval: u64 = Count, "dataset.num_files_eval", "0", "files", Effect::Now, "Evaluation files.";
        dataset_generation_buffer_size: u64 = WholeBytes, "dataset.generation_buffer_size", "2147483648", "bytes",
            nothing("files are written in small pieces"), "DLIO's buffer when it generates indexed binary files.";
        dataset_num_samples_per_file: u64 = Positive, "dataset.num_samples_per_file", "1", "samples", Effect::Now, "Samples in each file.";
        dataset_data_folder: String = Text, "dataset.data_folder", "./data/", "", Effect::Now, "Folder of the dataset, below `storage.storage_root`.";
        dataset_num_subfolders_train: u64 = Folders, "dataset.num_subfolders_train", "0", "folders", Effect::Now,
            "Subfolders of the training files; 0 and 1 are flat.";
        dataset_num_subfolders_eval: u64 = Folders, "dataset.num_subfolders_eval", "0", "folders", Effect::Now,
            "Subfolders of the evaluation files; 0 and 1 are flat.";
        dataset_enable_chunking: bool = Flag, "dataset.enable_chunking", "false", "", UNUSED, "Chunked HDF5 files.";
        dataset_chunk_size: u64 = WholeBytes, "dataset.chunk_size", "0", "bytes", UNUSED, "Size of HDF5 chunks.";
        dataset_compression: Compression = CompressionKind, "dataset.compression", "none", "", Effect::Now, "Compression inside the files.";
        dataset_compression_level: u32 = CompressionLevel, "dataset.compression_level", "4", "", Effect::Now, "Level of the compression.";
        dataset_file_prefix: String = Text, "dataset.file_prefix", "img", "", Effect::Now, "Start of every file's name.";
        dataset_format: String = FormatName, "dataset.format", "tfrecord", "", Effect::Now, "File format; `feedrate list` names those that are built.";
        dataset_keep_files: bool = Flag, "dataset.keep_files", "true", "", not_yet("deleting a dataset after the run"),
            "Keep the dataset after the run.";
        dataset_record_element_bytes: u64 = Count, "dataset.record_element_bytes", "4", "bytes",
            nothing("the element type decides, in DLIO too"), "Bytes of an element.";
        dataset_record_element_type: Element = ElementKind, "dataset.record_element_type", "uint8", "", Effect::Now, "Element type of samples; `uint8` where the format is of pictures and cannot hold it.";
        dataset_record_dims: Vec<u64> = Counts, "dataset.record_dims", "[]", "elements", Effect::Now,
            "Dimensions of a sample; without them a square of `record_length_bytes`.";
        dataset_hdf5_chunk_dims: Vec<u64> = Counts, "dataset.hdf5.chunk_dims", "[]", "elements", Effect::Now, "Dimensions of a chunk.";
        dataset_hdf5_num_dset_per_record: u64 = Count, "dataset.hdf5.num_dset_per_record", "1", "datasets", Effect::Now, "Datasets that share a record.";
        dataset_hdf5_max_shape: Vec<u64> = Counts, "dataset.hdf5.max_shape", "[]", "elements", Effect::Now, "Largest shape of a dataset, with or without the axis of samples.";

        reader_data_loader: Option<String> = OptionalText, "reader.data_loader", "null", "", Effect::Now,
            "Loader that is emulated; without it the framework's own (DLIO fails).";
        reader_data_loader_classname: Option<String> = OptionalText, "reader.data_loader_classname", "null", "", NO_PYTHON,
            "Python class of a custom loader.";
        reader_reader_classname: Option<String> = OptionalText, "reader.reader_classname", "null", "", NO_PYTHON,
            "Python class of a custom reader.";
        reader_data_loader_sampler: String = Sampler, "reader.data_loader_sampler", "auto", "",
            nothing("the loader decides how samples are shared"), "How DLIO shares samples among ranks.";
        reader_multiprocessing_context: String = ProcessStart, "reader.multiprocessing_context", "fork", "",
            nothing("workers are threads"), "How worker processes start.";
        reader_read_threads: u32 = Threads, "reader.read_threads", "1", "threads", Effect::Now,
            "Workers of each accelerator; with 0 loader `pytorch` reads when the training asks, the others have one.";
        reader_computation_threads: u32 = Count32, "reader.computation_threads", "1", "threads", Effect::Now, "Workers that decode at once, with loader `tensorflow`; beside `tfrecord` only where it is given.";
        reader_batch_size: u64 = Positive, "reader.batch_size", "1", "samples", Effect::Now, "Samples in a batch.";
        reader_batch_size_eval: u64 = Count, "reader.batch_size_eval", "1", "samples", Effect::Now, "Samples in a batch of the evaluation.";
        reader_prefetch_size: u32 = Count32, "reader.prefetch_size", "2", "batches", Effect::Now,
            "Batches to prefetch; loader `pytorch` shares them among its workers, rounded up.";
        reader_file_shuffle: Shuffle = ShuffleKind, "reader.file_shuffle", "off", "", Effect::Now, "Order of files.";
        reader_sample_shuffle: Shuffle = ShuffleKind, "reader.sample_shuffle", "off", "", Effect::Now, "Order of samples.";
        reader_shuffle_size: u64 = Count, "reader.shuffle_size", "1024", "samples", Effect::Now, "Size of the shuffle buffer of loader `tensorflow`.";
        reader_file_access: String = FileAccess, "reader.file_access", "multi", "", Effect::Now, "How accelerators share files: `multi` gives each its own, in `shared` all read the same file at a time and each its own samples, in `same` all read the same samples, in `collective` one of a group reads for all, in other processes too, in `broadcast` one of a group reads what all of it need alike and sends it to the others, in `mpio` all processes of MPI read together.";
        reader_read_type_memory: bool = InMemory, "reader.read_type", "on_demand", "", Effect::Now,
            "Read each sample when it is needed, or once: then it stays in the memory of the accelerator that read it.";
        reader_transfer_size: Option<u64> = OptionalBytes, "reader.transfer_size", "null", "bytes", Effect::Now,
            "Bytes read at once; without it the format chooses.";
        reader_odirect: bool = Flag, "reader.odirect", "false", "", Effect::Now, "Read past the page cache: the same as `storage.engine: direct`.";
        reader_dont_use_mmap: bool = Flag, "reader.dont_use_mmap", "false", "", nothing("files are read, not mapped, unless the format maps them"), "Keep DALI from mapping files.";
        reader_pin_memory: bool = Flag, "reader.pin_memory", "true", "", nothing("what is copied to a GPU is always pinned"), "Pin the memory of batches.";
        reader_preprocess_time: TimeSpec = Time, "reader.preprocess_time", "{}", "seconds", Effect::Now, "Work on each sample in the worker.";
        reader_preprocess_time_stdev: f64 = Number, "reader.preprocess_time_stdev", "0", "seconds", Effect::Now,
            "Deviation of `preprocess_time`.";
        reader_transformed_record_dims: Vec<u64> = Counts, "reader.transformed_record_dims", "[]", "elements", NO_TENSOR,
            "Dimensions of the tensor that DLIO hands to the training.";
        reader_transformed_record_element_type: Element = ElementKind, "reader.transformed_record_element_type", "uint8", "", NO_TENSOR,
            "Element type of that tensor.";

        train_epochs: u32 = Epochs, "train.epochs", "1", "epochs", Effect::Now, "Epochs.";
        train_total_training_steps: Option<u64> = OptionalPositive, "train.total_training_steps", "-1", "steps", Effect::Now,
            "Steps over the whole run, at most; in `dlio_benchmark` of each epoch, as in DLIO.";
        train_seed_change_epoch: bool = Flag, "train.seed_change_epoch", "true", "", Effect::Now, "Shuffle each epoch anew.";
        train_seed: u64 = Count, "train.seed", "123", "", Effect::Now, "Seed of the orders.";
        train_computation_time: TimeSpec = Time, "train.computation_time", "{}", "seconds", Effect::Now, "Emulated compute of a step.";
        train_computation_time_stdev: f64 = Number, "train.computation_time_stdev", "0", "seconds", Effect::Now,
            "Deviation of `computation_time`.";

        evaluation_eval_time: TimeSpec = Time, "evaluation.eval_time", "{}", "seconds", Effect::Now, "Emulated compute of an evaluation step.";
        evaluation_eval_time_stdev: f64 = Number, "evaluation.eval_time_stdev", "0", "seconds", Effect::Now, "Deviation of `eval_time`.";
        evaluation_eval_after_epoch: u32 = Count32, "evaluation.eval_after_epoch", "1", "epochs", Effect::Now, "Epoch after which the first evaluation comes.";
        evaluation_epochs_between_evals: u32 = Count32, "evaluation.epochs_between_evals", "1", "epochs", Effect::Now, "Epochs from one evaluation to the next.";

        checkpoint_checkpoint_folder: String = Text, "checkpoint.checkpoint_folder", "./checkpoints/", "", Effect::Now, "Folder of the checkpoints.";
        checkpoint_checkpoint_after_epoch: u32 = Count32, "checkpoint.checkpoint_after_epoch", "1", "epochs", Effect::Now,
            "Epoch after which the first checkpoint comes.";
        checkpoint_epochs_between_checkpoints: u32 = Count32, "checkpoint.epochs_between_checkpoints", "1", "epochs", Effect::Now,
            "Epochs from one checkpoint to the next.";
        checkpoint_steps_between_checkpoints: Option<u64> = OptionalCount, "checkpoint.steps_between_checkpoints", "-1", "steps", Effect::Now,
            "Steps from one checkpoint to the next, instead of epochs.";
        checkpoint_type: String = CheckpointType, "checkpoint.type", "rank_zero", "", Effect::Now, "Who writes: rank 0, or all ranks, copies too. DLIO never uses it: where it is not given, a model that is split is written by all that hold a part.";
        checkpoint_mechanism_classname: Option<String> = OptionalText, "checkpoint.checkpoint_mechanism_classname", "null", "", NO_PYTHON,
            "Python class of a custom mechanism.";
        checkpoint_fsync: bool = Flag, "checkpoint.fsync", "false", "", Effect::Now, "Sync each file (no effect in DLIO, by a slip of the pen).";
        checkpoint_time_between_checkpoints: Option<f64> = OptionalNumber, "checkpoint.time_between_checkpoints", "-1", "seconds", Effect::Now,
            "Wait between checkpoints in a run of checkpoints only.";
        checkpoint_num_checkpoints_write: Option<u64> = OptionalCheckpoints, "checkpoint.num_checkpoints_write", "-1", "checkpoints", Effect::Now,
            "Checkpoints written in a run of checkpoints only.";
        checkpoint_num_checkpoints_read: Option<u64> = OptionalCheckpoints, "checkpoint.num_checkpoints_read", "-1", "checkpoints", Effect::Now,
            "Checkpoints read in a run of checkpoints only.";
        checkpoint_recovery_rank_shift: bool = Flag, "checkpoint.recovery_rank_shift", "false", "", Effect::Now,
            "Let each rank read what another wrote.";
        checkpoint_rank_sync: bool = Flag, "checkpoint.rank_sync", "false", "", Effect::Now, "Wait for all ranks inside the timed part; all ranks of one process always do.";
        checkpoint_mode: String = CheckpointMode, "checkpoint.mode", "default", "", Effect::Now, "Write all of the model, or a part of its ranks.";
        checkpoint_randomize_tensor: bool = Flag, "checkpoint.randomize_tensor", "true", "", Effect::Now, "Random content instead of ones.";
        checkpoint_ksm_madv_mergeable_id: u32 = Count32, "checkpoint.ksm.madv_mergeable_id", "12", "", MERGING, "The advice that marks memory as mergeable.";
        checkpoint_ksm_high_ram_trigger: f64 = Number, "checkpoint.ksm.high_ram_trigger", "30.0", "percent", MERGING, "Memory in use at which merging begins.";
        checkpoint_ksm_low_ram_exit: f64 = Number, "checkpoint.ksm.low_ram_exit", "15", "percent", MERGING, "Memory in use at which merging ends.";
        checkpoint_ksm_await_time: f64 = Number, "checkpoint.ksm.await_time", "200", "seconds", MERGING, "Longest wait for merging.";

        output_folder: Option<String> = OptionalText, "output.folder", "null", "", Effect::Now, "Folder of the results.";
        output_log_file: String = Text, "output.log_file", "dlio.log", "", nothing("the log is always `dlio.log`"), "Name of the log.";
        output_metric_exclude_start_steps: u64 = Count, "output.metric.exclude_start_steps", "1", "steps", Effect::Now,
            "Steps left out at the start of each block.";
        output_metric_exclude_end_steps: u64 = Count, "output.metric.exclude_end_steps", "0", "steps", Effect::Now,
            "Steps left out at the end of each block.";

        metric_au: f64 = Share, "metric.au", "0.90", "", Effect::Now, "The accelerator utilisation that is expected.";

        profiling_profiler: String = Profiler, "profiling.profiler", "iostat", "", Effect::Now,
            "The profiler whose file is written: `iostat` or none; `darshan` and `tensorboard` are refused.";
        profiling_iostat_devices: Vec<String> = Texts, "profiling.iostat_devices", "[]", "", Effect::Now, "Disks that `iostat.json` tells of; without any all.";

        storage_storage_type: String = StorageType, "storage.storage_type", "local_fs", "", Effect::Now,
            "Where the dataset lies; `local_fs` (or `file`) is any mounted file system.";
        storage_storage_root: String = Text, "storage.storage_root", "./", "", Effect::Now, "Folder, or bucket, above `dataset.data_folder`.";
        storage_storage_options: Vec<(String, String)> = Options, "storage.storage_options", "{}", "", OBJECT_STORE, "Options of an object storage.";
    }
    feedrate {
        accelerators: Option<u32> = OptionalCount32, "accelerators", "null", "accelerators",
            "Emulated accelerators where the command line gives no number.";
        client_name: Option<String> = OptionalText, "client.name", "null", "",
            "A client that was measured, as `pytorch-npz`, with its costs where none are given; `client: pytorch-npz` is short for it. Without a client the emulated one is ideal: its samples cost what the emulated loader takes.";
        client_per_sample: Option<f64> = NumberOrNull, "client.per_sample", "null", "seconds",
            "Processor time of the job's own code for a sample in a worker, from a warm page cache; what the emulated loader takes itself counts towards it, the rest is burnt.";
        client_per_byte: Option<f64> = NumberOrNull, "client.per_byte", "null", "seconds", "The same for each byte that is read, burnt when it has come.";
        client_per_batch: Option<f64> = NumberOrNull, "client.per_batch", "null", "seconds",
            "The same for a batch that is whole, shared out among the workers that read it.";
        client_handover_bytes_per_second: Option<f64> = OptionalRate, "client.handover_bytes_per_second", "null", "bytes per second",
            "Rate at which a worker puts a batch where the training's process finds it, counted in bytes that were read; needs workers, as all that follow.";
        client_receive_per_batch: Option<f64> = NumberOrNull, "client.receive_per_batch", "null", "seconds",
            "Time of the training's own process for a batch that comes from a worker, when it is asked for: processor time, but for the share of waiting.";
        client_receive_per_byte: Option<f64> = NumberOrNull, "client.receive_per_byte", "null", "seconds", "The same for each byte that was read for it.";
        client_receive_wait_share: Option<f64> = OptionalShare, "client.receive_wait_share", "null", "",
            "Share of these two, from 0 to 1, in which that process waits for workers that are at work instead of computing.";
        client_start_per_epoch: Option<f64> = NumberOrNull, "client.start_per_epoch", "null", "seconds",
            "Processor time of the training's own process at the start of an epoch for each worker, before any of them reads.";
        compute: Option<String> = OptionalText, "compute", "null", "",
            "What carries steps out: `sleep` (a wait), `none`, or `cuda` (a copy of the batch's size and a kernel on a GPU); without it a wait.";
        output_timeline: bool = Flag, "output.timeline", "true", "",
            "Keep what happened in each 100 ms of the run: bytes, operations, CPU, page cache, GPUs.";
        reader_materialize: bool = Flag, "reader.materialize", "false", "",
            "Keep whole batches in memory, as a framework does, instead of reading in pieces.";
        reader_read_at_start: bool = Flag, "reader.read_at_start", "false", "",
            "Read all of the first epoch before its first step, as applications do that load their data at start.";
        reader_shuffle_block: u64 = Positive, "reader.shuffle_block", "1", "samples",
            "Samples that stay in a row under `sample_shuffle`: the dataset is cut into blocks of so many, which come in random order. With `file_access: shared` each accelerator takes whole blocks.";
        reader_reread_share: f64 = Share, "reader.reread_share", "0", "",
            "Share of the files that a second accelerator reads too, in each epoch: with 0.5 1.5 times the dataset is read, and an epoch has as many more steps. Each accelerator reads as many whole files: what share that makes is told where it is far off.";
        reader_head_reads: u32 = Count32, "reader.head.reads", "0", "reads",
            "Reads of the head of each file when it is opened, one after another from its start, before its samples.";
        reader_head_bytes: u64 = WholeBytes, "reader.head.bytes", "0", "bytes", "Bytes of each of these reads.";
        reader_stage: Option<String> = OptionalText, "reader.stage", "null", "",
            "Copy the dataset into a folder of each machine, or with `memory` into its shared memory (`/dev/shm`), and read the copy.";
        reader_stage_when: String = StageMoment, "reader.stage_when", "start", "",
            "When files are copied: all before training (`start`).";
        reader_stage_limit: Option<u64> = OptionalBytes, "reader.stage_limit", "null", "bytes",
            "Bytes that a copy may have on each machine; a larger dataset is refused.";
        reader_stage_keep: bool = Flag, "reader.stage_keep", "false", "",
            "Leave the copy when the run ends, for the next run of the same dataset.";
        reader_collective_size: u32 = Count32, "reader.collective_size", "0", "accelerators",
            "Accelerators of a group of which one reads for all, with `file_access: collective` or `broadcast`; 0 is all of them.";
        checkpoint_format: Option<String> = OptionalText, "checkpoint.format", "null", "",
            "How a state lies in a file: `pt` (torch.save), `safetensors` or `raw`; without it `pt` where the framework is pytorch.";
        checkpoint_interface: WriteInterface = InterfaceName, "checkpoint.interface", "posix", "",
            "How files are written: by `write` (`posix`), or by `fwrite` into a stream of the C library (`stdio`), as C programs do.";
        checkpoint_asynchronous: bool = Flag, "checkpoint.asynchronous", "false", "",
            "Train on while the last checkpoint is written; the next, and the end of the run, wait for it.";
        checkpoint_keep_last: Option<u64> = OptionalPositive, "checkpoint.keep_last", "null", "checkpoints",
            "Checkpoints of a run that are kept: once a newer one is whole, the oldest that this run wrote is removed. Without it all are kept.";
        checkpoint_file_sizes: Vec<u64> = Counts, "checkpoint.file_sizes", "[]", "bytes",
            "Instead of a model, files of these sizes from each rank that writes, each written in one call; `raw` unless a format is given.";
        dataset_foreign: bool = Flag, "dataset.foreign", "false", "",
            "The data folder holds files that others made, of any names: they are read as they are, and none is generated (`--foreign`).";
        dataset_scaling: String = Scaling, "dataset.scaling", "strong", "",
            "With `weak` the numbers of files are those of one accelerator: the dataset grows with them.";
        dataset_split: String = SplitName, "dataset.split", "auto", "",
            "What workers of an accelerator share out: with `shards` each reads whole files, with `samples` the loader decides; `auto` is `shards` for tar files that others made, unless the loader gives each thread its file anyway.";
        reader_verify: bool = Flag, "reader.verify", "false", "", "Compare every byte read with what was generated.";
        reader_decode: bool = Flag, "reader.decode", "true", "",
            "Decode pictures and arrays that lie in files of others, as samples of `webdataset`, `parquet` and `tfrecord`; without it they are read and not decoded.";
        reader_check_crc: bool = Flag, "reader.check_crc", "true", "", "Check the checksums that the format carries.";
        storage_engine: Option<String> = OptionalText, "storage.engine", "null", "",
            "How files are read: `psync`, `mmap` or `direct`; hdf5 also by `libhdf5`, where built with it; without it, as the format needs it, else `psync`.";
        storage_throttle_bytes_per_second: Option<f64> = OptionalRate, "storage.throttle.bytes_per_second", "null", "bytes per second",
            "Read no faster, all accelerators of a process together; `400MB/s` can be written.";
        storage_throttle_latency_seconds: f64 = Wait, "storage.throttle.latency_seconds", "0", "seconds",
            "Wait of each read behind the throttle.";
        storage_throttle_concurrency: Option<u32> = OptionalPositive32, "storage.throttle.concurrency", "null", "reads",
            "Serve so many reads at a time, all accelerators together; each process of several has a share, at least one.";
        storage_delay_seconds: f64 = Wait, "storage.delay_seconds", "0", "seconds", "Wait of each operation.";
        storage_delay_open_seconds: f64 = Wait, "storage.delay.open_seconds", "0", "seconds", "Wait of each open beside that.";
        storage_delay_read_seconds: f64 = Wait, "storage.delay.read_seconds", "0", "seconds", "Wait of each read beside that.";
        train_slow_accelerators: Vec<(u32, f64)> = Factors, "train.slow_accelerators", "{}", "",
            "Accelerators, by their number from 0, whose steps compute so many times as long: `{1: 2.0}`.";
        dataset_row_group_samples: u64 = Count, "dataset.row_group_samples", "64", "samples", "Samples in a row group of a parquet file.";
        dataset_content_seed: u64 = Count, "dataset.content_seed", "10", "", "Seed of the content of the files.";
        dataset_compressible_percent: u32 = Percent, "dataset.compressible_percent", "0", "percent",
            "Share of each 512 bytes of content that is zeros: about what compression saves.";
        dataset_duplicate_percent: u32 = Percent, "dataset.duplicate_percent", "0", "percent",
            "Share of the stretches of 64 KiB that repeat the same 4 MiB in all files: about what deduplication saves.";
    }
    ignored {
        "workflow.do_eval", "Old name of `workflow.evaluation`.";
        "dataset.eval_num_samples_per_file", "Left in DLIO's old dlrm.";
        "dataset.chunk_dims", "DLIO reads `dataset.hdf5.chunk_dims`.";
        "dataset.num_dset_per_record", "DLIO reads `dataset.hdf5.num_dset_per_record`.";
        "dataset.max_shape", "DLIO reads `dataset.hdf5.max_shape`.";
        "train.total_eval_steps", "Left in DLIO's old dlrm.";
        "evaluation.steps_between_evals", "Left in DLIO's old dlrm.";
        "checkpoint.model_size", "Old place of `model.model_size_bytes`.";
        "checkpoint.optimization_groups", "Old place of `model.optimization_groups`.";
        "checkpoint.layer_parameters", "Old place of `model.layer_parameters`.";
        "checkpoint.num_layers", "Old place of `model.num_layers`.";
        "checkpoint.pipeline_parallelism", "Old name of `model.parallelism.pipeline`.";
        "checkpoint.tensor_parallelism", "Old name of `model.parallelism.tensor`.";
    }
}
