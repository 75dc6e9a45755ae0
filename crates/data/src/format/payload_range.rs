//! Bytes that lie in one range of a part: asked for and passed on, or gathered, piece by piece.

use super::{FormatError, Need, PayloadSink, cut_off, piece_len};

#[derive(Default)]
pub(super) struct PayloadRange {
    start: u64,
    bytes: u64,
    at: u64,
    asked: usize,
}

impl PayloadRange {
    /// The range must end within 64 bits.
    pub(super) fn new(start: u64, bytes: u64) -> Self {
        PayloadRange { start, bytes, at: 0, asked: 0 }
    }

    /// Offset of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.start + self.at
    }

    /// Bytes still to come.
    pub(super) fn left(&self) -> u64 {
        self.bytes - self.at
    }

    /// Length of the whole payload.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Ask for the next piece of `part`, of at most `piece_bytes`.
    pub(super) fn need(&mut self, part: usize, piece_bytes: usize) -> Need {
        if self.at == self.bytes {
            return Need::Done;
        }
        let offset = self.start + self.at;
        self.asked = piece_len(piece_bytes, offset, self.bytes - self.at);
        Need::Bytes { part, offset, len: self.asked }
    }

    /// Pass the piece on that was asked for.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        sink.payload(self.at, bytes)?;
        self.at += bytes.len() as u64;
        if bytes.len() < self.asked {
            return Err(cut_off(self.start + self.at, self.bytes - self.at));
        }
        Ok(())
    }
}

/// Gathers what comes.
impl PayloadSink for Vec<u8> {
    fn payload(&mut self, _offset: u64, bytes: &[u8]) -> Result<(), FormatError> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}
