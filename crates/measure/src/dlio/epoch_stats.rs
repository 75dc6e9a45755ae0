//! `<rank>_per_epoch_stats.json`: when epochs and blocks began and ended. Durations are text with two decimals, as DLIO's.

use super::{Object, timestamp};
use crate::record::{Block, CheckpointKind, CheckpointRecord, EpochRecord, Record};
use crate::window::seconds;
use serde_json::Value;

pub(super) fn epoch_stats_json(record: &Record, rank: usize) -> Value {
    let mut object = Object::default();
    for training in &record.epochs {
        let mut stats = epoch(training, rank);
        let evaluation = record.evaluations.iter().find(|one| one.number == training.number);
        stats.put_known("eval", evaluation.map(evaluation_stats));
        object.put(training.number.to_string(), stats);
    }
    object.into()
}

fn epoch(epoch: &EpochRecord, rank: usize) -> Object {
    let mut object = Object::default();
    object.put_text("start", &epoch.started);
    for (i, block) in epoch.accelerators.get(rank).iter().flat_map(|a| &a.blocks).enumerate() {
        object.put(format!("block{}", i + 1), block_stats(epoch, block));
    }
    for kind in [CheckpointKind::Save, CheckpointKind::Load] {
        for (i, checkpoint) in epoch.checkpoints_of(kind).enumerate() {
            let key = format!("{}_ckpt{}", kind.name(), i + 1);
            object.put(key, checkpoint_stats(epoch, checkpoint));
        }
    }
    let (end_ns, ended) = end_of(epoch);
    object.put_text("end", &ended);
    object.put("duration", duration(epoch.start_ns, end_ns));
    object
}

/// The end of an epoch as DLIO has it, checkpoints included: on our clock and on the wall's.
pub(super) fn end_of(epoch: &EpochRecord) -> (u64, String) {
    // Training does not wait for the end of those that are written in the background.
    let waited_for = epoch.checkpoints.iter().filter(|checkpoint| checkpoint.stall_ns.is_none());
    match waited_for.map(|checkpoint| checkpoint.end_ns).max() {
        Some(end_ns) if end_ns > epoch.end_ns => {
            (end_ns, wall_at(epoch, end_ns).unwrap_or_default())
        }
        _ => (epoch.end_ns, epoch.ended.clone()),
    }
}

/// Numbers are not text here, as in DLIO. The throughput is in GiB/s, which DLIO calls GB.
fn checkpoint_stats(epoch: &EpochRecord, checkpoint: &CheckpointRecord) -> Object {
    let mut object = Object::default();
    object.put_known("start", wall_at(epoch, checkpoint.start_ns));
    object.put_known("end", wall_at(epoch, checkpoint.end_ns));
    object.put("duration", checkpoint.duration_s());
    object.put_known("throughput", checkpoint.gib_per_second());
    object
}

fn evaluation_stats(evaluation: &EpochRecord) -> Object {
    let mut object = Object::default();
    object.put_text("start", &evaluation.started);
    object.put_text("end", &evaluation.ended);
    object.put("duration", duration(evaluation.start_ns, evaluation.end_ns));
    object
}

fn block_stats(epoch: &EpochRecord, block: &Block) -> Object {
    let mut object = Object::default();
    object.put_known("start", wall_at(epoch, block.start_ns));
    object.put_known("end", wall_at(epoch, block.end_ns));
    object.put("duration", duration(block.start_ns, block.end_ns));
    object
}

/// Local wall-clock time of a moment of an epoch.
pub(super) fn wall_at(epoch: &EpochRecord, ns: u64) -> Option<String> {
    timestamp::later(&epoch.started, i64::try_from(ns).ok()?.checked_sub_unsigned(epoch.start_ns)?)
}

/// `23.73`, in seconds.
pub(super) fn duration(start_ns: u64, end_ns: u64) -> String {
    format!("{:.2}", seconds(end_ns.saturating_sub(start_ns)))
}
