//! Numbers as text, a sample a line: what `csv` and `json` share. A file is read from its start; samples taken in
//! order are read on from where the last one ended, and no byte is read twice.

mod float16;
mod number;
mod rows;
mod gunzip;
mod cursor;
mod write;
#[cfg(test)]
mod tests;

use super::{
    Content, Cursor, CursorOptions, FileSink, FormatError, PayloadSink, SinkError, check_sample,
    in_words,
};
use feedrate_spec::catalog::{FormatEntry, Member};
use feedrate_spec::shape::{Compression, Element, Encoding, FileShape};

pub(super) use cursor::cursor;
pub(super) use rows::{NumberText, RowEnd, Values};
pub(super) use write::{LineMarks, encode, file_bytes};

/// Reads are large, as files are read from their start.
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

/// How numbers stand in a line.
pub(super) trait Syntax: Default + Send + 'static {
    /// Start on a text, at the beginning of a row.
    fn begin(&mut self);

    /// Whether a text that begins so has a line of names above its rows.
    fn has_heading(_text: &[u8]) -> bool {
        false
    }

    /// Read on in a row: the bytes used, and why no more.
    ///
    /// # Errors
    /// This is not how rows look.
    fn read(&mut self, text: &[u8], values: &mut Values) -> Result<(usize, RowEnd), FormatError>;

    /// The text ended where the row goes on: take what is whole.
    ///
    /// # Errors
    /// The row is not whole.
    fn end(&mut self, values: &mut Values) -> Result<(), FormatError>;
}
