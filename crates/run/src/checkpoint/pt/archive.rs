//! A zip archive of stored members below `archive/`, each beginning at a multiple of 64 bytes.

use crate::checkpoint::CheckpointSink;
use feedrate_data::zip::{put16, put32, put64, saturated};
use feedrate_spec::plan::state::Tensor;
use std::io;

const ALIGN: u64 = 64;
const LOCAL_HEADER_BYTES: u64 = 30;
/// Place of the checksum in a local header.
const CRC_OFFSET: u64 = 14;
/// Sizes and offsets from here on are told in a zip64 field.
const ZIP64_LIMIT: u64 = u32::MAX as u64;
const VERSION: u16 = 45;
/// 1980-01-01 as MS-DOS has it.
const DATE: u16 = 1 << 5 | 1;
/// Torch's own field of padding: `FB`.
const PADDING: u16 = 0x4246;
const ZIP64: u16 = 1;

/// Written from the start of a file.
pub(super) struct Archive<'s> {
    sink: &'s mut dyn CheckpointSink,
    at: u64,
    directory: Vec<u8>,
    members: u64,
}

impl<'s> Archive<'s> {
    pub(super) fn new(sink: &'s mut dyn CheckpointSink) -> Self {
        Archive { sink, at: 0, directory: Vec::new(), members: 0 }
    }

    /// A member that is there at once.
    pub(super) fn add(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let name = format!("archive/{name}");
        let (offset, crc) = (self.at, crc32fast::hash(bytes));
        self.begin(&name, bytes.len() as u64, crc)?;
        self.put(bytes)?;
        self.list(&name, offset, bytes.len() as u64, crc);
        Ok(())
    }

    /// A member that holds tensor number `number`. Its checksum comes before what it sums up: it is patched in.
    pub(super) fn tensor(&mut self, number: u64, tensor: &Tensor) -> io::Result<()> {
        let name = format!("archive/data/{number}");
        let offset = self.at;
        self.begin(&name, tensor.bytes(), 0)?;
        let crc = self.sink.tensor(number, tensor)?;
        self.at += tensor.bytes();
        self.sink.patch(offset + CRC_OFFSET, &crc.to_le_bytes())?;
        self.list(&name, offset, tensor.bytes(), crc);
        Ok(())
    }

    /// The header of a member of `bytes` bytes, which follow.
    fn begin(&mut self, name: &str, bytes: u64, crc: u32) -> io::Result<()> {
        let mut extra = Vec::new();
        if bytes >= ZIP64_LIMIT {
            put16(&mut extra, &[ZIP64, 16]);
            put64(&mut extra, &[bytes, bytes]);
        }
        let unpadded = self.at + LOCAL_HEADER_BYTES + name.len() as u64 + extra.len() as u64 + 4;
        let padding = unpadded.next_multiple_of(ALIGN) - unpadded;
        put16(&mut extra, &[PADDING, padding as u16]);
        extra.resize(extra.len() + padding as usize, b'Z');
        let mut header = b"PK\x03\x04".to_vec();
        put16(&mut header, &[VERSION, 0, 0, 0, DATE]);
        put32(&mut header, &[crc, saturated(bytes), saturated(bytes)]);
        put16(&mut header, &[name.len() as u16, extra.len() as u16]);
        header.extend(name.as_bytes());
        header.extend(extra);
        self.put(&header)
    }

    /// The directory, and its end.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let (start, bytes) = (self.at, self.directory.len() as u64);
        let mut end = std::mem::take(&mut self.directory);
        let count = self.members;
        if start + bytes >= ZIP64_LIMIT || count >= u64::from(u16::MAX) {
            end.extend(b"PK\x06\x06");
            put64(&mut end, &[44]);
            put16(&mut end, &[VERSION, VERSION]);
            put32(&mut end, &[0, 0]);
            put64(&mut end, &[count, count, bytes, start]);
            end.extend(b"PK\x06\x07");
            put32(&mut end, &[0]);
            put64(&mut end, &[start + bytes]);
            put32(&mut end, &[1]);
        }
        let count = u16::try_from(count).unwrap_or(u16::MAX);
        end.extend(b"PK\x05\x06");
        put16(&mut end, &[0, 0, count, count]);
        put32(&mut end, &[saturated(bytes), saturated(start)]);
        put16(&mut end, &[0]);
        self.put(&end)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sink.put(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn list(&mut self, name: &str, offset: u64, bytes: u64, crc: u32) {
        let mut extra = Vec::new();
        if bytes >= ZIP64_LIMIT {
            put64(&mut extra, &[bytes, bytes]);
        }
        if offset >= ZIP64_LIMIT {
            put64(&mut extra, &[offset]);
        }
        let directory = &mut self.directory;
        directory.extend(b"PK\x01\x02");
        put16(directory, &[VERSION, VERSION, 0, 0, 0, DATE]);
        put32(directory, &[crc, saturated(bytes), saturated(bytes)]);
        let extra_bytes = if extra.is_empty() { 0 } else { extra.len() as u16 + 4 };
        put16(directory, &[name.len() as u16, extra_bytes, 0, 0, 0]);
        put32(directory, &[0, saturated(offset)]);
        directory.extend(name.as_bytes());
        if !extra.is_empty() {
            put16(directory, &[ZIP64, extra.len() as u16]);
            directory.extend(extra);
        }
        self.members += 1;
    }
}
