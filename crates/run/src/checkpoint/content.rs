//! The content of a state: random, finite, made piece by piece as it is written, and a function of the file's name, so that
//! it can be made again and compared. Shared by the formats.

use feedrate_data::content::Content;
use feedrate_spec::plan::state::{StateType, Tensor};
use feedrate_spec::shape::Element;
use std::io;

/// Made and written at once: what a writing thread holds in memory.
pub(super) const PIECE_BYTES: usize = 4 << 20;
const SEED: u64 = 10;

/// Makes the tensors of one file.
pub(super) struct StateContent {
    content: Content,
    piece: Vec<u8>,
}

impl StateContent {
    pub(super) fn new(file: &str) -> Self {
        let mut content = Content::new(SEED);
        content.start(u64::from(crc32fast::hash(file.as_bytes())));
        StateContent { content, piece: vec![0; PIECE_BYTES] }
    }

    /// Give the bytes of tensor number `number`, in order.
    pub(super) fn make(
        &mut self,
        number: u64,
        tensor: &Tensor,
        write: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let element = match tensor.element {
            StateType::Int8 => Element::Int8,
            StateType::Uint8 => Element::Uint8,
            // A finite half is a finite bfloat: both have the top bit of the exponent in the same place.
            StateType::Fp16 | StateType::Bf16 => Element::Float16,
            StateType::Fp32 => Element::Float32,
            StateType::Fp64 => Element::Float64,
        };
        let total = tensor.bytes();
        let mut done = 0;
        while done < total {
            let piece = &mut self.piece[..(total - done).min(PIECE_BYTES as u64) as usize];
            self.content.fill(number, done, element, piece);
            write(piece)?;
            done += piece.len() as u64;
        }
        Ok(())
    }
}
