//! Keeps chunks that hold several samples, as the HDF5 library 2.0 does by default: up to 8 MiB of unfiltered chunks for each dataset.
//! Longer chunks are not kept.

use std::collections::{HashMap, VecDeque};

/// Upper limit on the chunks of a dataset (`rdcc_nbytes` of the library; 1 MiB before version 2.0).
const BYTES_MAX: u64 = 8 << 20;
/// Upper limit on the chunks of all datasets, because each worker keeps its own.
const WORKER_BYTES_MAX: u64 = 256 << 20;

/// The kept chunks of one dataset, by their offset in the file.
#[derive(Default)]
pub(super) struct ChunkCache {
    chunks: HashMap<u64, KeptChunk>,
    /// Offsets of the chunks, the oldest first.
    order: VecDeque<u64>,
    bytes: u64,
    bytes_max: u64,
}

struct KeptChunk {
    /// The chunk: unfiltered, or as it is stored if it cannot be decoded.
    content: Vec<u8>,
    /// Length of the unfiltered chunk.
    bytes: u64,
    /// Number of the sample that used the chunk last.
    used_by: u64,
}

impl ChunkCache {
    /// Limits the cache to its share, if a sample is read from `datasets` datasets.
    pub(super) fn set_share(&mut self, datasets: usize) {
        self.bytes_max = BYTES_MAX.min(WORKER_BYTES_MAX / datasets.max(1) as u64);
    }

    /// Whether chunks of this length are kept.
    pub(super) fn keeps(&self, chunk_bytes: u64) -> bool {
        chunk_bytes <= self.bytes_max
    }

    /// Removes all chunks.
    pub(super) fn clear(&mut self) {
        self.chunks.clear();
        self.order.clear();
        self.bytes = 0;
    }

    /// Whether the chunk at `offset` is kept, and sample number `sample_count` has not used it yet. A sample uses a chunk once, unless
    /// the file is malicious: then the chunk is read, so that the work is limited by the number of reads.
    pub(super) fn has(&self, offset: u64, sample_count: u64) -> bool {
        self.chunks.get(&offset).is_some_and(|chunk| chunk.used_by != sample_count)
    }

    /// Returns the content of a kept chunk to sample number `sample_count`.
    pub(super) fn take(&mut self, offset: u64, sample_count: u64) -> Vec<u8> {
        self.chunks.get_mut(&offset).map_or_else(Vec::new, |chunk| {
            chunk.used_by = sample_count;
            std::mem::take(&mut chunk.content)
        })
    }

    /// Returns a content that was taken.
    pub(super) fn put_back(&mut self, offset: u64, content: Vec<u8>) {
        if let Some(chunk) = self.chunks.get_mut(&offset) {
            chunk.content = content;
        }
    }

    /// Keeps a chunk of `bytes` bytes that sample number `sample_count` has read, in place of the oldest ones. Returns memory to use for
    /// the next chunk.
    pub(super) fn keep(
        &mut self,
        offset: u64,
        bytes: u64,
        sample_count: u64,
        content: Vec<u8>,
    ) -> Vec<u8> {
        let mut memory = self.remove(offset);
        while self.bytes + bytes > self.bytes_max
            && let Some(oldest) = self.order.pop_front()
        {
            memory = self.remove(oldest).or(memory);
        }
        self.bytes += bytes;
        self.order.push_back(offset);
        self.chunks.insert(offset, KeptChunk { content, bytes, used_by: sample_count });
        memory.unwrap_or_default()
    }

    fn remove(&mut self, offset: u64) -> Option<Vec<u8>> {
        let chunk = self.chunks.remove(&offset)?;
        self.bytes -= chunk.bytes;
        Some(chunk.content)
    }
}
