//! A column chunk that comes in pieces: page after page, row after row. Plain pages without levels, as feedrate and
//! others write them, pass straight through; all others are gathered first.

use super::footer::{RowGroup, SampleColumn};
use super::page::{PageHeader, PageKind};
use super::thrift::ThriftError;
use super::unpack::Codec;
use super::values::PageValues;
use super::{FormatError, PAGE_BYTES_MAX, PLAIN, PayloadSink};

/// The longest header of a page: those with statistics of long values.
const HEADER_BYTES_MAX: usize = 1 << 20;
/// A header that comes in pieces is parsed again each time so many more bytes have come.
const HEADER_STEP_BYTES: usize = 4096;
const LENGTH_BYTES: usize = 4;

/// Position in a column chunk. Kept between samples.
#[derive(Default)]
pub(super) struct ChunkStream {
    column: SampleColumn,
    codec: Codec,
    /// Required length of each value, if that is known.
    value_bytes: Option<u64>,
    /// Rows passed, of the group.
    row: u64,
    rows: u64,
    /// Offset in the file of the next byte.
    offset: u64,
    left: u64,
    state: ChunkState,
    values: PageValues,
    /// Length of the sample that was wanted last.
    found_bytes: Option<u64>,
    /// The beginning of a header, a length or a page, of which so many bytes are missing at least.
    begun: Vec<u8>,
    missing: usize,
}

#[derive(Clone, Copy, Default)]
enum ChunkState {
    #[default]
    Header,
    /// So many bytes are passed over.
    Skip(u64),
    /// A page that is to come as a whole.
    Whole(PageHeader),
    Held,
    Plain(PlainPage),
}

/// A page whose values come straight from the file.
#[derive(Clone, Copy)]
struct PlainPage {
    rows_left: u64,
    left: u64,
    /// The value that has begun: its length, and how much of it has passed.
    value: Option<(u64, u64)>,
}

impl ChunkStream {
    /// Start on a chunk.
    pub(super) fn start(
        &mut self,
        column: SampleColumn,
        group: &RowGroup,
        value_bytes: Option<u64>,
    ) -> Result<(), FormatError> {
        self.codec =
            Codec::from_code(group.codec).map_err(|error| FormatError::new(group.start, error))?;
        self.column = column;
        self.value_bytes = value_bytes;
        (self.row, self.rows) = (0, group.rows);
        (self.offset, self.left) = (group.start, group.bytes);
        self.state = ChunkState::Header;
        self.begun.clear();
        self.values.start(column);
        Ok(())
    }

    /// Whether row `row` of the group can still come: it was not passed, and none has begun.
    pub(super) fn can_reach(&self, row: u64) -> bool {
        let has_begun = matches!(self.state, ChunkState::Plain(PlainPage { value: Some(_), .. }));
        self.row <= row && !has_begun
    }

    /// Forget the sample before.
    pub(super) fn want(&mut self) {
        self.found_bytes = None;
    }

    /// Bytes of the wanted sample, once they are known.
    pub(super) fn found_bytes(&self) -> Option<u64> {
        self.found_bytes
    }

    /// Whether row `row` has come.
    pub(super) fn is_past(&self, row: u64) -> bool {
        self.row > row
    }

