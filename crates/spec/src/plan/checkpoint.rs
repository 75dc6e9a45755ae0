//! The plan of a run's checkpoints: schedule, files and writers. [`state`] computes their content.

use super::{ObjectPlan, TrainPlan, WriteInterface, evaluation, state};
use crate::object_url::ObjectUrl;
use serde::{Deserialize, Serialize};

/// The checkpoints of a run: after epochs, after steps, or without training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointPlan {
    /// Folder of the checkpoints (`checkpoint.checkpoint_folder`), or their URL in a store.
    pub folder: String,
    /// How the store is reached; `None` for a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectPlan>,
    /// Epoch after which the first checkpoint is written.
    pub after_epoch: u32,
    /// Number of epochs from one checkpoint to the next.
    pub epochs_between: u32,
    /// Number of steps from one checkpoint to the next, counted from the start of each epoch. If given, the schedule by epochs does not
    /// apply.
    #[serde(default)]
    pub steps_between: Option<u64>,
    /// Format of the files, and their extension.
    pub format: String,
    /// The state that each rank writes.
    pub state: state::StatePlan,
    /// Bytes of a checkpoint over all ranks.
    pub total_bytes: u64,
    /// Number of files of a checkpoint over all ranks.
    pub total_files: u64,
    /// Bytes of the rank that writes the most.
    pub rank_bytes_max: u64,
    /// Whether files are synced before a checkpoint counts as written.
    pub fsync: bool,
    /// Whether tensors contain ones instead of random values.
    #[serde(default)]
    pub ones: bool,
    /// The calls that write files.
    #[serde(default)]
    pub interface: WriteInterface,
    /// Whether training continues while a checkpoint is written.
    #[serde(default)]
    pub asynchronous: bool,
    /// Number of checkpoints to keep; `None` for all.
    #[serde(default)]
    pub keep_last: Option<u64>,
    /// Settings of a run without training; `None` if checkpoints are written during training.
    #[serde(default)]
    pub alone: Option<CheckpointOnlyPlan>,
    /// Distance from a rank to the rank whose checkpoint it reads.
    #[serde(default)]
    pub read_rank_shift: u64,
}

/// A run that only writes and then reads checkpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointOnlyPlan {
    /// Number of checkpoints to write. They are numbered from 1.
    pub writes: u64,
    /// Number of checkpoints to read afterwards, starting with number 1. If `writes` is 0, checkpoints of an earlier run are read.
    pub reads: u64,
    /// Wait before each checkpoint.
    pub wait_s: f64,
}

impl CheckpointPlan {
    /// Whether the checkpoints are in a store of objects.
    pub fn is_in_store(&self) -> bool {
        ObjectUrl::has_scheme(&self.folder)
    }

    /// Returns the number of checkpoints that a run of `train` writes.
    pub fn count(&self, train: &TrainPlan) -> u64 {
        if let Some(alone) = &self.alone {
            return alone.writes;
        }
        let epochs = 1..=train.epochs_run();
        match self.steps_between {
            Some(steps) => epochs.map(|epoch| train.steps_in_epoch(epoch) / steps.max(1)).sum(),
            None => epochs.filter(|&epoch| self.is_due(epoch)).count() as u64,
        }
    }

    /// Returns the step in the name of the checkpoint at the end of an epoch of `steps` steps; `None` if no checkpoint is due.
    pub fn step_after_epoch(&self, epoch: u32, steps: u64) -> Option<u64> {
        match self.steps_between {
            Some(between) => steps.is_multiple_of(between).then_some(steps),
            // DLIO counts one step too many (`main.py:393`), and the names must equal the names that DLIO uses.
            None => self.is_due(epoch).then_some(steps + 1),
        }
    }

    /// Whether a checkpoint is written after `epoch`.
    pub fn is_due(&self, epoch: u32) -> bool {
        evaluation::is_due(epoch, self.after_epoch, self.epochs_between)
    }
}
