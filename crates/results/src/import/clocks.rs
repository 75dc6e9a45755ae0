//! Corrects clock offsets between hosts. DLIO stamps blocks with each rank's wall clock. Since ranks wait for each other in every step, their
//! blocks begin and end together; a constant difference is therefore an offset between clocks, which would make epochs seem longer.

use feedrate_measure::record::Record;

/// Smallest offset that is corrected. Smaller differences may be the time that ranks need to start.
const OFFSET_MIN_NS: i64 = 100_000_000;
/// Maximum deviation of a single start or end from the offset, in addition to a tenth of the offset.
const SPREAD_MAX_NS: i64 = 50_000_000;

/// Shifts the blocks of all accelerators to the clock of the first.
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
        let times = blocks.flat_map(|block| [block.start_ns, block.end_ns]);
        epoch.start_ns = times.clone().min().unwrap_or(epoch.start_ns);
        epoch.end_ns = times.max().unwrap_or(epoch.end_ns);
    }
}

/// Returns how far an accelerator's clock is ahead of the first accelerator's. `None` if the difference is small or not constant.
fn offset_ns(record: &Record, index: usize) -> Option<i64> {
    let mut differences_ns = Vec::new();
    for epoch in &record.epochs {
        let reference = &epoch.accelerators[0].blocks;
        let blocks = &epoch.accelerators[index].blocks;
        if reference.len() != blocks.len() {
            return None;
        }
        for (reference, block) in reference.iter().zip(blocks) {
            differences_ns.push(block.start_ns.checked_signed_diff(reference.start_ns)?);
            differences_ns.push(block.end_ns.checked_signed_diff(reference.end_ns)?);
        }
    }
    differences_ns.sort_unstable();
    let median_ns = *differences_ns.get(differences_ns.len() / 2)?;
    let spread_max_ns = SPREAD_MAX_NS + median_ns.abs() / 10;
    let is_constant =
        differences_ns.iter().all(|difference| (difference - median_ns).abs() <= spread_max_ns);
    (is_constant && OFFSET_MIN_NS <= median_ns.abs()).then_some(median_ns)
}
