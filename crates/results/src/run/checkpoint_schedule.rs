//! The configured checkpoints of a run: their times, size and writers.

use crate::import::{Config, Reported};
use feedrate_measure::record::Record;
use feedrate_spec::plan::CheckpointPlan;
use feedrate_spec::units::GIB;

/// The configured checkpoints of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointSchedule {
    /// Epoch after which the first checkpoint is written.
    pub after_epoch: u64,
    /// Number of epochs from one checkpoint to the next.
    pub epochs_between: u64,
    /// Number of steps from one checkpoint to the next, which replaces the intervals in epochs.
    pub steps_between: Option<u64>,
    /// Number of checkpoints in a run without training; `None` if the run trains.
    pub alone: Option<u64>,
    /// Size of a checkpoint; `None` if unknown.
    pub bytes: Option<u64>,
    /// Number of ranks that write; `None` if unknown.
    pub ranks: Option<u64>,
    /// Number of checkpoints that a run without training reads; `None` if the run trains.
    pub reads: Option<u64>,
    /// Whether files are synced before a checkpoint counts as written.
    pub fsync: bool,
    /// Whether only some ranks of the model take part.
    pub is_subset: bool,
}

impl CheckpointSchedule {
    /// Reads the schedule in a record; `None` if its plan has no checkpoints.
    pub(super) fn from_record(record: &Record) -> Option<Self> {
        let schedule = CheckpointSchedule::from_plan(record.plan.checkpoint.as_ref()?);
        let written = record.epochs.iter().flat_map(|epoch| &epoch.checkpoints).next();
        let ranks =
            written.map(|checkpoint| checkpoint.ranks.len() as u64).filter(|ranks| 0 < *ranks);
        Some(CheckpointSchedule { ranks, ..schedule })
    }

    /// The schedule of a plan.
    pub fn from_plan(plan: &CheckpointPlan) -> Self {
        CheckpointSchedule {
            after_epoch: u64::from(plan.after_epoch),
            epochs_between: u64::from(plan.epochs_between),
            steps_between: plan.steps_between,
            alone: plan.alone.as_ref().map(|alone| alone.writes),
            bytes: Some(plan.total_bytes),
            ranks: Some(plan.state.writers()),
            reads: plan.alone.as_ref().map(|alone| alone.reads),
            fsync: plan.fsync,
            is_subset: plan.state.is_subset(),
        }
    }

    /// Reads the schedule of a DLIO run, with DLIO's defaults; `None` if it has no checkpoints.
    pub(super) fn from_dlio(
        config: &Config,
        reported: Option<&Reported>,
        accelerators: Option<u32>,
    ) -> Option<Self> {
        if !config.is_known() || !config.boolean("workflow.checkpoint", false) {
            return None;
        }
        let count =
            |key: &str, default: f64| config.number(&[key]).unwrap_or(default).max(0.0) as u64;
        let is_alone = !config.boolean("workflow.train", true);
        let steps =
            config.number(&["checkpoint.steps_between_checkpoints"]).filter(|steps| *steps > 0.0);
        let size_gib = reported.and_then(|reported| reported.metric("checkpoint_size_GB"));
        let all_ranks_write =
            config.text(&["checkpoint.type"]).is_some_and(|kind| kind == "all_ranks");
        Some(CheckpointSchedule {
            after_epoch: count("checkpoint.checkpoint_after_epoch", 1.0),
            epochs_between: count("checkpoint.epochs_between_checkpoints", 1.0),
            steps_between: steps.map(|steps| steps as u64),
            alone: is_alone.then(|| count("checkpoint.num_checkpoints_write", 0.0)),
            bytes: size_gib.filter(|size| *size > 0.0).map(|size| (size * GIB).round() as u64),
            ranks: if all_ranks_write { accelerators.map(u64::from) } else { Some(1) },
            reads: is_alone.then(|| count("checkpoint.num_checkpoints_read", 0.0)),
            fsync: config.boolean("checkpoint.fsync", false),
            is_subset: config.text(&["checkpoint.mode"]).is_some_and(|mode| mode == "subset"),
        })
    }
}
