//! Writes a file: its head, then the records of each dataset, whole or in chunks.

use super::metadata::{self, ChunkTree};
use super::plan::{ChunkPlan, FilePlaces, FilePlan};
use super::{Content, DeflateSink, FileSink, RANK_MAX, SinkError};

/// Made between two questions to the sink.
const STRIDE_BYTES: u64 = 1 << 20;
/// Samples that chunks cut up are kept whole while they last, up to this many bytes.
const KEPT_BYTES_MAX: u64 = 8 << 20;
/// Reserved at once.
const STEP_BYTES: u64 = 64 << 10;

/// Write the file to part 0.
pub(super) fn file(
    plan: &FilePlan,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let places = plan.places();
    let packed = plan.level.is_some();
    let superblock = metadata::superblock(places.end);
    if packed {
        sink.reserve(0, superblock.len())?;
    } else {
        sink.write(0, &superblock)?;
    }
    let head = metadata::object_headers(plan, &places);
    sink.write(0, &head)?;
    let mut at = metadata::SUPERBLOCK_BYTES + head.len() as u64;
    for dataset in 0..plan.datasets as usize {
        at = index(plan, &places, dataset, at, sink)?;
    }
    zeros(places.labels + plan.labels_bytes() - at, sink)?;
    at = places.labels + plan.labels_bytes();
    let mut records = RecordWriter::new(plan, content);
    for dataset in 0..plan.datasets {
        let start = places.records[dataset as usize];
        // Without compression; with it the next dataset begins where the last one ended.
        let start = if packed && dataset > 0 { at } else { start };
        zeros(start - at, sink)?;
        records.start(dataset);
        at = match &plan.chunks {
            None => {
                for sample in 0..plan.shape.samples {
                    records.write(sample, 0, plan.part_bytes(), sink)?;
                }
                start + plan.dataset_bytes()
            }
            Some(chunks) => {
                let place = places.index[dataset as usize];
                write_chunks(chunks, &mut records, place, start, sink)?
            }
        };
    }
    if packed {
        sink.patch(0, 0, &metadata::superblock(at))?;
    }
    Ok(())
}

/// A dataset's index, or room for it: sizes of compressed chunks are not known yet.
fn index(
    plan: &FilePlan,
    places: &FilePlaces,
    dataset: usize,
    at: u64,
    sink: &mut dyn FileSink,
) -> Result<u64, SinkError> {
    let Some(chunks) = &plan.chunks else { return Ok(at) };
    let place = places.index[dataset];
    zeros(place - at, sink)?;
    if plan.level.is_some() {
        let mut left = plan.index_bytes();
        while left > 0 {
            let now = left.min(STEP_BYTES);
            sink.reserve(0, now as usize)?;
            left -= now;
        }
    } else {
        let records = places.records[dataset];
        let chunk = |ordinal| (records + ordinal * chunks.bytes, chunks.bytes as u32);
        let tree = ChunkTree::new(chunks.count(), plan.dims.len());
        tree.write(place, chunks, &chunk, &mut |_, node| sink.write(0, node))?;
    }
    Ok(place + plan.index_bytes())
}

/// Write a dataset's chunks from `start` on; where the last one ends.
fn write_chunks(
    chunks: &ChunkPlan,
    records: &mut RecordWriter,
    index: u64,
    start: u64,
    sink: &mut dyn FileSink,
) -> Result<u64, SinkError> {
    let rank = chunks.dims.len();
    let mut grid = [0; RANK_MAX];
    let grid = &mut grid[..rank];
    let Some(level) = records.plan.level else {
        for ordinal in 0..chunks.count() {
            metadata::place(ordinal, &chunks.counts, grid);
            records.write_chunk(chunks, grid, sink)?;
        }
        return Ok(start + chunks.count() * chunks.bytes);
    };
    let mut deflate = DeflateSink::zlib(level, sink);
    let mut placed = Vec::with_capacity(chunks.count() as usize);
    let mut at = start;
    for ordinal in 0..chunks.count() {
        metadata::place(ordinal, &chunks.counts, grid);
        records.write_chunk(chunks, grid, &mut deflate)?;
        deflate.finish()?;
        placed.push((at, deflate.packed_bytes() as u32));
        at += deflate.packed_bytes();
        deflate.reset();
    }
    let tree = ChunkTree::new(chunks.count(), rank);
    tree.write(index, chunks, &|ordinal| placed[ordinal as usize], &mut |at, node| {
        sink.patch(0, at, node)
    })?;
    Ok(at)
}

