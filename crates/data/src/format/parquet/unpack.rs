//! Decompresses complete pages in memory by Snappy, gzip, Zstandard and LZ4.

use super::super::deflate::gzip_header_bytes;
use super::enum_name;
use flate2::{Decompress, FlushDecompress, Status};

/// Names of the codecs, in the order of `parquet.thrift`.
const NAMES: &str = "UNCOMPRESSED SNAPPY GZIP LZO BROTLI LZ4 ZSTD LZ4_RAW";
/// Upper limit on the bytes that one compressed byte can expand to. Gzip almost reaches it.
const RATIO_MAX: u64 = 1040;
/// The same for Zstandard, whose blocks of equal bytes have 4 bytes for 128 KiB.
const ZSTD_RATIO_MAX: u64 = 1 << 15;
/// First bytes of a gzip stream (RFC 1952); the third is the method deflate.
const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
const GZIP_TAIL_BYTES: usize = 8;

/// Compression of the pages of a column chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Codec {
    #[default]
    Uncompressed,
    Snappy,
    Gzip,
    /// LZ4 blocks, each after its lengths as in Hadoop, or a single block.
    Lz4Hadoop,
    Zstd,
    /// One LZ4 block.
    Lz4,
}

impl Codec {
    /// The codec with this number in the metadata; `None` for codecs that are not decompressed.
    pub(super) fn from_code(code: i64) -> Option<Self> {
        Some(match code {
            0 => Codec::Uncompressed,
            1 => Codec::Snappy,
            2 => Codec::Gzip,
            5 => Codec::Lz4Hadoop,
            6 => Codec::Zstd,
            7 => Codec::Lz4,
            _ => return None,
        })
    }

    /// Name of the codec with this number in the metadata.
    pub(super) fn name(code: i64) -> &'static str {
        enum_name(NAMES, code).unwrap_or("an unknown codec")
    }
}

/// The decompressors.
#[derive(Default)]
pub(super) struct Unpacker {
    inflate: Option<Box<Decompress>>,
    snappy: snap::raw::Decoder,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl Unpacker {
    /// Decompresses `packed`, and appends the result of `bytes` bytes to `output`. An error is a lowercase fragment.
    pub(super) fn unpack(
        &mut self,
        codec: Codec,
        packed: &[u8],
        bytes: u64,
        output: &mut Vec<u8>,
    ) -> Result<(), String> {
        let ratio_max = if codec == Codec::Zstd { ZSTD_RATIO_MAX } else { RATIO_MAX };
        if bytes > (packed.len() as u64).saturating_mul(ratio_max) {
            return Err(format!("{bytes} bytes cannot be packed in {}", packed.len()));
        }
        let start = output.len();
        if codec == Codec::Uncompressed {
            output.extend_from_slice(packed);
            return check_length(packed.len(), bytes);
        }
        if codec == Codec::Zstd {
            // Checked before memory is filled, because a few bytes can claim any length.
            let stated = zstd::zstd_safe::get_frame_content_size(packed).ok().flatten();
            if stated.is_some_and(|stated| stated != bytes) {
                return Err("Zstandard data of another length than the page".to_string());
            }
        }
        output.resize(start + bytes as usize, 0);
        let space = &mut output[start..];
        let unpacked_bytes = match codec {
            Codec::Uncompressed => packed.len(),
            Codec::Snappy => {
                let decompressed = self.snappy.decompress(packed, space);
                decompressed.map_err(|error| format!("broken Snappy data: {error}"))?
            }
            Codec::Gzip => self.inflate(packed, space)?,
            Codec::Zstd => {
                let zstd = match self.zstd.take() {
                    Some(zstd) => Ok(zstd),
                    None => zstd::bulk::Decompressor::new(),
                };
                let decompressed = zstd
                    .and_then(|zstd| self.zstd.insert(zstd).decompress_to_buffer(packed, space));
                decompressed.map_err(|error| format!("broken Zstandard data: {error}"))?
            }
            Codec::Lz4 => unpack_lz4(packed, space)?,
            Codec::Lz4Hadoop => match unpack_lz4_hadoop(packed, space) {
                Some(unpacked_bytes) => unpacked_bytes,
                None => unpack_lz4(packed, space)?,
            },
        };
        check_length(unpacked_bytes, bytes)
    }

    fn inflate(&mut self, packed: &[u8], space: &mut [u8]) -> Result<usize, String> {
        let is_gzip = packed.starts_with(&GZIP_MAGIC);
        let header_bytes = if is_gzip { gzip_header_bytes(packed) } else { None };
        let body = &packed[header_bytes.ok_or("a broken gzip header")?..];
        let inflate = self.inflate.get_or_insert_with(|| Box::new(Decompress::new(false)));
        inflate.reset(false);
        let status = inflate.decompress(body, space, FlushDecompress::Finish);
        let status = status.map_err(|error| format!("broken gzip data: {error}"))?;
        let used = inflate.total_in() as usize;
        let unpacked_bytes = inflate.total_out() as usize;
        if status != Status::StreamEnd {
            return Err("gzip data of another length than the page".to_string());
        }
        let tail = body.get(used..used + GZIP_TAIL_BYTES).ok_or("gzip data is cut off")?;
        let crc = tail.first_chunk().copied().map(u32::from_le_bytes);
        if crc != Some(crc32fast::hash(&space[..unpacked_bytes])) {
            return Err("the CRC-32 of a gzip page is wrong".to_string());
        }
        Ok(unpacked_bytes)
    }
}

fn unpack_lz4(packed: &[u8], space: &mut [u8]) -> Result<usize, String> {
    let decompressed = lz4_flex::block::decompress_into(packed, space);
    decompressed.map_err(|error| format!("broken LZ4 data: {error}"))
}

/// Decompresses blocks that follow their lengths after and before decompression, both in big-endian order. `None` if the data is not
/// of this form.
fn unpack_lz4_hadoop(packed: &[u8], space: &mut [u8]) -> Option<usize> {
    let mut rest = packed;
    let mut unpacked_bytes = 0;
    while !rest.is_empty() {
        let block = rest.get(8..)?;
        let length = |offset: usize| Some(u32::from_be_bytes(*rest.get(offset..)?.first_chunk()?));
        let block_end = unpacked_bytes + length(0)? as usize;
        let packed_block = block.get(..length(4)? as usize)?;
        let block_space = space.get_mut(unpacked_bytes..block_end)?;
        let found = lz4_flex::block::decompress_into(packed_block, block_space).ok()?;
        if found != block_space.len() {
            return None;
        }
        unpacked_bytes = block_end;
        rest = &block[packed_block.len()..];
    }
    Some(unpacked_bytes)
}

fn check_length(found: usize, bytes: u64) -> Result<(), String> {
    if found as u64 != bytes {
        return Err(format!("a page of {found} bytes, but its header says {bytes}"));
    }
    Ok(())
}
