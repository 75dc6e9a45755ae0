//! Takes filters off chunks: deflate as it streams by, any of them from a whole chunk.

use super::super::deflate::{Inflate, TakeMade};
use super::message::{Filter, Filters};
use super::{FormatError, checksum};

/// Inflates a chunk piece by piece; only a range of it is wanted.
pub(super) struct ChunkInflate {
    inflate: Inflate,
    /// Bytes of the chunk that were made.
    made: u64,
    is_over: bool,
}

impl ChunkInflate {
    pub(super) fn new() -> Self {
        ChunkInflate { inflate: Inflate::zlib(), made: 0, is_over: false }
    }

    pub(super) fn begin(&mut self) {
        self.inflate.reset();
        (self.made, self.is_over) = (0, false);
    }

    /// Inflate `bytes`, the first of which lies at `offset` of the file; `take` gets what comes out, with its place in the
    /// chunk, which has `total` bytes.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        offset: u64,
        total: u64,
        take: &mut TakeMade,
    ) -> Result<(), FormatError> {
        if self.is_over {
            return Ok(());
        }
        let made = &mut self.made;
        let (_, is_over) = self.inflate.run(bytes, offset, &mut |at, bytes| {
            let from = *made;
            *made += bytes.len() as u64;
            if *made > total { Err(wrong_length(at, total)) } else { take(from, bytes) }
        })?;
        self.is_over = is_over;
        Ok(())
    }

    /// Check the length, once all bytes of the chunk have come.
    pub(super) fn finish(&self, offset: u64, total: u64) -> Result<(), FormatError> {
        if !self.is_over || self.made != total {
            return Err(wrong_length(offset, total));
        }
        Ok(())
    }
}

fn wrong_length(offset: u64, total: u64) -> FormatError {
    FormatError::new(offset, format!("a chunk of {total} bytes does not inflate to as many"))
}

/// Filters that were applied to a chunk, with their numbers: all but those whose bit is in `skipped`.
pub(super) fn applied(
    filters: &Filters,
    skipped: u32,
) -> impl DoubleEndedIterator<Item = (usize, Filter)> + '_ {
    let filters = filters.iter().enumerate();
    filters.filter_map(move |(i, filter)| (skipped & (1 << i) == 0).then_some((i, (*filter)?)))
}

/// A chunk as it is stored, and what is left of it with a filter off.
pub(super) struct Unfilter {
    pub(super) bytes: Vec<u8>,
    other: Vec<u8>,
    check_crc: bool,
}

impl Unfilter {
    pub(super) fn new(check_crc: bool) -> Self {
        Unfilter { bytes: Vec::new(), other: Vec::new(), check_crc }
    }

    /// Take `filters` off, the last first, but those whose bit is in `skipped`: `total` bytes must be left.
    pub(super) fn undo(
        &mut self,
        filters: &Filters,
        skipped: u32,
        inflate: &mut ChunkInflate,
        offset: u64,
        total: u64,
    ) -> Result<(), FormatError> {
        for (i, filter) in applied(filters, skipped).rev() {
            match filter {
                Filter::Fletcher32 => self.take_sum(offset)?,
                Filter::Shuffle(size) => self.unshuffle(size),
                Filter::Deflate => {
                    let sums = applied(filters, skipped)
                        .filter(|(j, filter)| *j < i && *filter == Filter::Fletcher32);
                    let total = total + 4 * sums.count() as u64;
                    inflate.begin();
                    self.other.clear();
                    let other = &mut self.other;
                    inflate.feed(&self.bytes, offset, total, &mut |_, bytes| {
                        other.extend_from_slice(bytes);
                        Ok(())
                    })?;
                    inflate.finish(offset, total)?;
                    std::mem::swap(&mut self.bytes, &mut self.other);
                }
            }
        }
        if self.bytes.len() as u64 != total {
            let message = format!("a chunk of {total} bytes holds {}", self.bytes.len());
            return Err(FormatError::new(offset, message));
        }
        Ok(())
    }

    fn take_sum(&mut self, offset: u64) -> Result<(), FormatError> {
        let Some((body, sum)) = self.bytes.split_last_chunk() else {
            return Err(FormatError::new(offset, "a chunk is shorter than its checksum"));
        };
        if self.check_crc {
            let (made, wanted) = (checksum::fletcher32(body), u32::from_le_bytes(*sum));
            if made != wanted {
                let message =
                    format!("checksum `{made:08x}` of a chunk, the file says {wanted:08x}");
                return Err(FormatError::new(offset, message));
            }
        }
        let left = body.len();
        self.bytes.truncate(left);
        Ok(())
    }

    /// First bytes of all elements, then second ones, and so on; what is no whole element stays at the end.
    fn unshuffle(&mut self, size: usize) {
        let count = self.bytes.len() / size;
        if size == 1 || count == 0 {
            return;
        }
        self.other.resize(self.bytes.len(), 0);
        let (planes, rest) = self.bytes.split_at(count * size);
        let (elements, rest_there) = self.other.split_at_mut(count * size);
        for (byte, plane) in planes.chunks_exact(count).enumerate() {
            for (element, from) in elements.chunks_exact_mut(size).zip(plane) {
                element[byte] = *from;
            }
        }
        rest_there.copy_from_slice(rest);
        std::mem::swap(&mut self.bytes, &mut self.other);
    }
}
