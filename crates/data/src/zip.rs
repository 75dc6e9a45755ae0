//! Little-endian fields of zip archives (APPNOTE.TXT), for those who write them.

/// Value of a 32-bit field for a size or offset: all ones where a zip64 field holds it.
pub fn saturated(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Append fields of 16 bits.
pub fn put16(bytes: &mut Vec<u8>, values: &[u16]) {
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
}

/// Append fields of 32 bits.
pub fn put32(bytes: &mut Vec<u8>, values: &[u32]) {
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
}

/// Append fields of 64 bits.
pub fn put64(bytes: &mut Vec<u8>, values: &[u64]) {
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
}
