//! Reverses the filters of chunks. A chunk with only deflate is inflated piece by piece; other combinations need the
//! complete chunk in memory.

use super::super::deflate::{Inflate, InflateOutput};
use super::message::{Filter, Filters};
use super::{FormatError, checksum};
use std::io;

/// Upper limit on the bytes that one byte of LZ4 can expand to.
const LZ4_RATIO_MAX: u64 = 255;

/// Inflates a chunk piece by piece and checks its length.
pub(super) struct ChunkInflate {
    inflate: Inflate,
    /// Bytes of the chunk that have been inflated.
    inflated: u64,
    /// Whether the compressed stream has ended.
    has_ended: bool,
}

impl ChunkInflate {
    pub(super) fn new() -> Self {
        ChunkInflate { inflate: Inflate::zlib(), inflated: 0, has_ended: false }
    }

    pub(super) fn begin(&mut self) {
        self.inflate.reset();
        self.inflated = 0;
        self.has_ended = false;
    }

    /// Inflates `bytes`, which begin at `offset` of the file. `output` receives the result with its offset in the chunk. The
    /// chunk must have `total` bytes.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        offset: u64,
        total: u64,
        output: &mut InflateOutput,
    ) -> Result<(), FormatError> {
        if self.has_ended {
            return Ok(());
        }
        let inflated = &mut self.inflated;
        let (_, has_ended) = self.inflate.decompress(bytes, offset, &mut |end, bytes| {
            let start = *inflated;
            *inflated += bytes.len() as u64;
            if *inflated > total { Err(wrong_length(end, total)) } else { output(start, bytes) }
        })?;
        self.has_ended = has_ended;
        Ok(())
    }

    /// Checks the length after all bytes of the chunk have been fed.
    pub(super) fn finish(&self, offset: u64, total: u64) -> Result<(), FormatError> {
        if !self.has_ended || self.inflated != total {
            return Err(wrong_length(offset, total));
        }
        Ok(())
    }
}

fn wrong_length(offset: u64, total: u64) -> FormatError {
    FormatError::new(offset, format!("a chunk of {total} bytes does not inflate to that length"))
}

/// Filters that were applied to a chunk, with their numbers: all but those whose bit is set in `skipped`.
pub(super) fn applied_filters(
    filters: &Filters,
    skipped: u32,
) -> impl DoubleEndedIterator<Item = (usize, Filter)> + '_ {
    let filters = filters.iter().enumerate();
    filters.filter_map(move |(i, filter)| (skipped & (1 << i) == 0).then_some((i, (*filter)?)))
}

/// Reverses all filters of a chunk in memory.
pub(super) struct Unfilter {
    /// The stored chunk, and its unfiltered bytes after [`Unfilter::undo`].
    pub(super) bytes: Vec<u8>,
    /// Output of one filter.
    output: Vec<u8>,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    check_crc: bool,
}

impl Unfilter {
    pub(super) fn new(check_crc: bool) -> Self {
        Unfilter { bytes: Vec::new(), output: Vec::new(), zstd: None, check_crc }
    }

    /// Reverses the applied `filters`, the last one first. The result must have `total` bytes.
    pub(super) fn undo(
        &mut self,
        filters: &Filters,
        skipped: u32,
        inflate: &mut ChunkInflate,
        offset: u64,
        total: u64,
    ) -> Result<(), FormatError> {
        for (i, filter) in applied_filters(filters, skipped).rev() {
            match filter {
                Filter::Fletcher32 => self.remove_checksum(offset)?,
                Filter::Shuffle(size) => self.unshuffle(size),
                // Chunks with such a filter are passed on as they are stored.
                Filter::Unknown(_) => {}
                Filter::Deflate | Filter::Lz4 | Filter::Zstd => {
                    // Checksums that were added before compression are still part of the result.
                    let checksums = applied_filters(filters, skipped)
                        .filter(|(j, filter)| *j < i && *filter == Filter::Fletcher32);
                    let unpacked_bytes = total + 4 * checksums.count() as u64;
                    self.unpack(filter, inflate, offset, unpacked_bytes)?;
                    std::mem::swap(&mut self.bytes, &mut self.output);
                }
            }
        }
        if self.bytes.len() as u64 != total {
            let message = format!("a chunk of {total} bytes holds {}", self.bytes.len());
            return Err(FormatError::new(offset, message));
        }
        Ok(())
    }

