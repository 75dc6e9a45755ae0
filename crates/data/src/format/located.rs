//! Reads samples whose position is known from lengths, a header or an index. This information is loaded once per file,
//! then the sample's bytes are passed on.

use super::ahead::WantedSample;
use super::payload_range::PayloadRange;
use super::{Cursor, FileMember, FormatError, Need, PayloadSink};
use feedrate_spec::shape::FileShape;

/// Result of a look-up by a [`Locator`].
pub(super) enum Lookup {
    /// The length of a part is needed first.
    Length { part: usize },
    /// These bytes of a part are needed first.
    Bytes { part: usize, range: PayloadRange },
    /// The range of the sample in [`Locator::PAYLOAD_PART`], and its shape as in [`Cursor::file_shape`].
    Found { payload: PayloadRange, shape: Option<FileShape> },
}

/// Finds the positions of samples in a file.
pub(super) trait Locator: Default + Send {
    /// Part with the samples.
    const PAYLOAD_PART: usize = 0;

    /// Finds a sample, or reports what is needed first.
    fn locate(&mut self, wanted: &WantedSample) -> Result<Lookup, FormatError>;

    /// Takes the bytes requested last; a length is 8 little-endian bytes. The locator may swap the buffer for another one.
    fn accept(&mut self, wanted: &WantedSample, bytes: &mut Vec<u8>) -> Result<(), FormatError>;

    /// Discards everything loaded, because another file or another plan follows.
    fn reset(&mut self);

    /// See [`Cursor::members`].
    fn members(&self, _file: u64) -> Vec<FileMember> {
        Vec::new()
    }

    /// See [`Cursor::elsewhere`].
    fn elsewhere(&self, _file: u64) -> Option<&str> {
        None
    }
}

pub(super) struct LocatedCursor<L> {
    piece_bytes: usize,
    locator: L,
    wanted: WantedSample,
    lookup: Option<Lookup>,
    loaded: Vec<u8>,
}

impl<L: Locator> LocatedCursor<L> {
    pub(super) fn new(piece_bytes: usize) -> Self {
        LocatedCursor {
            piece_bytes,
            locator: L::default(),
            wanted: WantedSample::default(),
            lookup: None,
            loaded: Vec::new(),
        }
    }

    fn look_up(&mut self) -> Result<Lookup, FormatError> {
        loop {
            self.loaded.clear();
            match self.locator.locate(&self.wanted)? {
                Lookup::Bytes { range, .. } if range.remaining() == 0 => {
                    self.locator.accept(&self.wanted, &mut self.loaded)?;
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
            self.locator.reset();
        }
    }

    fn need(&mut self) -> Result<Need, FormatError> {
        let lookup = match self.lookup.take() {
            Some(lookup) => lookup,
            None => self.look_up()?,
        };
        Ok(match self.lookup.insert(lookup) {
            Lookup::Length { part } => Need::Length { part: *part },
            Lookup::Bytes { part, range } => range.need(*part, self.piece_bytes),
            Lookup::Found { payload, .. } => payload.need(L::PAYLOAD_PART, self.piece_bytes),
        })
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        match &mut self.lookup {
            Some(Lookup::Found { payload, .. }) => return payload.feed(bytes, sink),
            Some(Lookup::Bytes { range, .. }) => {
                range.feed(bytes, &mut self.loaded)?;
                if range.remaining() > 0 {
                    return Ok(());
                }
            }
            _ => self.loaded.extend_from_slice(bytes),
        }
        self.locator.accept(&self.wanted, &mut self.loaded)?;
        self.lookup = Some(self.look_up()?);
        Ok(())
    }

    fn file_shape(&self) -> Option<FileShape> {
        match self.lookup {
            Some(Lookup::Found { shape, .. }) => shape,
            _ => None,
        }
    }

    fn members(&self) -> Vec<FileMember> {
        self.locator.members(self.wanted.file)
    }

    fn elsewhere(&self) -> Option<&str> {
        self.locator.elsewhere(self.wanted.file)
    }
}
