//! Converts numbers of all element types from and to text.
//!
//! A float is written as the shortest text that reads back as the same float, so every finite float is preserved.

use super::{Element, float16};
use std::str::FromStr;

/// Upper limit on the length of a written number, with a margin.
pub(super) const TEXT_BYTES_MAX: usize = 32;

/// Parses the number in `field` and writes it to `slot`, which has the length of an element. `None` if it is not a number.
pub(super) fn read(element: Element, field: &[u8], slot: &mut [u8]) -> Option<()> {
    match element {
        Element::Uint8 => slot.copy_from_slice(&parse_integer::<u8>(field)?.to_le_bytes()),
        Element::Int8 => slot.copy_from_slice(&parse_integer::<i8>(field)?.to_le_bytes()),
        Element::Uint16 => slot.copy_from_slice(&parse_integer::<u16>(field)?.to_le_bytes()),
        Element::Int16 => slot.copy_from_slice(&parse_integer::<i16>(field)?.to_le_bytes()),
        Element::Uint32 => slot.copy_from_slice(&parse_integer::<u32>(field)?.to_le_bytes()),
        Element::Int32 => slot.copy_from_slice(&parse_integer::<i32>(field)?.to_le_bytes()),
        Element::Uint64 => slot.copy_from_slice(&parse_integer::<u64>(field)?.to_le_bytes()),
        Element::Int64 => slot.copy_from_slice(&parse_integer::<i64>(field)?.to_le_bytes()),
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

fn parse_integer<Integer: FromStr>(field: &[u8]) -> Option<Integer> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// Appends the numbers in `payload` as text, each followed by a comma.
pub(super) fn write(element: Element, payload: &[u8], text: &mut Vec<u8>) {
    match element {
        Element::Uint8 => write_integers(payload, text, u8::from_le_bytes),
        Element::Int8 => write_integers(payload, text, i8::from_le_bytes),
        Element::Uint16 => write_integers(payload, text, u16::from_le_bytes),
        Element::Int16 => write_integers(payload, text, i16::from_le_bytes),
        Element::Uint32 => write_integers(payload, text, u32::from_le_bytes),
        Element::Int32 => write_integers(payload, text, i32::from_le_bytes),
        Element::Uint64 => write_integers(payload, text, u64::from_le_bytes),
        Element::Int64 => write_integers(payload, text, i64::from_le_bytes),
        Element::Float16 => {
            write_floats(payload, text, |bytes| {
                float16::shortest_decimal(u16::from_le_bytes(bytes))
            });
        }
        Element::Float32 => write_floats(payload, text, f32::from_le_bytes),
        Element::Float64 => write_floats(payload, text, f64::from_le_bytes),
    }
}

fn write_integers<Integer: itoa::Integer, const BYTES: usize>(
    payload: &[u8],
    text: &mut Vec<u8>,
    from_bytes: fn([u8; BYTES]) -> Integer,
) {
    let mut buffer = itoa::Buffer::new();
    for bytes in payload.as_chunks().0 {
        text.extend_from_slice(buffer.format(from_bytes(*bytes)).as_bytes());
        text.push(b',');
    }
}

fn write_floats<Float: zmij::Float, const BYTES: usize>(
    payload: &[u8],
    text: &mut Vec<u8>,
    from_bytes: fn([u8; BYTES]) -> Float,
) {
    let mut buffer = zmij::Buffer::new();
    for bytes in payload.as_chunks().0 {
        text.extend_from_slice(buffer.format(from_bytes(*bytes)).as_bytes());
        text.push(b',');
    }
}
