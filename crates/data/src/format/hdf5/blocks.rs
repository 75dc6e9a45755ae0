//! The metadata of one file that has been fetched so far.
//!
//! Parsers request ranges. If a range has not been fetched yet, the parser stops, the cursor fetches the range, and the
//! parser starts again. Parsing is cheap, and the number of bytes that a file can make the cursor fetch is limited.

use super::super::payload_range::PayloadRange;
use super::{FormatError, Need, RANK_MAX, checksum};
use std::cell::Cell;

/// Requests are extended to windows of this length, because headers are close to each other.
const WINDOW_BYTES: u64 = 2048;
/// Upper limit on the length of one range.
const BLOCK_BYTES_MAX: u64 = 1 << 20;
/// Upper limit on the metadata that is kept for the next sample of the same file.
const KEPT_BYTES_MAX: u64 = METADATA_BYTES_MAX / 2;
/// Upper limit on the metadata that is fetched for one sample.
const METADATA_BYTES_MAX: u64 = 64 << 20;
/// Metadata from which on no further objects are examined, so that it is kept, with some of the indexes of those that are read.
pub(super) const EXAMINED_BYTES_MAX: u64 = KEPT_BYTES_MAX / 8 * 7;
/// Upper limit on the bytes of object headers that are parsed in one file, each time they are parsed: many objects can share blocks.
const PARSED_BYTES_MAX: u64 = 256 << 20;

/// Reason for a parser to stop.
#[derive(Debug)]
pub(super) enum ParseStop {
    /// These bytes have not been fetched yet.
    Missing { offset: u64, bytes: u64 },
    /// The file is invalid.
    Invalid(FormatError),
}

pub(super) type ParseResult<T> = Result<T, ParseStop>;

/// Error for an invalid file.
pub(super) fn invalid<T>(offset: u64, message: impl Into<String>) -> ParseResult<T> {
    Err(ParseStop::Invalid(FormatError::new(offset, message)))
}

/// Complete windows of metadata, sorted by offset.
#[derive(Default)]
pub(super) struct FileBlocks {
    memory: Vec<u8>,
    windows: Vec<MetadataWindow>,
    /// The window that is being fetched.
    fetching: MetadataWindow,
    range: PayloadRange,
    /// Length of the file.
    pub(super) file_bytes: u64,
    /// Base address, which is added to all other addresses.
    pub(super) base: u64,
    /// Length of an address field.
    pub(super) address_bytes: usize,
    /// Length of a length field.
    pub(super) length_bytes: usize,
    /// Bytes of object headers that may still be parsed.
    parsed_bytes_left: Cell<u64>,
}

#[derive(Clone, Copy, Default)]
struct MetadataWindow {
    offset: u64,
    bytes: u64,
    /// Offset in [`FileBlocks::memory`].
    start: usize,
}

impl FileBlocks {
    /// Starts reading another file, of `file_bytes` bytes.
    pub(super) fn begin(&mut self, file_bytes: u64) {
        self.memory.clear();
        self.windows.clear();
        self.range = PayloadRange::default();
        self.file_bytes = file_bytes;
        self.base = 0;
        self.parsed_bytes_left.set(PARSED_BYTES_MAX);
    }

    /// Counts `bytes` bytes of an object header before they are parsed.
    pub(super) fn count_parsed(&self, offset: u64, bytes: u64) -> ParseResult<()> {
        // A longer block is refused before it is parsed.
        let left = self.parsed_bytes_left.get().saturating_sub(bytes.min(BLOCK_BYTES_MAX));
        self.parsed_bytes_left.set(left);
        if left > 0 {
            return Ok(());
        }
        invalid(offset, "object headers that share blocks, and are too long together")
    }

    /// Prepares to parse the same file again with the metadata fetched so far. Returns false if it is too much to
    /// keep.
    pub(super) fn restart(&mut self) -> bool {
        self.range = PayloadRange::default();
        (self.memory.len() as u64) < KEPT_BYTES_MAX
    }

    /// Bytes of metadata that were fetched.
    pub(super) fn metadata_bytes(&self) -> u64 {
        self.memory.len() as u64
    }

