//! Writes the central directory and end records of zip archives (PKWARE APPNOTE.TXT).

/// Format version that is needed to extract zip64 archives.
pub const VERSION: u16 = 45;
/// The date 1980-01-01 in MS-DOS format.
pub const DATE: u16 = 1 << 5 | 1;
/// Identifier of the extra field for values longer than 32 bits.
pub const ZIP64: u16 = 1;
/// Offset of the checksum in a directory entry.
pub(crate) const CRC_OFFSET: usize = 16;

/// A member of an archive.
#[derive(Clone, Copy)]
pub struct ZipMember<'m> {
    /// Path in the archive.
    pub name: &'m str,
    /// Compression method: 0 stored, 8 deflated.
    pub method: u16,
    /// Offset of the local header.
    pub offset: u64,
    /// Uncompressed length.
    pub bytes: u64,
    /// Compressed length.
    pub packed_bytes: u64,
    /// CRC-32; written as 0 if unknown.
    pub crc: Option<u32>,
}

/// Settings of an archive writer.
pub struct ZipWriter {
    /// Host system and version of the writer.
    pub made_by: u16,
    /// External attributes of each member.
    pub attributes: u32,
    /// Largest size or offset that is stored outside a zip64 field.
    pub limit: u64,
}

impl ZipWriter {
    /// Appends a member's entry to a directory.
    pub fn push_entry(&self, member: &ZipMember, directory: &mut Vec<u8>) {
        let ZipMember { name, method, offset, bytes, packed_bytes, crc } = *member;
        let mut extra = Vec::new();
        let mut sizes = [packed_bytes as u32, bytes as u32];
        if bytes.max(packed_bytes) > self.limit {
            put64(&mut extra, &[bytes, packed_bytes]);
            sizes = [u32::MAX; 2];
        }
        let mut short_offset = offset as u32;
        if offset > self.limit {
            put64(&mut extra, &[offset]);
            short_offset = u32::MAX;
        }
        directory.extend(b"PK\x01\x02");
        put16(directory, &[self.made_by, VERSION, 0, method, 0, DATE]);
        put32(directory, &[crc.unwrap_or(0), sizes[0], sizes[1]]);
        let extra_bytes = if extra.is_empty() { 0 } else { extra.len() as u16 + 4 };
        put16(directory, &[name.len() as u16, extra_bytes, 0, 0, 0]);
        put32(directory, &[self.attributes, short_offset]);
        directory.extend(name.as_bytes());
        if !extra.is_empty() {
            put16(directory, &[ZIP64, extra.len() as u16]);
            directory.extend(extra);
        }
    }
}

/// Appends the end records of the archive to the directory of `count` members, which begins at `start`.
pub fn push_end(directory: &mut Vec<u8>, count: u64, start: u64, is_zip64: bool) {
    let bytes = directory.len() as u64;
    if is_zip64 {
        directory.extend(b"PK\x06\x06");
        put64(directory, &[44]);
        put16(directory, &[VERSION, VERSION]);
        put32(directory, &[0, 0]);
        put64(directory, &[count, count, bytes, start]);
        directory.extend(b"PK\x06\x07");
        put32(directory, &[0]);
        put64(directory, &[start.saturating_add(bytes)]);
        put32(directory, &[1]);
    }
    let short_count = u16::try_from(count).unwrap_or(u16::MAX);
    directory.extend(b"PK\x05\x06");
    put16(directory, &[0, 0, short_count, short_count]);
    put32(directory, &[saturating_u32(bytes), saturating_u32(start)]);
    put16(directory, &[0]);
}

/// Value of a 32-bit field for a size or offset: all ones if the real value is in a zip64 field.
pub fn saturating_u32(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Appends 16-bit fields.
pub fn put16(bytes: &mut Vec<u8>, values: &[u16]) {
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
}

/// Appends 32-bit fields.
pub fn put32(bytes: &mut Vec<u8>, values: &[u32]) {
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
}

/// Appends 64-bit fields.
pub fn put64(bytes: &mut Vec<u8>, values: &[u64]) {
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
}
