//! A column chunk that comes in pieces: page after page, row after row. Plain pages without levels, as feedrate and
//! others write them, pass straight through; all others are gathered first.

use super::footer::{Column, Group};
use super::page::{PageHeader, PageKind};
use super::thrift::ThriftError;
use super::unpack::Codec;
use super::values::Values;
use super::{FormatError, PAGE_BYTES_MAX, PLAIN, PayloadSink};

/// The longest header of a page: those with statistics of long values.
const HEADER_BYTES_MAX: usize = 1 << 20;
/// A header that comes in pieces is parsed again each time so many more bytes have come.
const HEADER_STEP_BYTES: usize = 4096;
const LENGTH_BYTES: usize = 4;

/// Position in a column chunk. Kept between samples.
pub(super) struct ChunkStream {
    column: Column,
    codec: Codec,
    /// Required length of each value, if that is known.
    value_bytes: Option<u64>,
    /// Rows passed, of the group.
    row: u64,
    rows: u64,
    /// Offset in the file of the next byte.
    offset: u64,
    left: u64,
    state: State,
    /// A header, or a page that is gathered.
    gathered: Vec<u8>,
    values: Values,
    /// Length of the sample that was wanted last.
    found_bytes: Option<u64>,
}

enum State {
    Header,
    Skip { left: u64 },
    Gather { header: PageHeader },
    Held,
    Plain(PlainPage),
}

/// A page whose values come straight from the file.
#[derive(Clone, Copy)]
struct PlainPage {
    rows_left: u64,
    left: u64,
    prefix: [u8; LENGTH_BYTES],
    prefix_len: usize,
    /// The value that has begun.
    value: Option<Value>,
}

#[derive(Clone, Copy)]
struct Value {
    at: u64,
    bytes: u64,
}

impl ChunkStream {
    pub(super) fn new() -> Self {
        ChunkStream {
            column: Column::default(),
            codec: Codec::Uncompressed,
            value_bytes: None,
            row: 0,
            rows: 0,
            offset: 0,
            left: 0,
            state: State::Header,
            gathered: Vec::new(),
            values: Values::default(),
            found_bytes: None,
        }
    }

    /// Start on a chunk.
    pub(super) fn start(
        &mut self,
        column: Column,
        group: &Group,
        value_bytes: Option<u64>,
    ) -> Result<(), FormatError> {
        self.codec =
            Codec::from_code(group.codec).map_err(|error| FormatError::new(group.start, error))?;
        self.column = column;
        self.value_bytes = value_bytes;
        (self.row, self.rows) = (0, group.rows);
        (self.offset, self.left) = (group.start, group.bytes);
        self.state = State::Header;
        self.gathered.clear();
        self.values.start(column);
        Ok(())
    }

    /// Whether row `row` of the group can still come: it was not passed, and none has begun.
    pub(super) fn can_reach(&self, row: u64) -> bool {
        let has_begun = match &self.state {
            State::Plain(page) => page.value.is_some() || page.prefix_len > 0,
            State::Skip { .. } | State::Gather { .. } => true,
            State::Header | State::Held => false,
        };
        self.row <= row && !has_begun && self.gathered.is_empty()
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

    /// Whether row `row` needs no further bytes of the file.
    pub(super) fn holds(&self, row: u64) -> bool {
        matches!(self.state, State::Held) && row - self.row < self.values.rows_left()
    }

    /// Take the next bytes of the chunk, up to the end of row `row`. How many were taken.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        row: u64,
        sink: &mut dyn PayloadSink,
    ) -> Result<usize, FormatError> {
        let mut used = 0;
        while !self.is_past(row) {
            let rest = &bytes[used..];
            // A page in memory, and the end of a chunk, need no bytes.
            if rest.is_empty() && self.left > 0 && !matches!(self.state, State::Held) {
                break;
            }
            let now = self.step(rest, row, sink)?;
            used += now;
            self.offset += now as u64;
            self.left -= now as u64;
        }
        Ok(used)
    }

