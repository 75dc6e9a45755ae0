//! Rows of a text, one after another: skips those before the wanted one, hands over its numbers.

use super::number;
use super::{Element, FileShape, FormatError, PayloadSink, Syntax, check_sample, in_words};

/// The longest text of one number that is read: more than `%f` makes of any.
const TOKEN_BYTES_MAX: usize = 512;
/// Numbers gathered before they are handed over; a multiple of every element.
const GATHERED_BYTES: usize = 32 << 10;
/// Upper limit on the text shown in an error.
const SHOWN_BYTES_MAX: usize = 40;

/// Reason for a syntax to stop reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum RowEnd {
    /// All bytes are used.
    GoesOn,
    /// There is no room for numbers.
    Full,
    /// The line is over.
    Over,
}

/// `field`, at byte `at` of those given, cannot be read.
fn no_number(at: usize, field: &[u8], element: Element) -> FormatError {
    let shown = String::from_utf8_lossy(&field[..field.len().min(SHOWN_BYTES_MAX)]);
    let more = if field.len() > SHOWN_BYTES_MAX { "…" } else { "" };
    let message = format!("`{}{more}` is no {}", shown.escape_debug(), element.name());
    FormatError::new(at as u64, message)
}

/// The beginning of a number whose end has not come yet.
#[derive(Default)]
pub(in super::super) struct NumberText {
    begun: Vec<u8>,
}

impl NumberText {
    pub(in super::super) fn is_empty(&self) -> bool {
        self.begun.is_empty()
    }

    pub(in super::super) fn clear(&mut self) {
        self.begun.clear();
    }

    /// Add bytes.
    ///
    /// # Errors
    /// No number is that long.
    pub(in super::super) fn keep(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        if self.begun.len() + bytes.len() > TOKEN_BYTES_MAX {
            let message = format!("a number of more than {TOKEN_BYTES_MAX} characters");
            return Err(FormatError::new(0, message));
        }
        self.begun.reserve(TOKEN_BYTES_MAX - self.begun.len());
        self.begun.extend_from_slice(bytes);
        Ok(())
    }

    /// The whole of it, which ends in `bytes`.
    ///
    /// # Errors
    /// No number is that long.
    pub(in super::super) fn whole<'t>(
        &'t mut self,
        bytes: &'t [u8],
    ) -> Result<&'t [u8], FormatError> {
        if self.begun.is_empty() && bytes.len() <= TOKEN_BYTES_MAX {
            return Ok(bytes);
        }
        self.keep(bytes)?;
        Ok(&self.begun)
    }
}

/// The numbers of the wanted row, on their way to the sink.
pub(in super::super) struct Values {
    gathered: Vec<u8>,
    filled: usize,
    sent: u64,
    count: u64,
    expected: Option<FileShape>,
}

impl Values {
    /// Without a plan any number is a float64, and a row has as many as it has.
    fn element(&self) -> Element {
        self.expected.map_or(Element::Float64, |shape| shape.element)
    }

    fn most(&self) -> u64 {
        self.expected.map_or(u64::MAX, |shape| shape.dims.elements())
    }

    fn begin(&mut self, expected: Option<&FileShape>) {
        (self.filled, self.sent, self.count) = (0, 0, 0);
        self.expected = expected.copied();
    }

    pub(in super::super) fn is_full(&self) -> bool {
        self.filled == GATHERED_BYTES
    }

    /// The number that is written as `field` at `at` of the row; call only while there is room.
    ///
    /// # Errors
    /// The text is not a number, or is one too many.
    pub(in super::super) fn push(&mut self, at: usize, field: &[u8]) -> Result<(), FormatError> {
        let element = self.element();
        let end = self.filled + element.bytes() as usize;
        let number = number::read(element, field, &mut self.gathered[self.filled..end]);
        number.ok_or_else(|| no_number(at, field, element))?;
        if self.count == self.most() {
            return Err(FormatError::new(
                at as u64,
                format!("the row goes on after {} numbers", self.count),
            ));
        }
        self.filled = end;
        self.count += 1;
        Ok(())
    }

    /// A number that is missing at `at` of the row, as `field` says: floats have a value for it.
    ///
    /// # Errors
    /// Integers have none.
    pub(in super::super) fn push_missing(
        &mut self,
        at: usize,
        field: &[u8],
    ) -> Result<(), FormatError> {
        match self.element() {
            Element::Float16 | Element::Float32 | Element::Float64 => self.push(at, b"nan"),
            element => Err(no_number(at, field, element)),
        }
    }

    fn send(&mut self, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let filled = std::mem::take(&mut self.filled);
        if filled > 0 {
            sink.payload(self.sent, &self.gathered[..filled])?;
            self.sent += filled as u64;
        }
        Ok(())
    }
}

/// Meaning of the next byte of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The names above the rows.
    Heading,
    /// A row, unless it is blank.
    Between,
    /// A row before the wanted one.
    Skipped,
    /// The wanted row.
    Wanted,
    /// Nothing may come but blanks: the plan's last row was read.
    Beyond,
    /// The wanted row was read.
    Done,
}

/// Reads rows of a text that comes in pieces.
pub(super) struct Rows<S> {
    syntax: S,
    values: Values,
    place: Place,
    /// Offset of the next byte in the text.
    offset: u64,
    /// Rows that ended.
    row: u64,
    wanted: u64,
}

