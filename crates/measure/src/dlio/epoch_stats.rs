//! `<rank>_per_epoch_stats.json`: start, end and duration of epochs and blocks. As in DLIO, durations are text with two decimals.

use super::{Evaluations, timestamp, without_unknown};
use crate::record::{CheckpointKind, EpochRecord, Record};
use crate::window::seconds;
use serde::Serialize;
use serde_json::{Map, Value};

#[derive(Serialize)]
struct Interval<'a> {
    start: Option<&'a str>,
    end: Option<&'a str>,
    duration: String,
}

#[derive(Serialize)]
struct CheckpointEntry {
    start: Option<String>,
    end: Option<String>,
    duration: f64,
    throughput: Option<f64>,
}

pub(super) fn epoch_stats_json(record: &Record, evaluations: &Evaluations, rank: usize) -> Value {
    let epochs = record.epochs.iter().map(|training| {
        let mut stats = epoch_stats(training, rank, evaluations.end_after(training));
        let mut recorded = record.evaluations.iter();
        let evaluation = match recorded.find(|row| row.number == training.number) {
            Some(evaluation) => without_unknown(Interval {
                start: Some(&evaluation.started),
                end: Some(&evaluation.ended),
                duration: duration(evaluation.start_ns, evaluation.end_ns),
            }),
            None if evaluations.is_empty_after(training.number) => {
                let stamp = Some(&*epoch_end(training).stamp);
                without_unknown(Interval { start: stamp, end: stamp, duration: duration(0, 0) })
            }
            None => Value::Null,
        };
        stats.insert("eval".into(), evaluation);
        (training.number.to_string(), without_unknown(stats))
    });
    epochs.collect()
}

/// The entry of an epoch without its evaluation. As in DLIO, figures of checkpoints are numbers, not text. DLIO calls GiB/s GB/s.
fn epoch_stats(epoch: &EpochRecord, rank: usize, end: String) -> Map<String, Value> {
    let mut stats = Map::new();
    stats.insert("start".into(), epoch.started.clone().into());
    for (i, block) in epoch.accelerators.get(rank).iter().flat_map(|a| &a.blocks).enumerate() {
        let entry = without_unknown(Interval {
            start: wall_clock_at(epoch, block.start_ns).as_deref(),
            end: wall_clock_at(epoch, block.end_ns).as_deref(),
            duration: duration(block.start_ns, block.end_ns),
        });
        stats.insert(format!("block{}", i + 1), entry);
    }
    for kind in [CheckpointKind::Save, CheckpointKind::Load] {
        for (i, checkpoint) in epoch.checkpoints_of(kind).enumerate() {
            let entry = without_unknown(CheckpointEntry {
                start: wall_clock_at(epoch, checkpoint.start_ns),
                end: wall_clock_at(epoch, checkpoint.end_ns),
                duration: checkpoint.duration_s(),
                throughput: checkpoint.gib_per_second(),
            });
            stats.insert(format!("{}_ckpt{}", kind.name(), i + 1), entry);
        }
    }
    stats.insert("end".into(), end.into());
    // As in DLIO, without the evaluation.
    stats.insert("duration".into(), duration(epoch.start_ns, epoch_end(epoch).ns).into());
    stats
}

/// End of an epoch.
pub(super) struct EpochEnd {
    /// From the start of the run.
    pub(super) ns: u64,
    /// Local wall-clock time; empty if unknown.
    pub(super) stamp: String,
}

/// The end of an epoch by DLIO's definition, which includes its checkpoints.
pub(super) fn epoch_end(epoch: &EpochRecord) -> EpochEnd {
    // Training does not wait for checkpoints that are written in the background.
    let waited_for = epoch.checkpoints.iter().filter(|checkpoint| checkpoint.stall_ns.is_none());
    match waited_for.map(|checkpoint| checkpoint.end_ns).max() {
        Some(end_ns) if end_ns > epoch.end_ns => {
            EpochEnd { ns: end_ns, stamp: wall_clock_at(epoch, end_ns).unwrap_or_default() }
        }
        _ => EpochEnd { ns: epoch.end_ns, stamp: epoch.ended.clone() },
    }
}

/// Local wall-clock time at `ns` after the start of the run; `None` if unknown.
pub(super) fn wall_clock_at(epoch: &EpochRecord, ns: u64) -> Option<String> {
    timestamp::add_ns(&epoch.started, i64::try_from(ns).ok()?.checked_sub_unsigned(epoch.start_ns)?)
}

/// Duration in seconds with two decimals, such as `23.73`.
pub(super) fn duration(start_ns: u64, end_ns: u64) -> String {
    format!("{:.2}", seconds(end_ns.saturating_sub(start_ns)))
}