    /// Returns `bytes` bytes at `offset`.
    pub(super) fn get(&self, offset: u64, bytes: u64) -> ParseResult<&[u8]> {
        if bytes > BLOCK_BYTES_MAX {
            return invalid(offset, format!("{bytes} bytes of metadata in one block are too many"));
        }
        if offset.checked_add(bytes).is_none_or(|end| end > self.file_bytes) {
            let message =
                format!("metadata of {bytes} bytes extends beyond the end at {}", self.file_bytes);
            return invalid(offset, message);
        }
        if bytes == 0 {
            return Ok(&[]);
        }
        let key = offset - offset % WINDOW_BYTES;
        let found = self.windows.binary_search_by_key(&key, |window| window.offset);
        let window = found.ok().map(|i| self.windows[i]);
        let offset_in_window = offset - key;
        match window.filter(|window| offset_in_window + bytes <= window.bytes) {
            Some(window) => {
                let start = window.start + offset_in_window as usize;
                Ok(&self.memory[start..start + bytes as usize])
            }
            None => Err(ParseStop::Missing { offset, bytes }),
        }
    }

    /// Up to `bytes` bytes at `offset`; fewer only at the end of the file.
    pub(super) fn peek(&self, offset: u64, bytes: u64) -> ParseResult<&[u8]> {
        self.get(offset, bytes.min(self.file_bytes.saturating_sub(offset)))
    }

    /// A reader of the `bytes` bytes at `offset`.
    pub(super) fn fields(&self, offset: u64, bytes: u64) -> ParseResult<FieldReader<'_>> {
        Ok(self.field_reader(self.get(offset, bytes)?, offset))
    }

    /// A reader of the block at `offset`, between its `signature` and its checksum.
    pub(super) fn checked_fields(
        &self,
        offset: u64,
        bytes: u64,
        signature: &str,
    ) -> ParseResult<FieldReader<'_>> {
        let block = self.get(offset, bytes)?;
        if !block.starts_with(signature.as_bytes()) {
            return invalid(offset, format!("no block `{signature}` where one should be"));
        }
        if let Some((body, sum)) = block.split_last_chunk()
            && checksum::lookup3(body) == u32::from_le_bytes(*sum)
        {
            let mut fields = self.field_reader(body, offset);
            fields.skip(signature.len())?;
            return Ok(fields);
        }
        invalid(offset, format!("the checksum of block `{signature}` is wrong"))
    }

    pub(super) fn field_reader<'b>(&self, bytes: &'b [u8], origin: u64) -> FieldReader<'b> {
        FieldReader {
            bytes,
            offset: 0,
            origin,
            base: self.base,
            address_bytes: self.address_bytes,
            length_bytes: self.length_bytes,
        }
    }

    /// Requests the range that a parser found missing.
    pub(super) fn request(&mut self, offset: u64, bytes: u64) -> Result<(), FormatError> {
        let start = offset - offset % WINDOW_BYTES;
        let end = (offset + bytes).checked_next_multiple_of(WINDOW_BYTES);
        let end = end.map_or(self.file_bytes, |end| end.min(self.file_bytes));
        let found = self.windows.binary_search_by_key(&start, |window| window.offset);
        let short = found.ok().map(|i| self.windows[i]);
        // The last window in memory can be extended; others are fetched again.
        let last = short.filter(|window| window.start + window.bytes as usize == self.memory.len());
        let fetched = last.map_or(0, |window| window.bytes);
        let start_in_memory = self.memory.len() - fetched as usize;
        if start_in_memory as u64 + (end - start) > METADATA_BYTES_MAX {
            let message = format!("more than {METADATA_BYTES_MAX} bytes of metadata for a sample");
            return Err(FormatError::new(offset, message));
        }
        self.range = PayloadRange::new(start + fetched, end - start - fetched);
        self.fetching =
            MetadataWindow { offset: start, bytes: end - start, start: start_in_memory };
        Ok(())
    }

    /// The next request for missing bytes; [`Need::Done`] if none are missing.
    pub(super) fn need(&mut self, piece_bytes: usize) -> Need {
        self.range.need(0, piece_bytes)
    }

    /// Takes the requested bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        self.range.feed(bytes, &mut self.memory)?;
        if self.range.remaining() == 0 {
            let window = self.fetching;
            match self.windows.binary_search_by_key(&window.offset, |window| window.offset) {
                Ok(i) => self.windows[i] = window,
                Err(i) => self.windows.insert(i, window),
            }
        }
        Ok(())
    }
}

