//! Writes a sorted table of LevelDB, as TensorFlow stores the index of a checkpoint: a block with all entries, without compression, an empty
//! block, a block with the position of the first block, and a footer (LevelDB's `doc/table_format.md`).

use super::masked;
use super::message::push_varint;
use std::collections::BTreeMap;

/// Number of entries of which the first has its whole key.
const RESTART_INTERVAL: usize = 16;
const FOOTER_BYTES: usize = 48;
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;

/// Returns the file with these entries.
pub(super) fn table(entries: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut file = Vec::new();
    let pairs = entries.iter().map(|(key, value)| (key.as_bytes(), value.as_slice()));
    let data = push_block(&mut file, &block(pairs));
    let meta = push_block(&mut file, &block([]));
    // The key of a block is a short one that follows its last key.
    let last = entries.last_key_value().and_then(|(key, _)| key.bytes().next());
    let separator = [last.unwrap_or(0).saturating_add(1)];
    let index = push_block(&mut file, &block([(&separator[..], &data[..])]));
    let mut footer = [meta, index].concat();
    footer.resize(FOOTER_BYTES - size_of_val(&MAGIC), 0);
    footer.extend(MAGIC.to_le_bytes());
    file.extend(footer);
    file
}

/// Appends a block with its checksum. Returns its position as the file stores it.
fn push_block(file: &mut Vec<u8>, block: &[u8]) -> Vec<u8> {
    let mut handle = Vec::new();
    push_varint(&mut handle, file.len() as u64);
    push_varint(&mut handle, block.len() as u64);
    let uncompressed = [0];
    file.extend(block);
    file.extend(uncompressed);
    let crc = crc32c::crc32c_append(crc32c::crc32c(block), &uncompressed);
    file.extend(masked(crc).to_le_bytes());
    handle
}

/// Returns a block of entries, which are sorted by key. A key is stored without its common start with the key before.
fn block<'e>(entries: impl IntoIterator<Item = (&'e [u8], &'e [u8])>) -> Vec<u8> {
    let mut block = Vec::new();
    let mut restarts = vec![0];
    let mut last: &[u8] = &[];
    for (number, (key, value)) in entries.into_iter().enumerate() {
        let mut shared = last.iter().zip(key).take_while(|(a, b)| a == b).count();
        if number > 0 && number % RESTART_INTERVAL == 0 {
            restarts.push(block.len() as u32);
            shared = 0;
        }
        for length in [shared, key.len() - shared, value.len()] {
            push_varint(&mut block, length as u64);
        }
        block.extend(&key[shared..]);
        block.extend(value);
        last = key;
    }
    restarts.push(restarts.len() as u32);
    block.extend(restarts.iter().flat_map(|number| number.to_le_bytes()));
    block
}
