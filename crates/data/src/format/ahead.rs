//! Reads a file of records in pieces that hold many of them, as buffered readers do. Shared by the formats whose
//! records are found one after another.
//!
//! Samples taken in order are read ahead in whole pieces: what was read beyond a sample is asked for again by the next. A
//! sample out of order is read by itself. A step back is another pass over the file: nothing is kept from the last.

use super::{
    Cursor, FormatError, Need, PayloadSink, check_sample, compare_shapes, cut_off, in_words,
    length_of, piece_len,
};
use feedrate_spec::shape::FileShape;
use std::ops::Range;

/// The sample asked for, as the one before leaves the reader.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadOrder {
    /// The sample lies in another file, or is read by another plan.
    Anew,
    /// The sample lies behind the last one, in the same file.
    Onward,
    /// The sample is the last one or lies before it, in the same file.
    Again,
}

/// The sample to find.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WantedSample {
    /// Number of the dataset file.
    pub(super) file: u64,
    pub(super) sample: u64,
    /// By the plan.
    pub(super) expected: Option<FileShape>,
}

impl WantedSample {
    pub(super) fn new(file: u64, sample: u64, expected: Option<&FileShape>) -> Self {
        WantedSample { file, sample, expected: expected.copied() }
    }

    /// An error if a file holds something else than the plan says, or no sample of that number.
    pub(super) fn check(&self, found: &FileShape) -> Result<(), FormatError> {
        compare_shapes(found, self.expected.as_ref())?;
        check_sample(found, self.sample)
    }
}

/// Finds one sample in the bytes of a file.
pub(super) trait Finder: Send {
    /// Look for a sample.
    fn begin(&mut self, wanted: &WantedSample, begun: ReadOrder);

    /// The file is this long. Comes first in each file.
    fn length(&mut self, bytes: u64) -> Result<(), FormatError>;

    /// Offset of the bytes that are wanted next; `None` once the sample is whole.
    fn at(&self) -> Option<u64>;

    /// All bytes up to here are wanted, or the largest number where that is not known. Once the sample is whole: where
    /// the next record begins.
    fn end(&self) -> u64;

    /// Length of a record, by the last one seen; 0 before.
    fn record_bytes(&self) -> u64;

    /// Bytes that came before hide more, which [`Finder::take`] finds without others.
    fn has_kept(&self) -> bool {
        false
    }

    /// Bytes of the file from [`Finder::at`] on, at least one unless some are kept. Takes as many as it likes, and moves on.
    fn take(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError>;

    /// The file has ended: an error, or a place in it to go on at.
    fn ended(&mut self) -> Result<(), FormatError>;

    /// As [`Cursor::found`].
    fn found(&self) -> Option<FileShape>;

    /// As [`Cursor::payload_bytes`].
    fn payload_bytes(&self) -> Option<u64> {
        self.found().map(|shape| shape.sample_bytes())
    }
}

/// Bytes that are looked at together, and may come in pieces.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) bytes: Vec<u8>,
    /// So many, in all.
    pub(super) wanted: usize,
}

impl Gathered {
    /// Gather `wanted` bytes.
    pub(super) fn begin(&mut self, wanted: usize) {
        self.bytes.clear();
        self.wanted = wanted;
    }

    /// Take what is missing: how many bytes that were.
    pub(super) fn take(&mut self, bytes: &[u8]) -> usize {
        let used = bytes.len().min(self.missing());
        self.bytes.extend_from_slice(&bytes[..used]);
        used
    }

    pub(super) fn missing(&self) -> usize {
        self.wanted - self.bytes.len()
    }
}

/// An error if a file of `bytes` bytes is not as long as one of the planned shape.
pub(super) fn check_length(
    bytes: u64,
    planned: &FileShape,
    planned_bytes: u64,
) -> Result<(), FormatError> {
    if bytes == planned_bytes {
        return Ok(());
    }
    let words = in_words(planned);
    let message =
        format!("holds {bytes} bytes, but the plan says {words}, in {planned_bytes} bytes");
    Err(FormatError::new(bytes.min(planned_bytes), message))
}

