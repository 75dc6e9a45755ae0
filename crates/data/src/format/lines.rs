//! Shared code of the formats `jsonl`, `csv_text` and `txt`: text in which each row is a sample. Rows are read, not parsed:
//! the payload is the row without its newline. A file is read from its start, also if it is compressed.

use super::ahead::{Finder, ReadAheadCursor, ReadOrder, WantedSample};
use super::gunzip::StreamKind;
use super::unpacked::Unpacked;
use super::{CursorOptions, Format, FormatError, PayloadSink, byte_order_mark_bytes, truncated};
use feedrate_spec::catalog::{FormatEntry, Member};
use feedrate_spec::shape::FileShape;

/// Length of a read. Large, because files are read from their start.
const PIECE_BYTES: u64 = 1 << 20;
/// Bytes after which a field begins. Only there, a quote begins a quoted field.
const DELIMITERS: [u8; 4] = *b",;\t|";

/// How a text is divided into rows.
#[derive(Clone, Copy)]
pub(super) struct RowRules {
    /// Whether rows of nothing but spaces are no samples.
    pub(super) skips_blank: bool,
    /// Whether a newline between quotes does not end a row.
    pub(super) has_quotes: bool,
    /// Whether the first row names the columns and is no sample.
    pub(super) has_header: bool,
    /// Whether the first row must be a complete JSON value.
    pub(super) is_json: bool,
}

/// A format of rows, in files with the extension of `member` and `extensions`.
pub(super) const fn format(
    member: &'static Member,
    extensions: &'static [&'static str],
    cursor: fn(&CursorOptions) -> Box<dyn super::Cursor>,
) -> Format {
    let entry = FormatEntry {
        piece_bytes: Some(PIECE_BYTES),
        ..FormatEntry::new(member, |shape, _| shape.payload_bytes())
    };
    Format { extensions, unpacks_streams: true, ..Format::read_only(entry, cursor) }
}

/// A cursor for files of rows.
pub(super) fn cursor(options: &CursorOptions, rules: RowRules) -> Box<dyn super::Cursor> {
    // Text can begin like a zlib stream, but not like the others.
    let is_text = |head: &[u8]| {
        !matches!(StreamKind::recognise(head), Some(StreamKind::Gzip | StreamKind::Zstd))
    };
    let rows = Unpacked::new(Rows::new(rules), is_text);
    Box::new(ReadAheadCursor::new(options.piece_bytes, rows))
}

struct Rows {
    rules: RowRules,
    wanted: u64,
    offset: u64,
    phase: RowPhase,
    /// Number of rows that have ended, the header included.
    ended_rows: u64,
    /// Bytes of the current row so far.
    row_bytes: u64,
    is_quoted: bool,
    /// Whether the last quote closed a quoted field.
    has_closed: bool,
    /// Byte before the next one; a delimiter at the start of a row.
    last_byte: u8,
    first_value: JsonValue,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RowPhase {
    /// Before the first byte of a row.
    Start,
    Row,
    /// The requested row has ended.
    Done,
    /// The file is invalid.
    Invalid,
}

impl Rows {
    fn new(rules: RowRules) -> Self {
        Rows {
            rules,
            wanted: 0,
            offset: 0,
            phase: RowPhase::Start,
            ended_rows: 0,
            row_bytes: 0,
            is_quoted: false,
            has_closed: false,
            last_byte: DELIMITERS[0],
            first_value: JsonValue::default(),
        }
    }

    /// Rows before the requested one.
    fn rows_before(&self) -> u64 {
        self.wanted.saturating_add(u64::from(self.rules.has_header))
    }

    fn is_wanted(&self) -> bool {
        self.ended_rows == self.rows_before()
    }

    /// Skips a byte order mark and the bytes between rows, and returns their number.
    fn skip_blank(&self, bytes: &[u8]) -> usize {
        if !self.rules.skips_blank {
            return 0;
        }
        let mark = if self.offset == 0 { byte_order_mark_bytes(bytes) } else { 0 };
        let blank = bytes[mark..].iter().position(|byte| !byte.is_ascii_whitespace());
        blank.map_or(bytes.len(), |blank| mark + blank)
    }

