//! Decompresses complete pages in memory by Snappy and gzip.

use super::super::deflate::gzip_header_bytes;
use super::enum_name;
use flate2::{Decompress, FlushDecompress, Status};

/// Names of the codecs, in the order of `parquet.thrift`.
const NAMES: &str = "UNCOMPRESSED SNAPPY GZIP LZO BROTLI LZ4 ZSTD LZ4_RAW";
/// Upper limit on the bytes that one compressed byte can expand to. Gzip almost reaches it.
const RATIO_MAX: u64 = 1040;
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
}

impl Codec {
    /// The codec with this number in the metadata. An error is a lowercase fragment.
    pub(super) fn from_code(code: i64) -> Result<Self, String> {
        match code {
            0 => Ok(Codec::Uncompressed),
            1 => Ok(Codec::Snappy),
            2 => Ok(Codec::Gzip),
            _ => {
                let name = enum_name(NAMES, code).map_or(code.to_string(), str::to_string);
                Err(format!("pages are compressed by `{name}`, not by SNAPPY or GZIP"))
            }
        }
    }
}

/// The decompressors.
#[derive(Default)]
pub(super) struct Unpacker {
    inflate: Option<Box<Decompress>>,
    snappy: snap::raw::Decoder,
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
        if bytes > (packed.len() as u64).saturating_mul(RATIO_MAX) {
            return Err(format!("{bytes} bytes cannot be packed in {}", packed.len()));
        }
        let start = output.len();
        if codec == Codec::Uncompressed {
            output.extend_from_slice(packed);
            return check_length(packed.len(), bytes);
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

fn check_length(found: usize, bytes: u64) -> Result<(), String> {
    if found as u64 != bytes {
        return Err(format!("a page of {found} bytes, but its header says {bytes}"));
    }
    Ok(())
}
