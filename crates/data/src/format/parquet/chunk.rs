//! Streams a column chunk that is read piece by piece: page after page, row after row. Plain pages without levels, which
//! feedrate and other programs write, are passed through; all other pages are collected first. Pages too long for that are
//! not decoded: each of their rows is an equal share of their bytes.

use super::footer::Chunk;
use super::page::{PageHeader, PageKind};
use super::schema::SampleColumn;
use super::thrift::ThriftError;
use super::unpack::Codec;
use super::values::PageValues;
use super::{FormatError, PAGE_BYTES_MAX, PLAIN, PayloadSink};

/// Upper limit on the length of a page header. Headers with statistics of long values are long.
const HEADER_BYTES_MAX: usize = 1 << 20;
/// An incomplete header is parsed again after this number of further bytes.
const HEADER_STEP_BYTES: usize = 4096;
const LENGTH_BYTES: usize = 4;
/// Reported type of samples in pages that are too long to be held in memory.
const LONG_PAGE: &str = "page over 128 MiB";

/// Position in a column chunk. The position is kept between samples.
#[derive(Default)]
pub(super) struct ChunkStream {
    column: SampleColumn,
    codec: Codec,
    /// Required length of each value, if known.
    value_bytes: Option<u64>,
    /// Number of the next row in its row group.
    row: u64,
    /// Number of rows in the row group.
    rows: u64,
    /// Offset in the file of the next byte to process.
    offset: u64,
    /// Number of bytes of the chunk after `offset`.
    left: u64,
    state: ChunkState,
    values: PageValues,
    /// Length of the last requested sample.
    found_bytes: Option<u64>,
    /// Reason why the last requested sample was not decoded.
    undecoded: Option<&'static str>,
    /// Start of an incomplete header, length or page.
    partial: Vec<u8>,
    /// Minimum number of further bytes that are needed to process `partial`.
    missing: usize,
}

#[derive(Clone, Copy, Default)]
enum ChunkState {
    /// A page header follows.
    #[default]
    Header,
    /// This number of bytes is skipped.
    Skip(u64),
    /// A page follows that is collected completely.
    Collect(PageHeader),
    /// A page is loaded in memory.
    Loaded,
    /// In a page whose values are passed through.
    Plain(PlainPage),
}

/// Position in a page whose values are passed through.
#[derive(Clone, Copy)]
struct PlainPage {
    rows_left: u64,
    left: u64,
    /// Length of the current value, and number of its bytes that have been processed.
    value: Option<(u64, u64)>,
    /// Whether the page is not decoded, so that each row is an equal share of its bytes.
    is_shared: bool,
}

impl ChunkStream {
    /// Starts reading a chunk of a row group with `rows` rows.
    pub(super) fn start(
        &mut self,
        column: SampleColumn,
        chunk: &Chunk,
        rows: u64,
        value_bytes: Option<u64>,
    ) {
        self.codec = chunk.codec.unwrap_or_default();
        self.column = column;
        self.value_bytes = value_bytes;
        self.row = 0;
        self.rows = rows;
        self.offset = chunk.start;
        self.left = chunk.bytes;
        self.state = ChunkState::Header;
        self.partial.clear();
        self.values.start(column);
    }

    /// Whether row `row` of the group can be read from the current position: the row is not before it, and no value is partly
    /// processed.
    pub(super) fn can_reach(&self, row: u64) -> bool {
        let is_in_value = matches!(self.state, ChunkState::Plain(PlainPage { value: Some(_), .. }));
        self.row <= row && !is_in_value
    }

    /// Starts reading a sample.
    pub(super) fn begin_sample(&mut self) {
        self.found_bytes = None;
        self.undecoded = None;
    }