    fn step(
        &mut self,
        bytes: &[u8],
        row: u64,
        sink: &mut dyn PayloadSink,
    ) -> Result<usize, FormatError> {
        match &mut self.state {
            State::Header => self.header(bytes),
            State::Skip { left } => {
                let now = (*left).min(bytes.len() as u64);
                *left -= now;
                if *left == 0 {
                    self.state = State::Header;
                }
                Ok(now as usize)
            }
            State::Gather { header } => {
                let header = *header;
                let missing = header.packed_bytes as usize - self.gathered.len();
                let now = missing.min(bytes.len());
                let loaded = if now == missing && self.gathered.is_empty() {
                    // A page that lies in one piece is taken from there.
                    self.load(&header, &bytes[..now])
                } else {
                    self.gathered.extend_from_slice(&bytes[..now]);
                    if now < missing {
                        return Ok(now);
                    }
                    let gathered = std::mem::take(&mut self.gathered);
                    let loaded = self.load(&header, &gathered);
                    self.gathered = gathered;
                    self.gathered.clear();
                    loaded
                };
                loaded.map_err(|why| self.error(why))?;
                Ok(now)
            }
            State::Held => self.held(row, sink).map(|()| 0),
            State::Plain(page) => {
                let mut page = *page;
                let used = self.plain(&mut page, bytes, row, sink)?;
                let is_over = page.rows_left == 0;
                if is_over && page.left > 0 {
                    let left = page.left;
                    return Err(self.error(format!("{left} bytes of a page follow its last value")));
                }
                self.state = if is_over { State::Header } else { State::Plain(page) };
                Ok(used)
            }
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
        let known = self.gathered.len();
        let (read, added) = if known == 0 {
            (PageHeader::read(bytes), bytes.len())
        } else {
            let added = bytes.len().min(HEADER_STEP_BYTES);
            self.gathered.extend_from_slice(&bytes[..added]);
            (PageHeader::read(&self.gathered), added)
        };
        match read {
            Ok((header, len)) => {
                self.gathered.clear();
                let used = len - known;
                self.page(&header, self.left - used as u64)?;
                Ok(used)
            }
            Err(ThriftError::Ends) if added as u64 == self.left => {
                Err(self.error("the column chunk ends within the header of a page"))
            }
            Err(ThriftError::Ends) if known + added <= HEADER_BYTES_MAX => {
                if known == 0 {
                    self.gathered.extend_from_slice(bytes);
                }
                Ok(added)
            }
            Err(ThriftError::Ends) => {
                Err(self.error(format!("the header of a page is over {HEADER_BYTES_MAX} bytes")))
            }
            Err(ThriftError::Broken) => Err(self.error("no header of a page where one is due")),
        }
    }

    /// Start on a page, of a chunk with `left` bytes left.
    fn page(&mut self, header: &PageHeader, left: u64) -> Result<(), FormatError> {
        let packed_bytes = header.packed_bytes;
        if packed_bytes > left {
            let message = format!("a page of {packed_bytes} bytes, with {left} left of its chunk");
            return Err(self.error(message));
        }
        Values::check(header).map_err(|why| self.error(why))?;
        let is_data = matches!(header.kind, PageKind::Data | PageKind::DataV2);
        if is_data && header.values > self.rows - self.row {
            let message = format!(
                "a page of {} values, with {} rows left of its group",
                header.values,
                self.rows - self.row
            );
            return Err(self.error(message));
        }
        self.state = if header.kind == PageKind::Other {
            State::Skip { left: packed_bytes }
        } else if is_data && self.passes_through(header) {
            State::Plain(PlainPage {
                rows_left: header.values,
                left: packed_bytes,
                prefix: [0; LENGTH_BYTES],
                prefix_len: 0,
                value: None,
            })
        } else if packed_bytes.max(header.bytes) > PAGE_BYTES_MAX {
            let bytes = packed_bytes.max(header.bytes);
            let message = format!(
                "a page of {bytes} bytes; only plain pages without nulls may be over {PAGE_BYTES_MAX}"
            );
            return Err(self.error(message));
        } else {
            State::Gather { header: *header }
        };
        Ok(())
    }

    fn passes_through(&self, header: &PageHeader) -> bool {
        let is_packed = self.codec != Codec::Uncompressed && header.is_packed;
        let has_levels = self.column.level > 0 || header.level_bytes + header.repetition_bytes > 0;
        header.encoding == i64::from(PLAIN) && !is_packed && !has_levels
    }

    fn load(&mut self, header: &PageHeader, packed: &[u8]) -> Result<(), String> {
        if header.kind == PageKind::Dictionary {
            self.values.load_dictionary(header, self.codec, packed)?;
            self.state = State::Header;
        } else {
            self.values.load(header, self.codec, packed)?;
            self.state = State::Held;
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
            self.state = State::Header;
            return Ok(());
        }
        match self.values.take().map_err(placed)? {
            None => return Err(placed(format!("row {row} of the row group is null"))),
            Some(value) => {
                check_value(self.value_bytes, value.len() as u64).map_err(placed)?;
                self.found_bytes = Some(value.len() as u64);
                if !value.is_empty() {
                    sink.payload(0, value)?;
                }
            }
        }
        self.row += 1;
        Ok(())
    }

    fn plain(
        &mut self,
        page: &mut PlainPage,
        bytes: &[u8],
        row: u64,
        sink: &mut dyn PayloadSink,
    ) -> Result<usize, FormatError> {
        let mut used = 0;
        while page.rows_left > 0 && !self.is_past(row) {
            let Some(mut value) = page.value else {
                if page.ends_within_length(self.column) {
                    return Err(self.error("the page ends within its values"));
                }
                let Some(len) = page.length(self.column, &bytes[used..], &mut used) else { break };
                let begun = self.begin_value(page, len, row);
                begun.map_err(|error| FormatError::new(self.offset + used as u64, error))?;
                continue;
            };
            let now = (value.bytes - value.at).min((bytes.len() - used) as u64) as usize;
            if now == 0 && value.at < value.bytes {
                break;
            }
            if self.row == row && now > 0 {
                sink.payload(value.at, &bytes[used..used + now])?;
            }
            used += now;
            value.at += now as u64;
            page.left -= now as u64;
            let is_whole = value.at == value.bytes;
            page.value = (!is_whole).then_some(value);
            self.row += u64::from(is_whole);
            page.rows_left -= u64::from(is_whole);
        }
        Ok(used)
    }

    fn begin_value(&mut self, page: &mut PlainPage, bytes: u64, row: u64) -> Result<(), String> {
        if bytes > page.left {
            let left = page.left;
            return Err(format!("a value of {bytes} bytes, with {left} bytes left of its page"));
        }
        if self.row == row {
            check_value(self.value_bytes, bytes)?;
            self.found_bytes = Some(bytes);
        }
        page.value = Some(Value { at: 0, bytes });
        Ok(())
    }
}

impl PlainPage {
    /// Whether there are too few bytes for the length of a value.
    fn ends_within_length(&self, column: Column) -> bool {
        let missing = (LENGTH_BYTES - self.prefix_len) as u64;
        column.value_bytes.is_none() && self.left < missing
    }

    /// The length of the next value, once it is known.
    fn length(&mut self, column: Column, bytes: &[u8], used: &mut usize) -> Option<u64> {
        if let Some(len) = column.value_bytes {
            return Some(len);
        }
        let missing = (LENGTH_BYTES - self.prefix_len).min(bytes.len());
        self.prefix[self.prefix_len..][..missing].copy_from_slice(&bytes[..missing]);
        self.prefix_len += missing;
        *used += missing;
        self.left -= missing as u64;
        if self.prefix_len < LENGTH_BYTES {
            return None;
        }
        self.prefix_len = 0;
        Some(u64::from(u32::from_le_bytes(self.prefix)))
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
