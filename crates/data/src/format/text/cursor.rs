//! The file under the text: length, pieces, what of them is left for the next sample, gzip.

use super::gunzip::Gunzip;
use super::rows::Rows;
use super::{
    Cursor, CursorOptions, FileShape, FormatError, Need, PayloadSink, Syntax, cut_off, length_of,
    piece_len,
};

/// First bytes of compressed files that pandas can write and that are not read here.
const UNREAD: [(&[u8], &str); 4] =
    [(b"BZh", "bz2"), (b"PK\x03\x04", "zip"), (b"\xfd7zXZ", "xz"), (b"\x28\xb5\x2f\xfd", "zstd")];

/// Reads samples of one file after another, each from its start on.
pub(in super::super) struct TextCursor<S> {
    piece_bytes: usize,
    check_crc: bool,
    file: Option<u64>,
    length: Option<u64>,
    /// Offset of the next byte to ask for.
    at: u64,
    asked: usize,
    /// Fed for a sample before; `kept_from` on it is unread.
    kept: Vec<u8>,
    kept_from: usize,
    packing: Packing,
    /// Made for the first file that is compressed.
    gunzip: Option<Gunzip>,
    rows: Rows<S>,
}

/// Compression, as the file's first bytes show it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Packing {
    Unknown,
    Plain,
    Gzip,
}

impl<S: Syntax> TextCursor<S> {
    pub(in super::super) fn new(options: &CursorOptions) -> Self {
        TextCursor {
            piece_bytes: options.piece_bytes,
            check_crc: options.check_crc,
            file: None,
            length: None,
            at: 0,
            asked: 0,
            kept: Vec::new(),
            kept_from: 0,
            packing: Packing::Unknown,
            gunzip: None,
            rows: Rows::new(),
        }
    }

    fn has_kept(&self) -> bool {
        let is_packed = self.packing == Packing::Gzip;
        self.kept_from < self.kept.len()
            || is_packed && self.gunzip.as_ref().is_some_and(Gunzip::has_more)
    }

    /// The bytes of the file that were not looked at yet.
    fn read_on(&mut self, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let kept = std::mem::take(&mut self.kept);
        let used = self.unpack(&kept[self.kept_from..], sink);
        self.kept = kept;
        self.kept_from += used?;
        if self.kept_from == self.kept.len() {
            self.kept.clear();
            self.kept_from = 0;
        }
        Ok(())
    }

    fn feed_piece(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if self.packing == Packing::Unknown {
            self.recognise(bytes)?;
        }
        let used = self.unpack(bytes, sink)?;
        self.kept.extend_from_slice(&bytes[used..]);
        self.at += bytes.len() as u64;
        if bytes.len() < self.asked && !self.rows.is_done() {
            return Err(cut_off(self.at, (self.asked - bytes.len()) as u64));
        }
        Ok(())
    }

    /// Compressed files have no suffix of their own: the first bytes tell.
    fn recognise(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        if let Some((_, name)) = UNREAD.iter().find(|(magic, _)| bytes.starts_with(magic)) {
            let message = format!("compressed by `{name}`; only gzip is read");
            return Err(FormatError::new(0, message));
        }
        self.packing = Packing::Plain;
        if bytes.starts_with(&[0x1f, 0x8b]) {
            self.packing = Packing::Gzip;
            let check_crc = self.check_crc;
            self.gunzip.get_or_insert_with(|| Gunzip::new(check_crc)).begin();
        }
        Ok(())
    }

    /// Bytes of the file to the rows: how many were used, all unless the sample is done.
    fn unpack(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<usize, FormatError> {
        let gunzip = match (self.packing, &mut self.gunzip) {
            (Packing::Gzip, Some(gunzip)) => gunzip,
            _ => return self.rows.take(bytes, sink),
        };
        let mut used = 0;
        loop {
            let taken = self.rows.take(gunzip.text(), sink)?;
            gunzip.taken(taken);
            if self.rows.is_done() || (used == bytes.len() && !gunzip.has_more()) {
                return Ok(used);
            }
            used += gunzip.step(&bytes[used..])?;
        }
    }

    fn feed_text(
        &mut self,
        bytes: &[u8],
        length: u64,
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        if self.has_kept() {
            self.read_on(sink)?;
        } else {
            self.feed_piece(bytes, sink)?;
        }
        if self.at == length && !self.has_kept() && !self.rows.is_done() {
            return self.end(sink);
        }
        Ok(())
    }

    fn end(&mut self, sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if let (Packing::Gzip, Some(gunzip)) = (self.packing, &self.gunzip) {
            gunzip.check_end(self.at)?;
        }
        self.rows.end(sink)
    }
}

impl<S: Syntax> Cursor for TextCursor<S> {
    fn begin(&mut self, file: u64, sample: u64, expected: Option<&FileShape>) {
        let same = self.file == Some(file);
        self.file = Some(file);
        if !same {
            self.length = None;
        }
        if !self.rows.begin(sample, expected, same) {
            self.at = 0;
            self.kept.clear();
            self.kept_from = 0;
            self.packing = Packing::Unknown;
        }
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        let Some(length) = self.length else { return Ok(Need::Length { part: 0 }) };
        if self.rows.is_done() {
            return Ok(Need::Done);
        }
        self.rows.check()?;
        if self.has_kept() {
            return Ok(Need::Kept);
        }
        if self.at >= length {
            return Err(self.rows.no_row());
        }
        self.asked = piece_len(self.piece_bytes, self.at, length - self.at);
        Ok(Need::Bytes { part: 0, offset: self.at, len: self.asked })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        let Some(length) = self.length else {
            self.length = Some(length_of(bytes));
            return Ok(());
        };
        let fed = self.feed_text(bytes, length, sink);
        if fed.is_err() {
            self.rows.give_up();
        }
        fed
    }
}
