//! Compares the files with those of TensorFlow 2.21.

use super::*;
use crate::checkpoint::content::StateContent;
use crate::checkpoint::sink::PieceWriter;
use std::io::{Read, Seek};
use std::sync::atomic::AtomicU64;

/// Writes the data file. Returns it with the index file.
fn write(state: &StateFile) -> [Vec<u8>; 2] {
    let mut file = tempfile::tempfile().unwrap();
    let done = AtomicU64::new(0);
    let mut writer = PieceWriter::new(StateContent::ones(), 4096, &mut file, &done).unwrap();
    let index = Tf.write(&mut writer, state).unwrap().remove(0);
    writer.finish().unwrap();
    let mut data = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut data).unwrap();
    [data, index]
}

/// The checksums are those of the files that `tf.train.Checkpoint(**state).save("s.pb")` wrote.
#[test]
fn the_files_are_those_of_tensorflow() {
    let tensors = [
        ("0", 3, StateType::Fp16),
        ("1", 5, StateType::Fp32),
        ("2", 2, StateType::Bf16),
        ("a", 200, StateType::Uint8),
    ];
    let tensors =
        tensors.map(|(name, elements, element)| Tensor { name: name.into(), elements, element });
    let [data, index] = write(&StateFile { name: "s".into(), tensors: tensors.to_vec() });
    assert_eq!((data.len(), crc32fast::hash(&data)), (631, 0xd914_05b3));
    assert_eq!((index.len(), crc32fast::hash(&index)), (397, 0x57cb_644d));
    let names = ["s.pb-1.data-00000-of-00001", "s.pb-1.index"];
    assert_eq!(Tf.file_names("s"), names);
    let overview = Tf.overview("s").unwrap();
    assert_eq!((overview.name.as_str(), overview.content.len()), ("checkpoint", 69));
    assert_eq!(crc32fast::hash(&overview.content), 0x66d2_00a7);
}

/// As above, with dictionaries as values, and more keys than lie between two whole keys of the index.
#[test]
fn files_of_nested_tensors_are_those_of_tensorflow() {
    use StateType::*;
    let elements = [Fp16, Fp32, Bf16, Fp64, Int8, Uint8];
    let layer = |layer: u64| {
        (0..).zip(elements).map(move |(number, element)| Tensor {
            name: format!("{layer}/{number}"),
            elements: 3 + number + 10 * layer,
            element,
        })
    };
    let layers = StateFile { name: "s".into(), tensors: (0..12).flat_map(layer).collect() };
    let [data, index] = write(&layers);
    assert_eq!((data.len(), crc32fast::hash(&data)), (18563, 0x3adf_5751));
    assert_eq!((index.len(), crc32fast::hash(&index)), (3803, 0x7fd8_e9c7));
    let half = |group: u64, half: &str| Tensor {
        name: format!("{group}/{half}"),
        elements: 1 + group,
        element: Fp32,
    };
    let mut tensors: Vec<Tensor> =
        (0..12).flat_map(|group| ["a", "b"].map(|name| half(group, name))).collect();
    tensors.push(Tensor { name: "combined".into(), elements: 78, element: Fp32 });
    let [data, index] = write(&StateFile { name: "s".into(), tensors });
    assert_eq!((data.len(), crc32fast::hash(&data)), (3052, 0x2bef_3bbc));
    assert_eq!((index.len(), crc32fast::hash(&index)), (1465, 0x7a47_7f3e));
}
