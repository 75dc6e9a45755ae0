//! Writes a zip archive of uncompressed members below `archive/`. The data of each member begins at a multiple of 64 bytes.

use crate::checkpoint::CheckpointSink;
use feedrate_data::zip::{self, ZipMember, ZipWriter, put16, put32, put64, saturating_u32};
use feedrate_spec::plan::state::Tensor;
use std::io;

const ALIGN: u64 = 64;
const LOCAL_HEADER_BYTES: u64 = 30;
/// Offset of the checksum in a local header.
const CRC_OFFSET: u64 = 14;
/// Minimum size or offset that is stored in a zip64 field.
const ZIP64_LIMIT: u64 = u32::MAX as u64;
const TORCH: ZipWriter = ZipWriter { made_by: zip::VERSION, attributes: 0, limit: ZIP64_LIMIT - 1 };
/// Identifier of torch's extra field for padding: `FB`.
const PADDING: u16 = 0x4246;

/// An archive being written.
pub(super) struct Archive<'s> {
    sink: &'s mut dyn CheckpointSink,
    /// Current length of the file.
    position: u64,
    directory: Vec<u8>,
    members: u64,
}

impl<'s> Archive<'s> {
    pub(super) fn new(sink: &'s mut dyn CheckpointSink) -> Self {
        Archive { sink, position: 0, directory: Vec::new(), members: 0 }
    }

    /// Writes a member with the content `bytes`.
    pub(super) fn add_member(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = format!("archive/{name}");
        let offset = self.position;
        let crc = crc32fast::hash(bytes);
        self.write_header(&path, bytes.len() as u64, Some(crc))?;
        self.put(bytes)?;
        self.add_entry(&path, offset, bytes.len() as u64, crc);
        Ok(())
    }

    /// Writes a member with the content of tensor number `number`. The checksum precedes the content, so it is patched in
    /// afterwards.
    pub(super) fn add_tensor(&mut self, number: u64, tensor: &Tensor) -> io::Result<()> {
        let name = format!("archive/data/{number}");
        let offset = self.position;
        self.write_header(&name, tensor.bytes(), None)?;
        let crc = self.sink.put_tensor(number, tensor)?;
        self.position += tensor.bytes();
        self.sink.patch(offset + CRC_OFFSET, &crc.to_le_bytes())?;
        self.add_entry(&name, offset, tensor.bytes(), crc);
        Ok(())
    }

    /// Writes the local header of a member of `bytes` bytes. Without `crc`, the checksum is reserved.
    fn write_header(&mut self, name: &str, bytes: u64, crc: Option<u32>) -> io::Result<()> {
        let mut extra = Vec::new();
        if bytes >= ZIP64_LIMIT {
            put16(&mut extra, &[zip::ZIP64, 16]);
            put64(&mut extra, &[bytes, bytes]);
        }
        let unpadded =
            self.position + LOCAL_HEADER_BYTES + name.len() as u64 + extra.len() as u64 + 4;
        let padding = unpadded.next_multiple_of(ALIGN) - unpadded;
        put16(&mut extra, &[PADDING, padding as u16]);
        extra.resize(extra.len() + padding as usize, b'Z');
        let mut header = b"PK\x03\x04".to_vec();
        put16(&mut header, &[zip::VERSION, 0, 0, 0, zip::DATE]);
        debug_assert_eq!(header.len() as u64, CRC_OFFSET);
        self.put(&header)?;
        match crc {
            Some(crc) => self.put(&crc.to_le_bytes())?,
            None => {
                self.sink.reserve(size_of::<u32>())?;
                self.position += size_of::<u32>() as u64;
            }
        }
        let mut header = Vec::new();
        put32(&mut header, &[saturating_u32(bytes), saturating_u32(bytes)]);
        put16(&mut header, &[name.len() as u16, extra.len() as u16]);
        header.extend(name.as_bytes());
        header.extend(extra);
        self.put(&header)
    }

    /// Writes the central directory and ends the archive.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let mut end = std::mem::take(&mut self.directory);
        let is_zip64 =
            self.position + end.len() as u64 >= ZIP64_LIMIT || self.members >= u64::from(u16::MAX);
        zip::push_end(&mut end, self.members, self.position, is_zip64);
        self.put(&end)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sink.put(bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// Adds a member to the central directory.
    fn add_entry(&mut self, name: &str, offset: u64, bytes: u64, crc: u32) {
        let packed_bytes = bytes;
        let member = ZipMember { name, method: 0, offset, bytes, packed_bytes, crc: Some(crc) };
        TORCH.push_entry(&member, &mut self.directory);
        self.members += 1;
    }
}