    /// Offset of the newline that ends the row; `None` if the row continues.
    fn find_end(&mut self, bytes: &[u8]) -> Option<usize> {
        if !self.rules.has_quotes {
            return memchr::memchr(b'\n', bytes);
        }
        for offset in memchr::memchr2_iter(b'"', b'\n', bytes) {
            let before = offset.checked_sub(1).map_or(self.last_byte, |before| bytes[before]);
            match bytes[offset] {
                b'"' if self.is_quoted => {
                    self.is_quoted = false;
                    self.has_closed = true;
                }
                // A quote right after a closing quote is an escaped one. Within an unquoted field, a quote is text.
                b'"' => {
                    self.is_quoted =
                        DELIMITERS.contains(&before) || self.has_closed && before == b'"';
                    self.has_closed = false;
                }
                _ if !self.is_quoted => return Some(offset),
                _ => {}
            }
        }
        self.last_byte = bytes.last().copied().unwrap_or(self.last_byte);
        None
    }

    fn begin_row(&mut self) {
        self.phase = RowPhase::Row;
        self.row_bytes = 0;
        self.is_quoted = false;
        self.has_closed = false;
        self.last_byte = DELIMITERS[0];
        self.first_value = JsonValue::default();
    }

    fn end_row(&mut self) -> Result<(), FormatError> {
        if self.rules.is_json && self.ended_rows == 0 && !self.first_value.is_complete() {
            return Err(self.invalid("the first line is not a whole JSON value"));
        }
        let is_done = self.is_wanted();
        self.ended_rows += 1;
        self.phase = if is_done { RowPhase::Done } else { RowPhase::Start };
        Ok(())
    }

    fn invalid(&mut self, message: &str) -> FormatError {
        self.phase = RowPhase::Invalid;
        FormatError::new(self.offset, message)
    }
}

impl Finder for Rows {
    fn begin(&mut self, wanted: &WantedSample, order: ReadOrder) {
        self.wanted = wanted.sample;
        if self.phase == RowPhase::Invalid && order != ReadOrder::NewFile {
            return;
        }
        if order == ReadOrder::Forward && self.phase == RowPhase::Done {
            self.phase = RowPhase::Start;
            return;
        }
        self.phase = RowPhase::Start;
        self.offset = 0;
        self.ended_rows = 0;
    }

    fn set_length(&mut self, _bytes: u64) -> Result<(), FormatError> {
        Ok(())
    }

    fn offset(&self) -> Option<u64> {
        (self.phase != RowPhase::Done).then_some(self.offset)
    }

    fn end(&self) -> u64 {
        if self.phase == RowPhase::Done { self.offset } else { u64::MAX }
    }

    fn record_bytes(&self) -> u64 {
        0
    }

    fn take(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if self.phase == RowPhase::Invalid {
            return Err(self.invalid("the first line is not a whole JSON value"));
        }
        let mut rest = bytes;
        while self.phase != RowPhase::Done {
            if self.phase == RowPhase::Start {
                let blank = self.skip_blank(rest);
                self.offset += blank as u64;
                rest = &rest[blank..];
                if rest.is_empty() {
                    return Ok(());
                }
                self.begin_row();
            }
            let end = self.find_end(rest);
            let row = &rest[..end.unwrap_or(rest.len())];
            if self.rules.is_json && self.ended_rows == 0 {
                self.first_value.read(row);
            }
            if self.is_wanted() {
                sink.payload(self.row_bytes, row)?;
            }
            self.row_bytes += row.len() as u64;
            self.offset += row.len() as u64;
            let Some(end) = end else { return Ok(()) };
            self.offset += 1;
            rest = &rest[end + 1..];
            self.end_row()?;
        }
        Ok(())
    }

    fn handle_end_of_file(&mut self) -> Result<(), FormatError> {
        match self.phase {
            RowPhase::Row => self.end_row()?,
            RowPhase::Invalid => {
                return Err(self.invalid("the first line is not a whole JSON value"));
            }
            _ => {}
        }
        if self.phase == RowPhase::Done {
            return Ok(());
        }
        let samples = self.ended_rows.saturating_sub(u64::from(self.rules.has_header));
        if samples > self.wanted {
            return Err(truncated(self.offset, 1));
        }
        let contents = format!("{samples} rows");
        Err(FormatError::no_sample(self.offset, samples, contents, self.wanted))
    }

    fn file_shape(&self) -> Option<FileShape> {
        None
    }

