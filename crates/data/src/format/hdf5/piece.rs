//! Geometry of the chunks in a sample. Chunks whose bytes interleave in the sample form a band: a contiguous range of the
//! sample that is complete when all of these chunks have been read.

use super::blocks::{ParseResult, invalid};
use super::message::RecordDataset;
use super::{RANK_MAX, product};

/// Upper limit on the length of a chunk. No file is that long.
const CHUNK_BYTES_MAX: u64 = 1 << 62;

/// The dimensions of a sample and of its chunks, without the axis of samples.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChunkGeometry {
    /// Number of dimensions of a sample; at least 1.
    rank: usize,
    dims: [u64; RANK_MAX],
    chunk: [u64; RANK_MAX],
    element_bytes: u64,
    /// The first dimension along which a chunk is longer than 1. A band has the length of one chunk along it.
    band_axis: usize,
    /// Number of samples in the dataset.
    dataset_samples: u64,
    /// Number of samples in a complete chunk.
    pub(super) samples: u64,
    /// Length of a sample's share of a chunk.
    pub(super) slab_bytes: u64,
    pub(super) chunk_bytes: u64,
}

impl ChunkGeometry {
    pub(super) fn new(dataset: &RecordDataset) -> ParseResult<Self> {
        let chunk_dims = &dataset.chunk;
        let mut dims = [1; RANK_MAX];
        let mut chunk = [1; RANK_MAX];
        dims[..RANK_MAX - 1].copy_from_slice(&dataset.dims[1..]);
        chunk[..RANK_MAX - 1].copy_from_slice(&chunk_dims[1..]);
        let rank = dataset.rank.saturating_sub(1).max(1);
        let element_bytes = dataset.element.bytes;
        let slab_bytes = product(&chunk).saturating_mul(element_bytes);
        let chunk_bytes = slab_bytes.saturating_mul(chunk_dims[0]);
        if chunk_bytes > CHUNK_BYTES_MAX {
            return invalid(0, format!("chunks of `{chunk_dims:?}`, more than a file can hold"));
        }
        let band_axis = chunk[..rank].iter().position(|dim| *dim > 1).unwrap_or(rank - 1);
        let samples = chunk_dims[0];
        Ok(ChunkGeometry {
            rank,
            dims,
            chunk,
            element_bytes,
            band_axis,
            dataset_samples: dataset.dims[0],
            samples,
            slab_bytes,
            chunk_bytes,
        })
    }

    /// Number of samples that share the chunks of `sample`. The last chunk can extend beyond the dataset.
    pub(super) fn sharing_samples(&self, sample: u64) -> u64 {
        let first = sample - sample % self.samples;
        self.samples.min(self.dataset_samples.saturating_sub(first)).max(1)
    }

    /// Length of the part of the dataset in the first chunk of `sample`.
    pub(super) fn used_bytes(&self, sample: u64) -> u64 {
        let elements = (0..self.rank).map(|i| self.extent(&[0; RANK_MAX], i)).product::<u64>();
        self.sharing_samples(sample) * elements * self.element_bytes
    }

    /// Whether a band is one chunk, with its bytes in the same order as in the sample.
    pub(super) fn is_contiguous(&self) -> bool {
        let inner = self.band_axis + 1..self.rank;
        self.dims[inner.clone()] == self.chunk[inner]
    }

    /// Number of elements along dimension `i` of the chunk at `grid` that are inside the dataset.
    fn extent(&self, grid: &[u64], i: usize) -> u64 {
        self.chunk[i].min(self.dims[i] - grid[i] * self.chunk[i])
    }

    /// Whether the chunk extends beyond the dataset.
    pub(super) fn is_edge(&self, grid: &[u64]) -> bool {
        (0..self.rank).any(|i| self.extent(grid, i) < self.chunk[i])
    }

    /// Length of the band that the chunk at `grid` belongs to.
    pub(super) fn band_bytes(&self, grid: &[u64]) -> u64 {
        let inner = self.dims[self.band_axis + 1..self.rank].iter().product::<u64>();
        self.extent(grid, self.band_axis) * inner * self.element_bytes
    }

    /// Advances `grid` to the next chunk of the sample. Returns false after the last.
    pub(super) fn advance(&self, grid: &mut [u64; RANK_MAX]) -> bool {
        self.advance_from(grid, 0)
    }

    /// Whether the chunk at `grid` is the last of its band.
    pub(super) fn ends_band(&self, grid: &[u64; RANK_MAX]) -> bool {
        !self.advance_from(&mut grid.clone(), self.band_axis + 1)
    }

    fn advance_from(&self, grid: &mut [u64; RANK_MAX], first: usize) -> bool {
        for i in (first..self.rank).rev() {
            grid[i] += 1;
            if grid[i] < self.dims[i].div_ceil(self.chunk[i]) {
                return true;
            }
            grid[i] = 0;
        }
        false
    }

    /// Copies a sample's share of the chunk at `grid` to its positions in the band.
    pub(super) fn scatter(&self, grid: &[u64], slab: &[u8], band: &mut [u8]) {
        let last = self.rank - 1;
        let row_bytes = (self.extent(grid, last) * self.element_bytes) as usize;
        let mut position = [0; RANK_MAX];
        loop {
            let mut slab_element = 0;
            let mut band_element = 0;
            for i in self.band_axis..self.rank {
                let skipped = if i == self.band_axis { 0 } else { grid[i] * self.chunk[i] };
                let band_dim = if i == self.band_axis { 1 } else { self.dims[i] };
                slab_element = slab_element * self.chunk[i] + position[i];
                band_element = band_element * band_dim + skipped + position[i];
            }
            let slab_start = (slab_element * self.element_bytes) as usize;
            let band_start = (band_element * self.element_bytes) as usize;
            band[band_start..band_start + row_bytes]
                .copy_from_slice(&slab[slab_start..slab_start + row_bytes]);
            // Advance to the next row. A row spans the last dimension.
            let mut i = last;
            loop {
                if i == self.band_axis {
                    return;
                }
                i -= 1;
                position[i] += 1;
                if position[i] < self.extent(grid, i) {
                    break;
                }
                position[i] = 0;
            }
        }
    }
}
