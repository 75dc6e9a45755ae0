//! `safetensors`: the length of the header in eight bytes, a JSON header with the type, shape and position of each tensor, then the
//! tensors one after another (huggingface/safetensors, `README.md`).

use super::{Checkpoint, CheckpointSink};
use feedrate_spec::catalog::Member;
use feedrate_spec::plan::state::{StateFile, StateType};
use serde::Serialize;
use serde_json::{Map, Value};
use std::io;

static MEMBER: Member = Member {
    name: "safetensors",
    summary: "the format of the safetensors library",
    abilities: &[],
};

/// The length of the header is padded to a multiple of this number.
const ALIGN_BYTES: usize = 8;

/// The `safetensors` format.
#[derive(Debug)]
pub(super) struct SafetensorsCheckpoint;

impl Checkpoint for SafetensorsCheckpoint {
    fn member(&self) -> &'static Member {
        &MEMBER
    }

    fn write(&self, sink: &mut dyn CheckpointSink, state: &StateFile) -> io::Result<Vec<Vec<u8>>> {
        let header = header(state);
        sink.put(&(header.len() as u64).to_le_bytes())?;
        sink.put(&header)?;
        let mut tensors = (0..).zip(&state.tensors);
        tensors.try_for_each(|(number, tensor)| sink.put_tensor(number, tensor).map(|_| ()))?;
        Ok(Vec::new())
    }
}

#[derive(Serialize)]
struct TensorEntry {
    dtype: &'static str,
    shape: [u64; 1],
    data_offsets: [u64; 2],
}

fn header(state: &StateFile) -> Vec<u8> {
    let mut end = 0;
    let tensors = state.tensors.iter().map(|tensor| {
        let start = end;
        end += tensor.bytes();
        let entry = TensorEntry {
            dtype: dtype(tensor.element),
            shape: [tensor.elements],
            data_offsets: [start, end],
        };
        let entry = serde_json::to_value(entry).unwrap_or_else(|_| unreachable!("keys are text"));
        (tensor.name.clone(), entry)
    });
    let mut header = Value::Object(tensors.collect::<Map<_, _>>()).to_string().into_bytes();
    header.resize(header.len().next_multiple_of(ALIGN_BYTES), b' ');
    header
}

fn dtype(element: StateType) -> &'static str {
    match element {
        StateType::Int8 => "I8",
        StateType::Uint8 => "U8",
        StateType::Fp16 => "F16",
        StateType::Bf16 => "BF16",
        StateType::Fp32 => "F32",
        StateType::Fp64 => "F64",
    }
}
