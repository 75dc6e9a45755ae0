//! When a run wrote checkpoints, how large and by how many.

use crate::import::{Config, Reported};
use feedrate_measure::record::Record;
use feedrate_spec::units::GIB;

/// The checkpoints that a run was to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointSchedule {
    /// The first comes after this epoch.
    pub after_epoch: u64,
    /// Epochs from one to the next.
    pub epochs_between: u64,
    /// Steps from one to the next; where this is given, epochs are not counted.
    pub steps_between: Option<u64>,
    /// Written in a run of nothing else; `None` where they come with training.
    pub alone: Option<u64>,
    /// Bytes of one; `None` where it is not known.
    pub bytes: Option<u64>,
    /// Ranks that write; `None` where it is not known.
    pub ranks: Option<u64>,
}

impl CheckpointSchedule {
    /// From a record; `None` where its plan has no checkpoint.
    pub(super) fn from_record(record: &Record) -> Option<Self> {
        let plan = record.plan.checkpoint.as_ref()?;
        let written = record.epochs.iter().flat_map(|epoch| &epoch.checkpoints).next();
        let ranks = written.map(|one| one.ranks.len() as u64).filter(|ranks| 0 < *ranks);
        Some(CheckpointSchedule {
            after_epoch: u64::from(plan.after_epoch),
            epochs_between: u64::from(plan.epochs_between),
            steps_between: plan.steps_between,
            alone: plan.alone.as_ref().map(|alone| alone.writes),
            bytes: Some(plan.total_bytes),
            ranks,
        })
    }

    /// From a DLIO run, with DLIO's defaults; `None` where it was to write none.
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
        let steps = config.number(&["checkpoint.steps_between_checkpoints"]);
        let steps = steps.filter(|steps| *steps > 0.0);
        let size_gib = reported.and_then(|reported| reported.metric("checkpoint_size_GB"));
        let is_of_all = config.text(&["checkpoint.type"]).is_some_and(|of| of == "all_ranks");
        Some(CheckpointSchedule {
            after_epoch: count("checkpoint.checkpoint_after_epoch", 1.0),
            epochs_between: count("checkpoint.epochs_between_checkpoints", 1.0),
            steps_between: steps.map(|steps| steps as u64),
            alone: is_alone.then(|| count("checkpoint.num_checkpoints_write", 0.0)),
            bytes: size_gib.filter(|size| *size > 0.0).map(|size| (size * GIB).round() as u64),
            ranks: if is_of_all { accelerators.map(u64::from) } else { Some(1) },
        })
    }
}
