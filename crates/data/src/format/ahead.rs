//! Reads a file of records in pieces that contain many records, as buffered readers do. Shared by formats without an
//! index, in which records are found one after another.
//!
//! Samples requested in order are read ahead in whole pieces: bytes read beyond a sample are used for the next one. A
//! sample out of order is read separately. After a step backward, nothing is reused, as in a new pass over the file.

use super::{
    Cursor, FileMember, FormatError, Need, PayloadSink, StoredSample, check_sample, compare_shapes,
    decode_length, describe_shape, piece_len, truncated,
};
use feedrate_spec::shape::FileShape;
use std::ops::Range;

/// Position of the requested sample relative to the previous one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadOrder {
    /// In another file, or with another planned shape.
    NewFile,
    /// In the same file, after the previous sample.
    Forward,
    /// In the same file, the previous sample or one before it.
    Backward,
}

/// The requested sample.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WantedSample {
    /// Number of the dataset file.
    pub(super) file: u64,
    pub(super) sample: u64,
    /// Planned shape of the file.
    pub(super) expected: Option<FileShape>,
}

impl WantedSample {
    pub(super) fn new(file: u64, sample: u64, expected: Option<&FileShape>) -> Self {
        WantedSample { file, sample, expected: expected.copied() }
    }

    /// Returns an error if the file does not have the planned shape, or no sample with this number.
    pub(super) fn check(&self, found: &FileShape) -> Result<(), FormatError> {
        compare_shapes(found, self.expected.as_ref())?;
        check_sample(found, self.sample)
    }
}

/// Finds one sample in the bytes of a file.
pub(super) trait Finder: Send {
    /// Starts the search for a sample.
    fn begin(&mut self, wanted: &WantedSample, order: ReadOrder);

    /// Sets the length of the file. Called first for each file.
    fn set_length(&mut self, bytes: u64) -> Result<(), FormatError>;

    /// Offset of the bytes needed next; `None` if the sample is complete.
    fn offset(&self) -> Option<u64>;

    /// End of the bytes that are needed; `u64::MAX` if unknown. After the sample is complete: start of the next
    /// record.
    fn end(&self) -> u64;

    /// Length of the last record; 0 before the first.
    fn record_bytes(&self) -> u64;

    /// Whether [`Finder::take`] can continue with bytes that the finder has buffered.
    fn has_buffered_bytes(&self) -> bool {
        false
    }

    /// Reads bytes of the file from [`Finder::offset`] on. There is at least one, unless the finder has buffered bytes. The finder
    /// may use only some of them; [`Finder::offset`] then gives the new position.
    fn take(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError>;

    /// Called when the end of the file is reached. Returns an error, or moves to another position in the file.
    fn handle_end_of_file(&mut self) -> Result<(), FormatError>;

    /// See [`Cursor::file_shape`].
    fn file_shape(&self) -> Option<FileShape>;

    /// See [`Cursor::payload_bytes`].
    fn payload_bytes(&self) -> Option<u64> {
        self.file_shape().map(|shape| shape.sample_bytes())
    }

    /// See [`Cursor::members`].
    fn members(&self) -> Vec<FileMember> {
        Vec::new()
    }

    /// See [`Cursor::elsewhere`].
    fn elsewhere(&self) -> Option<&str> {
        None
    }

    /// See [`Cursor::stored_sample`].
    fn stored_sample(&self) -> Option<StoredSample> {
        None
    }

    /// See [`Cursor::decoded_shape`].
    fn decoded_shape(&self) -> Option<FileShape> {
        None
    }

    /// See [`Cursor::undecoded_type`].
    fn undecoded_type(&self) -> Option<&'static str> {
        None
    }

    /// See [`Cursor::ready_samples`].
    fn ready_samples(&self) -> u64 {
        0
    }

    /// See [`Cursor::take_ready`].
    fn take_ready(&mut self, _samples: u64) -> u64 {
        0
    }
}

/// Collects a given number of bytes, which may arrive in pieces.
#[derive(Default)]
pub(super) struct ByteCollector {
    pub(super) bytes: Vec<u8>,
    /// Number of bytes to collect.
    pub(super) wanted: usize,
}

impl ByteCollector {
    /// Starts to collect `wanted` bytes.
    pub(super) fn begin(&mut self, wanted: usize) {
        self.bytes.clear();
        self.wanted = wanted;
    }

    /// Collects the missing bytes from the start of `bytes` and returns their number.
    pub(super) fn take(&mut self, bytes: &[u8]) -> usize {
        let used = bytes.len().min(self.missing_bytes());
        self.bytes.extend_from_slice(&bytes[..used]);
        used
    }

    pub(super) fn missing_bytes(&self) -> usize {
        self.wanted - self.bytes.len()
    }
}

/// Returns an error if the length of a file differs from the length of the planned shape.
pub(super) fn check_length(
    bytes: u64,
    planned: &FileShape,
    planned_bytes: u64,
) -> Result<(), FormatError> {
    if bytes == planned_bytes {
        return Ok(());
    }
    let shape = describe_shape(planned);
    let message =
        format!("holds {bytes} bytes, but the plan says {shape}, in {planned_bytes} bytes");
    Err(FormatError::new(bytes.min(planned_bytes), message))
}

/// A cursor that reads only the data file.
pub(super) struct ReadAheadCursor<S> {
    piece_bytes: usize,
    finder: S,
    last: Option<WantedSample>,
    length: Option<u64>,
    is_in_order: bool,
    /// Whether all samples of the file up to this one were requested in order.
    is_whole_pass: bool,
    /// Unused range of the last piece. The caller still has its bytes.
    unused: Range<u64>,
    request: Request,
}

