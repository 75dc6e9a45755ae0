//! Writes the archive that `numpy.savez` or `savez_compressed` writes: stored or deflated members, local headers in zip64
//! form (Python's `zipfile` with `force_zip64`), dated 1980-01-01.

use super::super::deflate::DeflateSink;
use super::{Compression, Content, FileSink, Payload, SinkError, labels, npy_header, npy_stream};
use crate::zip::{put16, put32, put64, saturated};
use feedrate_spec::shape::{Encoding, FileShape};

/// `zipfile.ZIP64_LIMIT`: from here on sizes are written as zip64.
const ZIP64_LIMIT: u64 = (1 << 31) - 1;
const LOCAL_HEADER_BYTES: u64 = 30 + 5 + 20;
/// Offset of the checksum in a local header.
const CRC_OFFSET: u64 = 14;
/// 1980-01-01 as MS-DOS has it.
const DATE: u16 = 1 << 5 | 1;
/// Offset of the stored size, the last field of a local header.
const PACKED_SIZE_OFFSET: u64 = LOCAL_HEADER_BYTES - 8;
const VERSION: u16 = 45;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// `0o600 << 16`, as `ZipFile.open` sets it.
const ATTRIBUTES: u32 = 0o600 << 16;

/// Exact bytes of the archive where nothing is packed; else about as many, as nothing can be saved of random bytes.
pub(super) fn archive_bytes(shape: &FileShape) -> u64 {
    let [x, y] = members(shape, STORED);
    let end = end_of_archive(&[x.with_crc(Some(0)), y.with_crc(Some(0))]);
    let end_bytes: usize = end.iter().map(Chunk::len).sum();
    y.end().saturating_add(end_bytes as u64)
}

/// Write the archive to part 0.
pub(super) fn archive(
    shape: &FileShape,
    encoding: &Encoding,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let level = match encoding.compression {
        Compression::None => None,
        _ => Some(encoding.compression_level),
    };
    let [x, y] = members(shape, if level.is_some() { DEFLATED } else { STORED });
    let x = x.write(level, sink, |sink, seen| {
        let header = npy_header::write(shape);
        seen(&header);
        sink.write(0, &header)?;
        npy_stream::write_payload(shape, content, sink, seen)
    })?;
    let y = Unwritten { offset: x.member.end(), ..y };
    let y = y.write(level, sink, |sink, seen| {
        let labels = labels(shape);
        let header = npy_header::write(&labels);
        seen(&header);
        sink.write(0, &header)?;
        write_zeros(labels.payload_bytes(), sink, seen)
    })?;
    for chunk in end_of_archive(&[x, y]) {
        match chunk {
            Chunk::Bytes(bytes) => sink.write(0, &bytes)?,
            Chunk::UnknownCrc => sink.reserve(0, 4)?,
        }
    }
    Ok(())
}

fn write_zeros(
    len: u64,
    sink: &mut dyn FileSink,
    seen: &mut dyn FnMut(&[u8]),
) -> Result<Payload, SinkError> {
    let mut left = len;
    while left > 0 {
        let space = sink.space(0);
        let now = (space.len() as u64).min(left) as usize;
        space[..now].fill(0);
        seen(&space[..now]);
        sink.advance(0, now)?;
        left -= now as u64;
    }
    Ok(Payload::Whole)
}

fn members(shape: &FileShape, method: u16) -> [Unwritten; 2] {
    let bytes = npy_header::array_bytes(shape);
    let x = Unwritten { name: b"x.npy", method, offset: 0, bytes, packed_bytes: bytes };
    let bytes = npy_header::array_bytes(&labels(shape));
    let y = Unwritten { name: b"y.npy", method, offset: x.end(), bytes, packed_bytes: bytes };
    [x, y]
}

#[derive(Clone, Copy)]
struct Unwritten {
    name: &'static [u8; 5],
    method: u16,
    offset: u64,
    bytes: u64,
    /// Equal to `bytes` until the member is deflated.
    packed_bytes: u64,
}

struct Written {
    member: Unwritten,
    crc: Option<u32>,
}

impl Unwritten {
    fn end(&self) -> u64 {
        self.offset.saturating_add(LOCAL_HEADER_BYTES).saturating_add(self.packed_bytes)
    }

    fn with_crc(self, crc: Option<u32>) -> Written {
        Written { member: self, crc }
    }

