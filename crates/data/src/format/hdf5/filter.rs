//! Reverses the filters of chunks. A chunk with only deflate is inflated piece by piece; other combinations need the
//! complete chunk in memory.

use super::super::deflate::{Inflate, InflateOutput};
use super::message::{Filter, Filters};
use super::{FormatError, checksum};

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
    check_crc: bool,
}

impl Unfilter {
    pub(super) fn new(check_crc: bool) -> Self {
        Unfilter { bytes: Vec::new(), output: Vec::new(), check_crc }
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
                Filter::Deflate => {
                    // Checksums that were added before compression are still part of the result.
                    let checksums = applied_filters(filters, skipped)
                        .filter(|(j, filter)| *j < i && *filter == Filter::Fletcher32);
                    let inflated = total + 4 * checksums.count() as u64;
                    inflate.begin();
                    self.output.clear();
                    let output = &mut self.output;
                    inflate.feed(&self.bytes, offset, inflated, &mut |_, bytes| {
                        output.extend_from_slice(bytes);
                        Ok(())
                    })?;
                    inflate.finish(offset, inflated)?;
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
