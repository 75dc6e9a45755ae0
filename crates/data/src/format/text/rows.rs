//! Reads the rows of a text: skips rows before the requested one and passes on the numbers of that row.

use super::number;
use super::{
    Element, FileShape, FormatError, PayloadSink, Syntax, byte_order_mark_bytes, check_sample,
    describe_shape,
};

/// Upper limit on the length of a number. The longest number that `%f` writes is shorter.
const TOKEN_BYTES_MAX: usize = 512;
/// Bytes of numbers that are collected before they are passed on; a multiple of every element's length.
const BUFFER_BYTES: usize = 32 << 10;
/// Upper limit on the text shown in an error.
const SHOWN_BYTES_MAX: usize = 40;

/// Reason for a syntax to stop reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum RowEnd {
    /// All bytes are used, and the row continues.
    NeedsBytes,
    /// The memory for numbers is full.
    Full,
    /// The row has ended.
    LineEnd,
}

/// Error for the text `field` at `offset`, which is not a number of the element type.
fn not_a_number(offset: usize, field: &[u8], element: Element) -> FormatError {
    let shown = String::from_utf8_lossy(&field[..field.len().min(SHOWN_BYTES_MAX)]);
    let more = if field.len() > SHOWN_BYTES_MAX { "…" } else { "" };
    let message = format!("`{}{more}` is not a valid {}", shown.escape_debug(), element.name());
    FormatError::new(offset as u64, message)
}

/// Text of a number that arrives in pieces.
#[derive(Default)]
pub(in super::super) struct NumberText {
    /// The pieces so far.
    partial: Vec<u8>,
}

impl NumberText {
    pub(in super::super) fn is_empty(&self) -> bool {
        self.partial.is_empty()
    }

    pub(in super::super) fn clear(&mut self) {
        self.partial.clear();
    }

    /// Adds a piece that is not the last one.
    ///
    /// # Errors
    /// The text is too long for a number.
    pub(in super::super) fn push(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        if self.partial.len() + bytes.len() > TOKEN_BYTES_MAX {
            let message = format!("a number of more than {TOKEN_BYTES_MAX} characters");
            return Err(FormatError::new(0, message));
        }
        self.partial.reserve(TOKEN_BYTES_MAX - self.partial.len());
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    /// The complete text, of which `bytes` is the last piece.
    ///
    /// # Errors
    /// The text is too long for a number.
    pub(in super::super) fn finish<'t>(
        &'t mut self,
        bytes: &'t [u8],
    ) -> Result<&'t [u8], FormatError> {
        if self.partial.is_empty() && bytes.len() <= TOKEN_BYTES_MAX {
            return Ok(bytes);
        }
        self.push(bytes)?;
        Ok(&self.partial)
    }
}

/// Collects the numbers of the requested row for the sink.
pub(in super::super) struct Values {
    buffer: Vec<u8>,
    /// Number of bytes in `buffer`.
    filled: usize,
    /// Number of bytes passed to the sink.
    sent_bytes: u64,
    /// Number of numbers in the row so far.
    count: u64,
    expected: Option<FileShape>,
}

impl Values {
    /// Element type. Without a plan all numbers are float64.
    fn element(&self) -> Element {
        self.expected.map_or(Element::Float64, |shape| shape.element)
    }

    /// Number of numbers in a row. Without a plan there is no limit.
    fn expected_count(&self) -> u64 {
        self.expected.map_or(u64::MAX, |shape| shape.dims.elements())
    }

    fn begin(&mut self, expected: Option<&FileShape>) {
        self.filled = 0;
        self.sent_bytes = 0;
        self.count = 0;
        self.expected = expected.copied();
    }

    pub(in super::super) fn is_full(&self) -> bool {
        self.filled == BUFFER_BYTES
    }

    /// Adds the number in `field`, at `offset`. Must not be called when the memory is full.
    ///
    /// # Errors
    /// The text is not a number, or the row has too many numbers.
    pub(in super::super) fn push(
        &mut self,
        offset: usize,
        field: &[u8],
    ) -> Result<(), FormatError> {
        let element = self.element();
        let end = self.filled + element.bytes() as usize;
        let number = number::read(element, field, &mut self.buffer[self.filled..end]);
        number.ok_or_else(|| not_a_number(offset, field, element))?;
        if self.count == self.expected_count() {
            return Err(FormatError::new(
                offset as u64,
                format!("the row continues after {} numbers", self.count),
            ));
        }
        self.filled = end;
        self.count += 1;
        Ok(())
    }

