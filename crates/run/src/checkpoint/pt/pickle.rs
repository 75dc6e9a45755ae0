//! Pickles a dictionary of tensors with protocol 2 for torch's unpickler. A tensor is a call of `_rebuild_tensor_v2` on a storage. The
//! storage is another member of the archive, which the pickle references by a persistent id.

use feedrate_spec::plan::state::{StateFile, StateType, Tensor};

/// Pickles the tensors of `state`. The parts of a tensor's name are the keys of the nested dictionaries.
pub(super) fn pickle(state: &StateFile) -> Vec<u8> {
    let mut bytes = b"\x80\x02".to_vec();
    let tensors: Vec<(usize, Vec<&str>, &Tensor)> = state
        .tensors
        .iter()
        .enumerate()
        .map(|(number, tensor)| (number, tensor.name.split('/').collect(), tensor))
        .collect();
    put_dict(&mut bytes, &tensors, 0);
    bytes.push(b'.');
    bytes
}

/// Writes the dictionary of `tensors`, which have the same parts of their names up to `depth`. Tensors with a common part are contiguous.
fn put_dict(bytes: &mut Vec<u8>, tensors: &[(usize, Vec<&str>, &Tensor)], depth: usize) {
    bytes.extend(b"}(");
    for group in tensors.chunk_by(|a, b| a.1.get(depth) == b.1.get(depth)) {
        let [(number, name, tensor), ..] = group else { continue };
        put_text(bytes, name.get(depth).copied().unwrap_or_default());
        if name.len() > depth + 1 {
            put_dict(bytes, group, depth + 1);
        } else {
            put_tensor(bytes, *number, tensor);
        }
    }
    bytes.push(b'u');
}

fn put_tensor(bytes: &mut Vec<u8>, number: usize, tensor: &Tensor) {
    put_global(bytes, "torch._utils", "_rebuild_tensor_v2");
    // (storage, offset, size, stride, requires_grad, hooks)
    bytes.extend(b"((");
    put_text(bytes, "storage");
    put_global(bytes, "torch", storage_type(tensor.element));
    put_text(bytes, &number.to_string());
    put_text(bytes, "cpu");
    put_number(bytes, tensor.elements);
    bytes.extend(b"tQ");
    put_number(bytes, 0);
    put_number(bytes, tensor.elements);
    bytes.push(b'\x85');
    put_number(bytes, 1);
    bytes.extend(b"\x85\x89");
    put_global(bytes, "collections", "OrderedDict");
    bytes.extend(b")RtR");
}

fn storage_type(element: StateType) -> &'static str {
    match element {
        StateType::Int8 => "CharStorage",
        StateType::Uint8 => "ByteStorage",
        StateType::Fp16 => "HalfStorage",
        StateType::Bf16 => "BFloat16Storage",
        StateType::Fp32 => "FloatStorage",
        StateType::Fp64 => "DoubleStorage",
    }
}

fn put_global(bytes: &mut Vec<u8>, module: &str, name: &str) {
    bytes.extend(format!("c{module}\n{name}\n").as_bytes());
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.push(b'X');
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
}

fn put_number(bytes: &mut Vec<u8>, number: u64) {
    if let Ok(small) = u8::try_from(number) {
        bytes.extend([b'K', small]);
    } else if let Ok(middle) = i32::try_from(number) {
        bytes.push(b'J');
        bytes.extend(middle.to_le_bytes());
    } else {
        // LONG1 is in two's complement; the extra byte keeps the number positive.
        bytes.extend([0x8a, 9]);
        bytes.extend(number.to_le_bytes());
        bytes.push(0);
    }
}
