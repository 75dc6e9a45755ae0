//! Generates the content of tensors: either ones, or random finite numbers. Random content depends only on the checkpoint and the
//! file's name: checkpoints differ, and each can be generated again. The content is generated piece by piece.

use feedrate_data::content::Content;
use feedrate_spec::plan::seeds::checkpoint_content_seed;
use feedrate_spec::plan::state::{StateType, Tensor};
use feedrate_spec::shape::Element;

/// Generates the tensors of one file.
pub(super) struct StateContent {
    /// Generator of random content; `None` for ones.
    random: Option<Content>,
}

impl StateContent {
    /// Creates random content of `file` in the checkpoint of `epoch` and `step`.
    pub(super) fn random(epoch: u32, step: u64, file: &str) -> Self {
        let mut content = Content::new(checkpoint_content_seed(epoch, step));
        content.select_file(u64::from(crc32fast::hash(file.as_bytes())));
        StateContent { random: Some(content) }
    }

    /// Creates content of ones.
    pub(super) fn ones() -> Self {
        StateContent { random: None }
    }

    /// Fills `bytes` with the bytes of tensor number `number`, starting at `offset` of the tensor.
    pub(super) fn fill(&mut self, number: u64, tensor: &Tensor, offset: u64, bytes: &mut [u8]) {
        match &mut self.random {
            Some(content) => content.fill(number, offset, element(tensor.element), bytes),
            None => fill_ones(tensor.element, offset, bytes),
        }
    }
}

fn element(state: StateType) -> Element {
    match state {
        StateType::Int8 => Element::Int8,
        StateType::Uint8 => Element::Uint8,
        // A finite half is also a finite bfloat, since the top bit of the exponent is the same.
        StateType::Fp16 | StateType::Bf16 => Element::Float16,
        StateType::Fp32 => Element::Float32,
        StateType::Fp64 => Element::Float64,
    }
}

fn fill_ones(state: StateType, offset: u64, bytes: &mut [u8]) {
    let value: u64 = match state {
        StateType::Int8 | StateType::Uint8 => 1,
        StateType::Fp16 => 0x3c00,
        StateType::Bf16 => 0x3f80,
        StateType::Fp32 => u64::from(1f32.to_bits()),
        StateType::Fp64 => 1f64.to_bits(),
    };
    let value_bytes = value.to_le_bytes();
    let first = (offset % state.bytes()) as usize;
    let pattern = value_bytes[..state.bytes() as usize].iter().cycle().skip(first);
    for (byte, expected) in bytes.iter_mut().zip(pattern) {
        *byte = *expected;
    }
}
