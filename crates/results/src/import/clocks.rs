//! Clocks of hosts: DLIO stamps blocks with the wall clock of each rank. Ranks wait for each other in every step, so that their blocks begin and end together;
//! a rank whose blocks all begin and end as much later or earlier has another clock, and the epoch of all would seem longer by that.

use feedrate_measure::record::Record;

/// Less is the time that ranks take to begin.
const SEEN_MIN_NS: i64 = 100_000_000;
/// Beginnings and ends miss the offset by no more than this and a tenth of it.
const SPREAD_MAX_NS: i64 = 50_000_000;

/// Put the blocks of all accelerators on the clock of the first.
pub(super) fn align(record: &mut Record) {
    let count = record.epochs.first().map_or(0, |epoch| epoch.accelerators.len());
    let offsets: Vec<i64> = (0..count).map(|index| offset_ns(record, index).unwrap_or(0)).collect();
    if offsets.iter().all(|offset| *offset == 0) {
        return;
    }
    for epoch in &mut record.epochs {
        for (accelerator, offset_ns) in epoch.accelerators.iter_mut().zip(&offsets) {
            for block in &mut accelerator.blocks {
                block.start_ns = block.start_ns.saturating_add_signed(-offset_ns);
                block.end_ns = block.end_ns.saturating_add_signed(-offset_ns);
            }
        }
        let blocks = epoch.accelerators.iter().flat_map(|accelerator| &accelerator.blocks);
        let ends = blocks.flat_map(|block| [block.start_ns, block.end_ns]);
        epoch.start_ns = ends.clone().min().unwrap_or(epoch.start_ns);
        epoch.end_ns = ends.max().unwrap_or(epoch.end_ns);
    }
}

/// How far the clock of one is ahead of that of the first; `None` where they show the same time, or differ by now more, now less.
fn offset_ns(record: &Record, index: usize) -> Option<i64> {
    let mut ahead_ns = Vec::new();
    for epoch in &record.epochs {
        let [first, own] = [0, index].map(|index| &epoch.accelerators[index].blocks);
        if first.len() != own.len() {
            return None;
        }
        for (first, own) in first.iter().zip(own) {
            ahead_ns.push(own.start_ns.checked_signed_diff(first.start_ns)?);
            ahead_ns.push(own.end_ns.checked_signed_diff(first.end_ns)?);
        }
    }
    ahead_ns.sort_unstable();
    let offset = *ahead_ns.get(ahead_ns.len() / 2)?;
    let most = SPREAD_MAX_NS + offset.abs() / 10;
    let is_steady = ahead_ns.iter().all(|ahead| (ahead - offset).abs() <= most);
    (is_steady && SEEN_MIN_NS <= offset.abs()).then_some(offset)
}
