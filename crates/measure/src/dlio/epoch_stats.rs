//! `<rank>_per_epoch_stats.json`: when epochs and blocks began and ended. Durations are text with two decimals, as DLIO's.

use super::{Object, timestamp};
use crate::record::{Block, EpochRecord, Record};
use crate::window::seconds;
use serde_json::Value;

pub(super) fn of(record: &Record, rank: usize) -> Value {
    let epochs = record.epochs.iter();
    epochs.map(|e| (e.number.to_string(), epoch(e, rank).into())).collect::<Object>().into()
}

fn epoch(epoch: &EpochRecord, rank: usize) -> Object {
    let mut object = Object::default();
    object.put_text("start", &epoch.started);
    for (i, block) in epoch.accelerators.get(rank).iter().flat_map(|a| &a.blocks).enumerate() {
        object.put(format!("block{}", i + 1), block_stats(epoch, block));
    }
    object.put_text("end", &epoch.ended);
    object.put("duration", duration(epoch.start_ns, epoch.end_ns));
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
