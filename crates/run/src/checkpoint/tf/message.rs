//! Encodes messages of protocol buffers.

/// A message being written.
#[derive(Default)]
pub(super) struct Message {
    pub(super) bytes: Vec<u8>,
}

impl Message {
    /// Adds a number. As in TensorFlow, 0 is left out.
    pub(super) fn with_number(mut self, field: u64, value: u64) -> Self {
        if value != 0 {
            push_varint(&mut self.bytes, field << 3);
            push_varint(&mut self.bytes, value);
        }
        self
    }

    /// Adds a string or an inner message.
    pub(super) fn add_bytes(&mut self, field: u64, bytes: &[u8]) {
        push_varint(&mut self.bytes, field << 3 | 2);
        push_varint(&mut self.bytes, bytes.len() as u64);
        self.bytes.extend(bytes);
    }

    /// Adds a number of four bytes.
    pub(super) fn add_fixed32(&mut self, field: u64, value: u32) {
        push_varint(&mut self.bytes, field << 3 | 5);
        self.bytes.extend(value.to_le_bytes());
    }
}

/// Appends a number of 7 bits per byte.
pub(super) fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}
