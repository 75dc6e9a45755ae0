//! Reads payload that lies sample after sample, with nothing else: files of `raw`, and what a format's own library serves.

use super::payload_range::PayloadRange;
use super::{Cursor, CursorOptions, FormatError, Need, PayloadSink, check_sample};
use feedrate_spec::shape::FileShape;

pub(super) struct PackedCursor {
    piece_bytes: usize,
    file: Option<u64>,
    sample: u64,
    expected: Option<FileShape>,
    /// Length of the file, asked for once.
    length: Option<u64>,
    /// Place of the sample, once it was checked.
    payload: Option<PayloadRange>,
}

impl PackedCursor {
    pub(super) fn new(options: &CursorOptions) -> Self {
        PackedCursor {
            piece_bytes: options.piece_bytes,
            file: None,
            sample: 0,
            expected: None,
            length: None,
            payload: None,
        }
    }

    fn locate(&self, length: u64) -> Result<PayloadRange, FormatError> {
        match &self.expected {
            Some(shape) if shape.payload_bytes() != length => {
                let wanted = shape.payload_bytes();
                let message = format!("holds {length} bytes, but the plan says {wanted}");
                Err(FormatError::new(length, message))
            }
            Some(shape) => {
                check_sample(shape, self.sample)?;
                let bytes = shape.sample_bytes();
                Ok(PayloadRange::new(self.sample.saturating_mul(bytes), bytes))
            }
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
        self.payload = None;
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        let Some(length) = self.length else { return Ok(Need::Length { part: 0 }) };
        let payload = match self.payload.take() {
            Some(payload) => payload,
            None => self.locate(length)?,
        };
        Ok(self.payload.insert(payload).need(0, self.piece_bytes))
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        match &mut self.payload {
            Some(payload) => payload.feed(bytes, sink),
            None => {
                self.length = bytes.first_chunk().copied().map(u64::from_le_bytes);
                Ok(())
            }
        }
    }
}
