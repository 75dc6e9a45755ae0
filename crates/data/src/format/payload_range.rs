//! Reads one range of a part piece by piece.

use super::{FormatError, Need, PayloadSink, PieceSizes, piece_len, truncated};

/// A range of a part, and the position in it.
#[derive(Default)]
pub(super) struct PayloadRange {
    start: u64,
    bytes: u64,
    payload_offset: u64,
    requested: usize,
}

/// Start of a share of `bytes` bytes that are divided equally into `shares`; their end if there are fewer shares.
pub(super) fn share_start(bytes: u64, share: u64, shares: u64) -> u64 {
    let shares = shares.max(1);
    (u128::from(bytes) * u128::from(share.min(shares)) / u128::from(shares)) as u64
}

impl PayloadRange {
    /// The range of `bytes` bytes from `start` on. Its end must fit into 64 bits.
    pub(super) fn new(start: u64, bytes: u64) -> Self {
        PayloadRange { start, bytes, payload_offset: 0, requested: 0 }
    }

    /// Offset of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.start + self.payload_offset
    }

    /// Number of bytes that are still missing.
    pub(super) fn remaining(&self) -> u64 {
        self.bytes - self.payload_offset
    }

    /// Length of the range.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Requests the next piece of `part`.
    pub(super) fn need(&mut self, part: usize, sizes: impl Into<PieceSizes>) -> Need {
        if self.payload_offset == self.bytes {
            return Need::Done;
        }
        let offset = self.start + self.payload_offset;
        self.requested = piece_len(sizes, offset, self.bytes - self.payload_offset);
        Need::Bytes { part, offset, len: self.requested, end: self.start + self.bytes }
    }

    /// Requests the whole range if it has at most `piece_bytes` bytes, wherever it begins; otherwise the next piece.
    pub(super) fn need_at_once(&mut self, part: usize, piece_bytes: usize) -> Need {
        if self.payload_offset > 0 || self.bytes == 0 || self.bytes > piece_bytes as u64 {
            return self.need(part, piece_bytes);
        }
        self.requested = self.bytes as usize;
        let end = self.start + self.bytes;
        Need::Bytes { part, offset: self.start, len: self.requested, end }
    }

    /// Passes the requested piece on to `sink`.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        sink.payload(self.payload_offset, bytes)?;
        self.payload_offset += bytes.len() as u64;
        if bytes.len() < self.requested {
            return Err(truncated(
                self.start + self.payload_offset,
                self.bytes - self.payload_offset,
            ));
        }
        Ok(())
    }
}

/// Collects the payload.
impl PayloadSink for Vec<u8> {
    fn payload(&mut self, _offset: u64, bytes: &[u8]) -> Result<(), FormatError> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}
