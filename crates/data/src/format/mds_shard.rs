//! The head of a shard of MosaicML Streaming: the number of samples, their offsets, and a description of the columns. Shared by the
//! formats of plain and of compressed shards.

/// Length of the number of samples, and of an offset.
pub(super) const ENTRY_BYTES: u64 = 4;
/// Length of a head with enough offsets to recognise a shard by them alone.
const OFFSETS_MIN: usize = 1024;

/// Start of the columns' description, which follows the offsets.
pub(super) fn description_start(samples: u64) -> u64 {
    (samples + 2) * ENTRY_BYTES
}

/// The entries in `bytes`.
pub(super) fn entries(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks().0.iter().map(|entry| u32::from_le_bytes(*entry).into())
}

/// Whether a file begins with a number of samples, ascending offsets, and the columns' description.
pub(super) fn begins_shard(head: &[u8]) -> bool {
    let mut numbers = entries(head);
    let (Some(samples), Some(first)) = (numbers.next(), numbers.next()) else { return false };
    let start = description_start(samples);
    let offsets = entries(head).skip(1).take(samples as usize + 1);
    let is_ascending = offsets.is_sorted() && start < first;
    let has_description = match head.get(start as usize) {
        Some(byte) => *byte == b'{',
        None => OFFSETS_MIN <= head.len(),
    };
    samples > 0 && is_ascending && has_description
}
