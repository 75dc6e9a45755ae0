//! Tests the structure of archives. The integration tests open archives with torch.

use super::*;
use crate::checkpoint::content::StateContent;
use crate::checkpoint::sink::PieceWriter;
use feedrate_spec::plan::state::{StateType, Tensor};
use std::io::Read;
use std::sync::atomic::AtomicU64;

fn tensor(name: &str, elements: u64, element: StateType) -> Tensor {
    Tensor { name: name.into(), elements, element }
}

fn write_archive(state: &StateFile) -> Vec<u8> {
    let mut file = tempfile::tempfile().unwrap();
    let content = StateContent::random(1, 5, &state.name);
    let done = AtomicU64::new(0);
    let mut writer = PieceWriter::new(content, 4096, &mut file, &done).unwrap();
    Pt.write(&mut writer, state).unwrap();
    writer.finish().unwrap();
    let mut bytes = Vec::new();
    std::io::Seek::rewind(&mut file).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

fn state() -> StateFile {
    let tensors = vec![
        tensor("0/0", 1000, StateType::Fp16),
        tensor("0/1", 3, StateType::Fp32),
        tensor("10/0", 70_000, StateType::Int8),
        tensor("b", 0, StateType::Fp64),
    ];
    StateFile { name: "model_states-0".into(), tensors }
}

#[test]
fn members_begin_at_multiples_of_64_and_output_is_reproducible() {
    let bytes = write_archive(&state());
    assert_eq!(bytes, write_archive(&state()));
    let mut members = 0;
    let mut position = 0;
    while bytes[position..].starts_with(b"PK\x03\x04") {
        let field = |offset: usize, len: usize| {
            bytes[position + offset..][..len].iter().rev().fold(0, |n, b| n << 8 | usize::from(*b))
        };
        let (size, crc) = (field(18, 4), field(14, 4));
        let start = position + 30 + field(26, 2) + field(28, 2);
        assert_eq!(start % 64, 0);
        assert_eq!(crc32fast::hash(&bytes[start..start + size]), crc as u32);
        position = start + size;
        members += 1;
    }
    assert_eq!(members, 4 + 3);
    assert!(bytes[position..].starts_with(b"PK\x01\x02"));
}

#[test]
fn the_overhead_of_the_format_is_small() {
    let bytes: u64 = state().bytes();
    assert!((write_archive(&state()).len() as u64) < bytes + 4096);
}
