//! The bytes of samples, as a function of (seed, file, sample, offset): anyone can make them or check them.
//!
//! Each block of 4096 bytes is a xoshiro256++ stream of its own, so any range can be made without what
//! comes before it. Changing a byte of this changes every dataset: raise the version of every format then.
//!
//! Where content is to be compressible, each chunk of 512 bytes ends in zeros, and each block begins somewhere in that
//! pattern, so that short samples get their share too. Where it is to repeat itself, whole stretches of 64 KiB are
//! copies of a stretch of the pool, which belongs to the seed alone: all samples of all files share it. A sample goes
//! through the pool in order, so that a copy is megabytes away from the next and compressors with a short memory do not
//! find it.

use feedrate_spec::plan::DatasetPlan;
use feedrate_spec::plan::seeds::{content_of_file, seed_of_part};
use feedrate_spec::shape::{Element, Redundancy};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Bytes that are made together.
pub const BLOCK_BYTES: usize = 4096;
const BLOCK_WORDS: usize = BLOCK_BYTES / 8;
/// Words of a chunk; each chunk ends in zeros where some of the content is zeros.
const CHUNK_WORDS: usize = 64;
/// Bytes are copied in stretches of this many blocks: long enough to hold whole blocks of a file system wherever a
/// header shifts them.
const STRETCH_BLOCKS: u64 = 16;
/// Number of stretches that copies are taken from: 4 MiB.
const POOL_STRETCHES: u64 = 64;
/// The pool's place among the files' numbers.
const POOL_FILE: u64 = u64::MAX;

/// Makes and checks payload. Holds one block of memory; never allocates.
pub struct Content {
    seed: u64,
    file: u64,
    file_key: u64,
    redundancy: Redundancy,
    block: [u8; BLOCK_BYTES],
}

impl Content {
    /// Content of `seed`, at file 0: nothing can be saved of it.
    pub fn new(seed: u64) -> Self {
        Content::redundant(seed, Redundancy::default())
    }

    /// The content of a dataset, at file 0.
    pub fn from_plan(plan: &DatasetPlan) -> Self {
        Content::redundant(plan.content_seed, plan.redundancy)
    }

    /// Content of `seed` of which some can be saved, at file 0.
    pub fn redundant(seed: u64, redundancy: Redundancy) -> Self {
        let Redundancy { compressible_percent, duplicate_percent } = redundancy;
        debug_assert!(compressible_percent <= 100 && duplicate_percent <= 100, "{redundancy:?}");
        let mut content =
            Content { seed, file: 0, file_key: 0, redundancy, block: [0; BLOCK_BYTES] };
        content.start(0);
        content
    }

    /// Go on with the content of dataset file number `file`.
    pub fn start(&mut self, file: u64) {
        self.file = file;
        self.file_key = content_of_file(self.seed, file);
    }

    /// The dataset file it was started on.
    pub fn file(&self) -> u64 {
        self.file
    }

    fn stream(&self, sample: u64, element: Element) -> Stream {
        Stream {
            key: seed_of_part(self.file_key, sample),
            pool_key: content_of_file(self.seed, POOL_FILE),
            redundancy: self.redundancy,
            mask: mask(element),
        }
    }

    /// Fill `bytes` with the payload of `sample` from byte `offset` on. Floats are finite, integers take
    /// every value.
    pub fn fill(&mut self, sample: u64, offset: u64, element: Element, bytes: &mut [u8]) {
        let stream = self.stream(sample, element);
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (block, skip) = block_of(at);
            let len = rest.len().min(BLOCK_BYTES - skip);
            let (now, later) = rest.split_at_mut(len);
            if len == BLOCK_BYTES {
                stream.write(block, now);
            } else {
                now.copy_from_slice(stream.part(block, skip, len, &mut self.block));
            }
            at += len as u64;
            rest = later;
        }
    }

    /// Compare `bytes` with what [`Content::fill`] makes.
    ///
    /// # Errors
    /// The first offset in the sample at which they differ.
    pub fn matches(
        &mut self,
        sample: u64,
        offset: u64,
        element: Element,
        bytes: &[u8],
    ) -> Result<(), u64> {
        let stream = self.stream(sample, element);
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (block, skip) = block_of(at);
            let (now, later) = rest.split_at(rest.len().min(BLOCK_BYTES - skip));
            let wanted = stream.part(block, skip, now.len(), &mut self.block);
            if let Some(i) = first_difference(now, wanted) {
                return Err(at + i as u64);
            }
            at += now.len() as u64;
            rest = later;
        }
        Ok(())
    }
}