    /// Decompresses the chunk into the output, which must then have `total` bytes.
    fn unpack(
        &mut self,
        filter: Filter,
        inflate: &mut ChunkInflate,
        offset: u64,
        total: u64,
    ) -> Result<(), FormatError> {
        self.output.clear();
        let output = &mut self.output;
        if filter == Filter::Deflate {
            inflate.begin();
            inflate.feed(&self.bytes, offset, total, &mut |_, bytes| {
                output.extend_from_slice(bytes);
                Ok(())
            })?;
            return inflate.finish(offset, total);
        }
        // Checked before memory is filled, because a few bytes can claim any length.
        let stated_bytes = match filter {
            Filter::Lz4 if total <= LZ4_RATIO_MAX.saturating_mul(self.bytes.len() as u64) => {
                self.bytes.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
            }
            Filter::Lz4 => None,
            _ => zstd::zstd_safe::get_frame_content_size(&self.bytes).ok().flatten(),
        };
        if stated_bytes != Some(total) {
            return Err(wrong_length(offset, total));
        }
        output.resize(total as usize, 0);
        let (name, unpacked) = match filter {
            Filter::Lz4 => ("lz4", unpack_lz4(&self.bytes, output).ok_or_else(broken_blocks)),
            _ => ("zstd", unpack_zstd(&mut self.zstd, &self.bytes, output)),
        };
        match unpacked {
            Ok(bytes) if bytes as u64 == total => Ok(()),
            Ok(_) => Err(wrong_length(offset, total)),
            Err(error) => Err(FormatError::new(offset, format!("a broken {name} chunk: {error}"))),
        }
    }

    fn remove_checksum(&mut self, offset: u64) -> Result<(), FormatError> {
        let Some((body, stored)) = self.bytes.split_last_chunk() else {
            return Err(FormatError::new(offset, "a chunk is shorter than its checksum"));
        };
        if self.check_crc {
            let computed = checksum::fletcher32(body);
            let expected = u32::from_le_bytes(*stored);
            if computed != expected {
                let message =
                    format!("checksum `{computed:08x}` of a chunk, the file says {expected:08x}");
                return Err(FormatError::new(offset, message));
            }
        }
        let body_bytes = body.len();
        self.bytes.truncate(body_bytes);
        Ok(())
    }

    /// Reverses the shuffle filter, which stores the first bytes of all elements, then the second bytes, and so on. Bytes of
    /// an incomplete element stay at the end.
    fn unshuffle(&mut self, size: usize) {
        let count = self.bytes.len() / size;
        if size == 1 || count == 0 {
            return;
        }
        self.output.resize(self.bytes.len(), 0);
        let (planes, rest) = self.bytes.split_at(count * size);
        let (elements, rest_output) = self.output.split_at_mut(count * size);
        for (byte, plane) in planes.chunks_exact(count).enumerate() {
            for (element, source) in elements.chunks_exact_mut(size).zip(plane) {
                element[byte] = *source;
            }
        }
        rest_output.copy_from_slice(rest);
        std::mem::swap(&mut self.bytes, &mut self.output);
    }
}

fn broken_blocks() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "its blocks contradict their lengths")
}

fn unpack_zstd(
    kept: &mut Option<zstd::bulk::Decompressor<'static>>,
    packed: &[u8],
    space: &mut [u8],
) -> io::Result<usize> {
    let decompressor = match kept.take() {
        Some(decompressor) => decompressor,
        None => zstd::bulk::Decompressor::new()?,
    };
    kept.insert(decompressor).decompress_to_buffer(packed, space)
}

/// Decompresses the blocks of a chunk, and returns their length: the length of the chunk and of a block, then for each block its
/// packed length and its bytes, all numbers big-endian. A block that is not shorter is stored. `None` if the chunk is broken.
fn unpack_lz4(packed: &[u8], space: &mut [u8]) -> Option<usize> {
    let (chunk_bytes, rest) = packed.split_first_chunk()?;
    let (block_bytes, mut rest) = rest.split_first_chunk()?;
    let chunk_bytes = usize::try_from(u64::from_be_bytes(*chunk_bytes)).ok()?;
    let block_bytes = u32::from_be_bytes(*block_bytes) as usize;
    let mut space = space.get_mut(..chunk_bytes)?;
    if block_bytes == 0 {
        return None;
    }
    while !space.is_empty() {
        let (packed_bytes, blocks) = rest.split_first_chunk()?;
        let packed_bytes = u32::from_be_bytes(*packed_bytes) as usize;
        let (block, remainder) = blocks.split_at_checked(packed_bytes)?;
        let unpacked_bytes = block_bytes.min(space.len());
        let (block_space, next_space) = space.split_at_mut(unpacked_bytes);
        if packed_bytes == unpacked_bytes {
            block_space.copy_from_slice(block);
        } else if lz4_flex::block::decompress_into(block, block_space).ok()? != unpacked_bytes {
            return None;
        }
        space = next_space;
        rest = remainder;
    }
    Some(chunk_bytes)
}
