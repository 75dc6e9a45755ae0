//! The checkpoints of a plan: one model state after epochs. Other kinds are refused where the plan would reach them.

use super::Builder;
use crate::plan::{CheckpointPlan, TrainPlan};

impl Builder<'_> {
    /// The checkpoints that this plan reaches.
    pub(super) fn checkpoint(&mut self, train: &TrainPlan) -> Option<CheckpointPlan> {
        let w = self.w;
        if !w.workflow_checkpoint || !self.trains() || !self.reaches_checkpoint(train) {
            return None;
        }
        if let Some(steps) = w.checkpoint_steps_between_checkpoints {
            self.refuse_checkpoint(&format!("every {steps} steps"));
        }
        if w.checkpoint_type != "rank_zero" {
            self.refuse_checkpoint(&format!("of type `{}`", w.checkpoint_type));
        }
        let has_layers = w.model_num_layers.is_some() || !w.model_layer_parameters.is_empty();
        if has_layers
            || !w.model_optimization_groups.is_empty()
            || w.model_type.as_deref() == Some("transformer")
        {
            self.refuse_checkpoint("of layers and optimizer states");
        }
        for (key, differs) in [
            ("checkpoint.mode", w.checkpoint_mode != "default"),
            ("checkpoint.rank_sync", w.checkpoint_rank_sync),
            ("checkpoint.recovery_rank_shift", w.checkpoint_recovery_rank_shift),
            ("checkpoint.randomize_tensor", !w.checkpoint_randomize_tensor),
            ("checkpoint.ksm", w.is_given("checkpoint.ksm")),
            (
                "checkpoint.time_between_checkpoints",
                w.checkpoint_time_between_checkpoints.is_some(),
            ),
            ("checkpoint.num_checkpoints_write", w.checkpoint_num_checkpoints_write.is_some()),
            ("checkpoint.num_checkpoints_read", w.checkpoint_num_checkpoints_read.is_some()),
            ("model.parallelism.tensor", w.model_parallelism_tensor != 1),
            ("model.parallelism.pipeline", w.model_parallelism_pipeline != 1),
            ("model.parallelism.data", w.model_parallelism_data.is_some()),
            ("model.parallelism.zero_stage", w.model_parallelism_zero_stage != 0),
        ] {
            if differs {
                self.error(
                    key,
                    "is not supported yet, and this plan reaches its first checkpoint".into(),
                    "leave it out, or set `workflow.checkpoint=false`",
                );
            }
        }
        Some(CheckpointPlan {
            folder: w.checkpoint_checkpoint_folder.clone(),
            after_epoch: w.checkpoint_checkpoint_after_epoch,
            epochs_between: w.checkpoint_epochs_between_checkpoints,
            bytes: w.model_model_size_bytes,
            fsync: w.checkpoint_fsync,
        })
    }

    fn reaches_checkpoint(&self, train: &TrainPlan) -> bool {
        match self.w.checkpoint_steps_between_checkpoints {
            Some(steps) => steps > 0 && steps <= train.steps_in_epoch(1),
            None => self.w.checkpoint_checkpoint_after_epoch <= train.epochs_run(),
        }
    }

    fn refuse_checkpoint(&mut self, which: &str) {
        self.error(
            "workflow.checkpoint",
            format!(
                "this plan reaches its first checkpoint; checkpoints {which} are not supported yet"
            ),
            "set `workflow.checkpoint=false`",
        );
    }
}
