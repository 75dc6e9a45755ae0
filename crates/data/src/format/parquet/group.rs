//! Streams the column chunks of a row group in the order of the file, and divides them into samples.

use super::super::payload_range::share_start;
use super::chunk::ChunkStream;
use super::footer::{Chunk, Footer};
use super::schema::Column;
use super::unread::{ContentFinder, PageUnpacker};
use super::{FormatError, PayloadSink};
use std::ops::Range;

/// Chunks at most this far apart are read without a gap, as by pyarrow.
const HOLE_BYTES_MAX: u64 = 8 << 10;
/// Chunks after the values are long if they have more than this part of a row group.
const LONG_TAIL_PARTS: u64 = 10;
/// Reported type of samples inside lists of lists.
const NESTED_LISTS: &str = "nested lists";

/// Position in a row group. The position is kept between samples.
#[derive(Default)]
pub(super) struct GroupStream {
    chunks: Vec<Chunk>,
    /// The columns of the chunks, if samples are spread over them.
    columns: Vec<Column>,
    /// Number of rows in the row group.
    rows: u64,
    /// Number of the requested row.
    row: u64,
    division: Division,
    /// Share of the requested row in [`Division::Shares`].
    share: Range<u64>,
    /// Number of the current chunk in `chunks`; their number at the end of the group.
    index: usize,
    /// Offset in the file of the next byte, outside the chunk of values.
    offset: u64,
    values: ChunkStream,
    unpacker: PageUnpacker,
    /// End of the bytes that the unpacker has taken. It takes all bytes that have been read, not one sample's at a time.
    unpacked_until: u64,
    content: ContentFinder,
    /// Whether pages are decompressed even if their values are not needed.
    unpacks: bool,
    /// Codec, encoding or type because of which the samples are not decoded.
    undecoded: Option<&'static str>,
}

/// How a row group is divided into samples.
#[derive(Clone, Copy)]
enum Division {
    /// A sample is a value of the chunk with this index.
    Values(usize),
    /// Each sample is an equal share of `total` bytes, of which `position` were passed.
    Shares { total: u64, position: u64 },
}

impl Default for Division {
    fn default() -> Self {
        Division::Shares { total: 0, position: 0 }
    }
}

impl GroupStream {
    /// Starts a group. Samples have `sample_bytes` bytes if this is known. Pages are decompressed if `unpacks` is set.
    pub(super) fn start(
        &mut self,
        footer: &Footer,
        number: usize,
        sample_bytes: Option<u64>,
        unpacks: bool,
    ) -> Result<(), FormatError> {
        let group = &footer.groups[number];
        self.chunks.clear();
        self.chunks.extend_from_slice(footer.chunks(group));
        self.columns.clear();
        self.rows = group.rows;
        self.row = 0;
        self.index = 0;
        self.unpacks = unpacks;
        self.undecoded = if unpacks { self.undecoded_type(footer) } else { None };
        let is_described = sample_bytes.is_some();
        let value_column = footer.value_column().filter(|_| unpacks || is_described);
        let value = value_column.and_then(|(number, column)| {
            let index = self.chunks.iter().position(|chunk| chunk.column == number)?;
            let is_decoded = self.chunks[index].undecoded_type().is_none();
            is_decoded.then(|| (self.move_long_tail(index), column))
        });
        self.division = match (value, sample_bytes) {
            (Some((index, column)), _) => {
                self.values.start(column, &self.chunks[index], self.rows, sample_bytes);
                Division::Values(index)
            }
            (None, Some(_)) if !footer.is_spread => {
                let message = "the column with the samples cannot be decoded";
                return Err(FormatError::new(self.offset, message));
            }
            (None, Some(sample_bytes)) => {
                let columns = self.chunks.iter().map(|chunk| *footer.column(chunk.column));
                self.columns.extend(columns);
                Division::Shares { total: self.rows.saturating_mul(sample_bytes), position: 0 }
            }
            (None, None) => {
                let total = self.chunks.iter().map(|chunk| chunk.bytes).sum();
                Division::Shares { total, position: 0 }
            }
        };
        self.enter_chunk();
        Ok(())
    }