    /// Whether a page is in memory.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.state, ChunkState::Held)
    }

    /// Offset in the file of the bytes that are wanted next.
    pub(super) fn at(&self) -> u64 {
        self.offset + self.begun.len() as u64
    }

    /// Take the next bytes of the chunk, up to the end of row `row`.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        row: u64,
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        let mut rest = bytes;
        while !self.is_past(row) {
            if self.begun.is_empty() {
                let used = self.advance(rest, row, sink)?;
                rest = &rest[used..];
                if self.missing > 0 {
                    self.begun.extend_from_slice(rest);
                    return Ok(());
                }
                continue;
            }
            let before = self.begun.len();
            let (more, later) = rest.split_at(self.missing.min(rest.len()));
            self.begun.extend_from_slice(more);
            let begun = std::mem::take(&mut self.begun);
            let used = self.advance(&begun, row, sink)?;
            self.begun = begun;
            if used > 0 {
                // It is whole, and what came behind it was not used.
                self.begun.clear();
                rest = &rest[used - before..];
            } else if later.is_empty() {
                return Ok(());
            } else {
                rest = later;
            }
        }
        Ok(())
    }

    /// Go on by a step: how many of `bytes` it used.
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
            ChunkState::Header => self.header(bytes),
            ChunkState::Skip(left) => {
                let now = left.min(bytes.len() as u64);
                let is_over = now == left;
                self.missing = usize::from(!is_over);
                self.state =
                    if is_over { ChunkState::Header } else { ChunkState::Skip(left - now) };
                Ok(now as usize)
            }
            ChunkState::Whole(header) => {
                let len = header.packed_bytes as usize;
                let Some(packed) = bytes.get(..len) else {
                    self.missing = len - bytes.len();
                    return Ok(0);
                };
                self.load(&header, packed).map_err(|why| self.error(why))?;
                Ok(len)
            }
            ChunkState::Held => self.held(row, sink).map(|()| 0),
            ChunkState::Plain(page) => self.plain(page, bytes, row, sink),
        }
    }

    fn error(&self, why: impl Into<String>) -> FormatError {
        FormatError::new(self.offset, why)
    }

    fn header(&mut self, bytes: &[u8]) -> Result<usize, FormatError> {
        if self.left == 0 {
            let (row, rows) = (self.row, self.rows);
            let message = format!("the column chunk ends after {row} of {rows} rows");
            return Err(self.error(message));
        }
        // Where chunks overlap, more than this one may have been read.
        let bytes = &bytes[..self.left.min(bytes.len() as u64) as usize];
        match PageHeader::read(bytes) {
            Ok((header, len)) => {
                let page = self.page(&header, self.left - len as u64);
                self.state = page.map_err(|why| self.error(why))?;
                Ok(len)
            }
            Err(ThriftError::Ends) if bytes.len() as u64 >= self.left => {
                Err(self.error("the column chunk ends within the header of a page"))
            }
            Err(ThriftError::Ends) if bytes.len() <= HEADER_BYTES_MAX => {
                self.missing = HEADER_STEP_BYTES;
                Ok(0)
            }
            Err(ThriftError::Ends) => {
                Err(self.error(format!("the header of a page is over {HEADER_BYTES_MAX} bytes")))
            }
            Err(_) => Err(self.error("no header of a page where one is due")),
        }
    }

    /// How a page is taken, of a chunk with `left` bytes left.
    fn page(&self, header: &PageHeader, left: u64) -> Result<ChunkState, String> {
        let packed_bytes = header.packed_bytes;
        if packed_bytes > left {
            return Err(format!("a page of {packed_bytes} bytes, with {left} left of its chunk"));
        }
        PageValues::check(header)?;
        let is_data = matches!(header.kind, PageKind::Data | PageKind::DataV2);
        let (rows, rows_left) = (header.values, self.rows - self.row);
        if is_data && rows > rows_left {
            return Err(format!(
                "a page of {rows} values, with {rows_left} rows left of its group"
            ));
        }
        let bytes = packed_bytes.max(header.bytes);
        if header.kind == PageKind::Other {
            Ok(ChunkState::Skip(packed_bytes))
        } else if is_data && self.passes_through(header) {
            Ok(ChunkState::Plain(PlainPage { rows_left: rows, left: packed_bytes, value: None }))
        } else if bytes > PAGE_BYTES_MAX {
            Err(format!(
                "a page of {bytes} bytes; only plain pages without nulls may be over {PAGE_BYTES_MAX}"
            ))
        } else {
            Ok(ChunkState::Whole(*header))
        }
    }

    fn passes_through(&self, header: &PageHeader) -> bool {
        let is_packed = self.codec != Codec::Uncompressed && !header.is_unpacked;
        let has_levels = self.column.level > 0 || header.level_bytes + header.repetition_bytes > 0;
        header.encoding == Some(PLAIN) && !is_packed && !has_levels
    }

    fn load(&mut self, header: &PageHeader, packed: &[u8]) -> Result<(), String> {
        if header.kind == PageKind::Dictionary {
            self.values.load_dictionary(header, self.codec, packed)?;
            self.state = ChunkState::Header;
        } else {
            self.values.load(header, self.codec, packed)?;
            self.state = ChunkState::Held;
        }
        Ok(())
    }

    /// Go on to row `row`, or as far as the page in memory goes.
    fn held(&mut self, row: u64, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let offset = self.offset;
        let placed = |why| FormatError::new(offset, why);
        let passed = (row - self.row).min(self.values.rows_left());
        self.values.pass(passed).map_err(placed)?;
        self.row += passed;
        if self.values.rows_left() == 0 {
            self.state = ChunkState::Header;
            return Ok(());
        }
        match self.values.take().map_err(placed)? {
            None => return Err(placed(format!("row {row} of the row group is null"))),
            Some(value) => {
                check_value(self.value_bytes, value.len() as u64).map_err(placed)?;
                self.found_bytes = Some(value.len() as u64);
                if !value.is_empty() {
                    announce(self.value_bytes, sink);
                    sink.payload(0, value)?;
                }
            }
        }
        self.row += 1;
        Ok(())
    }

    /// Go on in a plain page: by the length of a value, or by bytes of one that has begun.
    fn plain(
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
        let Some((len, at)) = page.value else { return self.begin_value(page, bytes, row) };
        let now = (len - at).min(bytes.len() as u64);
        if self.row == row && now > 0 {
            if at == 0 {
                announce(self.value_bytes, sink);
            }
            sink.payload(at, &bytes[..now as usize])?;
        }
        page.left -= now;
        if at + now < len {
            page.value = Some((len, at + now));
            self.missing = 1;
        } else {
            page.value = None;
            page.rows_left -= 1;
            self.row += 1;
        }
        self.state = ChunkState::Plain(page);
        Ok(now as usize)
    }

    /// Read the length of the next value of a plain page, once that has come.
    fn begin_value(
        &mut self,
        mut page: PlainPage,
        bytes: &[u8],
        row: u64,
    ) -> Result<usize, FormatError> {
        let (used, len) = if let Some(len) = self.column.value_bytes {
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
            check_value(self.value_bytes, len).map_err(|why| self.error(why))?;
            self.found_bytes = Some(len);
        }
        page.value = Some((len, 0));
        self.state = ChunkState::Plain(page);
        Ok(used)
    }
}

/// A sample comes, of which nobody said that it is an array of so many bytes.
fn announce(expected: Option<u64>, sink: &mut dyn PayloadSink) {
    if expected.is_none() {
        sink.encoded(&[]);
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
