//! The bytes of samples, as a function of (seed, file, sample, offset): anyone can make them or check them.
//!
//! Each block of 4096 bytes is a xoshiro256++ stream of its own, so any range can be made without what
//! comes before it. Changing a byte of this changes every dataset: raise [`CONTENT_VERSION`] then.

use feedrate_spec::shape::Element;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Of the function from (seed, file, sample, offset) to bytes; part of a dataset's fingerprint.
pub const CONTENT_VERSION: u32 = 1;

/// Bytes that are made together.
pub const BLOCK_BYTES: usize = 4096;

/// Makes and checks payload. Holds one block of memory; never allocates.
pub struct Content {
    seed: u64,
    file: u64,
    file_key: u64,
    block: [u8; BLOCK_BYTES],
}

impl Content {
    /// Content of `seed`, at file 0.
    pub fn new(seed: u64) -> Self {
        let mut content = Content { seed, file: 0, file_key: 0, block: [0; BLOCK_BYTES] };
        content.start(0);
        content
    }

    /// What follows is of dataset file number `file`.
    pub fn start(&mut self, file: u64) {
        self.file = file;
        self.file_key = mix(mix(self.seed) ^ file);
    }

    /// The dataset file it was started on.
    pub fn file(&self) -> u64 {
        self.file
    }

    /// Fill `bytes` with the payload of `sample` from byte `offset` on. Floats are finite, integers take
    /// every value.
    pub fn fill(&mut self, sample: u64, offset: u64, element: Element, bytes: &mut [u8]) {
        let stream = Stream::new(self.file_key, sample, element);
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
        let stream = Stream::new(self.file_key, sample, element);
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

/// Where two slices of one length first differ.
pub(crate) fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    if a == b {
        return None;
    }
    a.iter().zip(b).position(|(a, b)| a != b)
}

/// The stream of one sample.
struct Stream {
    key: u64,
    mask: u64,
}

impl Stream {
    fn new(file_key: u64, sample: u64, element: Element) -> Self {
        Stream { key: mix(file_key ^ sample), mask: mask(element) }
    }

    /// The first `bytes.len()` bytes of a block; a multiple of 8.
    fn write(&self, block: u64, bytes: &mut [u8]) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(mix(self.key ^ block));
        for word in bytes.chunks_exact_mut(8) {
            word.copy_from_slice(&(random.next_u64() & self.mask).to_le_bytes());
        }
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

/// One step of SplitMix64 (Steele, Lea, Flood 2014): a bijection that scatters neighbouring numbers.
fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn made(sample: u64, offset: u64, element: Element, len: usize) -> Vec<u8> {
        let mut content = Content::new(7);
        content.start(3);
        let mut bytes = vec![0; len];
        content.fill(sample, offset, element, &mut bytes);
        bytes
    }

    /// A change here changes every dataset in the world.
    #[test]
    fn bytes_stay_what_they_were() {
        assert_eq!(hex(&made(1, 0, Element::Uint8, 16)), "ab7e904c553536a39f2898cc486fca27");
        assert_eq!(hex(&made(1, 4096, Element::Uint8, 16)), "8194eba73edf177f3895637f27ee796e");
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn bytes_take_every_value_and_do_not_repeat() {
        let bytes = made(0, 0, Element::Uint8, 1 << 16);
        let mut counts = [0u32; 256];
        bytes.iter().for_each(|&b| counts[b as usize] += 1);
        assert!(counts.iter().all(|&n| (150..370).contains(&n)), "{counts:?}");
        let mut blocks: Vec<&[u8]> = bytes.chunks(64).collect();
        blocks.sort_unstable();
        blocks.dedup();
        assert_eq!(blocks.len(), 1024);
    }

    #[test]
    fn files_samples_and_seeds_differ() {
        let mut seen = std::collections::HashSet::new();
        for seed in 0..3 {
            for file in 0..5 {
                for sample in 0..5 {
                    let mut content = Content::new(seed);
                    content.start(file);
                    let mut bytes = [0; 16];
                    content.fill(sample, 0, Element::Uint8, &mut bytes);
                    assert!(seen.insert(bytes));
                }
            }
        }
    }

    #[test]
    fn floats_are_finite() {
        let bytes = made(0, 0, Element::Float32, 1 << 16);
        let (words, _) = bytes.as_chunks::<4>();
        assert!(words.iter().all(|w| f32::from_le_bytes(*w).is_finite()));
        let bytes = made(0, 0, Element::Float64, 1 << 16);
        let (words, _) = bytes.as_chunks::<8>();
        assert!(words.iter().all(|w| f64::from_le_bytes(*w).is_finite()));
        let bytes = made(0, 0, Element::Float16, 1 << 16);
        let (words, _) = bytes.as_chunks::<2>();
        assert!(words.iter().all(|w| u16::from_le_bytes(*w) & 0x7c00 != 0x7c00));
    }

    proptest! {
        #[test]
        fn any_range_is_a_piece_of_the_whole(offset in 0usize..20_000, len in 0usize..9000) {
            let whole = made(5, 0, Element::Float32, 30_000);
            let part = made(5, offset as u64, Element::Float32, len);
            prop_assert_eq!(&part, &whole[offset..offset + len]);
        }

        #[test]
        fn the_first_difference_is_named(offset in 0u64..9000, len in 1usize..9000, at in 0usize..9000) {
            let mut bytes = made(2, offset, Element::Uint8, len);
            let mut content = Content::new(7);
            content.start(3);
            prop_assert_eq!(content.matches(2, offset, Element::Uint8, &bytes), Ok(()));
            let at = at % len;
            bytes[at] ^= 1;
            prop_assert_eq!(content.matches(2, offset, Element::Uint8, &bytes), Err(offset + at as u64));
        }
    }
}