/// The last request of the cursor.
#[derive(Clone, Copy)]
enum Request {
    Length,
    Kept,
    Unused { offset: u64 },
    Piece { offset: u64, len: usize },
}

impl<S: Finder> ReadAheadCursor<S> {
    pub(super) fn new(piece_bytes: usize, finder: S) -> Self {
        ReadAheadCursor {
            piece_bytes,
            finder,
            last: None,
            length: None,
            is_in_order: false,
            is_whole_pass: false,
            unused: 0..0,
            request: Request::Length,
        }
    }

    /// Gives the needed bytes of the piece at `start` to the finder.
    fn take(
        &mut self,
        start: u64,
        piece: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        while let Some(offset) = self.finder.offset() {
            let rest = offset.checked_sub(start).and_then(|skip| piece.get(skip as usize..));
            match rest.filter(|rest| !rest.is_empty()) {
                Some(rest) => self.finder.take(rest, sink)?,
                None => break,
            }
        }
        Ok(())
    }

    fn take_piece(
        &mut self,
        start: u64,
        requested: usize,
        piece: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        self.unused = 0..0;
        self.take(start, piece, sink)?;
        if self.finder.offset().is_some() {
            let end = start + piece.len() as u64;
            return match requested - piece.len() {
                0 => Ok(()),
                missing => Err(truncated(end, missing as u64)),
            };
        }
        self.unused = self.finder.end().max(start)..start + piece.len() as u64;
        Ok(())
    }
}

impl<S: Finder> Cursor for ReadAheadCursor<S> {
    fn begin(&mut self, file: u64, sample: u64, expected: Option<&FileShape>) {
        let wanted = WantedSample::new(file, sample, expected);
        let order = match &self.last {
            Some(last) if last.file != file || last.expected != wanted.expected => {
                ReadOrder::NewFile
            }
            Some(last) if last.sample < sample => ReadOrder::Forward,
            Some(_) => ReadOrder::Backward,
            None => ReadOrder::NewFile,
        };
        let next = match self.last {
            Some(last) if order == ReadOrder::Forward => last.sample + 1,
            _ => 0,
        };
        self.is_in_order = sample == next;
        self.is_whole_pass = self.is_in_order && (sample == 0 || self.is_whole_pass);
        if order != ReadOrder::Forward {
            self.unused = 0..0;
        }
        if order == ReadOrder::NewFile {
            self.length = None;
        }
        self.last = Some(wanted);
        self.finder.begin(&wanted, order);
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        let Some(length) = self.length else {
            self.request = Request::Length;
            return Ok(Need::Length { part: 0 });
        };
        let mut next_offset = self.finder.offset();
        if next_offset.is_some() && self.finder.has_buffered_bytes() {
            self.request = Request::Kept;
            return Ok(Need::Buffered);
        }
        if next_offset.is_some_and(|offset| offset >= length) {
            self.finder.handle_end_of_file()?;
            next_offset = self.finder.offset();
        }
        let Some(offset) = next_offset else { return Ok(Need::Done) };
        if self.unused.contains(&offset) {
            self.request = Request::Unused { offset };
            return Ok(Need::Again { part: 0, offset, len: (self.unused.end - offset) as usize });
        }
        let reads_ahead = self.is_in_order && self.finder.record_bytes() < self.piece_bytes as u64;
        let end = if reads_ahead { length } else { self.finder.end().min(length) };
        // At least one byte is requested, so that a truncated file is noticed.
        let len = piece_len(self.piece_bytes, offset, end.saturating_sub(offset).max(1));
        self.request = Request::Piece { offset, len };
        // The first sample alone may have been chosen at random.
        let is_past_first = self.last.is_some_and(|last| last.sample > 0);
        let expected_end = match self.finder.end() {
            _ if reads_ahead && self.is_whole_pass && is_past_first => length,
            u64::MAX => offset + len as u64,
            record_end => record_end.min(length),
        };
        Ok(Need::Bytes { part: 0, offset, len, end: expected_end })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        match self.request {
            Request::Length => {
                let length = decode_length(bytes);
                self.finder.set_length(length)?;
                self.length = Some(length);
                Ok(())
            }
            Request::Kept => self.finder.take(&[], sink),
            Request::Unused { offset } => self.take(offset, bytes, sink),
            Request::Piece { offset, len } => self.take_piece(offset, len, bytes, sink),
        }
    }

    fn file_shape(&self) -> Option<FileShape> {
        self.finder.file_shape()
    }

    fn payload_bytes(&self) -> Option<u64> {
        self.finder.payload_bytes()
    }

    fn decoded_shape(&self) -> Option<FileShape> {
        self.finder.decoded_shape()
    }

    fn members(&self) -> Vec<FileMember> {
        self.finder.members()
    }

    fn elsewhere(&self) -> Option<&str> {
        self.finder.elsewhere()
    }

    fn stored_sample(&self) -> Option<StoredSample> {
        self.finder.stored_sample()
    }

    fn undecoded_type(&self) -> Option<&'static str> {
        self.finder.undecoded_type()
    }

    fn ready_samples(&self) -> u64 {
        self.finder.ready_samples()
    }

    fn take_ready(&mut self, samples: u64) -> u64 {
        if let Some(last) = &mut self.last {
            last.sample += samples;
        }
        self.finder.take_ready(samples)
    }
}
