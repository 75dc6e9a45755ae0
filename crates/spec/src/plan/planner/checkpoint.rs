//! Plans checkpoints: schedule, content and writing ranks.

use super::storage::BUILD_WITH_OBJECTS;
use super::{Builder, WAIT_MAX_S};
use crate::object_url::ObjectUrl;
use crate::plan::state::{Layers, StatePlan, StateType, Transformer, Writers};
use crate::plan::{Cache, CheckpointOnlyPlan, CheckpointPlan, TrainPlan};
use crate::workload::Framework;

/// Maximum number of ranks of all copies of a model.
const RANKS_MAX: u64 = 1 << 16;
/// Maximum number of layers. It is low enough that sizes do not overflow.
const LAYERS_MAX: u64 = 100_000;
/// Maximum of each dimension of a model.
const DIMENSION_MAX: u64 = 1 << 24;
/// Maximum bytes of a file that is written in one call, and is thus completely in memory.
const FILE_BYTES_MAX: u64 = 64 << 20;

impl Builder<'_> {
    /// Returns the checkpoints of the run; `None` if it has none.
    pub(super) fn checkpoint(
        &mut self,
        train: &TrainPlan,
        accelerators: u32,
    ) -> Option<CheckpointPlan> {
        let w = self.w;
        let alone =
            if self.is_checkpoint_only() { Some(self.checkpoint_only_plan()) } else { None };
        let has_checkpoints = alone.is_some() || self.trains() && self.reaches_checkpoint(train);
        if !w.workflow_checkpoint || !has_checkpoints {
            return None;
        }
        self.check_checkpoint_settings();
        if ObjectUrl::has_scheme(&w.checkpoint_checkpoint_folder) {
            self.check_checkpoint_store(&w.checkpoint_checkpoint_folder);
        }
        if alone.is_none() {
            self.warn_of_checkpoint_only_keys();
        }
        self.check_file_sizes();
        let state = self.state(u64::from(accelerators))?;
        Some(CheckpointPlan {
            folder: w.checkpoint_checkpoint_folder.clone(),
            object: None,
            format: self.checkpoint_format(),
            after_epoch: w.checkpoint_checkpoint_after_epoch,
            epochs_between: w.checkpoint_epochs_between_checkpoints,
            steps_between: w.checkpoint_steps_between_checkpoints,
            total_bytes: state.total_bytes(),
            total_files: state.total_files(),
            rank_bytes_max: state.rank_bytes_max(),
            state,
            fsync: w.checkpoint_fsync,
            ones: !w.checkpoint_randomize_tensor,
            interface: w.checkpoint_interface,
            asynchronous: w.checkpoint_asynchronous,
            keep_last: w.checkpoint_keep_last,
            alone,
            read_rank_shift: u64::from(w.checkpoint_recovery_rank_shift),
        })
    }

    /// Refuses an unusable store, and warns of settings without effect in a store.
    fn check_checkpoint_store(&mut self, folder: &str) {
        const KEY: &str = "checkpoint.checkpoint_folder";
        match ObjectUrl::parse(folder) {
            None => {
                let message = format!("`{folder}` names no bucket");
                self.error(KEY, message, "write `s3://bucket/prefix`");
            }
            Some(url) if self.catalog.storage(url.storage).is_none() => {
                let message = format!("this build of feedrate has no storage `{}`", url.storage);
                self.error(KEY, message, BUILD_WITH_OBJECTS);
            }
            Some(_) => {}
        }
        for key in ["checkpoint.fsync", "checkpoint.interface"] {
            if self.w.is_given(key) {
                let message =
                    "checkpoints are in a store, where an object is durable once it is stored";
                self.warning(key, message.into(), "");
            }
        }
        if self.is_checkpoint_only() && self.options.cache == Cache::Cold {
            let message = "`--cold` empties the page cache, which a store of objects does not have";
            self.error(KEY, message.into(), "leave `--cold` out");
        }
    }

    /// Returns the configured format, or by default a format that the framework can load.
    fn checkpoint_format(&mut self) -> String {
        let is_model = self.w.checkpoint_file_sizes.is_empty();
        let default = match self.w.framework {
            Framework::Pytorch if is_model => "pt",
            Framework::Tensorflow if is_model => "tf",
            _ => "raw",
        };
        let name = self.w.checkpoint_format.clone().unwrap_or_else(|| default.into());
        if self.catalog.checkpoint(&name).is_none() {
            let members = self.catalog.checkpoints.iter().copied();
            self.refuse_unknown_member("checkpoint.format", "checkpoint format", &name, members);
        }
        name
    }

    /// Refuses empty files and files that are too large to be written in one call.
    fn check_file_sizes(&mut self) {
        let invalid =
            self.w.checkpoint_file_sizes.iter().find(|&&size| size == 0 || size > FILE_BYTES_MAX);
        if let Some(size) = invalid {
            let message = format!("a file of `{size}` bytes, written in one call");
            let hint =
                "give 1 to 67108864 (64 MiB), or use `model.model_size_bytes` for a larger file";
            self.error("checkpoint.file_sizes", message, hint);
        }
    }

    /// Refuses invalid and contradictory settings.
    fn check_checkpoint_settings(&mut self) {
        let w = self.w;
        if w.checkpoint_steps_between_checkpoints == Some(0) {
            let hint = "give at least one, or -1 for checkpoints by epochs";
            let key = "checkpoint.steps_between_checkpoints";
            self.error(key, "a checkpoint every `0` steps".into(), hint);
        }
        let by_epochs = [
            ("checkpoint.checkpoint_after_epoch", w.checkpoint_checkpoint_after_epoch),
            ("checkpoint.epochs_between_checkpoints", w.checkpoint_epochs_between_checkpoints),
        ];
        let counts_epochs =
            w.checkpoint_steps_between_checkpoints.is_none() && !self.is_checkpoint_only();
        for (key, epochs) in by_epochs {
            if counts_epochs && epochs == 0 {
                let hint = "give at least one, or set `workflow.checkpoint=false`";
                self.error(key, "`0` epochs".into(), hint);
            }
        }
        // DLIO also refuses this combination.
        if w.is_given("checkpoint.ksm") && w.checkpoint_randomize_tensor {
            self.error(
                "checkpoint.ksm",
                "merges equal memory, which random tensors do not have".into(),
                "set `checkpoint.randomize_tensor=false`, or leave it out, since memory is bounded anyway",
            );
        }
    }

    /// Returns the settings of a run without training.
    fn checkpoint_only_plan(&mut self) -> CheckpointOnlyPlan {
        let w = self.w;
        let writes = w.checkpoint_num_checkpoints_write.unwrap_or(0);
        let reads = w.checkpoint_num_checkpoints_read.unwrap_or(0);
        let wait_s = w.checkpoint_time_between_checkpoints.unwrap_or(0.0).max(0.0);
        if writes == 0 && reads == 0 {
            let message = "the run would neither train nor write or read checkpoints";
            let hint = "set `checkpoint.num_checkpoints_write` or `checkpoint.num_checkpoints_read`, or `workflow.train=true`";
            self.error("checkpoint.num_checkpoints_write", message.into(), hint);
        }
        if writes > 0 && reads > writes {
            let message = format!("`{reads}` checkpoints to read, but only {writes} to write");
            let hint = "read at most as many as are written, or write none to read checkpoints of an earlier run";
            self.error("checkpoint.num_checkpoints_read", message, hint);
        }
        if wait_s > WAIT_MAX_S {
            let message = format!("a wait of `{wait_s}` seconds before each checkpoint");
            let hint = format!("give at most {WAIT_MAX_S}");
            self.error("checkpoint.time_between_checkpoints", message, &hint);
        }
        CheckpointOnlyPlan { writes, reads, wait_s }
    }

    /// Warns of keys that have an effect only in runs without training.
    fn warn_of_checkpoint_only_keys(&mut self) {
        for key in [
            "checkpoint.num_checkpoints_write",
            "checkpoint.num_checkpoints_read",
            "checkpoint.time_between_checkpoints",
            "checkpoint.recovery_rank_shift",
        ] {
            self.warn_unused(
                key,
                "has an effect only in runs without training (`workflow.train=false`)",
            );
        }
    }

    /// Returns the model's state and its division among ranks.
    fn state(&mut self, ranks: u64) -> Option<StatePlan> {
        let w = self.w;
        let tensor = u64::from(w.model_parallelism_tensor);
        let pipeline = u64::from(w.model_parallelism_pipeline);
        let model_ranks = tensor.saturating_mul(pipeline);
        let data = self.copies(ranks, model_ranks)?;
        if pipeline > 1 && w.model_parallelism_zero_stage == 3 {
            let hint = "set `model.parallelism.pipeline` to 1, or a lower stage";
            let message = "stage `3` excludes pipeline parallelism";
            self.error("model.parallelism.zero_stage", message.into(), hint);
        }
        if let Some(layers) = w.model_num_layers.filter(|&layers| 0 < layers && layers < pipeline) {
            let message = format!("`{layers}` layers for {pipeline} stages of the pipeline");
            self.error("model.num_layers", message, "give at least as many layers as stages");
        }
        let transformer = w.model_type.as_deref() == Some("transformer");
        let layers = self.layers()?;
        // In DLIO the key has no effect on a split model: all ranks with a part of the model write.
        let is_split = model_ranks > 1 || w.model_parallelism_zero_stage > 0;
        let writers = match w.checkpoint_type.as_str() {
            "rank_zero" if w.is_given("checkpoint.type") || !is_split => Writers::First,
            "all_ranks" => Writers::All,
            _ => Writers::Holders,
        };
        Some(StatePlan {
            model_bytes: if transformer { 0 } else { w.model_model_size_bytes },
            layers,
            optimization_groups: w.model_optimization_groups.clone(),
            file_sizes: w.checkpoint_file_sizes.clone(),
            model_element: self.state_element(
                !w.model_layer_parameters.is_empty(),
                "model.model_datatype",
                w.model_model_datatype,
            ),
            optimizer_element: self.state_element(
                !w.model_optimization_groups.is_empty(),
                "model.optimizer_datatype",
                w.model_optimizer_datatype,
            ),
            tensor,
            pipeline,
            data,
            zero_stage: w.model_parallelism_zero_stage,
            writers,
            ranks,
            scale: self.options.scale,
        })
    }

    /// Returns the element type of a state. As in DLIO, configured sizes are in bytes unless a type is also configured.
    fn state_element(
        &self,
        has_configured_sizes: bool,
        key: &str,
        element: StateType,
    ) -> StateType {
        if has_configured_sizes && !self.w.is_given(key) { StateType::Int8 } else { element }
    }

    /// Returns the number of copies of the model: as many as the ranks can hold, or in mode `subset` the configured number.
    fn copies(&mut self, ranks: u64, model_ranks: u64) -> Option<u64> {
        let configured = self.w.model_parallelism_data;
        let subset = self.w.checkpoint_mode == "subset";
        if subset && configured.is_none() {
            let message = "`subset` needs the number of copies of the whole model";
            self.error("checkpoint.mode", message.into(), "set `model.parallelism.data`");
            return None;
        }
        let data = match configured {
            Some(data) if subset => data,
            _ => ranks / model_ranks.max(1),
        };
        let all = model_ranks.saturating_mul(data);
        let problem = if model_ranks == 0 || model_ranks > RANKS_MAX || all > RANKS_MAX {
            format!(
                "`{model_ranks}` ranks for each of `{data}` copies of the model are too many or none"
            )
        } else if data == 0 {
            format!("a copy of the model needs `{model_ranks}` ranks, and there are {ranks}")
        } else if !subset && !ranks.is_multiple_of(model_ranks) {
            format!(
                "{ranks} ranks are no multiple of the `{model_ranks}` ranks of a copy of the model"
            )
        } else if subset && all < ranks {
            format!("{ranks} ranks are more than the `{all}` ranks of the whole model")
        } else if let Some(copies) = configured.filter(|&copies| !subset && copies != data) {
            format!(
                "`{copies}` copies of the model of {model_ranks} ranks each do not match {ranks} ranks"
            )
        } else {
            return Some(data);
        };
        self.error(
            "model.parallelism",
            problem,
            "give as many accelerators (`-n`) as tensor × pipeline × data, or set `checkpoint.mode=subset`",
        );
        None
    }

    /// Returns the layers of the model; `None` if their number or dimensions are refused.
    fn layers(&mut self) -> Option<Layers> {
        let w = self.w;
        let count = w.model_num_layers.unwrap_or(0);
        let dimensions = [
            w.model_transformer_vocab_size,
            w.model_transformer_hidden_size,
            w.model_transformer_ffn_hidden_size,
            w.model_transformer_num_kv_heads,
        ];
        if count > LAYERS_MAX || dimensions.iter().any(|&dimension| dimension > DIMENSION_MAX) {
            let message = format!("`{count}` layers with dimensions `{dimensions:?}`");
            let hint = format!(
                "give at most {LAYERS_MAX} layers, and dimensions of at most {DIMENSION_MAX}"
            );
            self.error("model.num_layers", message, &hint);
            return None;
        }
        if count == 0 {
            return Some(Layers::None);
        }
        if !w.model_layer_parameters.is_empty() {
            return Some(Layers::Alike { count, tensors: w.model_layer_parameters.clone() });
        }
        let hidden_size = w.model_transformer_hidden_size;
        let heads = w.model_transformer_num_attention_heads;
        if heads == 0 {
            let key = "model.transformer.num_attention_heads";
            self.error(key, "`0` attention heads".into(), "give at least one");
            return None;
        }
        Some(Layers::Transformer(Transformer {
            layers: count,
            vocab_size: w.model_transformer_vocab_size,
            hidden_size,
            ffn_hidden_size: w.model_transformer_ffn_hidden_size,
            kv_size: (hidden_size / heads).saturating_mul(w.model_transformer_num_kv_heads),
        }))
    }

    /// Whether the run is long enough for a checkpoint.
    fn reaches_checkpoint(&self, train: &TrainPlan) -> bool {
        match self.w.checkpoint_steps_between_checkpoints {
            Some(steps) => steps <= train.steps_in_epoch(1),
            None => self.w.checkpoint_checkpoint_after_epoch <= train.epochs_run(),
        }
    }
}