    /// Length of the row once it has ended.
    fn payload_bytes(&self) -> Option<u64> {
        (self.phase == RowPhase::Done).then_some(self.row_bytes)
    }
}

/// Checks that the brackets of a JSON value are closed.
#[derive(Default)]
struct JsonValue {
    has_begun: bool,
    depth: u32,
    is_string: bool,
    is_escaped: bool,
    is_invalid: bool,
}

impl JsonValue {
    fn read(&mut self, text: &[u8]) {
        for &byte in text {
            if self.is_string {
                self.is_string = byte != b'"' || self.is_escaped;
                self.is_escaped = byte == b'\\' && !self.is_escaped;
                continue;
            }
            match byte {
                b'[' | b'{' => self.depth += 1,
                b']' | b'}' => match self.depth.checked_sub(1) {
                    Some(depth) => self.depth = depth,
                    None => self.is_invalid = true,
                },
                b'"' => self.is_string = true,
                // Only arrays, objects and texts are samples.
                _ if self.depth == 0 && !byte.is_ascii_whitespace() => self.is_invalid = true,
                _ => {}
            }
            self.has_begun = true;
        }
    }

    fn is_complete(&self) -> bool {
        self.has_begun && self.depth == 0 && !self.is_string && !self.is_invalid
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{options, read_with};
    use super::super::{Format, FormatError, find};
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// All rows of a text, and its number of rows as an error gives it.
    fn rows(format: &Format, text: &[u8]) -> Result<(Vec<String>, u64), FormatError> {
        let mut cursor = (format.cursor)(&options(4096));
        let parts = [text.to_vec()];
        let mut rows = Vec::new();
        loop {
            match read_with(&mut *cursor, 4096, &parts, rows.len() as u64, None) {
                Ok(row) => rows.push(String::from_utf8(row).unwrap()),
                Err(FormatError { samples: Some(samples), .. }) => return Ok((rows, samples)),
                Err(error) => return Err(error),
            }
        }
    }

    #[test]
    fn rows_are_counted_and_read_as_their_libraries_do() {
        for (format, text, expected) in [
            ("jsonl", "{\"a\": \"x}\"}\n\n[1]\r\n", &["{\"a\": \"x}\"}", "[1]\r"][..]),
            ("jsonl", "{\"a\": \"\\\"\"}", &["{\"a\": \"\\\"\"}"]),
            ("jsonl", "\u{feff}{\"a\": 1}\n[2]\n", &["{\"a\": 1}", "[2]"]),
            ("csv_text", "\u{feff}\"a\nb\",c\nx,1\n", &["x,1"]),
            (
                "csv_text",
                "a,b\n1,\"two\nlines\"\n\n2,\"\"\"\"\n",
                &["1,\"two\nlines\"", "2,\"\"\"\""],
            ),
            (
                "csv_text",
                "a,b\n1,3\" nail\n2,x\"\"\n\"3\",\"say \"\"a\nb\"\"\"\n4;\"c\nd\"\n",
                &["1,3\" nail", "2,x\"\"", "\"3\",\"say \"\"a\nb\"\"\"", "4;\"c\nd\""],
            ),
            ("csv_text", "a,b\n", &[]),
            ("txt", "the cat\n\n12 7", &["the cat", "", "12 7"]),
        ] {
            let format = find(format).unwrap();
            for text in [text.as_bytes().to_vec(), gzip(text.as_bytes())] {
                let (found, samples) = rows(format, &text).unwrap();
                assert_eq!(found, expected);
                assert_eq!(samples, expected.len() as u64);
            }
        }
    }

    #[test]
    fn a_document_is_not_json_lines() {
        let jsonl = find("jsonl").unwrap();
        for text in ["{\n\"a\": 1}\n", "[\n1]", "1\n2\n", "{}}\n", "word\n"] {
            let error = rows(jsonl, text.as_bytes()).unwrap_err();
            assert!(error.message.contains("first line"), "{text}: {error}");
        }
    }

    #[test]
    fn a_stream_without_its_end_is_an_error() {
        let text = "{\"a\": 1}\n".repeat(5000);
        let packed = gzip(text.as_bytes());
        let jsonl = find("jsonl").unwrap();
        assert_eq!(rows(jsonl, &packed).unwrap().1, 5000);
        for len in 20..packed.len() {
            assert!(rows(jsonl, &packed[..len]).is_err(), "{len}");
        }
    }
}