    /// Moves chunks after the chunk of values to the start if they are long, because a run need not read the last row of a group.
    /// Returns the new index of the chunk of values.
    fn move_long_tail(&mut self, index: usize) -> usize {
        let bytes = |chunks: &[Chunk]| chunks.iter().map(|chunk| chunk.bytes).sum::<u64>();
        let tail_bytes = bytes(&self.chunks[index + 1..]);
        if tail_bytes <= bytes(&self.chunks) / LONG_TAIL_PARTS {
            return index;
        }
        self.chunks.rotate_left(index + 1);
        self.chunks.len() - 1
    }

    fn undecoded_type(&self, footer: &Footer) -> Option<&'static str> {
        let is_nested = |chunk: &&Chunk| footer.column(chunk.column).lists > 1;
        let nested = || self.chunks.iter().find(is_nested).map(|_| NESTED_LISTS);
        self.chunks.iter().find_map(Chunk::undecoded_type).or_else(nested)
    }

    /// Whether row `row` can be read from the current position.
    pub(super) fn can_reach(&self, row: u64) -> bool {
        match self.division {
            Division::Values(index) if index < self.index => false,
            Division::Values(_) => self.values.can_reach(row),
            Division::Shares { total, position } => position <= self.cut(total, row),
        }
    }

    /// Starts reading row `row`, which can be reached.
    pub(super) fn begin(&mut self, row: u64) {
        self.row = row;
        self.values.begin_sample();
        if let Division::Shares { total, .. } = self.division {
            self.share = self.cut(total, row)..self.cut(total, row + 1);
        }
    }

    /// Whether the requested row was read; after the last row, whether all chunks were read.
    pub(super) fn is_complete(&self) -> bool {
        self.has_passed_row() && (self.row + 1 < self.rows || self.index == self.chunks.len())
    }

    /// Offset in the file of the bytes needed next.
    pub(super) fn offset(&self) -> u64 {
        if self.is_in_values() {
            self.values.offset()
        } else {
            self.offset + self.content.partial_bytes()
        }
    }

    /// End of the chunks that are read without a gap.
    pub(super) fn run_end(&self) -> u64 {
        let mut end = self.offset();
        for chunk in self.chunks.get(self.index..).unwrap_or_default() {
            if chunk.start > end.saturating_add(HOLE_BYTES_MAX) {
                break;
            }
            end = end.max(chunk.end());
        }
        end
    }

    /// Whether [`GroupStream::take`] can continue without bytes: with a page in memory, or with an error at the end of the values.
    pub(super) fn has_buffered_bytes(&self) -> bool {
        self.is_in_values()
            && (self.values.has_loaded_page()
                || self.values.offset() == self.chunks[self.index].end())
    }

    /// Length of the requested sample, once it is known.
    pub(super) fn sample_bytes(&self) -> Option<u64> {
        match self.division {
            Division::Values(_) => self.values.found_bytes(),
            Division::Shares { .. } => Some(self.share.end - self.share.start),
        }
    }

    /// Number of rows after the complete one whose shares are in bytes that were decompressed. The last row is never among them, because
    /// it ends with the last chunk.
    pub(super) fn ready_rows(&self) -> u64 {
        let Division::Shares { total, position } = self.division else { return 0 };
        if total == 0 || !self.columns.is_empty() || !self.is_complete() {
            return 0;
        }
        let unpacked = position + self.unpacked_until.saturating_sub(self.offset);
        // The last row that ends at `unpacked` or before: the inverse of `cut`.
        let end = ((u128::from(unpacked) + 1) * u128::from(self.rows) - 1) / u128::from(total);
        (end as u64).min(self.rows - 1).saturating_sub(self.row + 1)
    }

    /// Passes `rows` rows, at most [`GroupStream::ready_rows`], and returns their bytes.
    pub(super) fn take_ready(&mut self, rows: u64) -> u64 {
        let Division::Shares { total, position } = self.division else { return 0 };
        let start = self.share.end;
        self.begin(self.row + rows);
        let end = self.share.end;
        self.division = Division::Shares { total, position: end };
        self.pass(end - position);
        end - start
    }

    /// Codec, encoding or type because of which the samples are not decoded.
    pub(super) fn undecoded(&self) -> Option<&'static str> {
        self.undecoded.or_else(|| self.values.undecoded())
    }

    /// Takes bytes from [`GroupStream::offset`] on, and uses some of them.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        if self.is_in_values() {
            self.values.feed(bytes, self.row, sink)?;
            if self.values.has_passed(self.row) && self.row + 1 == self.rows {
                self.offset = self.values.offset();
                self.unpacker.start(None);
                self.pass(0);
            }
            return Ok(());
        }
        let Some(chunk) = self.chunks.get(self.index).copied() else {
            let message = format!("the row group ends before row {} of {}", self.row, self.rows);
            return Err(FormatError::new(self.offset, message));
        };
        let bytes = &bytes[..bytes.len().min((chunk.end() - self.offset()) as usize)];
        match self.division {
            Division::Values(_) => {
                self.unpacker.feed(bytes);
                self.pass(bytes.len() as u64);
                Ok(())
            }
            Division::Shares { total, position } => {
                let is_content = self.columns.is_empty() || self.content.content_left > 0;
                if is_content {
                    return self.take_share(total, position, bytes, sink);
                }
                let skipped = self.content.skip(bytes, &self.columns[self.index]);
                let passed = skipped.map_err(|message| FormatError::new(self.offset, message))?;
                let left = chunk.end() - self.offset;
                if bytes.is_empty() || left < passed.saturating_add(self.content.content_left) {
                    let message = "a page that is longer than its column chunk";
                    return Err(FormatError::new(self.offset, message));
                }
                self.pass(passed);
                Ok(())
            }
        }
    }

    /// Takes content at `position` of the `total` bytes that are divided, and passes on what belongs to the sample.
    fn take_share(
        &mut self,
        total: u64,
        position: u64,
        bytes: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        let Range { start, end } = self.share;
        let is_before = position < start;
        let limit = if is_before { start } else { end } - position;
        let content_left =
            if self.columns.is_empty() { u64::MAX } else { self.content.content_left };
        let used = limit.min(content_left).min(bytes.len() as u64);
        if used == 0 {
            let message = format!("the row group has more than {total} bytes of values");
            return Err(FormatError::new(self.offset, message));
        }
        if !is_before {
            sink.payload(position - start, &bytes[..used as usize])?;
        }
        if self.columns.is_empty() {
            self.unpack(bytes);
        } else {
            self.content.content_left -= used;
        }
        self.division = Division::Shares { total, position: position + used };
        self.pass(used);
        Ok(())
    }

    /// Decompresses the pages in bytes at the current offset, unless that was done for an earlier sample.
    fn unpack(&mut self, bytes: &[u8]) {
        let unpacked = self.unpacked_until.saturating_sub(self.offset) as usize;
        if let Some(rest) = bytes.get(unpacked..) {
            self.unpacker.feed(rest);
            self.unpacked_until += rest.len() as u64;
        }
    }

    fn has_passed_row(&self) -> bool {
        match self.division {
            Division::Values(index) => self.index > index || self.values.has_passed(self.row),
            Division::Shares { position, .. } => position >= self.share.end,
        }
    }

    /// Whether the next bytes belong to the chunk of values and may be needed for a sample.
    fn is_in_values(&self) -> bool {
        let is_current = matches!(self.division, Division::Values(index) if index == self.index);
        is_current && !(self.values.has_passed(self.row) && self.row + 1 == self.rows)
    }

    /// Start of row `row` in the `total` bytes that are divided.
    fn cut(&self, total: u64, row: u64) -> u64 {
        share_start(total, row, self.rows)
    }

    /// Passes `bytes` bytes of the current chunk.
    fn pass(&mut self, bytes: u64) {
        self.offset += bytes;
        if self.chunks.get(self.index).is_some_and(|chunk| chunk.end() <= self.offset) {
            self.index += 1;
            self.enter_chunk();
        }
    }

    /// Prepares the current chunk, or the next one with bytes.
    fn enter_chunk(&mut self) {
        while let Some(chunk) = self.chunks.get(self.index) {
            self.offset = chunk.start;
            self.unpacked_until = chunk.start;
            let is_value = matches!(self.division, Division::Values(index) if index == self.index);
            if chunk.bytes > 0 || is_value {
                self.unpacker.start(chunk.codec.filter(|_| self.unpacks));
                self.content.start();
                return;
            }
            self.index += 1;
        }
    }
}
