//! The table of all keys of a workload. The typed [`Workload`], the reference page and the messages about keys are derived from the table,
//! so that a new key needs one row. The planner decides what the values mean. Long because each key has a row.
//!
//! A row: `field: type = ValueKind, "path" ["alias"], "default as YAML", "unit", effect, "meaning";`

use super::overrides::literal;
use super::time::{Time, TimeSpec};
use super::tree::{Content, Node};
use super::value::*;
use crate::problem::{Location, Problems};
use crate::shape::{Compression, Element, StateType, TableColumn};
use std::collections::BTreeMap;

/// Description of one key.
#[derive(Debug)]
pub struct KeyInfo {
    /// The dotted key.
    pub path: &'static str,
    /// Alternative dotted keys.
    pub aliases: &'static [&'static str],
    /// Type of the values, in words.
    pub kind: &'static str,
    /// The default as YAML text.
    pub default: &'static str,
    /// Unit of a number; empty if it has none.
    pub unit: &'static str,
    /// Description for help and reference pages.
    pub meaning: &'static str,
    /// Effect in this version.
    pub effect: Effect,
    /// Program that uses the key.
    pub origin: Origin,
}

/// Effect of a key in this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The key takes effect.
    Now,
    /// The key belongs to a feature that does not exist yet. A plan that needs it is refused.
    NotYet {
        /// The missing feature.
        feature: &'static str,
    },
    /// The key is accepted but changes nothing.
    Nothing {
        /// The reason.
        reason: &'static str,
    },
}

/// Program that uses a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// DLIO and feedrate.
    Dlio,
    /// Only feedrate.
    Feedrate,
    /// None: existing workloads contain the key, but DLIO ignores it. feedrate warns of the key.
    Ignored,
}

/// Alternative names of sections: (alias, section).
pub const SECTION_ALIASES: &[(&str, &str)] = &[("data_reader", "reader")];

/// Returns the names of a client's costs: the keys of section `client` except `name`, without `client.`.
pub fn client_costs() -> impl Iterator<Item = &'static str> {
    let keys = KEYS.iter().filter_map(|key| key.path.strip_prefix("client."));
    keys.filter(|key| *key != "name")
}

/// A map that may hold credentials. Files that feedrate writes have interpolations instead of their values.
pub const CREDENTIALS: &str = "storage.storage_options";

