//! How chunks cut up a sample. Chunks whose bytes mix in a sample form a band: a stretch of the sample that is whole
//! once all of them have come.

use super::blocks::{Parsed, bad};
use super::message::RecordDataset;
use super::{RANK_MAX, product};

/// More bytes than any chunk has.
const CHUNK_BYTES_MAX: u64 = 1 << 62;

/// A sample's dimensions, and a chunk's without the samples' axis.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cut {
    /// Dimensions of a sample; at least 1.
    count: usize,
    dims: [u64; RANK_MAX],
    chunk: [u64; RANK_MAX],
    element_bytes: u64,
    /// The first dimension along which a chunk is longer than 1: a band is one chunk long along it.
    along: usize,
    /// Samples in a chunk.
    pub(super) samples: u64,
    /// A sample's share of a chunk.
    pub(super) slab_bytes: u64,
    pub(super) chunk_bytes: u64,
}

impl Cut {
    pub(super) fn new(dataset: &RecordDataset) -> Parsed<Self> {
        let chunk_dims = &dataset.chunk;
        let mut dims = [1; RANK_MAX];
        let mut chunk = [1; RANK_MAX];
        dims[..RANK_MAX - 1].copy_from_slice(&dataset.dims[1..]);
        chunk[..RANK_MAX - 1].copy_from_slice(&chunk_dims[1..]);
        let count = dataset.rank.saturating_sub(1).max(1);
        let element_bytes = dataset.element.bytes();
        let slab_bytes = product(&chunk).saturating_mul(element_bytes);
        let chunk_bytes = slab_bytes.saturating_mul(chunk_dims[0]);
        if chunk_bytes > CHUNK_BYTES_MAX {
            return bad(0, format!("chunks of `{chunk_dims:?}`, more than any file"));
        }
        let along = chunk[..count].iter().position(|dim| *dim > 1).unwrap_or(count - 1);
        let samples = chunk_dims[0];
        Ok(Cut { count, dims, chunk, element_bytes, along, samples, slab_bytes, chunk_bytes })
    }

    /// A band is one chunk, in which its bytes lie as in the sample.
    pub(super) fn is_straight(&self) -> bool {
        let behind = self.along + 1..self.count;
        self.dims[behind.clone()] == self.chunk[behind]
    }

    /// Elements of the chunk at `grid` along dimension `i` that lie in the dataset.
    fn extent(&self, grid: &[u64], i: usize) -> u64 {
        self.chunk[i].min(self.dims[i] - grid[i] * self.chunk[i])
    }

    /// Whether the dataset ends within the chunk.
    pub(super) fn is_edge(&self, grid: &[u64]) -> bool {
        (0..self.count).any(|i| self.extent(grid, i) < self.chunk[i])
    }

    /// Bytes of the band that the chunk at `grid` belongs to.
    pub(super) fn band_bytes(&self, grid: &[u64]) -> u64 {
        let behind = self.dims[self.along + 1..self.count].iter().product::<u64>();
        self.extent(grid, self.along) * behind * self.element_bytes
    }

    /// Go on to the next chunk of the sample: false after the last.
    pub(super) fn advance(&self, grid: &mut [u64; RANK_MAX]) -> bool {
        self.advance_from(grid, 0)
    }

    /// Whether the chunk at `grid` is the last of its band.
    pub(super) fn ends_band(&self, grid: &[u64; RANK_MAX]) -> bool {
        !self.advance_from(&mut grid.clone(), self.along + 1)
    }

    fn advance_from(&self, grid: &mut [u64; RANK_MAX], first: usize) -> bool {
        for i in (first..self.count).rev() {
            grid[i] += 1;
            if grid[i] < self.dims[i].div_ceil(self.chunk[i]) {
                return true;
            }
            grid[i] = 0;
        }
        false
    }

    /// Copy what the sample has of the chunk at `grid` to where it lies in the band.
    pub(super) fn scatter(&self, grid: &[u64], slab: &[u8], band: &mut [u8]) {
        let last = self.count - 1;
        let run_bytes = (self.extent(grid, last) * self.element_bytes) as usize;
        let mut at = [0; RANK_MAX];
        loop {
            let (mut from, mut to) = (0, 0);
            for i in self.along..self.count {
                let skipped = if i == self.along { 0 } else { grid[i] * self.chunk[i] };
                from = from * self.chunk[i] + at[i];
                to = to * if i == self.along { 1 } else { self.dims[i] } + skipped + at[i];
            }
            let (from, to) =
                ((from * self.element_bytes) as usize, (to * self.element_bytes) as usize);
            band[to..to + run_bytes].copy_from_slice(&slab[from..from + run_bytes]);
            // The next run: the last dimension is within one.
            let mut i = last;
            loop {
                if i == self.along {
                    return;
                }
                i -= 1;
                at[i] += 1;
                if at[i] < self.extent(grid, i) {
                    break;
                }
                at[i] = 0;
            }
        }
    }
}