    /// Adds a missing number at `offset`, which is written as `field`. It is NaN for floats.
    ///
    /// # Errors
    /// The element type is an integer, which has no value for missing numbers.
    pub(in super::super) fn push_missing(
        &mut self,
        offset: usize,
        field: &[u8],
    ) -> Result<(), FormatError> {
        match self.element() {
            Element::Float16 | Element::Float32 | Element::Float64 => self.push(offset, b"nan"),
            element => Err(not_a_number(offset, field, element)),
        }
    }

    fn send(&mut self, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let filled = std::mem::take(&mut self.filled);
        if filled > 0 {
            sink.payload(self.sent_bytes, &self.buffer[..filled])?;
            self.sent_bytes += filled as u64;
        }
        Ok(())
    }
}

/// Position in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowPosition {
    /// In the line of column names.
    Heading,
    /// Before a row or a blank line.
    BetweenRows,
    /// In a row before the requested one.
    SkippedRow,
    /// In the requested row.
    WantedRow,
    /// In the requested row, which is not of numbers.
    UndecodedRow,
    /// After the plan's last row, where only blanks may follow.
    AfterLastRow,
    /// After the requested row.
    Done,
}

/// Reads the rows of a text that arrives in pieces.
pub(super) struct Rows<S> {
    syntax: S,
    values: Values,
    position: RowPosition,
    /// Offset of the next byte in the text.
    offset: u64,
    /// Number of rows that have ended.
    row: u64,
    /// Number of the requested row.
    wanted: u64,
    /// Whether the requested row is not of numbers.
    is_undecoded: bool,
}

impl<S: Syntax> Rows<S> {
    pub(super) fn new() -> Self {
        let buffer = vec![0; BUFFER_BYTES];
        let values = Values { buffer, filled: 0, sent_bytes: 0, count: 0, expected: None };
        Rows {
            syntax: S::default(),
            values,
            position: RowPosition::BetweenRows,
            offset: 0,
            row: 0,
            wanted: 0,
            is_undecoded: false,
        }
    }

    /// Starts reading a row. Returns false if the text must be read again from its start, because the row is before the current
    /// position or in another file.
    pub(super) fn begin(
        &mut self,
        row: u64,
        expected: Option<&FileShape>,
        is_same_file: bool,
    ) -> bool {
        let continues = is_same_file && self.position == RowPosition::Done && self.row <= row;
        if !continues {
            self.offset = 0;
            self.row = 0;
            self.syntax.begin();
        }
        self.wanted = row;
        self.is_undecoded = false;
        self.values.begin(expected);
        self.position = RowPosition::BetweenRows;
        continues
    }

    /// Discards the position after an error, so that the text is read again from its start.
    pub(super) fn invalidate(&mut self) {
        self.position = RowPosition::BetweenRows;
    }

    /// Whether the requested row has been read.
    pub(super) fn is_done(&self) -> bool {
        self.position == RowPosition::Done
    }

    /// Whether the requested row is not of numbers.
    pub(super) fn is_undecoded(&self) -> bool {
        self.is_undecoded
    }

    /// Checks that the requested row exists in the plan.
    pub(super) fn check(&self) -> Result<(), FormatError> {
        self.values.expected.map_or(Ok(()), |expected| check_sample(&expected, self.wanted))
    }