impl<S: Syntax> Rows<S> {
    pub(super) fn new() -> Self {
        let gathered = vec![0; GATHERED_BYTES];
        let values = Values { gathered, filled: 0, sent: 0, count: 0, expected: None };
        Rows { syntax: S::default(), values, place: Place::Between, offset: 0, row: 0, wanted: 0 }
    }

    /// Start on a row of the same text. False where it lies behind: the text must come again from its start.
    pub(super) fn begin(&mut self, row: u64, expected: Option<&FileShape>, same: bool) -> bool {
        let goes_on = same && self.place == Place::Done && self.row <= row;
        if !goes_on {
            (self.offset, self.row) = (0, 0);
            self.syntax.begin();
        }
        self.wanted = row;
        self.values.begin(expected);
        self.place = Place::Between;
        goes_on
    }

    /// Where the text is at is not known any more: it must come again from its start.
    pub(super) fn give_up(&mut self) {
        self.place = Place::Between;
    }

    /// The wanted row was read.
    pub(super) fn is_done(&self) -> bool {
        self.place == Place::Done
    }

    /// Whether the plan has such a row.
    pub(super) fn check(&self) -> Result<(), FormatError> {
        self.values.expected.map_or(Ok(()), |expected| check_sample(&expected, self.wanted))
    }

    /// The next bytes of the text: how many were used, all unless the wanted row is done.
    pub(super) fn take(
        &mut self,
        text: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<usize, FormatError> {
        let mut used = 0;
        while used < text.len() && self.place != Place::Done {
            let step = self.step(&text[used..], sink)?;
            self.offset += step as u64;
            used += step;
        }
        Ok(used)
    }

    fn step(&mut self, text: &[u8], sink: &mut dyn PayloadSink) -> Result<usize, FormatError> {
        match self.place {
            Place::Between | Place::Beyond => {
                let blanks = text
                    .iter()
                    .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
                    .count();
                if self.offset == 0 && self.values.expected.is_none() && S::has_heading(text) {
                    self.place = Place::Heading;
                } else if blanks < text.len() {
                    self.row_begins(blanks)?;
                }
                Ok(blanks)
            }
            Place::Heading | Place::Skipped => {
                let Some(end) = memchr::memchr(b'\n', text) else { return Ok(text.len()) };
                self.row += u64::from(self.place == Place::Skipped);
                self.place = Place::Between;
                Ok(end + 1)
            }
            Place::Wanted => {
                let read = self.syntax.read(text, &mut self.values);
                let (used, row) = read.map_err(|error| self.in_row(&error))?;
                match row {
                    RowEnd::GoesOn => {}
                    RowEnd::Full => self.values.send(sink)?,
                    RowEnd::Over => {
                        self.row_ends(used)?;
                        self.values.send(sink)?;
                    }
                }
                Ok(used)
            }
            Place::Done => Ok(0),
        }
    }

    fn row_begins(&mut self, at: usize) -> Result<(), FormatError> {
        if let (Place::Beyond, Some(expected)) = (self.place, &self.values.expected) {
            let message = format!("more rows follow, but the plan says {}", in_words(expected));
            return Err(FormatError::new(self.offset + at as u64, message));
        }
        self.place = if self.row < self.wanted { Place::Skipped } else { Place::Wanted };
        Ok(())
    }

    fn row_ends(&mut self, at: usize) -> Result<(), FormatError> {
        self.row += 1;
        self.place = Place::Done;
        let Some(expected) = &self.values.expected else { return Ok(()) };
        if self.values.count < self.values.most() {
            let (row, count) = (self.row - 1, self.values.count);
            let message =
                format!("row {row} has {count} numbers, but the plan says {}", in_words(expected));
            return Err(FormatError::new(self.offset + at as u64, message));
        }
        if self.row == expected.samples {
            self.place = Place::Beyond;
        }
        Ok(())
    }

    /// The text is over.
    pub(super) fn end(&mut self, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        match self.place {
            Place::Done => Ok(()),
            Place::Beyond => {
                self.place = Place::Done;
                Ok(())
            }
            Place::Heading | Place::Between | Place::Skipped => Err(self.no_row()),
            Place::Wanted => {
                // A number may have lost digits: that tells a cut from a missing newline.
                if self.values.expected.is_some() {
                    let message = format!("the file ends within row {}", self.row);
                    return Err(FormatError::new(self.offset, message));
                }
                let end = self.syntax.end(&mut self.values);
                end.map_err(|error| self.in_row(&error))?;
                self.row_ends(0)?;
                self.values.send(sink)
            }
        }
    }

    /// The text has no row of the wanted number.
    pub(super) fn no_row(&self) -> FormatError {
        let rows = self.row + u64::from(self.place == Place::Skipped);
        let plural = if rows == 1 { "" } else { "s" };
        let holds = format!("{rows} row{plural}");
        FormatError::no_sample(self.offset, rows, holds, self.wanted)
    }

    /// An error of the syntax, which counts from the last bytes given.
    fn in_row(&self, error: &FormatError) -> FormatError {
        let message = match &self.values.expected {
            Some(expected) => {
                format!(
                    "row {}: {}, but the plan says {}",
                    self.row,
                    error.message,
                    in_words(expected)
                )
            }
            None => format!("row {}: {}", self.row, error.message),
        };
        FormatError::new(self.offset + error.offset, message)
    }
}