    /// Reason why the requested sample is not decoded.
    pub(super) fn undecoded(&self) -> Option<&'static str> {
        self.undecoded
    }

    /// Length of the requested sample, once it is known.
    pub(super) fn found_bytes(&self) -> Option<u64> {
        self.found_bytes
    }

    /// Whether row `row` has been processed.
    pub(super) fn has_passed(&self, row: u64) -> bool {
        self.row > row
    }

    /// Whether a page is loaded in memory.
    pub(super) fn has_loaded_page(&self) -> bool {
        matches!(self.state, ChunkState::Loaded)
    }

    /// Offset in the file of the bytes needed next.
    pub(super) fn offset(&self) -> u64 {
        self.offset + self.partial.len() as u64
    }

    /// Takes the next bytes of the chunk and processes them up to the end of row `row`.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        row: u64,
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        let mut rest = bytes;
        while !self.has_passed(row) {
            if self.partial.is_empty() {
                let used = self.advance(rest, row, sink)?;
                rest = &rest[used..];
                if self.missing > 0 {
                    self.partial.extend_from_slice(rest);
                    return Ok(());
                }
                continue;
            }
            let partial_bytes = self.partial.len();
            let (missing, remainder) = rest.split_at(self.missing.min(rest.len()));
            self.partial.extend_from_slice(missing);
            let partial = std::mem::take(&mut self.partial);
            let used = self.advance(&partial, row, sink)?;
            self.partial = partial;
            if used > 0 {
                // The item is complete. Bytes after it were not used.
                self.partial.clear();
                rest = &rest[used - partial_bytes..];
            } else if remainder.is_empty() {
                return Ok(());
            } else {
                rest = remainder;
            }
        }
        Ok(())
    }

    /// Makes one step, and returns how many of `bytes` it used.
    fn advance(
        &mut self,
        bytes: &[u8],
        row: u64,
        sink: &mut dyn PayloadSink,
    ) -> Result<usize, FormatError> {
        self.missing = 0;
        let used = self.step(bytes, row, sink)?;
        self.offset += used as u64;
        self.left -= used as u64;
        Ok(used)
    }

    fn step(
        &mut self,
        bytes: &[u8],
        row: u64,
        sink: &mut dyn PayloadSink,
    ) -> Result<usize, FormatError> {
        match self.state {
            ChunkState::Header => self.read_header(bytes),
            ChunkState::Skip(left) => {
                let skipped = left.min(bytes.len() as u64);
                let is_done = skipped == left;
                self.missing = usize::from(!is_done);
                self.state =
                    if is_done { ChunkState::Header } else { ChunkState::Skip(left - skipped) };
                Ok(skipped as usize)
            }
            ChunkState::Collect(header) => {
                let len = header.packed_bytes as usize;
                let Some(packed) = bytes.get(..len) else {
                    self.missing = len - bytes.len();
                    return Ok(0);
                };
                self.load(&header, packed).map_err(|message| self.error(message))?;
                Ok(len)
            }
            ChunkState::Loaded => self.read_loaded_row(row, sink).map(|()| 0),
            ChunkState::Plain(page) => self.feed_plain_page(page, bytes, row, sink),
        }
    }

    /// Whether values can be encoded files. Samples of known length are arrays.
    fn may_be_encoded(&self) -> bool {
        self.value_bytes.is_none() && !self.column.is_text
    }

    fn error(&self, message: impl Into<String>) -> FormatError {
        FormatError::new(self.offset, message)
    }

    fn read_header(&mut self, bytes: &[u8]) -> Result<usize, FormatError> {
        if self.left == 0 {
            let message = format!("the column chunk ends after {} of {} rows", self.row, self.rows);
            return Err(self.error(message));
        }
        // If chunks overlap, there may be bytes beyond the end of this one.
        let chunk_bytes = &bytes[..self.left.min(bytes.len() as u64) as usize];
        match PageHeader::read(chunk_bytes) {
            Ok((header, len)) => {
                let state = self.page_state(&header, self.left - len as u64);
                self.state = state.map_err(|message| self.error(message))?;
                Ok(len)
            }
            Err(ThriftError::Ends) if chunk_bytes.len() as u64 >= self.left => {
                Err(self.error("the column chunk ends within the header of a page"))
            }
            Err(ThriftError::Ends) if chunk_bytes.len() <= HEADER_BYTES_MAX => {
                self.missing = HEADER_STEP_BYTES;
                Ok(0)
            }
            Err(ThriftError::Ends) => {
                Err(self.error(format!("the header of a page is over {HEADER_BYTES_MAX} bytes")))
            }
            Err(_) => Err(self.error("no header of a page where one is due")),
        }
    }

    /// Decides how a page is read, after a check of its header. The chunk has `left` bytes left.
    fn page_state(&self, header: &PageHeader, left: u64) -> Result<ChunkState, String> {
        let packed_bytes = header.packed_bytes;
        if packed_bytes > left {
            return Err(format!("a page of {packed_bytes} bytes, with {left} left of its chunk"));
        }
        PageValues::check(header)?;
        let is_data = matches!(header.kind, PageKind::Data | PageKind::DataV2);
        let rows = header.values;
        let rows_left = self.rows - self.row;
        if is_data && rows > rows_left {
            return Err(format!(
                "a page of {rows} values, with {rows_left} rows left of its group"
            ));
        }
        let is_plain = is_data && self.passes_through(header);
        let is_long = packed_bytes.max(header.bytes) > PAGE_BYTES_MAX;
        let page = |rows_left, left| {
            let is_shared = !is_plain;
            ChunkState::Plain(PlainPage { rows_left, left, value: None, is_shared })
        };
        Ok(match header.kind {
            PageKind::Other => ChunkState::Skip(packed_bytes),
            // Without its dictionary, no page of the chunk can be decoded.
            PageKind::Dictionary if is_long => page(rows_left, left),
            _ if is_plain || is_long => page(rows, packed_bytes),
            _ => ChunkState::Collect(*header),
        })
    }

    fn passes_through(&self, header: &PageHeader) -> bool {
        let is_packed = self.codec != Codec::Uncompressed && !header.is_uncompressed;
        let has_levels = self.column.level > 0 || header.level_bytes + header.repetition_bytes > 0;
        header.encoding == Some(PLAIN) && !is_packed && !has_levels
    }

    fn load(&mut self, header: &PageHeader, packed: &[u8]) -> Result<(), String> {
        if header.kind == PageKind::Dictionary {
            self.values.load_dictionary(header, self.codec, packed)?;
            self.state = ChunkState::Header;
        } else {
            self.values.load(header, self.codec, packed)?;
            self.state = ChunkState::Loaded;
        }
        Ok(())
    }

    /// Reads row `row` from the page in memory, or skips the page if it does not contain the row.
    fn read_loaded_row(&mut self, row: u64, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let offset = self.offset;
        let with_offset = |message| FormatError::new(offset, message);
        let skipped_rows = (row - self.row).min(self.values.rows_left());
        self.values.skip(skipped_rows).map_err(with_offset)?;
        self.row += skipped_rows;
        if self.values.rows_left() == 0 {
            self.state = ChunkState::Header;
            return Ok(());
        }
        let may_be_encoded = self.may_be_encoded();
        match self.values.next_value().map_err(with_offset)? {
            None => self.found_bytes = Some(0),
            Some(value) => {
                check_value(self.value_bytes, value.len() as u64).map_err(with_offset)?;
                self.found_bytes = Some(value.len() as u64);
                if !value.is_empty() {
                    if may_be_encoded {
                        sink.begin_encoded(&[]);
                    }
                    sink.payload(0, value)?;
                }
            }
        }
        self.row += 1;
        Ok(())
    }

    /// Processes bytes of a plain page: the length of a value, or bytes of the current value.
    fn feed_plain_page(
        &mut self,
        mut page: PlainPage,
        bytes: &[u8],
        row: u64,
        sink: &mut dyn PayloadSink,
    ) -> Result<usize, FormatError> {
        if page.rows_left == 0 {
            self.state = ChunkState::Header;
            return match page.left {
                0 => Ok(0),
                left => Err(self.error(format!("{left} bytes of a page follow its last value"))),
            };
        }
        let Some((len, position)) = page.value else { return self.begin_value(page, bytes, row) };
        let used = (len - position).min(bytes.len() as u64);
        if self.row == row && used > 0 {
            if position == 0 && self.may_be_encoded() && !page.is_shared {
                sink.begin_encoded(&[]);
            }
            sink.payload(position, &bytes[..used as usize])?;
        }
        page.left -= used;
        if position + used < len {
            page.value = Some((len, position + used));
            self.missing = 1;
        } else {
            page.value = None;
            page.rows_left -= 1;
            self.row += 1;
        }
        self.state = ChunkState::Plain(page);
        Ok(used as usize)
    }

    /// Reads the length of the next value of a plain page.
    fn begin_value(
        &mut self,
        mut page: PlainPage,
        bytes: &[u8],
        row: u64,
    ) -> Result<usize, FormatError> {
        let (used, len) = if page.is_shared {
            (0, page.left / page.rows_left)
        } else if let Some(len) = self.column.value_bytes {
            (0, len)
        } else if page.left < LENGTH_BYTES as u64 {
            return Err(self.error("the page ends within its values"));
        } else if let Some(prefix) = bytes.first_chunk::<LENGTH_BYTES>() {
            (LENGTH_BYTES, u32::from_le_bytes(*prefix).into())
        } else {
            self.missing = LENGTH_BYTES - bytes.len();
            return Ok(0);
        };
        page.left -= used as u64;
        if len > page.left {
            let left = page.left;
            let message = format!("a value of {len} bytes, with {left} bytes left of its page");
            return Err(self.error(message));
        }
        if self.row == row {
            check_value(self.value_bytes, len).map_err(|message| self.error(message))?;
            self.found_bytes = Some(len);
            self.undecoded = page.is_shared.then_some(LONG_PAGE);
        }
        page.value = Some((len, 0));
        self.state = ChunkState::Plain(page);
        Ok(used)
    }
}

fn check_value(expected: Option<u64>, bytes: u64) -> Result<(), String> {
    match expected {
        Some(expected) if expected != bytes => {
            Err(format!("a sample of {bytes} bytes, where each should have {expected}"))
        }
        _ => Ok(()),
    }
}