    /// The checksum comes before what it sums up, and the packed size before what is packed: they are patched in.
    fn write(
        mut self,
        level: Option<u32>,
        sink: &mut dyn FileSink,
        payload: impl FnOnce(&mut dyn FileSink, &mut dyn FnMut(&[u8])) -> Result<Payload, SinkError>,
    ) -> Result<Written, SinkError> {
        let header = self.local_header();
        sink.write(0, &header[..CRC_OFFSET as usize])?;
        sink.reserve(0, 4)?;
        let (known, packed_size) = header[CRC_OFFSET as usize + 4..]
            .split_at((PACKED_SIZE_OFFSET - CRC_OFFSET) as usize - 4);
        sink.write(0, known)?;
        match level {
            None => sink.write(0, packed_size)?,
            // Written, it would be compared before it is patched.
            Some(_) => sink.reserve(0, packed_size.len())?,
        }
        let crc = if let Some(level) = level {
            let mut deflated = DeflateSink::new(level, sink);
            payload(&mut deflated, &mut |_| {})?;
            deflated.finish()?;
            self.packed_bytes = deflated.packed_bytes();
            let crc = deflated.crc();
            let packed_at = self.offset + PACKED_SIZE_OFFSET;
            sink.patch(0, packed_at, &self.packed_bytes.to_le_bytes())?;
            crc
        } else {
            let mut crc = crc32fast::Hasher::new();
            let made = payload(sink, &mut |piece| crc.update(piece))?;
            if made == Payload::Skipped {
                return Ok(self.with_crc(None));
            }
            crc.finalize()
        };
        sink.patch(0, self.offset + CRC_OFFSET, &crc.to_le_bytes())?;
        Ok(self.with_crc(Some(crc)))
    }

    fn local_header(&self) -> Vec<u8> {
        let mut header = Vec::with_capacity(LOCAL_HEADER_BYTES as usize);
        header.extend(b"PK\x03\x04");
        put16(&mut header, &[VERSION, 0, self.method, 0, DATE]);
        put32(&mut header, &[0, u32::MAX, u32::MAX]);
        put16(&mut header, &[5, 20]);
        header.extend(self.name);
        put16(&mut header, &[1, 16]);
        put64(&mut header, &[self.bytes, self.packed_bytes]);
        header
    }
}

/// Bytes, or the place of a checksum that nobody summed up.
enum Chunk {
    Bytes(Vec<u8>),
    UnknownCrc,
}

impl Chunk {
    fn len(&self) -> usize {
        match self {
            Chunk::Bytes(bytes) => bytes.len(),
            Chunk::UnknownCrc => 4,
        }
    }
}

/// Central directory and end records, as `ZipFile._write_end_record` lays them out.
fn end_of_archive(members: &[Written; 2]) -> Vec<Chunk> {
    let mut chunks = Vec::with_capacity(8);
    for member in members {
        central_header(member, &mut chunks);
    }
    let start = members[1].member.end();
    let bytes: usize = chunks.iter().map(Chunk::len).sum();
    let (count, bytes) = (members.len() as u16, bytes as u64);
    let mut end = Vec::with_capacity(98);
    if start > ZIP64_LIMIT {
        end.extend(b"PK\x06\x06");
        put64(&mut end, &[44]);
        put16(&mut end, &[VERSION, VERSION]);
        put32(&mut end, &[0, 0]);
        put64(&mut end, &[count.into(), count.into(), bytes, start]);
        end.extend(b"PK\x06\x07");
        put32(&mut end, &[0]);
        put64(&mut end, &[start.saturating_add(bytes)]);
        put32(&mut end, &[1]);
    }
    end.extend(b"PK\x05\x06");
    put16(&mut end, &[0, 0, count, count]);
    put32(&mut end, &[bytes as u32, saturated(start)]);
    put16(&mut end, &[0]);
    chunks.push(Chunk::Bytes(end));
    chunks
}

fn central_header(written: &Written, chunks: &mut Vec<Chunk>) {
    let Unwritten { name, method, offset, bytes, packed_bytes } = written.member;
    let mut extra = Vec::new();
    let is_long = bytes.max(packed_bytes) > ZIP64_LIMIT;
    if is_long {
        put64(&mut extra, &[bytes, packed_bytes]);
    }
    if offset > ZIP64_LIMIT {
        put64(&mut extra, &[offset]);
    }
    let mut before = Vec::with_capacity(16);
    before.extend(b"PK\x01\x02");
    put16(&mut before, &[3 << 8 | VERSION, VERSION, 0, method, 0, DATE]);
    chunks.push(Chunk::Bytes(before));
    chunks
        .push(written.crc.map_or(Chunk::UnknownCrc, |crc| Chunk::Bytes(crc.to_le_bytes().into())));
    let sizes = if is_long { [u32::MAX; 2] } else { [packed_bytes as u32, bytes as u32] };
    let extra_bytes = if extra.is_empty() { 0 } else { extra.len() as u16 + 4 };
    let mut after = Vec::with_capacity(64);
    put32(&mut after, &sizes);
    put16(&mut after, &[5, extra_bytes, 0, 0, 0]);
    put32(&mut after, &[ATTRIBUTES, if offset > ZIP64_LIMIT { u32::MAX } else { offset as u32 }]);
    after.extend(name);
    if !extra.is_empty() {
        put16(&mut after, &[1, extra.len() as u16]);
        after.extend(extra);
    }
    chunks.push(Chunk::Bytes(after));
}