/// Reads little-endian fields one after another.
#[derive(Clone)]
pub(super) struct FieldReader<'b> {
    bytes: &'b [u8],
    offset: usize,
    /// Offset of the first byte in the file.
    origin: u64,
    base: u64,
    address_bytes: usize,
    length_bytes: usize,
}

impl<'b> FieldReader<'b> {
    /// Offset of the next field in the file.
    pub(super) fn offset(&self) -> u64 {
        self.origin + self.offset as u64
    }

    pub(super) fn remaining(&self) -> usize {
        self.bytes.len() - self.offset
    }

    /// Length of a field that refers to a heap: number of items, address of the heap, number of the object.
    pub(super) fn reference_bytes(&self) -> u64 {
        8 + self.address_bytes as u64
    }

    /// Keeps only the next `bytes` bytes.
    pub(super) fn truncate(&mut self, bytes: usize) -> ParseResult<()> {
        let taken = self.clone().take(bytes)?;
        self.origin = self.offset();
        self.bytes = taken;
        self.offset = 0;
        Ok(())
    }

    pub(super) fn take(&mut self, bytes: usize) -> ParseResult<&'b [u8]> {
        let end = self.offset.checked_add(bytes);
        match end.and_then(|end| self.bytes.get(self.offset..end)) {
            Some(taken) => {
                self.offset += bytes;
                Ok(taken)
            }
            None => invalid(self.offset(), "the metadata ends within a field"),
        }
    }

    pub(super) fn skip(&mut self, bytes: usize) -> ParseResult<()> {
        self.take(bytes).map(|_| ())
    }

    /// A number of up to 8 bytes.
    pub(super) fn number(&mut self, bytes: usize) -> ParseResult<u64> {
        let mut word = [0; 8];
        let offset = self.offset();
        let Some(low) = word.get_mut(..bytes) else {
            return invalid(offset, format!("a number of `{bytes}` bytes"));
        };
        low.copy_from_slice(self.take(bytes)?);
        Ok(u64::from_le_bytes(word))
    }

    /// Reads `count` numbers of 8 bytes. The remaining elements of the result are 0.
    pub(super) fn numbers(&mut self, count: usize) -> ParseResult<[u64; RANK_MAX]> {
        let mut numbers = [0; RANK_MAX];
        for number in &mut numbers[..count] {
            *number = self.number(8)?;
        }
        Ok(numbers)
    }

    pub(super) fn u8(&mut self) -> ParseResult<u8> {
        Ok(self.number(1)? as u8)
    }

    pub(super) fn u16(&mut self) -> ParseResult<u16> {
        Ok(self.number(2)? as u16)
    }

    pub(super) fn u32(&mut self) -> ParseResult<u32> {
        Ok(self.number(4)? as u32)
    }

    pub(super) fn length(&mut self) -> ParseResult<u64> {
        self.number(self.length_bytes)
    }

    /// A length, or `u64::MAX` if all its bits are set.
    pub(super) fn limit(&mut self) -> ParseResult<u64> {
        let value = self.length()?;
        Ok(if value == all_bits(self.length_bytes) { u64::MAX } else { value })
    }

    /// An address as an offset in the file; `None` for the undefined address.
    pub(super) fn address(&mut self) -> ParseResult<Option<u64>> {
        let value = self.number(self.address_bytes)?;
        if value == all_bits(self.address_bytes) {
            return Ok(None);
        }
        match value.checked_add(self.base) {
            Some(address) => Ok(Some(address)),
            None => invalid(self.offset(), format!("address `{value}` is beyond any file")),
        }
    }
}

/// The number of `bytes` bytes with all bits set.
fn all_bits(bytes: usize) -> u64 {
    u64::MAX >> (64 - 8 * bytes)
}
