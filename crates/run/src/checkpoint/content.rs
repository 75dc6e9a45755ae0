//! The content of a state: random, finite, made piece by piece as it is written, and a function of the file's name, so that
//! it can be made again and compared. Shared by the sinks.

use feedrate_data::content::Content;
use feedrate_spec::plan::state::{StateType, Tensor};
use feedrate_spec::shape::Element;

const SEED: u64 = 10;

/// Makes the tensors of one file.
pub(super) struct StateContent {
    content: Content,
}

impl StateContent {
    pub(super) fn new(file: &str) -> Self {
        let mut content = Content::new(SEED);
        content.start(u64::from(crc32fast::hash(file.as_bytes())));
        StateContent { content }
    }

    /// The bytes of tensor number `number` from byte `offset` on.
    pub(super) fn fill(&mut self, number: u64, tensor: &Tensor, offset: u64, bytes: &mut [u8]) {
        let element = match tensor.element {
            StateType::Int8 => Element::Int8,
            StateType::Uint8 => Element::Uint8,
            // A finite half is a finite bfloat: both have the top bit of the exponent in the same place.
            StateType::Fp16 | StateType::Bf16 => Element::Float16,
            StateType::Fp32 => Element::Float32,
            StateType::Fp64 => Element::Float64,
        };
        self.content.fill(number, offset, element, bytes);
    }
}
