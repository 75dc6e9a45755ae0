//! When checkpoints are written, by whom, of what, and how.

use super::{TrainPlan, WriteInterface, evaluation, state};
use serde::{Deserialize, Serialize};

/// Checkpoints that are written while all accelerators wait, between epochs or steps, or alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointPlan {
    /// `checkpoint.checkpoint_folder`.
    pub folder: String,
    /// The first comes after this epoch.
    pub after_epoch: u32,
    /// Epochs from one to the next.
    pub epochs_between: u32,
    /// Steps from one to the next, counted anew in each epoch; where this is given, epochs are not counted.
    #[serde(default)]
    pub steps_between: Option<u64>,
    /// Format of the files, and their extension.
    pub format: String,
    /// The state that each rank writes.
    pub state: state::StatePlan,
    /// Bytes over all ranks.
    pub total_bytes: u64,
    /// Files over all ranks.
    pub total_files: u64,
    /// Bytes of the rank that writes most.
    pub rank_bytes_max: u64,
    /// Whether it is synced before it counts as written.
    pub fsync: bool,
    /// Tensors of ones instead of random ones.
    #[serde(default)]
    pub ones: bool,
    /// The calls by which its files are written.
    #[serde(default)]
    pub interface: WriteInterface,
    /// Whether training goes on while it is written.
    #[serde(default)]
    pub asynchronous: bool,
    /// Number of checkpoints of a run that are kept; all where it is not given.
    #[serde(default)]
    pub keep_last: Option<u64>,
    /// The run is of checkpoints only; `None` where they come between steps or epochs.
    #[serde(default)]
    pub alone: Option<CheckpointsAlone>,
    /// Each rank reads back what the rank so many after it wrote.
    #[serde(default)]
    pub read_rank_shift: u64,
}

/// A run of checkpoints only: so many are written, then read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointsAlone {
    /// Written, numbered from 1.
    pub writes: u64,
    /// Read after that, from number 1 on; those of an earlier run where none is written.
    pub reads: u64,
    /// Before each.
    pub wait_s: f64,
}

impl CheckpointPlan {
    /// Checkpoints that a run of `train` writes.
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

    /// The step after which the checkpoint that is due at the end of an epoch of so many steps is called.
    pub fn step_after_epoch(&self, epoch: u32, steps: u64) -> Option<u64> {
        match self.steps_between {
            Some(between) => steps.is_multiple_of(between).then_some(steps),
            // DLIO counts one step too many here (`main.py:393`).
            None => self.is_due(epoch).then_some(steps + 1),
        }
    }

    /// Whether one is written after `epoch`.
    pub fn is_due(&self, epoch: u32) -> bool {
        evaluation::is_due(epoch, self.after_epoch, self.epochs_between)
    }
}