/// A cursor over the data file alone.
pub(super) struct AheadCursor<S> {
    piece_bytes: usize,
    finder: S,
    last: Option<WantedSample>,
    length: Option<u64>,
    in_order: bool,
    /// Where what is left of the last piece begins and ends. Whoever read the piece has its bytes.
    left: Range<u64>,
    asked: AskedBytes,
}

#[derive(Clone, Copy)]
enum AskedBytes {
    Length,
    Kept,
    Left { at: u64 },
    Piece { at: u64, len: usize },
}

impl<S: Finder> AheadCursor<S> {
    pub(super) fn new(piece_bytes: usize, finder: S) -> Self {
        AheadCursor {
            piece_bytes,
            finder,
            last: None,
            length: None,
            in_order: false,
            left: 0..0,
            asked: AskedBytes::Length,
        }
    }

    /// Take from the piece at `start` all that is wanted of it.
    fn take(
        &mut self,
        start: u64,
        piece: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        while let Some(at) = self.finder.at() {
            let held = at.checked_sub(start).and_then(|from| piece.get(from as usize..));
            match held.filter(|held| !held.is_empty()) {
                Some(held) => self.finder.take(held, sink)?,
                None => break,
            }
        }
        Ok(())
    }

    fn take_piece(
        &mut self,
        start: u64,
        asked: usize,
        piece: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        self.left = 0..0;
        self.take(start, piece, sink)?;
        if self.finder.at().is_some() {
            let end = start + piece.len() as u64;
            return match asked - piece.len() {
                0 => Ok(()),
                missing => Err(cut_off(end, missing as u64)),
            };
        }
        self.left = self.finder.end().max(start)..start + piece.len() as u64;
        Ok(())
    }
}

impl<S: Finder> Cursor for AheadCursor<S> {
    fn begin(&mut self, file: u64, sample: u64, expected: Option<&FileShape>) {
        let wanted = WantedSample::new(file, sample, expected);
        let begun = match &self.last {
            Some(last) if last.file != file || last.expected != wanted.expected => ReadOrder::Anew,
            Some(last) if last.sample < sample => ReadOrder::Onward,
            Some(_) => ReadOrder::Again,
            None => ReadOrder::Anew,
        };
        let next = match self.last {
            Some(last) if begun == ReadOrder::Onward => last.sample + 1,
            _ => 0,
        };
        self.in_order = sample == next;
        if begun != ReadOrder::Onward {
            self.left = 0..0;
        }
        if begun == ReadOrder::Anew {
            self.length = None;
        }
        self.last = Some(wanted);
        self.finder.begin(&wanted, begun);
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        let Some(length) = self.length else {
            self.asked = AskedBytes::Length;
            return Ok(Need::Length { part: 0 });
        };
        if self.finder.at().is_some() && self.finder.has_kept() {
            self.asked = AskedBytes::Kept;
            return Ok(Need::Kept);
        }
        if self.finder.at().is_some_and(|at| at >= length) {
            self.finder.ended()?;
        }
        let Some(at) = self.finder.at() else { return Ok(Need::Done) };
        if self.left.contains(&at) {
            self.asked = AskedBytes::Left { at };
            return Ok(Need::Again { part: 0, offset: at, len: (self.left.end - at) as usize });
        }
        let reads_ahead = self.in_order && self.finder.record_bytes() < self.piece_bytes as u64;
        let end = if reads_ahead { length } else { self.finder.end().min(length) };
        // A file that ends where more is wanted ends here too.
        let len = piece_len(self.piece_bytes, at, end.saturating_sub(at).max(1));
        self.asked = AskedBytes::Piece { at, len };
        Ok(Need::Bytes { part: 0, offset: at, len })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        match self.asked {
            AskedBytes::Length => {
                let length = length_of(bytes);
                self.finder.length(length)?;
                self.length = Some(length);
                Ok(())
            }
            AskedBytes::Kept => self.finder.take(&[], sink),
            AskedBytes::Left { at } => self.take(at, bytes, sink),
            AskedBytes::Piece { at, len } => self.take_piece(at, len, bytes, sink),
        }
    }

    fn found(&self) -> Option<FileShape> {
        self.finder.found()
    }

    fn payload_bytes(&self) -> Option<u64> {
        self.finder.payload_bytes()
    }
}
