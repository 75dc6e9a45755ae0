//! Reads samples whose place follows from lengths, a header or an index: loads those once a file, then passes the
//! sample's bytes on.

use super::ahead::WantedSample;
use super::payload_range::PayloadRange;
use super::{Cursor, FormatError, Need, PayloadSink, cut_off, piece_len};
use feedrate_spec::shape::FileShape;
use std::ops::Range;

/// Answer of a [`Locator`].
pub(super) enum Lookup {
    /// The length of a part must be known first.
    Length { part: usize },
    /// These bytes of a part must be known first.
    Bytes { part: usize, range: Range<u64> },
    /// The sample's bytes of the data, and as [`Cursor::found`].
    Found { payload: PayloadRange, shape: Option<FileShape> },
}

/// Knows where samples lie in a file, or what says so.
pub(super) trait Locator: Default + Send {
    /// The sample's place, or what must be known first.
    fn locate(&mut self, wanted: &WantedSample) -> Result<Lookup, FormatError>;

    /// The bytes that were asked for last: a length as 8 little-endian bytes. Other memory may be left in its place.
    fn learn(&mut self, wanted: &WantedSample, bytes: &mut Vec<u8>) -> Result<(), FormatError>;

    /// Another file, or another plan.
    fn forget(&mut self);
}

pub(super) struct LocatedCursor<L> {
    piece_bytes: usize,
    locator: L,
    wanted: WantedSample,
    lookup: Option<Lookup>,
    loaded: Vec<u8>,
    asked: usize,
}

impl<L: Locator> LocatedCursor<L> {
    pub(super) fn new(piece_bytes: usize) -> Self {
        let (locator, wanted) = (L::default(), WantedSample::default());
        LocatedCursor { piece_bytes, locator, wanted, lookup: None, loaded: Vec::new(), asked: 0 }
    }

    fn look_up(&mut self) -> Result<Lookup, FormatError> {
        loop {
            self.loaded.clear();
            match self.locator.locate(&self.wanted)? {
                Lookup::Bytes { range, .. } if range.is_empty() => {
                    self.locator.learn(&self.wanted, &mut self.loaded)?;
                }
                lookup => return Ok(lookup),
            }
        }
    }
}

impl<L: Locator> Cursor for LocatedCursor<L> {
    fn begin(&mut self, file: u64, sample: u64, expected: Option<&FileShape>) {
        let last = std::mem::replace(&mut self.wanted, WantedSample::new(file, sample, expected));
        let was_found = matches!(self.lookup.take(), Some(Lookup::Found { .. }));
        if !was_found || last.file != file || last.expected.as_ref() != expected {
            self.locator.forget();
        }
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        let lookup = match self.lookup.take() {
            Some(lookup) => lookup,
            None => self.look_up()?,
        };
        Ok(match self.lookup.insert(lookup) {
            Lookup::Length { part } => Need::Length { part: *part },
            Lookup::Bytes { part, range } => {
                let offset = range.start + self.loaded.len() as u64;
                self.asked = piece_len(self.piece_bytes, offset, range.end - offset);
                Need::Bytes { part: *part, offset, len: self.asked }
            }
            Lookup::Found { payload, .. } => payload.need(0, self.piece_bytes),
        })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if let Some(Lookup::Found { payload, .. }) = &mut self.lookup {
            return payload.feed(bytes, sink);
        }
        self.loaded.extend_from_slice(bytes);
        if let Some(Lookup::Bytes { range, .. }) = &self.lookup {
            let at = range.start + self.loaded.len() as u64;
            if bytes.len() < self.asked {
                return Err(cut_off(at, range.end - at));
            }
            if at < range.end {
                return Ok(());
            }
        }
        self.locator.learn(&self.wanted, &mut self.loaded)?;
        self.lookup = Some(self.look_up()?);
        Ok(())
    }

    fn found(&self) -> Option<FileShape> {
        match self.lookup {
            Some(Lookup::Found { shape, .. }) => shape,
            _ => None,
        }
    }
}
