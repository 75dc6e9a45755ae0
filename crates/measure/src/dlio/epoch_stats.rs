//! `<rank>_per_epoch_stats.json`: when epochs and blocks began and ended. Durations are text with two decimals, as DLIO's.

use super::{Evaluations, known, timestamp};
use crate::record::{CheckpointKind, EpochRecord, Record};
use crate::window::seconds;
use serde_json::{Map, Value, json};

pub(super) fn epoch_stats_json(record: &Record, evaluations: &Evaluations, rank: usize) -> Value {
    let epochs = record.epochs.iter().map(|training| {
        let evaluation = record.evaluations.iter().find(|one| one.number == training.number);
        let mut stats = epoch(training, rank);
        let evaluation = evaluation.map(|evaluation| {
            known(json!({
                "start": evaluation.started,
                "end": evaluation.ended,
                "duration": duration(evaluation.start_ns, evaluation.end_ns),
            }))
        });
        let empty = evaluations.is_empty_after(training.number).then(|| {
            let (_, at) = end_of(training);
            known(json!({ "start": at, "end": at, "duration": duration(0, 0) }))
        });
        stats.insert("eval".into(), json!(evaluation.or(empty)));
        (training.number.to_string(), known(stats))
    });
    epochs.collect()
}

/// Numbers of checkpoints are not text, as in DLIO. Their throughput is in GiB/s, which DLIO calls GB.
fn epoch(epoch: &EpochRecord, rank: usize) -> Map<String, Value> {
    let mut stats = Map::new();
    stats.insert("start".into(), json!(epoch.started));
    for (i, block) in epoch.accelerators.get(rank).iter().flat_map(|a| &a.blocks).enumerate() {
        let block = known(json!({
            "start": wall_at(epoch, block.start_ns),
            "end": wall_at(epoch, block.end_ns),
            "duration": duration(block.start_ns, block.end_ns),
        }));
        stats.insert(format!("block{}", i + 1), block);
    }
    for kind in [CheckpointKind::Save, CheckpointKind::Load] {
        for (i, checkpoint) in epoch.checkpoints_of(kind).enumerate() {
            let checkpoint = known(json!({
                "start": wall_at(epoch, checkpoint.start_ns),
                "end": wall_at(epoch, checkpoint.end_ns),
                "duration": checkpoint.duration_s(),
                "throughput": checkpoint.gib_per_second(),
            }));
            stats.insert(format!("{}_ckpt{}", kind.name(), i + 1), checkpoint);
        }
    }
    let (end_ns, ended) = end_of(epoch);
    stats.insert("end".into(), json!(ended));
    stats.insert("duration".into(), json!(duration(epoch.start_ns, end_ns)));
    stats
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

/// Local wall-clock time of a moment of an epoch.
pub(super) fn wall_at(epoch: &EpochRecord, ns: u64) -> Option<String> {
    timestamp::later(&epoch.started, i64::try_from(ns).ok()?.checked_sub_unsigned(epoch.start_ns)?)
}

/// `23.73`, in seconds.
pub(super) fn duration(start_ns: u64, end_ns: u64) -> String {
    format!("{:.2}", seconds(end_ns.saturating_sub(start_ns)))
}
