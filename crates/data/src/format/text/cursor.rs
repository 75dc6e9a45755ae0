//! Reads text files, with or without gzip compression, and passes the text on to [`Rows`].

use super::super::ahead::{Finder, ReadAheadCursor, ReadOrder, WantedSample};
use super::super::gunzip::{Gunzip, StreamKind};
use super::rows::Rows;
use super::{Cursor, CursorOptions, FileShape, FormatError, PayloadSink, Syntax};

/// Signatures of compressions that pandas can write and that are not supported.
const UNSUPPORTED: [(&[u8], &str); 4] =
    [(b"BZh", "bz2"), (b"PK\x03\x04", "zip"), (b"\xfd7zXZ", "xz"), (b"\x28\xb5\x2f\xfd", "zstd")];

/// Kind of foreign rows that are read and not decoded.
const UNDECODED: &str = "non-numeric row";

/// A cursor for text files.
pub(in super::super) fn cursor<S: Syntax>(options: &CursorOptions) -> Box<dyn Cursor> {
    let text = TextFinder::<S> {
        length: 0,
        offset: 0,
        compression: TextCompression::Unknown,
        gunzip: None,
        rows: Rows::new(),
    };
    Box::new(ReadAheadCursor::new(options.piece_bytes, text))
}

struct TextFinder<S> {
    length: u64,
    /// Offset of the next byte.
    offset: u64,
    compression: TextCompression,
    /// Created for the first compressed file.
    gunzip: Option<Gunzip>,
    rows: Rows<S>,
}

/// Compression of the file, recognised by its first bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextCompression {
    Unknown,
    Plain,
    Gzip,
}

impl<S: Syntax> TextFinder<S> {
    /// Recognises the compression by the first bytes, because compressed files have no suffix.
    fn recognise(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        if let Some((_, name)) = UNSUPPORTED.iter().find(|(magic, _)| bytes.starts_with(magic)) {
            let message = format!("compressed by `{name}`; only gzip is read");
            return Err(FormatError::new(0, message));
        }
        self.compression = TextCompression::Plain;
        if bytes.starts_with(&[0x1f, 0x8b]) {
            self.compression = TextCompression::Gzip;
            let kind = StreamKind::Gzip;
            self.gunzip.get_or_insert_with(|| Gunzip::new(kind)).begin(kind);
        }
        Ok(())
    }

    /// Passes bytes of the file to the rows, after decompression. Returns the number of bytes used: all, unless the sample is
    /// complete.
    fn unpack(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<usize, FormatError> {
        let gunzip = match (self.compression, &mut self.gunzip) {
            (TextCompression::Gzip, Some(gunzip)) => gunzip,
            _ => return self.rows.take(bytes, sink),
        };
        let mut used = 0;
        loop {
            let taken = self.rows.take(gunzip.text(), sink)?;
            gunzip.consume_text(taken);
            if self.rows.is_done() {
                return Ok(used);
            }
            if !gunzip.unpack(self.offset + used as u64)? {
                if used == bytes.len() {
                    return Ok(used);
                }
                used += gunzip.feed(&bytes[used..]);
            }
        }
    }

    fn process(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        self.rows.check()?;
        if self.compression == TextCompression::Unknown {
            self.recognise(bytes)?;
        }
        self.offset += self.unpack(bytes, sink)? as u64;
        if self.offset < self.length || self.has_buffered_bytes() || self.rows.is_done() {
            return Ok(());
        }
        if self.compression == TextCompression::Gzip
            && !self.gunzip.as_ref().is_some_and(Gunzip::is_complete)
        {
            return Err(FormatError::new(self.offset, "the file ends within a gzip stream"));
        }
        self.rows.end(sink)
    }
}

impl<S: Syntax> Finder for TextFinder<S> {
    fn begin(&mut self, wanted: &WantedSample, order: ReadOrder) {
        let is_same_file = order != ReadOrder::NewFile;
        if !self.rows.begin(wanted.sample, wanted.expected.as_ref(), is_same_file) {
            self.offset = 0;
            self.compression = TextCompression::Unknown;
        }
    }

    fn set_length(&mut self, bytes: u64) -> Result<(), FormatError> {
        self.length = bytes;
        Ok(())
    }

    fn offset(&self) -> Option<u64> {
        (!self.rows.is_done()).then_some(self.offset)
    }

    fn end(&self) -> u64 {
        if self.rows.is_done() { self.offset } else { u64::MAX }
    }

    fn record_bytes(&self) -> u64 {
        0
    }

    fn has_buffered_bytes(&self) -> bool {
        self.compression == TextCompression::Gzip
            && self.gunzip.as_ref().is_some_and(Gunzip::has_more)
    }

    fn take(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let processed = self.process(bytes, sink);
        if processed.is_err() {
            self.rows.invalidate();
        }
        processed
    }

    fn handle_end_of_file(&mut self) -> Result<(), FormatError> {
        self.rows.check()?;
        Err(self.rows.missing_row_error())
    }

    fn file_shape(&self) -> Option<FileShape> {
        None
    }

    fn undecoded_type(&self) -> Option<&'static str> {
        self.rows.is_undecoded().then_some(UNDECODED)
    }
}
