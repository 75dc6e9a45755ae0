//! Writes a file: the records of each dataset, whole or in chunks, and the labels; its head once all places are known.

use super::super::kept_content::KeptContent;
use super::super::packed::write_made;
use super::metadata;
use super::plan::{ChunkPlan, FilePlan};
use super::{Content, DeflateSink, FileSink, RANK_MAX, SinkError};

/// Reserved at once.
const STEP_BYTES: u64 = 64 << 10;
/// Memory for content that is kept where chunks cut up samples.
const KEPT_BYTES: u64 = 8 << 20;

/// Write the file to part 0. Superblock, headers and indexes are patched, since sizes of compressed chunks are not known before.
pub(super) fn file(
    plan: &FilePlan,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let mut places = plan.places();
    let head_end = places.records[0];
    let mut left = head_end;
    while left > 0 {
        let now = left.min(STEP_BYTES);
        sink.reserve(0, now as usize)?;
        left -= now;
    }
    let mut at = head_end;
    let cut_up = plan.chunks.dims[1..] != plan.dims[1..];
    let kept_bytes = if cut_up { KEPT_BYTES } else { 0 };
    let mut content = KeptContent::new(&plan.shape, kept_bytes, content);
    for dataset in 0..plan.datasets {
        let part_start = dataset * plan.part_bytes();
        let mut records = RecordWriter { plan, content: &mut content, part_start };
        let placed = write_chunks(&plan.chunks, &mut records, at, sink)?;
        at = placed.last().map_or(at, |(offset, bytes)| offset + bytes);
        if plan.is_chunked {
            let index = places.index[dataset as usize];
            metadata::write_tree(index, &plan.chunks, &placed, sink)?;
        }
    }
    places.labels = at;
    zeros(plan.labels_bytes(), sink)?;
    let superblock = metadata::superblock(at + plan.labels_bytes());
    let mut head = [superblock, metadata::object_headers(plan, &places)].concat();
    head.resize((head_end - plan.datasets * plan.index_bytes()) as usize, 0);
    sink.patch(0, 0, &head)
}

/// Write a dataset's chunks from `start` on: where each lies, and how long it is.
fn write_chunks(
    chunks: &ChunkPlan,
    records: &mut RecordWriter,
    start: u64,
    sink: &mut dyn FileSink,
) -> Result<Vec<(u64, u64)>, SinkError> {
    let mut grid = [0; RANK_MAX];
    let grid = &mut grid[..chunks.dims.len()];
    let mut deflate = DeflateSink::zlib(records.plan.level.unwrap_or(0), sink);
    let mut placed = Vec::with_capacity(chunks.count() as usize);
    let mut at = start;
    for ordinal in 0..chunks.count() {
        metadata::place(ordinal, &chunks.counts, grid);
        let bytes = if records.plan.level.is_some() {
            deflate.reset();
            records.write_chunk(chunks, grid, &mut deflate)?;
            deflate.finish()?;
            deflate.packed_bytes()
        } else {
            records.write_chunk(chunks, grid, deflate.inner())?;
            chunks.bytes
        };
        placed.push((at, bytes));
        at += bytes;
    }
    Ok(placed)
}

fn zeros(bytes: u64, sink: &mut dyn FileSink) -> Result<(), SinkError> {
    write_made(0, bytes, sink, &mut |_, space| space.fill(0)).map(|_| ())
}

/// Makes the bytes of one dataset's records.
struct RecordWriter<'w, 'c> {
    plan: &'w FilePlan,
    content: &'w mut KeptContent<'c>,
    /// Start of the dataset's part of a sample.
    part_start: u64,
}

impl RecordWriter<'_, '_> {
    /// Write the part of `sample` from byte `from` of it on.
    fn write(
        &mut self,
        sample: u64,
        from: u64,
        bytes: u64,
        sink: &mut dyn FileSink,
    ) -> Result<(), SinkError> {
        let start = self.part_start + from;
        let written = write_made(0, bytes, sink, &mut |at, piece| {
            self.content.fill(sample, start + at, piece);
        });
        written.map(|_| ())
    }

    /// Write the chunk at `grid`, with zeros beyond the dataset's edge.
    fn write_chunk(
        &mut self,
        chunks: &ChunkPlan,
        grid: &[u64],
        sink: &mut dyn FileSink,
    ) -> Result<(), SinkError> {
        let (dims, chunk) = (&self.plan.dims, &chunks.dims);
        // Dimensions behind this one are whole in the chunk: a run spans them.
        let split = (1..dims.len()).rev().find(|&i| chunk[i] != dims[i]).unwrap_or(0);
        let strides = strides(dims, self.plan.shape.element.bytes());
        let run_bytes = chunk[split] * strides[split];
        let mut local = [0; RANK_MAX];
        let runs: u64 = chunk[..split].iter().product();
        for run in 0..runs {
            metadata::place(run, &chunk[..split], &mut local[..split]);
            let at = |i: usize| grid[i] * chunk[i] + local[i];
            let first = grid[split] * chunk[split];
            let there = (0..split).all(|i| at(i) < dims[i]);
            let count = if there { chunk[split].min(dims[split] - first) } else { 0 };
            if split == 0 {
                for sample in first..first + count {
                    self.write(sample, 0, strides[0], sink)?;
                }
            } else if count > 0 {
                let before: u64 = (1..split).map(|i| at(i) * strides[i]).sum();
                let from = before + first * strides[split];
                self.write(at(0), from, count * strides[split], sink)?;
            }
            zeros(run_bytes - count * strides[split], sink)?;
        }
        Ok(())
    }
}

/// Bytes from one index to the next along each dimension.
fn strides(dims: &[u64], element_bytes: u64) -> [u64; RANK_MAX] {
    let mut strides = [element_bytes; RANK_MAX];
    for i in (0..dims.len().saturating_sub(1)).rev() {
        strides[i] = strides[i + 1] * dims[i + 1];
    }
    strides
}
