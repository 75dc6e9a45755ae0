//! Estimates the length of a dataset with elements of variable length, from rows that are spread over it.

use super::RANK_MAX;
use super::blocks::{FileBlocks, ParseResult, ParseStop, invalid};
use super::filter::{ChunkInflate, Unfilter, applied_filters};
use super::index;
use super::message::RecordDataset;
use super::piece::ChunkGeometry;

/// Number of rows from which the length is estimated.
const ROWS_SAMPLED: u64 = 8;
/// Upper limit on a filtered chunk that is read to estimate the length.
const CHUNK_BYTES_MAX: u64 = 1 << 20;

/// Estimates lengths. The memory is reused.
pub(super) struct ReferencedBytes {
    inflate: ChunkInflate,
    unfilter: Unfilter,
}

impl ReferencedBytes {
    pub(super) fn new() -> Self {
        ReferencedBytes { inflate: ChunkInflate::new(), unfilter: Unfilter::new(false) }
    }

    /// Length of `dataset` with what its elements refer to. If it cannot be estimated, the dataset may hold all bytes of the file.
    pub(super) fn estimate(
        &mut self,
        blocks: &FileBlocks,
        dataset: &RecordDataset,
    ) -> ParseResult<u64> {
        match self.row_bytes(blocks, dataset) {
            Ok(row_bytes) => {
                let elements = dataset.bytes() / dataset.element.bytes;
                let referenced = row_bytes * elements as f64;
                Ok(dataset.bytes().saturating_add(referenced as u64))
            }
            Err(ParseStop::Invalid(_)) => Ok(blocks.file_bytes),
            Err(missing) => Err(missing),
        }
    }

    /// Mean number of bytes that the first element of a row refers to.
    fn row_bytes(&mut self, blocks: &FileBlocks, dataset: &RecordDataset) -> ParseResult<f64> {
        if dataset.unknown_filter().is_some() {
            return invalid(0, "references in chunks that cannot be decoded");
        }
        let geometry = ChunkGeometry::new(dataset)?;
        let mut bytes = 0.0;
        for i in 0..ROWS_SAMPLED {
            let last = u128::from(dataset.dims[0].saturating_sub(1));
            let row = (last * u128::from(i) / u128::from(ROWS_SAMPLED - 1)) as u64;
            bytes += self.element_bytes(blocks, dataset, &geometry, row)?;
        }
        Ok(bytes / ROWS_SAMPLED as f64)
    }

    /// Number of bytes that the first element of `row` refers to.
    fn element_bytes(
        &mut self,
        blocks: &FileBlocks,
        dataset: &RecordDataset,
        geometry: &ChunkGeometry,
        row: u64,
    ) -> ParseResult<f64> {
        let mut grid = [0; RANK_MAX];
        grid[0] = row / geometry.samples;
        let chunk_bytes = geometry.chunk_bytes;
        let found = index::find(blocks, dataset, &grid[..dataset.rank], chunk_bytes)?;
        let Some(location) = found else { return Ok(0.0) };
        let element = row % geometry.samples * geometry.slab_bytes;
        let skipped = location.skipped_filters;
        let is_plain = applied_filters(&dataset.filters, skipped).next().is_none();
        if !is_plain {
            if chunk_bytes > CHUNK_BYTES_MAX {
                return invalid(location.offset, "a chunk that is too long for an estimate");
            }
            let stored =
                blocks.get(location.offset, location.stored_bytes.unwrap_or(chunk_bytes))?;
            self.unfilter.bytes.clear();
            self.unfilter.bytes.extend_from_slice(stored);
            let unfilter = &mut self.unfilter;
            unfilter
                .undo(&dataset.filters, skipped, &mut self.inflate, location.offset, chunk_bytes)
                .map_err(ParseStop::Invalid)?;
        }
        let mut bytes = 0.0;
        for field in dataset.element.variable.list() {
            let start = element + field.offset as u64;
            let items = if is_plain {
                blocks.fields(location.offset.saturating_add(start), 4)?.u32()?
            } else {
                let chunk = &self.unfilter.bytes;
                blocks.field_reader(&chunk[start as usize..], location.offset).u32()?
            };
            bytes += f64::from(items) * field.item_bytes as f64;
        }
        Ok(bytes)
    }
}
