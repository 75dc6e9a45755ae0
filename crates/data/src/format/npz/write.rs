//! Writes archives like `numpy.savez` and `savez_compressed`: stored or deflated members, local headers in zip64 form
//! (Python's `zipfile` with `force_zip64`), dated 1980-01-01.

use super::super::deflate::DeflateSink;
use super::{
    Compression, Content, DEFLATED, FileSink, Payload, STORED, SinkError, labels, npy_header,
    npy_stream, packed,
};
use crate::zip::{self, ZipMember, ZipWriter, put16, put32, put64};
use feedrate_spec::shape::{Encoding, FileShape};

/// Settings of Python's `zipfile`: `ZIP64_LIMIT`, and the attributes that `ZipFile.open` sets.
const ZIPFILE: ZipWriter =
    ZipWriter { made_by: 3 << 8 | zip::VERSION, attributes: 0o600 << 16, limit: (1 << 31) - 1 };
const LOCAL_HEADER_BYTES: u64 = 30 + 5 + 20;
/// Offset of the checksum in a local header.
const CRC_OFFSET: usize = 14;
/// Offset of the stored size, the last field of a local header.
const PACKED_SIZE_OFFSET: usize = LOCAL_HEADER_BYTES as usize - 8;

/// Length of the archive. Exact without compression. With compression an estimate, since random bytes do not compress.
pub(super) fn archive_bytes(shape: &FileShape) -> u64 {
    let x = stored_member("x.npy", 0, shape);
    let y = stored_member("y.npy", member_end(&x), &labels(shape));
    let (directory, _) = central_directory(&[x, y]);
    member_end(&y).saturating_add(directory.len() as u64)
}

/// Writes the archive to part 0.
pub(super) fn write_archive(
    shape: &FileShape,
    encoding: &Encoding,
    content: &mut Content,
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let level = match encoding.compression {
        Compression::None => None,
        _ => Some(encoding.compression_level),
    };
    let x =
        write_member(stored_member("x.npy", 0, shape), shape, level, sink, |sink, on_piece| {
            npy_stream::write_payload(shape, content, sink, on_piece)
        })?;
    let labels = labels(shape);
    let y = write_member(
        stored_member("y.npy", member_end(&x), &labels),
        &labels,
        level,
        sink,
        |sink, on_piece| {
            packed::write_generated(0, labels.payload_bytes(), sink, &mut |_, space| {
                space.fill(0);
                on_piece(space);
            })
        },
    )?;
    let (directory, crc_offsets) = central_directory(&[x, y]);
    let mut written = 0;
    for (member, crc_offset) in [x, y].iter().zip(crc_offsets) {
        if member.crc.is_none() {
            sink.write(0, &directory[written..crc_offset])?;
            sink.reserve(0, 4)?;
            written = crc_offset + 4;
        }
    }
    sink.write(0, &directory[written..])
}

/// An uncompressed member with an array of `shape`.
fn stored_member(name: &'static str, offset: u64, shape: &FileShape) -> ZipMember<'static> {
    let bytes = npy_header::array_bytes(shape);
    ZipMember { name, method: STORED, offset, bytes, packed_bytes: bytes, crc: None }
}

fn member_end(member: &ZipMember) -> u64 {
    member.offset.saturating_add(LOCAL_HEADER_BYTES).saturating_add(member.packed_bytes)
}

/// Writes a member. Its checksum and compressed length precede the data, so they are reserved and patched.
fn write_member(
    mut member: ZipMember<'static>,
    shape: &FileShape,
    level: Option<u32>,
    sink: &mut dyn FileSink,
    payload: impl FnOnce(&mut dyn FileSink, &mut dyn FnMut(&[u8])) -> Result<Payload, SinkError>,
) -> Result<ZipMember<'static>, SinkError> {
    member.method = if level.is_some() { DEFLATED } else { STORED };
    let header = local_header(&member);
    sink.write(0, &header[..CRC_OFFSET])?;
    sink.reserve(0, 4)?;
    sink.write(0, &header[CRC_OFFSET + 4..PACKED_SIZE_OFFSET])?;
    let array_header = npy_header::write(shape);
    if let Some(level) = level {
        // Reserved and not written, so that a comparison does not check the bytes before they are patched.
        sink.reserve(0, 8)?;
        let mut deflated = DeflateSink::new(level, sink);
        deflated.write(0, &array_header)?;
        payload(&mut deflated, &mut |_| {})?;
        deflated.finish()?;
        member.packed_bytes = deflated.packed_bytes();
        member.crc = Some(deflated.crc());
        let size_offset = member.offset + PACKED_SIZE_OFFSET as u64;
        sink.patch(0, size_offset, &member.packed_bytes.to_le_bytes())?;
    } else {
        sink.write(0, &header[PACKED_SIZE_OFFSET..])?;
        sink.write(0, &array_header)?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&array_header);
        let written = payload(sink, &mut |piece| crc.update(piece))?;
        member.crc = (written == Payload::Complete).then(|| crc.finalize());
    }
    if let Some(crc) = member.crc {
        sink.patch(0, member.offset + CRC_OFFSET as u64, &crc.to_le_bytes())?;
    }
    Ok(member)
}

fn local_header(member: &ZipMember) -> Vec<u8> {
    let mut header = Vec::with_capacity(LOCAL_HEADER_BYTES as usize);
    header.extend(b"PK\x03\x04");
    put16(&mut header, &[zip::VERSION, 0, member.method, 0, zip::DATE]);
    put32(&mut header, &[0, u32::MAX, u32::MAX]);
    put16(&mut header, &[member.name.len() as u16, 20]);
    header.extend(member.name.as_bytes());
    put16(&mut header, &[zip::ZIP64, 16]);
    put64(&mut header, &[member.bytes, member.packed_bytes]);
    header
}

/// The central directory and the end records, as `ZipFile._write_end_record` writes them, and the offsets of the checksums
/// in it.
fn central_directory(members: &[ZipMember; 2]) -> (Vec<u8>, [usize; 2]) {
    let mut directory = Vec::with_capacity(256);
    let crc_offsets = members.map(|member| {
        let crc_offset = directory.len() + zip::CRC_OFFSET;
        ZIPFILE.push_entry(&member, &mut directory);
        crc_offset
    });
    let start = member_end(&members[1]);
    zip::push_end(&mut directory, members.len() as u64, start, start > ZIPFILE.limit);
    (directory, crc_offsets)
}
