//! Reads payload that lies sample after sample, with nothing else: files of `raw`, and what a format's own library serves.

use super::{
    Cursor, CursorOptions, FormatError, Need, PayloadSink, check_sample, cut_off, piece_len,
};
use feedrate_spec::shape::FileShape;

pub(super) struct PackedCursor {
    piece_bytes: usize,
    file: Option<u64>,
    sample: u64,
    expected: Option<FileShape>,
    /// Length of the file, asked for once.
    length: Option<u64>,
    size: u64,
    at: u64,
    asked: usize,
}

impl PackedCursor {
    pub(super) fn new(options: &CursorOptions) -> Self {
        PackedCursor {
            piece_bytes: options.piece_bytes,
            file: None,
            sample: 0,
            expected: None,
            length: None,
            size: 0,
            at: 0,
            asked: 0,
        }
    }

    fn start(&self) -> u64 {
        self.sample.saturating_mul(self.size)
    }

    fn check(&self, length: u64) -> Result<(), FormatError> {
        match &self.expected {
            Some(shape) if shape.payload_bytes() != length => {
                let wanted = shape.payload_bytes();
                let message = format!("holds {length} bytes, but the plan says {wanted}");
                Err(FormatError::new(length, message))
            }
            Some(shape) => check_sample(shape, self.sample),
            None => Err(FormatError::new(0, "does not say what it holds")),
        }
    }
}

impl Cursor for PackedCursor {
    fn begin(&mut self, file: u64, sample: u64, expected: Option<&FileShape>) {
        if self.file != Some(file) || self.expected.as_ref() != expected {
            self.length = None;
        }
        self.file = Some(file);
        self.expected = expected.copied();
        self.sample = sample;
        self.at = 0;
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        let Some(length) = self.length else { return Ok(Need::Length { part: 0 }) };
        self.check(length)?;
        self.size = self.expected.as_ref().map_or(0, FileShape::sample_bytes);
        if self.at == self.size {
            return Ok(Need::Done);
        }
        let offset = self.start() + self.at;
        self.asked = piece_len(self.piece_bytes, offset, self.size - self.at);
        Ok(Need::Bytes { part: 0, offset, len: self.asked })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if self.length.is_none() {
            self.length = bytes.first_chunk().copied().map(u64::from_le_bytes);
            return Ok(());
        }
        sink.payload(self.at, bytes)?;
        self.at += bytes.len() as u64;
        if bytes.len() < self.asked {
            return Err(cut_off(self.start() + self.at, self.size - self.at));
        }
        Ok(())
    }
}