    /// Takes the next bytes of the text and returns how many were used: all, unless the requested row is complete.
    pub(super) fn take(
        &mut self,
        text: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<usize, FormatError> {
        let mut used = 0;
        while used < text.len() && self.position != RowPosition::Done {
            let step = self.step(&text[used..], sink)?;
            self.offset += step as u64;
            used += step;
        }
        Ok(used)
    }

    fn step(&mut self, text: &[u8], sink: &mut dyn PayloadSink) -> Result<usize, FormatError> {
        match self.position {
            RowPosition::BetweenRows | RowPosition::AfterLastRow => {
                let is_foreign_start = self.offset == 0 && self.values.expected.is_none();
                let mark = if is_foreign_start { byte_order_mark_bytes(text) } else { 0 };
                let blanks = mark
                    + text[mark..]
                        .iter()
                        .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
                        .count();
                if is_foreign_start && S::has_heading(&text[mark..]) {
                    self.position = RowPosition::Heading;
                } else if blanks < text.len() {
                    self.begin_row(blanks)?;
                }
                Ok(blanks)
            }
            RowPosition::Heading | RowPosition::SkippedRow => {
                let Some(end) = memchr::memchr(b'\n', text) else { return Ok(text.len()) };
                self.row += u64::from(self.position == RowPosition::SkippedRow);
                self.position = RowPosition::BetweenRows;
                Ok(end + 1)
            }
            RowPosition::WantedRow => {
                let read = self.syntax.read(text, &mut self.values);
                let (used, row) = match read {
                    Ok(read) => read,
                    Err(error) => {
                        self.leave_undecoded(&error)?;
                        self.position = RowPosition::UndecodedRow;
                        return Ok(0);
                    }
                };
                match row {
                    RowEnd::NeedsBytes => {}
                    RowEnd::Full => self.values.send(sink)?,
                    RowEnd::LineEnd => {
                        self.end_row(used)?;
                        self.values.send(sink)?;
                    }
                }
                Ok(used)
            }
            RowPosition::UndecodedRow => {
                let Some(end) = memchr::memchr(b'\n', text) else { return Ok(text.len()) };
                self.end_row(end + 1)?;
                Ok(end + 1)
            }
            RowPosition::Done => Ok(0),
        }
    }

    /// Stops parsing a foreign row that is not of numbers. Returns the error for the first row, which shows whether the file is a table
    /// of numbers.
    fn leave_undecoded(&mut self, error: &FormatError) -> Result<(), FormatError> {
        if self.row == 0 || self.values.expected.is_some() {
            return Err(self.with_row(error));
        }
        self.syntax.begin();
        self.is_undecoded = true;
        Ok(())
    }

    fn begin_row(&mut self, offset: usize) -> Result<(), FormatError> {
        if let (RowPosition::AfterLastRow, Some(expected)) = (self.position, &self.values.expected)
        {
            let message =
                format!("more rows follow, but the plan says {}", describe_shape(expected));
            return Err(FormatError::new(self.offset + offset as u64, message));
        }
        self.position =
            if self.row < self.wanted { RowPosition::SkippedRow } else { RowPosition::WantedRow };
        Ok(())
    }

    fn end_row(&mut self, offset: usize) -> Result<(), FormatError> {
        self.row += 1;
        self.position = RowPosition::Done;
        let Some(expected) = &self.values.expected else { return Ok(()) };
        if self.values.count < self.values.expected_count() {
            let row = self.row - 1;
            let count = self.values.count;
            let message = format!(
                "row {row} has {count} numbers, but the plan says {}",
                describe_shape(expected)
            );
            return Err(FormatError::new(self.offset + offset as u64, message));
        }
        if self.row == expected.samples {
            self.position = RowPosition::AfterLastRow;
        }
        Ok(())
    }

    /// Completes the row at the end of the text.
    pub(super) fn end(&mut self, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        match self.position {
            RowPosition::Done => Ok(()),
            RowPosition::AfterLastRow => {
                self.position = RowPosition::Done;
                Ok(())
            }
            RowPosition::UndecodedRow => self.end_row(0),
            RowPosition::Heading | RowPosition::BetweenRows | RowPosition::SkippedRow => {
                Err(self.missing_row_error())
            }
            RowPosition::WantedRow => {
                // A planned file always ends with a newline. Without it the file is truncated, and the last number may be too.
                if self.values.expected.is_some() {
                    let message = format!("the file ends within row {}", self.row);
                    return Err(FormatError::new(self.offset, message));
                }
                if let Err(error) = self.syntax.end(&mut self.values) {
                    self.leave_undecoded(&error)?;
                    return self.end_row(0);
                }
                self.end_row(0)?;
                self.values.send(sink)
            }
        }
    }

    /// Error for a text without the requested row.
    pub(super) fn missing_row_error(&self) -> FormatError {
        let rows = self.row + u64::from(self.position == RowPosition::SkippedRow);
        let plural = if rows == 1 { "" } else { "s" };
        let contents = format!("{rows} row{plural}");
        FormatError::no_sample(self.offset, rows, contents, self.wanted)
    }

    /// Adds the row and the offset in the text to an error of the syntax, whose offset counts from the last bytes given.
    fn with_row(&self, error: &FormatError) -> FormatError {
        let message = match &self.values.expected {
            Some(expected) => {
                format!(
                    "row {}: {}, but the plan says {}",
                    self.row,
                    error.message,
                    describe_shape(expected)
                )
            }
            None => format!("row {}: {}", self.row, error.message),
        };
        FormatError::new(self.offset + error.offset, message)
    }
}