/// Offset at which two slices of one length first differ.
pub(crate) fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    if a == b {
        return None;
    }
    a.iter().zip(b).position(|(a, b)| a != b)
}

/// The stream of one sample.
struct Stream {
    key: u64,
    pool_key: u64,
    redundancy: Redundancy,
    mask: u64,
}

impl Stream {
    /// The first `bytes.len()` bytes of a block; a multiple of 8.
    fn write(&self, block: u64, bytes: &mut [u8]) {
        let key = self.block_key(block);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(key);
        match self.redundancy.compressible_percent {
            0 => fill_random(&mut random, self.mask, bytes),
            percent => fill_partly(&mut random, self.mask, percent, key, bytes),
        }
    }

    /// Blocks of equal keys are equal.
    fn block_key(&self, block: u64) -> u64 {
        match self.copied(block / STRETCH_BLOCKS) {
            Some(stretch) => {
                seed_of_part(seed_of_part(self.pool_key, stretch), block % STRETCH_BLOCKS)
            }
            None => seed_of_part(self.key, block),
        }
    }

    /// The stretch of the pool that a stretch of the sample copies; `None` if it is its own. Copies are spread evenly;
    /// where the first one lies differs from sample to sample, so that short samples are copies in the right share.
    fn copied(&self, stretch: u64) -> Option<u64> {
        let percent = u64::from(self.redundancy.duplicate_percent);
        let before = (self.key % 100 + stretch * percent) / 100;
        let after = (self.key % 100 + (stretch + 1) * percent) / 100;
        (after > before).then(|| ((self.key >> 32) + before) % POOL_STRETCHES)
    }

    /// `len` bytes of a block from byte `skip` on, made in `memory`.
    fn part<'m>(
        &self,
        block: u64,
        skip: usize,
        len: usize,
        memory: &'m mut [u8; BLOCK_BYTES],
    ) -> &'m [u8] {
        let end = skip + len;
        self.write(block, &mut memory[..end.next_multiple_of(8)]);
        &memory[skip..end]
    }
}

fn fill_random(random: &mut Xoshiro256PlusPlus, mask: u64, bytes: &mut [u8]) {
    for word in bytes.chunks_exact_mut(8) {
        word.copy_from_slice(&(random.next_u64() & mask).to_le_bytes());
    }
}

/// Chunks that end in zeros, from word `start`, taken modulo a block, of the pattern on.
fn fill_partly(
    random: &mut Xoshiro256PlusPlus,
    mask: u64,
    zeros_percent: u32,
    start: u64,
    bytes: &mut [u8],
) {
    let made = BLOCK_WORDS * (100 - zeros_percent as usize) / 100;
    let mut word = start as usize % BLOCK_WORDS;
    let mut rest = bytes;
    while !rest.is_empty() {
        let (chunk, at) = (word / CHUNK_WORDS, word % CHUNK_WORDS);
        // A chunk's share need not be a whole number of words: the block's is.
        let made_before = chunk * made * CHUNK_WORDS / BLOCK_WORDS;
        let made_here = (chunk + 1) * made * CHUNK_WORDS / BLOCK_WORDS - made_before;
        let end = if at < made_here { made_here } else { CHUNK_WORDS };
        let len = rest.len().min((end - at) * 8);
        let (now, later) = rest.split_at_mut(len);
        if at < made_here {
            fill_random(random, mask, now);
        } else {
            now.fill(0);
        }
        word = (word + len / 8) % BLOCK_WORDS;
        rest = later;
    }
}

/// Clears the top bit of the exponent of each float, so that none is infinite or not a number.
fn mask(element: Element) -> u64 {
    match element {
        Element::Float16 => !0x4000_4000_4000_4000,
        Element::Float32 => !0x4000_0000_4000_0000,
        Element::Float64 => !(1 << 62),
        _ => !0,
    }
}

fn block_of(offset: u64) -> (u64, usize) {
    (offset / BLOCK_BYTES as u64, (offset % BLOCK_BYTES as u64) as usize)
}

#[cfg(test)]
mod tests;
