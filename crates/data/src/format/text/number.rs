//! Converts numbers of all element types from and to text.
//!
//! A float is written as the shortest text that reads back as the same float, so every finite float is preserved.

use super::{Element, float16};
use std::str::FromStr;

/// Upper limit on the length of a written number; generous.
pub(super) const TEXT_BYTES_MAX: usize = 32;

/// Parses the number in `field` and writes it to `slot`, which has the length of an element. `None` if it is not a number.
pub(super) fn read(element: Element, field: &[u8], slot: &mut [u8]) -> Option<()> {
    match element {
        Element::Uint8 => slot.copy_from_slice(&integer::<u8>(field)?.to_le_bytes()),
        Element::Int8 => slot.copy_from_slice(&integer::<i8>(field)?.to_le_bytes()),
        Element::Uint16 => slot.copy_from_slice(&integer::<u16>(field)?.to_le_bytes()),
        Element::Int16 => slot.copy_from_slice(&integer::<i16>(field)?.to_le_bytes()),
        Element::Uint32 => slot.copy_from_slice(&integer::<u32>(field)?.to_le_bytes()),
        Element::Int32 => slot.copy_from_slice(&integer::<i32>(field)?.to_le_bytes()),
        Element::Uint64 => slot.copy_from_slice(&integer::<u64>(field)?.to_le_bytes()),
        Element::Int64 => slot.copy_from_slice(&integer::<i64>(field)?.to_le_bytes()),
        Element::Float16 => {
            let number = fast_float2::parse(field).ok()?;
            slot.copy_from_slice(&float16::from_f64(number).to_le_bytes());
        }
        Element::Float32 => {
            slot.copy_from_slice(&fast_float2::parse::<f32, _>(field).ok()?.to_le_bytes());
        }
        Element::Float64 => {
            slot.copy_from_slice(&fast_float2::parse::<f64, _>(field).ok()?.to_le_bytes());
        }
    }
    Some(())
}

fn integer<Integer: FromStr>(field: &[u8]) -> Option<Integer> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// Appends the numbers in `payload` as text, each followed by a comma.
pub(super) fn write(element: Element, payload: &[u8], text: &mut Vec<u8>) {
    match element {
        Element::Uint8 => integers(payload, text, u8::from_le_bytes),
        Element::Int8 => integers(payload, text, i8::from_le_bytes),
        Element::Uint16 => integers(payload, text, u16::from_le_bytes),
        Element::Int16 => integers(payload, text, i16::from_le_bytes),
        Element::Uint32 => integers(payload, text, u32::from_le_bytes),
        Element::Int32 => integers(payload, text, i32::from_le_bytes),
        Element::Uint64 => integers(payload, text, u64::from_le_bytes),
        Element::Int64 => integers(payload, text, i64::from_le_bytes),
        Element::Float16 => {
            floats(payload, text, |bytes| float16::shortest(u16::from_le_bytes(bytes)));
        }
        Element::Float32 => floats(payload, text, f32::from_le_bytes),
        Element::Float64 => floats(payload, text, f64::from_le_bytes),
    }
}

fn integers<Integer: itoa::Integer, const BYTES: usize>(
    payload: &[u8],
    text: &mut Vec<u8>,
    number: fn([u8; BYTES]) -> Integer,
) {
    let mut buffer = itoa::Buffer::new();
    for bytes in payload.as_chunks().0 {
        text.extend_from_slice(buffer.format(number(*bytes)).as_bytes());
        text.push(b',');
    }
}

fn floats<Float: zmij::Float, const BYTES: usize>(
    payload: &[u8],
    text: &mut Vec<u8>,
    number: fn([u8; BYTES]) -> Float,
) {
    let mut buffer = zmij::Buffer::new();
    for bytes in payload.as_chunks().0 {
        text.extend_from_slice(buffer.format(number(*bytes)).as_bytes());
        text.push(b',');
    }
}