fn zeros(bytes: u64, sink: &mut dyn FileSink) -> Result<(), SinkError> {
    let mut left = bytes;
    while left > 0 {
        let space = sink.space(0);
        let now = (space.len() as u64).min(left) as usize;
        space[..now].fill(0);
        sink.advance(0, now)?;
        left -= now as u64;
    }
    Ok(())
}

/// Makes the bytes of one dataset's records.
struct RecordWriter<'w> {
    plan: &'w FilePlan,
    content: &'w mut Content,
    /// Start of the dataset's part of a sample.
    part_start: u64,
    /// Parts of the samples from `kept_first` on, where chunks cut them up.
    kept: Vec<u8>,
    kept_first: Option<u64>,
    /// Samples that are kept; 0 where none need be.
    kept_samples: u64,
}

impl<'w> RecordWriter<'w> {
    fn new(plan: &'w FilePlan, content: &'w mut Content) -> Self {
        let cut_up = plan.chunks.as_ref().filter(|chunks| chunks.dims[1..] != plan.dims[1..]);
        let samples = cut_up.map_or(0, |chunks| chunks.dims[0].min(plan.shape.samples));
        let fits = samples.saturating_mul(plan.part_bytes()) <= KEPT_BYTES_MAX;
        let kept_samples = if fits { samples } else { 0 };
        RecordWriter {
            plan,
            content,
            part_start: 0,
            kept: Vec::new(),
            kept_first: None,
            kept_samples,
        }
    }

    /// Go on with dataset number `dataset`.
    fn start(&mut self, dataset: u64) {
        self.part_start = dataset * self.plan.part_bytes();
        self.kept_first = None;
    }

    /// Fill `piece` with the part of `sample` from byte `from` of it on.
    fn fill(&mut self, sample: u64, from: u64, piece: &mut [u8]) {
        let element = self.plan.shape.element;
        if self.kept_samples == 0 {
            return self.content.fill(sample, self.part_start + from, element, piece);
        }
        let part_bytes = self.plan.part_bytes() as usize;
        let first = sample - sample % self.kept_samples;
        if self.kept_first != Some(first) {
            let samples = self.kept_samples.min(self.plan.shape.samples - first);
            self.kept.resize(samples as usize * part_bytes, 0);
            for (i, part) in self.kept.chunks_exact_mut(part_bytes).enumerate() {
                self.content.fill(first + i as u64, self.part_start, element, part);
            }
            self.kept_first = Some(first);
        }
        let start = (sample - first) as usize * part_bytes + from as usize;
        piece.copy_from_slice(&self.kept[start..start + piece.len()]);
    }

    fn write(
        &mut self,
        sample: u64,
        from: u64,
        bytes: u64,
        sink: &mut dyn FileSink,
    ) -> Result<(), SinkError> {
        let mut at = 0;
        while at < bytes {
            let stride_end = bytes.min(at.saturating_add(STRIDE_BYTES));
            if sink.skip(0, stride_end - at) {
                at = stride_end;
            }
            while at < stride_end {
                let space = sink.space(0);
                let len = (space.len() as u64).min(stride_end - at) as usize;
                self.fill(sample, from + at, &mut space[..len]);
                sink.advance(0, len)?;
                at += len as u64;
            }
        }
        Ok(())
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
