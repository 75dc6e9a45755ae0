//! Reads a file whose samples cannot be found: each sample is an equal share of its bytes.

use super::payload_range::{PayloadRange, share_start};
use super::{Cursor, CursorOptions, FormatError, Need, PayloadSink, decode_length};
use feedrate_spec::shape::FileShape;

/// Passes the bytes of files through, whatever their format.
pub struct ShareCursor {
    piece_bytes: usize,
    file: Option<u64>,
    file_bytes: Option<u64>,
    sample: u64,
    /// Number of samples in the file.
    samples: u64,
    range: PayloadRange,
}

impl ShareCursor {
    /// A cursor that divides files by the number of samples that is passed to [`Cursor::begin`].
    pub fn new(options: &CursorOptions) -> Self {
        ShareCursor {
            piece_bytes: options.piece_bytes,
            file: None,
            file_bytes: None,
            sample: 0,
            samples: 1,
            range: PayloadRange::default(),
        }
    }

    /// Sets the range of the sample once the length of the file is known.
    fn set_range(&mut self) {
        let bytes = self.file_bytes.unwrap_or(0);
        let start_of = |sample| share_start(bytes, sample, self.samples);
        let start = start_of(self.sample);
        self.range = PayloadRange::new(start, start_of(self.sample.saturating_add(1)) - start);
    }
}

impl Cursor for ShareCursor {
    fn begin(&mut self, file: u64, sample: u64, expected: Option<&FileShape>) {
        if self.file.replace(file) != Some(file) {
            self.file_bytes = None;
        }
        self.sample = sample;
        self.samples = expected.map_or(1, |shape| shape.samples);
        self.set_range();
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        Ok(match self.file_bytes {
            None => Need::Length { part: 0 },
            Some(_) => self.range.need(0, self.piece_bytes),
        })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if self.file_bytes.is_none() {
            self.file_bytes = Some(decode_length(bytes));
            self.set_range();
            return Ok(());
        }
        self.range.feed(bytes, sink)
    }

    fn payload_bytes(&self) -> Option<u64> {
        self.file_bytes.map(|_| self.range.bytes())
    }
}
