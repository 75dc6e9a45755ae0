//! Reads files that are one gzip, zlib or Zstandard stream through a [`Finder`] of the format inside. Such a file is read
//! from its start up to the requested sample; samples in ascending order continue where the last one ended.

use super::ahead::{Finder, ReadOrder, WantedSample};
use super::gunzip::{Gunzip, StreamKind};
use super::{FileShape, FormatError, PayloadSink};

/// Length that the inner finder gets: the length of a stream is known only at its end.
pub(super) const UNKNOWN_LENGTH: u64 = u64::MAX / 2;

/// A finder of samples in files that may be compressed.
pub(super) struct Unpacked<F> {
    inner: F,
    /// Whether the first bytes of a file are those of an uncompressed file.
    is_plain: fn(&[u8]) -> bool,
    /// Length of the file.
    length: u64,
    state: StreamState,
    /// Created for the first compressed file.
    gunzip: Option<Gunzip>,
    /// Offset of the next byte of a compressed file.
    packed_offset: u64,
    /// Offset of the next decompressed byte.
    unpacked_offset: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamState {
    /// No byte of the file was read.
    Unknown,
    Plain,
    Packed(StreamKind),
    /// Decompression failed, so the next sample begins at the start of the file.
    Broken(StreamKind),
}

impl<F: Finder> Unpacked<F> {
    /// A finder that passes files on to `inner`, unchanged or decompressed.
    pub(super) fn new(inner: F, is_plain: fn(&[u8]) -> bool) -> Self {
        Unpacked {
            inner,
            is_plain,
            length: 0,
            state: StreamState::Unknown,
            gunzip: None,
            packed_offset: 0,
            unpacked_offset: 0,
        }
    }

    fn restart(&mut self, kind: StreamKind) {
        self.gunzip.get_or_insert_with(|| Gunzip::new(kind)).begin(kind);
        self.packed_offset = 0;
        self.unpacked_offset = 0;
        self.state = StreamState::Packed(kind);
    }

    /// Whether the inner finder needs bytes before the next decompressed byte.
    fn needs_restart(&self) -> bool {
        self.inner.offset().is_some_and(|offset| offset < self.unpacked_offset)
    }

    /// Gives decompressed bytes to the inner finder. Returns whether all of them are used and it needs more.
    fn use_text(&mut self, sink: &mut dyn PayloadSink) -> Result<bool, FormatError> {
        let Some(gunzip) = &mut self.gunzip else { return Ok(true) };
        while !gunzip.text().is_empty() {
            let wanted = self.inner.offset();
            let Some(skip) = wanted.and_then(|wanted| wanted.checked_sub(self.unpacked_offset))
            else {
                return Ok(false);
            };
            let skipped = skip.min(gunzip.text().len() as u64);
            gunzip.consume_text(skipped as usize);
            self.unpacked_offset += skipped;
            if !gunzip.text().is_empty() {
                self.inner.take(gunzip.text(), sink)?;
            }
        }
        Ok(self.inner.offset().is_some() && !self.needs_restart())
    }

    /// Decompresses bytes of the file.
    fn unpack(
        &mut self,
        kind: StreamKind,
        bytes: &[u8],
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        let mut used = 0;
        while self.use_text(sink)? {
            let Some(gunzip) = &mut self.gunzip else { break };
            if !gunzip.unpack(self.packed_offset + used as u64)? {
                if used == bytes.len() {
                    break;
                }
                used += gunzip.feed(&bytes[used..]);
            }
        }
        self.packed_offset += used as u64;
        if self.needs_restart() {
            self.restart(kind);
        }
        Ok(())
    }
}

impl<F: Finder> Finder for Unpacked<F> {
    fn begin(&mut self, wanted: &WantedSample, order: ReadOrder) {
        self.inner.begin(wanted, order);
        if order == ReadOrder::NewFile {
            // Generated files are compressed by their format, if at all.
            let is_generated = wanted.expected.is_some();
            self.state = if is_generated { StreamState::Plain } else { StreamState::Unknown };
            self.packed_offset = 0;
            self.unpacked_offset = 0;
            return;
        }
        match self.state {
            StreamState::Broken(kind) => self.restart(kind),
            StreamState::Packed(kind) if self.needs_restart() => self.restart(kind),
            _ => {}
        }
    }

    fn set_length(&mut self, bytes: u64) -> Result<(), FormatError> {
        self.length = bytes;
        self.inner.set_length(bytes)
    }

    fn offset(&self) -> Option<u64> {
        match self.state {
            StreamState::Packed(_) | StreamState::Broken(_) => {
                self.inner.offset().map(|_| self.packed_offset)
            }
            _ => self.inner.offset(),
        }
    }

    fn end(&self) -> u64 {
        match self.state {
            StreamState::Packed(_) | StreamState::Broken(_) => {
                if self.inner.offset().is_some() {
                    u64::MAX
                } else {
                    self.packed_offset
                }
            }
            _ => self.inner.end(),
        }
    }

    fn record_bytes(&self) -> u64 {
        match self.state {
            StreamState::Packed(_) | StreamState::Broken(_) => 0,
            _ => self.inner.record_bytes(),
        }
    }

    fn has_buffered_bytes(&self) -> bool {
        let is_packed = matches!(self.state, StreamState::Packed(_));
        is_packed && self.gunzip.as_ref().is_some_and(Gunzip::has_more)
    }

    fn take(&mut self, bytes: &[u8], sink: &mut dyn PayloadSink) -> Result<(), FormatError> {
        if self.state == StreamState::Unknown {
            let found = StreamKind::recognise(bytes).filter(|_| !(self.is_plain)(bytes));
            self.state = StreamState::Plain;
            if let Some(kind) = found {
                self.restart(kind);
                self.inner.set_length(UNKNOWN_LENGTH)?;
            }
        }
        let StreamState::Packed(kind) = self.state else { return self.inner.take(bytes, sink) };
        let unpacked = self.unpack(kind, bytes, sink);
        if unpacked.is_err() {
            self.state = StreamState::Broken(kind);
        }
        unpacked
    }

    fn handle_end_of_file(&mut self) -> Result<(), FormatError> {
        let StreamState::Packed(kind) = self.state else { return self.inner.handle_end_of_file() };
        if !self.gunzip.as_ref().is_some_and(Gunzip::is_complete) {
            return Err(FormatError::new(self.packed_offset, "the file ends within its stream"));
        }
        // A finder that skips bytes beyond the end of the stream ends here, too.
        self.inner.handle_end_of_file()?;
        if self.needs_restart() {
            self.restart(kind);
        }
        Ok(())
    }

    fn file_shape(&self) -> Option<FileShape> {
        self.inner.file_shape()
    }

    fn payload_bytes(&self) -> Option<u64> {
        self.inner.payload_bytes()
    }

    fn decoded_shape(&self) -> Option<FileShape> {
        self.inner.decoded_shape()
    }

    fn undecoded_type(&self) -> Option<&'static str> {
        self.inner.undecoded_type()
    }
}
