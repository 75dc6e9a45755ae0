//! Writes a file: the records of each dataset, contiguous or in chunks, then the labels, and finally the head with the
//! addresses of all data.

use super::super::kept_content::CachedContent;
use super::super::packed::write_generated;
use super::metadata;
use super::plan::{ChunkPlan, FilePlan};
use super::{Content, DeflateSink, FileSink, RANK_MAX, SinkError};

/// Upper limit on the bytes reserved by one call.
const STEP_BYTES: u64 = 64 << 10;
/// Memory for generated content that is reused, if samples consist of several chunks.
const KEPT_BYTES: u64 = 8 << 20;

/// Writes the file to part 0. Superblock, headers and indexes are reserved and patched, because the lengths of compressed
/// chunks are not known in advance.
pub(super) fn write_file(
    plan: &FilePlan,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let mut addresses = plan.addresses();
    let head_end = addresses.records[0];
    let mut unreserved_bytes = head_end;
    while unreserved_bytes > 0 {
        let step_bytes = unreserved_bytes.min(STEP_BYTES);
        sink.reserve(0, step_bytes as usize)?;
        unreserved_bytes -= step_bytes;
    }
    let mut position = head_end;
    let splits_samples = plan.chunks.dims[1..] != plan.dims[1..];
    let kept_bytes = if splits_samples { KEPT_BYTES } else { 0 };
    let mut content = CachedContent::new(&plan.shape, kept_bytes, content);
    for dataset in 0..plan.datasets {
        let part_start = dataset * plan.part_bytes();
        let mut records = RecordWriter { plan, content: &mut content, part_start };
        let chunk_ranges = write_chunks(&plan.chunks, &mut records, position, sink)?;
        position = chunk_ranges.last().map_or(position, |(offset, bytes)| offset + bytes);
        if plan.is_chunked {
            let index = addresses.index[dataset as usize];
            metadata::write_tree(index, &plan.chunks, &chunk_ranges, sink)?;
        }
    }
    addresses.labels = position;
    write_zeros(plan.labels_bytes(), sink)?;
    let mut head = metadata::head(plan, &addresses, position + plan.labels_bytes());
    head.resize((head_end - plan.datasets * plan.index_bytes()) as usize, 0);
    sink.patch(0, 0, &head)
}

/// Writes a dataset's chunks from `start` on, and returns the address and length of each.
fn write_chunks(
    chunks: &ChunkPlan,
    records: &mut RecordWriter,
    start: u64,
    sink: &mut dyn FileSink,
) -> Result<Vec<(u64, u64)>, SinkError> {
    let mut grid = [0; RANK_MAX];
    let grid = &mut grid[..chunks.dims.len()];
    let mut deflate = DeflateSink::zlib(records.plan.level.unwrap_or(0), sink);
    let mut chunk_ranges = Vec::with_capacity(chunks.count() as usize);
    let mut position = start;
    for ordinal in 0..chunks.count() {
        metadata::grid_position(ordinal, &chunks.counts, grid);
        let bytes = if records.plan.level.is_some() {
            deflate.reset();
            records.write_chunk(chunks, grid, &mut deflate)?;
            deflate.finish()?;
            deflate.packed_bytes()
        } else {
            records.write_chunk(chunks, grid, deflate.inner())?;
            chunks.bytes
        };
        chunk_ranges.push((position, bytes));
        position += bytes;
    }
    Ok(chunk_ranges)
}

fn write_zeros(bytes: u64, sink: &mut dyn FileSink) -> Result<(), SinkError> {
    write_generated(0, bytes, sink, &mut |_, space| space.fill(0)).map(|_| ())
}

/// Writes the records of one dataset.
struct RecordWriter<'w, 'c> {
    plan: &'w FilePlan,
    content: &'w mut CachedContent<'c>,
    /// Offset in a sample of the dataset's part.
    part_start: u64,
}

impl RecordWriter<'_, '_> {
    /// Writes `bytes` bytes of the dataset's part of `sample`, from `offset` in the part on.
    fn write(
        &mut self,
        sample: u64,
        offset: u64,
        bytes: u64,
        sink: &mut dyn FileSink,
    ) -> Result<(), SinkError> {
        let start = self.part_start + offset;
        let written = write_generated(0, bytes, sink, &mut |piece_offset, piece| {
            self.content.fill(sample, start + piece_offset, piece);
        });
        written.map(|_| ())
    }

    /// Writes the chunk at position `grid`, with zeros beyond the edge of the dataset.
    fn write_chunk(
        &mut self,
        chunks: &ChunkPlan,
        grid: &[u64],
        sink: &mut dyn FileSink,
    ) -> Result<(), SinkError> {
        let dims = &self.plan.dims;
        let chunk = &chunks.dims;
        // The chunk covers all dimensions after this one completely. A run is contiguous along `split` and these dimensions.
        let split = (1..dims.len()).rev().find(|&i| chunk[i] != dims[i]).unwrap_or(0);
        let strides = strides(dims, self.plan.shape.element.bytes());
        let run_bytes = chunk[split] * strides[split];
        let mut position_in_chunk = [0; RANK_MAX];
        let runs: u64 = chunk[..split].iter().product();
        for run in 0..runs {
            metadata::grid_position(run, &chunk[..split], &mut position_in_chunk[..split]);
            let index = |i: usize| grid[i] * chunk[i] + position_in_chunk[i];
            let first = grid[split] * chunk[split];
            let is_inside = (0..split).all(|i| index(i) < dims[i]);
            let count = if is_inside { chunk[split].min(dims[split] - first) } else { 0 };
            if split == 0 {
                for sample in first..first + count {
                    self.write(sample, 0, strides[0], sink)?;
                }
            } else if count > 0 {
                let before: u64 = (1..split).map(|i| index(i) * strides[i]).sum();
                let offset = before + first * strides[split];
                self.write(index(0), offset, count * strides[split], sink)?;
            }
            write_zeros(run_bytes - count * strides[split], sink)?;
        }
        Ok(())
    }
}

/// Distance in bytes between neighbours along each dimension.
fn strides(dims: &[u64], element_bytes: u64) -> [u64; RANK_MAX] {
    let mut strides = [element_bytes; RANK_MAX];
    for i in (0..dims.len().saturating_sub(1)).rev() {
        strides[i] = strides[i + 1] * dims[i + 1];
    }
    strides
}
