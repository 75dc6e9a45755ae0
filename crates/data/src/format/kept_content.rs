//! Content for writers that need pieces shorter than a block. Generated blocks are cached, because otherwise each piece
//! would generate its block again from the start. Shared by the formats that write short pieces.

use super::Content;
use crate::content::BLOCK_BYTES;
use feedrate_spec::shape::{Element, FileShape};

/// Generates the samples of one file.
pub(super) struct CachedContent<'c> {
    content: &'c mut Content,
    element: Element,
    sample_bytes: u64,
    /// Length of a slot in `memory`: the length of a block, or of a sample if it is shorter.
    slot_bytes: usize,
    /// Number of the block in each slot, counted over all samples. A block can only be in slot `number % slots`.
    blocks: Vec<Option<u64>>,
    memory: Vec<u8>,
}

impl<'c> CachedContent<'c> {
    /// Content for files of this shape, in `bytes` bytes of memory. At least one block is cached.
    pub(super) fn new(shape: &FileShape, bytes: u64, content: &'c mut Content) -> Self {
        let sample_bytes = shape.sample_bytes();
        let all_blocks = blocks_in(sample_bytes).saturating_mul(shape.samples);
        let slot_bytes = sample_bytes.min(BLOCK_BYTES as u64) as usize;
        let slots_in_memory = bytes / (slot_bytes + size_of::<Option<u64>>()) as u64;
        let slots = slots_in_memory.min(all_blocks).max(1) as usize;
        CachedContent {
            content,
            element: shape.element,
            sample_bytes,
            slot_bytes,
            blocks: vec![None; slots],
            memory: vec![0; slots * slot_bytes],
        }
    }

    /// See [`Content::fill`].
    pub(super) fn fill(&mut self, sample: u64, offset: u64, bytes: &mut [u8]) {
        let mut position = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let block = position / BLOCK_BYTES as u64;
            let skip = (position % BLOCK_BYTES as u64) as usize;
            let bytes_to_end = self.sample_bytes - (position - skip as u64);
            let block_bytes = bytes_to_end.min(BLOCK_BYTES as u64) as usize;
            let (piece, remainder) = rest.split_at_mut(rest.len().min(block_bytes - skip));
            if piece.len() == block_bytes {
                self.content.fill(sample, position, self.element, piece);
            } else {
                piece.copy_from_slice(
                    &self.block(sample, block, block_bytes)[skip..][..piece.len()],
                );
            }
            position += piece.len() as u64;
            rest = remainder;
        }
    }

    fn block(&mut self, sample: u64, block: u64, block_bytes: usize) -> &[u8] {
        let number = sample * blocks_in(self.sample_bytes) + block;
        let slot = (number % self.blocks.len() as u64) as usize;
        let memory = &mut self.memory[slot * self.slot_bytes..][..block_bytes];
        if self.blocks[slot] != Some(number) {
            self.content.fill(sample, block * BLOCK_BYTES as u64, self.element, memory);
            self.blocks[slot] = Some(number);
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
    fn pieces_of_any_order_and_length_match_the_content() {
        let (mut content, mut plain) = (Content::new(7), Content::new(7));
        let shapes = [100, 10_001].map(|bytes| shape(&[bytes], Element::Uint8, 3));
        for (shape, memory) in
            shapes.iter().flat_map(|shape| [0, 250, 9000, 1 << 20].map(|memory| (shape, memory)))
        {
            let bytes = shape.sample_bytes() as usize;
            let mut kept = CachedContent::new(shape, memory, &mut content);
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

    /// The order in which chunks of an image's columns are written: each piece belongs to another row.
    #[test]
    fn a_block_that_fits_is_generated_once() {
        let shape = shape(&[64, 256], Element::Uint8, 1);
        let mut content = Content::new(7);
        let mut kept = CachedContent::new(&shape, 1 << 20, &mut content);
        let mut generated = 0;
        for column in 0..4 {
            for row in 0..64 {
                let before = kept.blocks.clone();
                kept.fill(0, row * 256 + column * 64, &mut [0; 64]);
                generated += usize::from(before != kept.blocks);
            }
        }
        assert_eq!(generated, 4);
    }
}
