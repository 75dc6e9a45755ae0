//! Shared code of the formats `csv` and `json`: numbers as text, one sample per line. A file is read from its start.
//! Samples in ascending order continue at the end of the last one, so no byte is read twice.

mod float16;
mod number;
mod rows;
mod cursor;
mod write;
#[cfg(test)]
mod tests;

use super::{
    Content, Cursor, CursorOptions, FileSink, FormatError, PayloadSink, SinkError,
    byte_order_mark_bytes, check_sample, describe_shape,
};
use feedrate_spec::catalog::{FormatEntry, Member};
use feedrate_spec::shape::{Compression, Element, Encoding, FileShape};

pub(super) use cursor::cursor;
pub(super) use rows::{NumberText, RowEnd, Values};
pub(super) use write::{LineMarks, encode, file_bytes};

/// Length of a read. Large, because files are read from their start.
const PIECE_BYTES: u64 = 1 << 20;

/// A format of numbers as text.
pub(super) const fn entry(
    member: &'static Member,
    file_bytes: fn(&FileShape, &Encoding) -> u64,
) -> FormatEntry {
    FormatEntry {
        compressions: &[Compression::Gzip],
        encoding_keys: &["dataset.compression_level"],
        piece_bytes: Some(PIECE_BYTES),
        ..FormatEntry::new(member, file_bytes)
    }
}

/// Syntax of the numbers in a line.
pub(super) trait Syntax: Default + Send + 'static {
    /// Resets the state to the beginning of a row, at the start of a text.
    fn begin(&mut self);

    /// Whether a text with this start has a line of column names before its rows.
    fn has_heading(_text: &[u8]) -> bool {
        false
    }

    /// Continues to read a row. Returns the number of bytes used, and why reading stopped.
    ///
    /// # Errors
    /// The text is not a valid row.
    fn read(&mut self, text: &[u8], values: &mut Values) -> Result<(usize, RowEnd), FormatError>;

    /// Completes a row at the end of a text without a final newline.
    ///
    /// # Errors
    /// The row is incomplete.
    fn end(&mut self, values: &mut Values) -> Result<(), FormatError>;
}