/// The keys in the file and the overrides.
#[derive(Clone, Debug)]
pub(super) struct Given {
    /// The tree with the names that the user wrote.
    pub(super) written: Node,
    /// The tree with aliases renamed.
    pub(super) tree: Node,
    /// The interpolations as the user wrote them that [`CREDENTIALS`] are made of, or that are made of them, by dotted key.
    pub(super) private: BTreeMap<String, Node>,
    /// The location of each key.
    pub(super) locations: BTreeMap<String, Location>,
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
        /// The values of all keys. Keys that are not given have their defaults.
        #[derive(Clone, Debug)]
        pub struct Workload {
            $(#[doc = concat!("`", $path, "`: ", $meaning)] pub $field: $type,)*
            $(#[doc = concat!("`", $our_path, "`: ", $our_meaning)] pub $our_field: $our_type,)*
            pub(super) given: Given,
        }

        impl Workload {
            /// Reads all keys of the tree. An invalid value becomes a problem, and the default is used.
            pub(super) fn read(given: Given, problems: &mut Problems) -> Self {
                let tree = &given.tree;
                Workload {
                    $($field: value::<$kind>(tree, $path, $default, problems),)*
                    $($our_field: value::<$our_kind>(tree, $our_path, $our_default, problems),)*
                    given,
                }
            }
        }

        /// All keys, DLIO's first.
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

/// Returns the value of a key, or its default if the key is not given or its value is invalid.
fn value<K: ValueKind>(
    tree: &Node,
    path: &str,
    default: &str,
    problems: &mut Problems,
) -> K::Value {
    if let Some(node) = tree.node_at(path) {
        match K::parse(node) {
            Ok(value) => return value,
            Err(problem) => {
                let mut complete = problem.with_key(path, &node.location);
                complete
                    .hint
                    .get_or_insert_with(|| format!("leave it out for the default, `{default}`"));
                problems.push(complete);
            }
        }
    }
    match literal(default).map(|node| K::parse(&node)) {
        Some(Ok(value)) => value,
        _ => unreachable!("a test parses all defaults of the table: {path}"),
    }
}

impl Workload {
    /// Returns the location of a key or section.
    pub fn location(&self, key: &str) -> Option<&Location> {
        self.given.locations.get(key)
    }

    /// Whether a key or section is given.
    pub fn is_given(&self, key: &str) -> bool {
        self.given.locations.contains_key(key)
    }

    /// Returns the tree of the file with overrides applied and aliases renamed.
    pub fn tree(&self) -> &Node {
        &self.given.tree
    }

    /// Returns the given keys without effect, in the order of the table. Keys that are set to their default are left out.
    pub fn given_without_effect(&self) -> impl Iterator<Item = &'static KeyInfo> {
        KEYS.iter().filter(|key| {
            key.effect != Effect::Now && self.is_given(key.path) && !self.is_default(key)
        })
    }

    fn is_default(&self, key: &KeyInfo) -> bool {
        let given = self.given.tree.node_at(key.path);
        let default = literal(key.default);
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
    nothing("tensors are generated piece by piece, so there is no equal memory to merge");
const NO_PYTHON: Effect = nothing("no Python class is loaded");
const NO_TENSOR: Effect = nothing("no tensor is passed to training");
const UNUSED: Effect = nothing("not used by DLIO either");

keys! {
    dlio {
        framework: Framework = FrameworkName, "framework", "tensorflow", "", Effect::Now,
            "The emulated framework; it selects the loader if `reader.data_loader` is not given.";

        workflow_generate_data: bool = Flag, "workflow.generate_data", "false", "", Effect::Now, "Generate the dataset; `feedrate run` generates a missing dataset in any case.";
        workflow_train: bool = Flag, "workflow.train", "true", "", Effect::Now, "Train.";
        workflow_evaluation: bool = Flag, "workflow.evaluation", "false", "", Effect::Now, "Evaluate between epochs.";
        workflow_checkpoint: bool = Flag, "workflow.checkpoint", "false", "", Effect::Now, "Write checkpoints.";
        workflow_profiling: bool = Flag, "workflow.profiling", "false", "", Effect::Now,
            "Write `iostat.json` beside the results: the activity of disks and processors in each second.";
        workflow_debug: bool = Flag, "workflow.debug", "false", "", nothing("DLIO does not read it either"), "Present in DLIO's bert.";
        workflow_query: Option<String> = OptionalText, "workflow.query", "null", "",
            nothing("only `dlio_benchmark_query` reads it"), "The key that `dlio_benchmark_query` prints.";

        model_name: String = Text, "model.name", "default", "", Effect::Now, "Name of the model, used in the name of the results folder.";
        model_type: Option<String> = OptionalText, "model.type", "null", "", Effect::Now,
            "Type of the model; `transformer` derives the checkpoint from the model's dimensions.";
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
            "Data parallelism; needed only in checkpoint mode `subset`.";
        model_parallelism_zero_stage: u32 = ZeroStage, "model.parallelism.zero_stage", "0", "", Effect::Now, "ZeRO stage.";
        model_transformer_vocab_size: u64 = Count, "model.transformer.vocab_size", "32000", "", Effect::Now, "Size of the vocabulary.";
        model_transformer_hidden_size: u64 = Count, "model.transformer.hidden_size", "2048", "", Effect::Now, "Width of the model.";
        model_transformer_ffn_hidden_size: u64 = Count, "model.transformer.ffn_hidden_size", "8192", "", Effect::Now,
            "Width of the feed-forward layers.";
        model_transformer_num_attention_heads: u64 = Count, "model.transformer.num_attention_heads", "32", "", Effect::Now, "Attention heads.";
        model_transformer_num_kv_heads: u64 = Count, "model.transformer.num_kv_heads", "8", "", Effect::Now, "Key and value heads.";

        dataset_record_length_bytes: f64 = Bytes, "dataset.record_length_bytes" ["dataset.record_length"], "65536", "bytes", Effect::Now,
            "Mean size of a sample in bytes, independent of the element type (DLIO counts elements).";
        dataset_record_length_bytes_stdev: f64 = Bytes, "dataset.record_length_bytes_stdev" ["dataset.record_length_stdev"], "0", "bytes", Effect::Now,
            "Standard deviation of the sample size between files.";
        dataset_record_length_bytes_resize: f64 = Bytes, "dataset.record_length_bytes_resize" ["dataset.record_length_resize"], "0", "bytes", NO_TENSOR,
            "Size of the tensor that DLIO passes to training.";
        dataset_num_files_train: u64 = Count, "dataset.num_files_train", "8", "files", Effect::Now, "Number of training files.";
        dataset_num_files_eval: u64 = Count, "dataset.num_files_eval", "0", "files", Effect::Now, "Number of evaluation files.";
        dataset_generation_buffer_size: u64 = WholeBytes, "dataset.generation_buffer_size", "2147483648", "bytes",
            nothing("files are written in small pieces"), "Buffer of DLIO for generating indexed binary files.";
        dataset_num_samples_per_file: u64 = Positive, "dataset.num_samples_per_file", "1", "samples", Effect::Now, "Number of samples in each file.";
        dataset_samples_in_files: Vec<u64> = Counts, "dataset.samples_in_files", "[]", "samples", Effect::Now,
            "Number of samples in each training file of other programs, if the numbers differ; `num_samples_per_file` is then their mean.";
        dataset_data_folder: String = Text, "dataset.data_folder", "./data/", "", Effect::Now, "Folder of the dataset, below `storage.storage_root`.";
        dataset_num_subfolders_train: u64 = Folders, "dataset.num_subfolders_train", "0", "folders", Effect::Now,
            "Number of subfolders for training files; 0 and 1 mean none.";
        dataset_num_subfolders_eval: u64 = Folders, "dataset.num_subfolders_eval", "0", "folders", Effect::Now,
            "Number of subfolders for evaluation files; 0 and 1 mean none.";
        dataset_enable_chunking: bool = Flag, "dataset.enable_chunking", "false", "", UNUSED, "Chunked HDF5 files.";
        dataset_chunk_size: u64 = WholeBytes, "dataset.chunk_size", "0", "bytes", UNUSED, "Size of HDF5 chunks.";
        dataset_compression: Compression = CompressionKind, "dataset.compression", "none", "", Effect::Now, "Compression inside the files.";
        dataset_compression_level: u32 = CompressionLevel, "dataset.compression_level", "4", "", Effect::Now, "Level of the compression.";
        dataset_file_prefix: String = Text, "dataset.file_prefix", "img", "", Effect::Now, "Prefix of file names.";
        dataset_format: String = FormatName, "dataset.format", "tfrecord", "", Effect::Now, "File format; `feedrate list` shows the available ones.";
        dataset_keep_files: bool = Flag, "dataset.keep_files", "true", "", not_yet("deleting a dataset after the run"),
            "Keep the dataset after the run.";
        dataset_record_element_bytes: u64 = Count, "dataset.record_element_bytes", "4", "bytes",
            nothing("the element type determines it, as in DLIO"), "Bytes of an element.";
        dataset_record_element_type: Element = ElementKind, "dataset.record_element_type", "uint8", "", Effect::Now, "Element type of samples. Image formats use `uint8` instead of types that they cannot store.";
        dataset_record_dims: Vec<u64> = Counts, "dataset.record_dims", "[]", "elements", Effect::Now,
            "Dimensions of a sample; by default a square of `record_length_bytes`.";
        dataset_hdf5_chunk_dims: Vec<u64> = Counts, "dataset.hdf5.chunk_dims", "[]", "elements", Effect::Now, "Dimensions of an HDF5 chunk.";
        dataset_hdf5_num_dset_per_record: u64 = Count, "dataset.hdf5.num_dset_per_record", "1", "datasets", Effect::Now, "Number of HDF5 datasets into which a record is split.";
        dataset_hdf5_max_shape: Vec<u64> = Counts, "dataset.hdf5.max_shape", "[]", "elements", Effect::Now, "Maximum shape of an HDF5 dataset, with or without the sample axis.";
        dataset_parquet_columns: Vec<TableColumn> = Columns, "dataset.parquet.columns", "[]", "", Effect::Now,
            "Columns of generated parquet files, each as `{name: x, dtype: float32, size: 1}`. In existing files, the names of the columns that are read; by default all.";
        dataset_parquet_row_group_size: u64 = Positive, "dataset.parquet.row_group_size", "1024", "samples", Effect::Now,
            "Samples in a row group of generated parquet files. Without `dataset.parquet.columns` the default is `dataset.row_group_samples`.";
        dataset_parquet_generation_batch_size: u64 = Count, "dataset.parquet.generation_batch_size", "0", "samples", Effect::Now,
            "Samples that DLIO generates at once. Row groups are not longer. 0 means no limit.";
        dataset_parquet_partition_by: Option<String> = OptionalText, "dataset.parquet.partition_by", "null", "", Effect::NotYet { feature: "folders of partitioned parquet files" },
            "Column by which DLIO divides rows into folders.";
        dataset_parquet_read_mode: String = Text, "dataset.parquet.read_mode", "row_group", "", nothing("rows are always read by row groups, as in DLIO"),
            "Present in MLPerf's dlrm.";

        reader_data_loader: Option<String> = OptionalText, "reader.data_loader", "null", "", Effect::Now,
            "The emulated loader; by default the loader of the framework (DLIO fails without it).";
        reader_data_loader_classname: Option<String> = OptionalText, "reader.data_loader_classname", "null", "", NO_PYTHON,
            "Python class of a custom loader.";
        reader_reader_classname: Option<String> = OptionalText, "reader.reader_classname", "null", "", NO_PYTHON,
            "Python class of a custom reader.";
        reader_data_loader_sampler: String = Sampler, "reader.data_loader_sampler", "auto", "",
            nothing("the loader determines how samples are shared"), "Method by which DLIO shares samples among ranks.";
        reader_multiprocessing_context: String = ProcessStart, "reader.multiprocessing_context", "fork", "",
            nothing("workers are threads"), "Start method of worker processes.";
        reader_read_threads: u32 = Threads, "reader.read_threads", "1", "threads", Effect::Now,
            "Number of reading workers per accelerator. With 0, loader `pytorch` reads in the training thread; other loaders use one worker.";
        reader_computation_threads: u32 = Count32, "reader.computation_threads", "1", "threads", Effect::Now, "Number of workers that decode at the same time with loader `tensorflow`. For formats other than `tfrecord` there is no limit unless the key is given.";
        reader_batch_size: u64 = Positive, "reader.batch_size", "1", "samples", Effect::Now, "Samples in a batch.";
        reader_batch_size_eval: u64 = Count, "reader.batch_size_eval", "1", "samples", Effect::Now, "Samples in an evaluation batch.";
        reader_prefetch_size: u32 = Count32, "reader.prefetch_size", "2", "batches", Effect::Now,
            "Number of batches to prefetch; loader `pytorch` divides it among its workers and rounds up.";
        reader_file_shuffle: Shuffle = ShuffleKind, "reader.file_shuffle", "off", "", Effect::Now, "Order of files: as named, shuffled by `train.seed`, or shuffled differently in each run.";
        reader_sample_shuffle: Shuffle = ShuffleKind, "reader.sample_shuffle", "off", "", Effect::Now, "Order of samples: as stored, shuffled by `train.seed`, or shuffled differently in each run.";
        reader_shuffle_size: u64 = Count, "reader.shuffle_size", "1024", "samples", Effect::Now, "Size of the shuffle buffer of loader `tensorflow`.";
        reader_file_access: String = FileAccess, "reader.file_access", "multi", "", Effect::Now, "How accelerators share files. `multi`: each reads its own files. `shared`: all read the same file at a time, each its own samples. `same`: all read the same samples. `collective`: one accelerator of each group reads the samples of all of them, across processes. `broadcast`: one accelerator of each group reads the samples that all of them need, and sends them to the others. `mpio`: all MPI processes read together.";
        reader_read_type_memory: bool = InMemory, "reader.read_type", "on_demand", "", Effect::Now,
            "`on_demand` reads each sample when it is needed; `memory` reads it once and keeps it in the memory of the accelerator that read it.";
        reader_transfer_size: Option<u64> = OptionalBytes, "reader.transfer_size", "null", "bytes", Effect::Now,
            "Maximum bytes per read; by default the format determines it.";
        reader_odirect: bool = Flag, "reader.odirect", "false", "", Effect::Now, "Bypass the page cache, as with `storage.engine: direct`.";
        reader_dont_use_mmap: bool = Flag, "reader.dont_use_mmap", "false", "", nothing("files are mapped only if the format requires it"), "Prevent DALI from mapping files.";
        reader_pin_memory: bool = Flag, "reader.pin_memory", "true", "", nothing("memory that is copied to a GPU is always pinned"), "Pin the memory of batches.";
        reader_preprocess_time: TimeSpec = Time, "reader.preprocess_time", "{}", "seconds", Effect::Now, "Preprocessing time of each sample in its worker.";
        reader_preprocess_time_stdev: f64 = Number, "reader.preprocess_time_stdev", "0", "seconds", Effect::Now,
            "Standard deviation of `preprocess_time`.";
        reader_transformed_record_dims: Vec<u64> = Counts, "reader.transformed_record_dims", "[]", "elements", NO_TENSOR,
            "Dimensions of the tensor that DLIO passes to training.";
        reader_transformed_record_element_type: Element = ElementKind, "reader.transformed_record_element_type", "uint8", "", NO_TENSOR,
            "Element type of the tensor that DLIO passes to training.";

        train_epochs: u32 = Epochs, "train.epochs", "1", "epochs", Effect::Now, "Number of epochs.";
        train_total_training_steps: Option<u64> = OptionalPositive, "train.total_training_steps", "-1", "steps", Effect::Now,
            "Maximum number of steps of the whole run; in `dlio_benchmark`, as in DLIO, of each epoch.";
        train_seed_change_epoch: bool = Flag, "train.seed_change_epoch", "true", "", Effect::Now, "Shuffle every epoch differently.";
        train_seed: u64 = Count, "train.seed", "123", "", Effect::Now, "Seed for shuffling.";
        train_computation_time: TimeSpec = Time, "train.computation_time", "{}", "seconds", Effect::Now, "Emulated compute time of a training step.";
        train_computation_time_stdev: f64 = Number, "train.computation_time_stdev", "0", "seconds", Effect::Now,
            "Standard deviation of `computation_time`.";

        evaluation_eval_time: TimeSpec = Time, "evaluation.eval_time", "{}", "seconds", Effect::Now, "Emulated compute time of an evaluation step.";
        evaluation_eval_time_stdev: f64 = Number, "evaluation.eval_time_stdev", "0", "seconds", Effect::Now, "Standard deviation of `eval_time`.";
        evaluation_eval_after_epoch: u32 = Count32, "evaluation.eval_after_epoch", "1", "epochs", Effect::Now, "Epoch after which the first evaluation takes place.";
        evaluation_epochs_between_evals: u32 = Count32, "evaluation.epochs_between_evals", "1", "epochs", Effect::Now, "Epochs from one evaluation to the next.";

        checkpoint_checkpoint_folder: String = Text, "checkpoint.checkpoint_folder", "./checkpoints/", "", Effect::Now, "Folder of the checkpoints, or a URL such as `s3://bucket/prefix`. A relative folder is below `--data`, or in the store of the data.";
        checkpoint_checkpoint_after_epoch: u32 = Count32, "checkpoint.checkpoint_after_epoch", "1", "epochs", Effect::Now,
            "Epoch after which the first checkpoint is written.";
        checkpoint_epochs_between_checkpoints: u32 = Count32, "checkpoint.epochs_between_checkpoints", "1", "epochs", Effect::Now,
            "Epochs from one checkpoint to the next.";
        checkpoint_steps_between_checkpoints: Option<u64> = OptionalCount, "checkpoint.steps_between_checkpoints", "-1", "steps", Effect::Now,
            "Steps from one checkpoint to the next, instead of epochs.";
        checkpoint_type: String = CheckpointType, "checkpoint.type", "rank_zero", "", Effect::Now, "Ranks that write: rank 0, or all ranks including ranks with copies. By default every rank that holds a part of a split model writes this part, as in DLIO, where the key has no effect.";
        checkpoint_mechanism_classname: Option<String> = OptionalText, "checkpoint.checkpoint_mechanism_classname", "null", "", NO_PYTHON,
            "Python class of a custom mechanism.";
        checkpoint_fsync: bool = Flag, "checkpoint.fsync", "false", "", Effect::Now, "Sync each file after writing (without effect in DLIO because of a bug).";
        checkpoint_time_between_checkpoints: Option<f64> = OptionalNumber, "checkpoint.time_between_checkpoints", "-1", "seconds", Effect::Now,
            "Wait between checkpoints; only in runs without training.";
        checkpoint_num_checkpoints_write: Option<u64> = OptionalCheckpoints, "checkpoint.num_checkpoints_write", "-1", "checkpoints", Effect::Now,
            "Number of checkpoints to write; only in runs without training.";
        checkpoint_num_checkpoints_read: Option<u64> = OptionalCheckpoints, "checkpoint.num_checkpoints_read", "-1", "checkpoints", Effect::Now,
            "Number of checkpoints to read; only in runs without training.";
        checkpoint_recovery_rank_shift: bool = Flag, "checkpoint.recovery_rank_shift", "false", "", Effect::Now,
            "Let each rank read the checkpoint of another rank.";
        checkpoint_rank_sync: bool = Flag, "checkpoint.rank_sync", "false", "", Effect::Now, "Include waiting for all ranks in the measured time; ranks in one process always wait for each other.";
        checkpoint_mode: String = CheckpointMode, "checkpoint.mode", "default", "", Effect::Now, "`default` writes the whole model, `subset` the parts of some of its ranks.";
        checkpoint_randomize_tensor: bool = Flag, "checkpoint.randomize_tensor", "true", "", Effect::Now, "Write random values instead of ones.";
        checkpoint_ksm_madv_mergeable_id: u32 = Count32, "checkpoint.ksm.madv_mergeable_id", "12", "", MERGING, "The advice that marks memory as mergeable.";
        checkpoint_ksm_high_ram_trigger: f64 = Number, "checkpoint.ksm.high_ram_trigger", "30.0", "percent", MERGING, "Memory in use at which merging begins.";
        checkpoint_ksm_low_ram_exit: f64 = Number, "checkpoint.ksm.low_ram_exit", "15", "percent", MERGING, "Memory in use at which merging ends.";
        checkpoint_ksm_await_time: f64 = Number, "checkpoint.ksm.await_time", "200", "seconds", MERGING, "Longest wait for merging.";

        output_folder: Option<String> = OptionalText, "output.folder", "null", "", Effect::Now, "Folder of the results.";
        output_log_file: String = Text, "output.log_file", "dlio.log", "", Effect::Now, "Name of the log in the folder of results.";
        output_metric_exclude_start_steps: u64 = Count, "output.metric.exclude_start_steps", "1", "steps", Effect::Now,
            "Steps left out at the start of each block.";
        output_metric_exclude_end_steps: u64 = Count, "output.metric.exclude_end_steps", "0", "steps", Effect::Now,
            "Steps left out at the end of each block.";

        metric_au: f64 = Share, "metric.au", "0.90", "", Effect::Now, "Target accelerator utilisation, from 0 to 1.";

        profiling_profiler: String = Profiler, "profiling.profiler", "iostat", "", Effect::Now,
            "The profiler that writes a file: `iostat` or `none`; `darshan` and `tensorboard` are refused.";
        profiling_iostat_devices: Vec<String> = Texts, "profiling.iostat_devices", "[]", "", Effect::Now, "Disks in `iostat.json`; by default all.";

        storage_storage_type: String = StorageType, "storage.storage_type", "local_fs", "", Effect::Now,
            "Storage of the dataset; `local_fs` (or `file`) is any mounted file system, and `direct_fs` the same, read with O_DIRECT as by MLPerf Storage v3's client. A URL as data folder (`s3://bucket/prefix`, `gs://`, `az://`) sets it.";
        storage_storage_root: String = Text, "storage.storage_root", "./", "", Effect::Now, "Folder or bucket that contains `dataset.data_folder`.";
        storage_storage_options: Vec<(String, String)> = Options, "storage.storage_options", "{}", "", Effect::Now,
            "Options of object stores: `endpoint_url`, `region`, `access_key_id`, `secret_access_key`, `s3_force_path_style`, `s3_max_attempts`, `connect_timeout` and `read_timeout` in seconds, and those of the crate `object_store`; environment variables apply where an option is missing. `storage_library: direct` and `uri_scheme: direct` read files with O_DIRECT, as `storage_type: direct_fs` does; `prefetch_window` is the number of files in a window, or of row groups that are read ahead (`reader.in_flight`).";
        storage_storage_library: Option<String> = OptionalText, "storage.storage_library" ["reader.storage_library"], "null", "", Effect::Now,
            "As the option of this name in `storage.storage_options`.";
        storage_s3_force_path_style: Option<bool> = OptionalFlag, "storage.s3_force_path_style", "null", "", Effect::Now,
            "As the option of this name in `storage.storage_options`.";
    }
    feedrate {
        accelerators: Option<u32> = OptionalCount32, "accelerators", "null", "accelerators",
            "Number of emulated accelerators, unless the command line gives one.";
        client_name: Option<String> = OptionalText, "client.name", "null", "",
            "A measured client, such as `pytorch-npz`, whose costs apply unless they are given; `client: pytorch-npz` is a short form. Without a client, samples take only the time of the emulated loader.";
        client_per_sample: Option<f64> = NumberOrNull, "client.per_sample", "null", "seconds",
            "Processor time of the job's code in a worker for each sample from a warm page cache. The time that the emulated loader takes counts towards it; the rest is spent in a busy loop.";
        client_per_byte: Option<f64> = NumberOrNull, "client.per_byte", "null", "seconds", "Processor time of the job's code in a worker for each byte, spent after it was read.";
        client_per_batch: Option<f64> = NumberOrNull, "client.per_batch", "null", "seconds",
            "Processor time of the job's code in the workers for each complete batch, divided among the workers that read it.";
        client_handover_bytes_per_second: Option<f64> = OptionalRate, "client.handover_bytes_per_second", "null", "bytes per second",
            "Rate at which a worker hands a batch over to the training process, in bytes read. This key and the following ones need workers.";
        client_shared_bytes_per_second: Option<f64> = OptionalRate, "client.shared_bytes_per_second", "null", "bytes per second",
            "Highest rate, in bytes read, of the workers of all accelerators together, for example because they share the memory's bandwidth. Each process gets the share of its accelerators; waiting keeps a core busy.";
        client_pin_bytes_per_second: Option<f64> = OptionalRate, "client.pin_bytes_per_second", "null", "bytes per second",
            "Rate, in bytes read, of the one thread that pins the batches of an accelerator between its workers and its steps. It works beside the steps; its use of a core is not emulated.";
        client_receive_per_batch: Option<f64> = NumberOrNull, "client.receive_per_batch", "null", "seconds",
            "Time of the training process for receiving a batch from a worker: processor time, except for `client.receive_wait_share`.";
        client_receive_per_byte: Option<f64> = NumberOrNull, "client.receive_per_byte", "null", "seconds", "Time of the training process for receiving each byte that was read for a batch.";
        client_receive_wait_share: Option<f64> = OptionalShare, "client.receive_wait_share", "null", "",
            "Share of the receive times, from 0 to 1, that the training process spends waiting for busy workers, without using a core.";
        client_start_per_epoch: Option<f64> = NumberOrNull, "client.start_per_epoch", "null", "seconds",
            "Processor time of the training process for starting each worker at the start of an epoch, before any worker reads.";
        compute: Option<String> = OptionalText, "compute", "null", "",
            "How steps are executed: `sleep` (a wait, the default), `none`, or `cuda` (a copy of the batch's size and a kernel on a GPU).";
        expect_au: Option<f64> = OptionalTargetPercent, "expect.au", "null", "percent",
            "Gate of `run`, `show` and `study run`, and target of `scale`: lowest accelerator utilisation. The section `expect` only decides exit codes and test results.";
        expect_bytes_per_second: Option<f64> = OptionalRate, "expect.bytes_per_second", "null", "bytes per second",
            "Gate: lowest `delivered_bytes_per_second`, such as `2GB/s`.";
        expect_samples_per_second: Option<f64> = NumberOrNull, "expect.samples_per_second", "null", "samples per second",
            "Gate: lowest `samples_per_second`.";
        expect_read_latency_p99_s: Option<f64> = NumberOrNull, "expect.read_latency_p99_s", "null", "seconds",
            "Gate: highest 99th percentile of the duration of read calls.";
        output_timeline: bool = Flag, "output.timeline", "true", "",
            "Record the activity in each 100 ms of the run: bytes, operations, CPU, page cache, GPUs.";
        reader_in_flight: Option<u32> = OptionalPositive32, "reader.in_flight", "null", "requests",
            "Number of requests that a reading worker of loader `pytorch` keeps outstanding. With more than 1, a request reads a whole file of one sample, or a whole row group of parquet, without decoding; files are read in windows of 256 with the next window behind, and as many row groups ahead as are in flight (`storage.storage_options.prefetch_window`). By default 1, as in PyTorch, except where MLPerf Storage v3's client keeps 64: with `storage_type: direct_fs`, and in `dlio_benchmark` for parquet.";
        reader_materialize: bool = Flag, "reader.materialize", "false", "",
            "Keep complete batches in memory, as frameworks do, instead of reading in pieces.";
        reader_read_at_start: bool = Flag, "reader.read_at_start", "false", "",
            "Read all samples of the first epoch before its first step, like applications that load their data at start.";
        reader_shuffle_block: u64 = Positive, "reader.shuffle_block", "1", "samples",
            "Number of consecutive samples that `sample_shuffle` keeps together: blocks of this size are shuffled. With `file_access: shared` each accelerator reads whole blocks.";
        reader_reread_share: f64 = Share, "reader.reread_share", "0", "",
            "Share of the files that a second accelerator also reads in each epoch. With 0.5, 1.5 times the dataset is read, and an epoch has 1.5 times the steps. All accelerators read the same number of whole files; a warning reports an actual share that differs much.";
        reader_head_reads: u32 = Count32, "reader.head.reads", "0", "reads",
            "Number of sequential reads from the start of each file when it is opened, before its samples are read.";
        reader_head_bytes: u64 = WholeBytes, "reader.head.bytes", "0", "bytes", "Bytes of each read at the start of a file.";
        reader_stage: Option<String> = OptionalText, "reader.stage", "null", "",
            "Copy the dataset into this folder on each machine, or with `memory` into shared memory (`/dev/shm`), and read the copy.";
        reader_stage_when: String = StageMoment, "reader.stage_when", "start", "",
            "Time of copying: `start` copies all files before training.";
        reader_stage_limit: Option<u64> = OptionalBytes, "reader.stage_limit", "null", "bytes",
            "Maximum size of the copy on each machine; a larger dataset is refused.";
        reader_stage_keep: bool = Flag, "reader.stage_keep", "false", "",
            "Keep the copy after the run, for the next run with the same dataset.";
        reader_collective_size: u32 = Count32, "reader.collective_size", "0", "accelerators",
            "Number of accelerators in a group with `file_access: collective` or `broadcast`; 0 means all.";
        checkpoint_format: Option<String> = OptionalText, "checkpoint.format", "null", "",
            "File format of checkpoints: `pt` (torch.save), `tf` (tf.train.Checkpoint), `safetensors` or `raw`. The default is `pt` for models with framework pytorch, `tf` with tensorflow, and `raw` for files of given sizes.";
        checkpoint_interface: WriteInterface = InterfaceName, "checkpoint.interface", "posix", "",
            "How files are written: `posix` calls `write`; `stdio` calls `fwrite` of the C library, as C programs do.";
        checkpoint_asynchronous: bool = Flag, "checkpoint.asynchronous", "false", "",
            "Continue training while a checkpoint is written. The next checkpoint and the end of the run wait for it.";
        checkpoint_keep_last: Option<u64> = OptionalPositive, "checkpoint.keep_last", "null", "checkpoints",
            "Number of checkpoints to keep: when a new one is complete, the oldest that this run wrote is removed. By default all are kept.";
        checkpoint_file_sizes: Vec<u64> = Counts, "checkpoint.file_sizes", "[]", "bytes",
            "Write files of these sizes from each writing rank instead of a model, each in one call, as `raw` unless a format is given.";
        dataset_foreign: bool = Flag, "dataset.foreign", "false", "",
            "Read the existing files of the data folder, under any names, and generate none (`--foreign`).";
        dataset_members: Vec<String> = Texts, "dataset.members", "[]", "",
            "Names of the datasets or arrays that are read in existing files (`dataset.foreign`). By default, each one with a part of every sample and at least 10 % of the bytes of the largest.";
        dataset_scaling: String = Scaling, "dataset.scaling", "strong", "",
            "With `weak`, the numbers of files are per accelerator, so that the dataset grows with the accelerators.";
        dataset_split: String = SplitName, "dataset.split", "auto", "",
            "How the workers of an accelerator divide its samples. `shards`: each worker reads whole files. `samples`: the loader decides. `auto` means `shards` for existing tar files (`dataset.foreign`), unless the loader interleaves whole files itself.";
        reader_requests: Option<String> = OptionalRequests, "reader.requests", "null", "",
            "Requests without `reader.transfer_size`. `library`: as the format's usual library makes them (numpy for npz and npy, Pillow for jpeg and png, h5py for hdf5) on a file system with blocks of 4 KiB; other formats are read as with `large`. `large`: as large as the format's reader allows. By default `library` for the loaders `pytorch` and `tensorflow`, else `large`; always `large` for objects in a store.";
        reader_verify: bool = Flag, "reader.verify", "false", "", "Compare every byte read with the generated content.";
        reader_decode: bool = Flag, "reader.decode", "true", "",
            "Decode images and arrays inside existing files of the formats `webdataset`, `parquet` and `tfrecord`; otherwise they are only read. With `false`, files of one sample are read whole, as by MLPerf Storage v3's client, and files of `jpeg` and `png` are plain bytes of the record length, as in its retinanet.";
        reader_check_crc: bool = Flag, "reader.check_crc", "true", "", "Verify the checksums of the file format.";
        storage_engine: Option<String> = OptionalText, "storage.engine", "null", "",
            "How files are read: `psync`, `mmap` or `direct`, and for hdf5 `libhdf5` in builds that include it. By default the engine that the format needs, else `psync`.";
        storage_throttle_bytes_per_second: Option<f64> = OptionalRate, "storage.throttle.bytes_per_second", "null", "bytes per second",
            "Maximum read rate of all accelerators of a process together, such as `400MB/s`.";
        storage_throttle_latency_seconds: f64 = Wait, "storage.throttle.latency_seconds", "0", "seconds",
            "Added latency of each read in the throttle.";
        storage_throttle_concurrency: Option<u32> = OptionalPositive32, "storage.throttle.concurrency", "null", "reads",
            "Maximum number of reads at the same time over all accelerators. Several processes divide it, each with at least one.";
        storage_delay_seconds: f64 = Wait, "storage.delay_seconds", "0", "seconds", "Added latency of each storage operation.";
        storage_delay_open_seconds: f64 = Wait, "storage.delay.open_seconds", "0", "seconds", "Added latency of each open, in addition to `storage.delay_seconds`.";
        storage_delay_read_seconds: f64 = Wait, "storage.delay.read_seconds", "0", "seconds", "Added latency of each read, in addition to `storage.delay_seconds`.";
        train_slow_accelerators: Vec<(u32, f64)> = Factors, "train.slow_accelerators", "{}", "",
            "Factors for the compute time of individual accelerators, numbered from 0: `{1: 2.0}` doubles the compute time of the second accelerator.";
        dataset_stored_sample_bytes: Option<u64> = OptionalBytes, "dataset.stored_sample_bytes", "null", "bytes",
            "Mean bytes on storage of a sample in existing files (`dataset.foreign`) whose size depends on their content, such as `jpeg`; estimated by default.";
        dataset_row_group_samples: u64 = Count, "dataset.row_group_samples", "64", "samples", "Samples in a row group of a parquet file.";
        dataset_content_seed: u64 = Count, "dataset.content_seed", "10", "", "Seed of the content of the files.";
        dataset_compressible_percent: u32 = Percent, "dataset.compressible_percent", "0", "percent",
            "Share of zeros in each 512 bytes of content: about the share that compression saves.";
        dataset_duplicate_percent: u32 = Percent, "dataset.duplicate_percent", "0", "percent",
            "Share of the 64 KiB blocks that repeat the same 4 MiB in all files: about the share that deduplication saves.";
    }
    ignored {
        "workflow.do_eval", "Former name of `workflow.evaluation`.";
        "dataset.eval_num_samples_per_file", "Present in DLIO's old dlrm.";
        "dataset.chunk_dims", "DLIO reads `dataset.hdf5.chunk_dims`.";
        "dataset.num_dset_per_record", "DLIO reads `dataset.hdf5.num_dset_per_record`.";
        "dataset.max_shape", "DLIO reads `dataset.hdf5.max_shape`.";
        "train.total_eval_steps", "Present in DLIO's old dlrm.";
        "evaluation.steps_between_evals", "Present in DLIO's old dlrm.";
        "checkpoint.model_size", "Former name of `model.model_size_bytes`.";
        "checkpoint.optimization_groups", "Former name of `model.optimization_groups`.";
        "checkpoint.layer_parameters", "Former name of `model.layer_parameters`.";
        "checkpoint.num_layers", "Former name of `model.num_layers`.";
        "checkpoint.pipeline_parallelism", "Former name of `model.parallelism.pipeline`.";
        "checkpoint.tensor_parallelism", "Former name of `model.parallelism.tensor`.";
    }
}
