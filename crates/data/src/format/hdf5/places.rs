//! Places of everything in a file that feedrate writes, and the file's length.

use super::metadata;
use super::plan::{Places, Plan};

/// Records begin at multiples of this.
const ALIGN_BYTES: u64 = 4096;
/// Bytes that deflate and zlib add to each stretch of noise of this length.
const STORED_BLOCK_BYTES: u64 = 16 << 10;
const STORED_BLOCK_EXTRA_BYTES: u64 = 5;
const ZLIB_EXTRA_BYTES: u64 = 11;

impl Plan {
    pub(super) fn index_bytes(&self) -> u64 {
        let Some(chunks) = &self.chunks else { return 0 };
        metadata::Tree::new(chunks.count(), self.dims.len()).bytes()
    }

    pub(super) fn places(&self) -> Places {
        let mut at = metadata::head_bytes(self).next_multiple_of(8);
        let index = (0..self.datasets).map(|_| advance(&mut at, self.index_bytes())).collect();
        let labels = advance(&mut at, self.labels_bytes());
        let records = (0..self.datasets).map(|_| {
            at = at.checked_next_multiple_of(ALIGN_BYTES).unwrap_or(u64::MAX);
            advance(&mut at, self.dataset_bytes())
        });
        let records = records.collect();
        Places { index, labels, records, end: at }
    }

    /// Exact without compression; else as noise would have it.
    pub(super) fn file_bytes(&self) -> u64 {
        let end = self.places().end;
        let (Some(_), Some(chunks)) = (self.level, &self.chunks) else { return end };
        let blocks = chunks.bytes.div_ceil(STORED_BLOCK_BYTES);
        let extra = blocks.saturating_mul(STORED_BLOCK_EXTRA_BYTES) + ZLIB_EXTRA_BYTES;
        let chunks = chunks.count().saturating_mul(self.datasets);
        end.saturating_add(chunks.saturating_mul(extra))
    }
}

fn advance(at: &mut u64, bytes: u64) -> u64 {
    let start = *at;
    *at = at.saturating_add(bytes);
    start
}
