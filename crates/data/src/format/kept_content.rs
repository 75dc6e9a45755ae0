//! Content for writers that ask for it in runs shorter than its blocks: a block that was made is kept for the runs that
//! follow, which need not make it again from its start. Shared by the formats that write so.

use super::Content;
use crate::content::BLOCK_BYTES;
use feedrate_spec::shape::{Element, FileShape};

/// Makes the samples of one file.
pub(super) struct KeptContent<'c> {
    content: &'c mut Content,
    element: Element,
    sample_bytes: u64,
    /// Bytes of a place in `memory`: of a block, or of a sample that is shorter.
    place_bytes: usize,
    /// Number of the block in each place, counted over all samples. Blocks beside each other do not share one.
    kept: Vec<Option<u64>>,
    memory: Vec<u8>,
}

impl<'c> KeptContent<'c> {
    /// For files of this shape, in `bytes` bytes of memory; one block is kept in any case.
    pub(super) fn new(shape: &FileShape, bytes: u64, content: &'c mut Content) -> Self {
        let sample_bytes = shape.sample_bytes();
        let all = blocks_in(sample_bytes).saturating_mul(shape.samples);
        let place_bytes = sample_bytes.min(BLOCK_BYTES as u64) as usize;
        let places = bytes / (place_bytes + size_of::<Option<u64>>()) as u64;
        let places = places.min(all).max(1) as usize;
        KeptContent {
            content,
            element: shape.element,
            sample_bytes,
            place_bytes,
            kept: vec![None; places],
            memory: vec![0; places * place_bytes],
        }
    }

    /// As [`Content::fill`].
    pub(super) fn fill(&mut self, sample: u64, offset: u64, bytes: &mut [u8]) {
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (block, skip) = (at / BLOCK_BYTES as u64, (at % BLOCK_BYTES as u64) as usize);
            let block_bytes = (self.sample_bytes - (at - skip as u64)).min(BLOCK_BYTES as u64);
            let block_bytes = block_bytes as usize;
            let (now, later) = rest.split_at_mut(rest.len().min(block_bytes - skip));
            if now.len() == block_bytes {
                self.content.fill(sample, at, self.element, now);
            } else {
                now.copy_from_slice(&self.block(sample, block, block_bytes)[skip..][..now.len()]);
            }
            at += now.len() as u64;
            rest = later;
        }
    }

    fn block(&mut self, sample: u64, block: u64, block_bytes: usize) -> &[u8] {
        let number = sample * blocks_in(self.sample_bytes) + block;
        let place = (number % self.kept.len() as u64) as usize;
        let memory = &mut self.memory[place * self.place_bytes..][..block_bytes];
        if self.kept[place] != Some(number) {
            self.content.fill(sample, block * BLOCK_BYTES as u64, self.element, memory);
            self.kept[place] = Some(number);
        }
        memory
    }
}

fn blocks_in(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK_BYTES as u64)
}

#[cfg(test)]
mod tests {
    use super::super::tests::shape;
    use super::*;

    #[test]
    fn runs_of_any_order_and_length_are_the_content() {
        let (mut content, mut plain) = (Content::new(7), Content::new(7));
        let shapes = [100, 10_001].map(|bytes| shape(&[bytes], Element::Uint8, 3));
        for (shape, memory) in
            shapes.iter().flat_map(|shape| [0, 250, 9000, 1 << 20].map(|memory| (shape, memory)))
        {
            let bytes = shape.sample_bytes() as usize;
            let mut kept = KeptContent::new(shape, memory, &mut content);
            for len in [1, 64, 4096, 5000, bytes].into_iter().filter(|len| *len <= bytes) {
                for at in (0..=bytes - len).step_by(97) {
                    for sample in [0, 2, 1] {
                        let (mut run, mut wanted) = (vec![0; len], vec![0; len]);
                        kept.fill(sample, at as u64, &mut run);
                        plain.fill(sample, at as u64, Element::Uint8, &mut wanted);
                        assert!(run == wanted, "{len} bytes at {at} of {sample}");
                    }
                }
            }
        }
    }

    /// As chunks of a picture's columns are made: run after run, each of another row, chunk after chunk.
    #[test]
    fn a_block_that_fits_is_made_once() {
        let shape = shape(&[64, 256], Element::Uint8, 1);
        let mut content = Content::new(7);
        let mut kept = KeptContent::new(&shape, 1 << 20, &mut content);
        let mut made = 0;
        for column in 0..4 {
            for row in 0..64 {
                let before = kept.kept.clone();
                kept.fill(0, row * 256 + column * 64, &mut [0; 64]);
                made += usize::from(before != kept.kept);
            }
        }
        assert_eq!(made, 4);
    }
}
