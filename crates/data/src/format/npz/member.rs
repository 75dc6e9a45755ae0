//! The bytes of one member on their way: local header, inflation, checksum. Errors in a compressed array count as if
//! it were stored.

use super::directory::{Entry, u16_at};
use super::{ArrayStream, FormatError, PayloadSink};
use flate2::{Decompress, FlushDecompress, Status};

const LOCAL_HEADER_BYTES: usize = 30;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// Inflated at once.
const WINDOW_BYTES: usize = 64 << 10;

/// Reads a member into an array.
pub(super) struct MemberStream {
    check_crc: bool,
    entry: Entry,
    header: Vec<u8>,
    /// Bytes of name and extra field still to come.
    to_skip: usize,
    packed_left: u64,
    crc: crc32fast::Hasher,
    inflate: Option<Inflate>,
}

struct Inflate {
    state: Decompress,
    window: Vec<u8>,
}

impl MemberStream {
    pub(super) fn new(check_crc: bool) -> Self {
        MemberStream {
            check_crc,
            entry: Entry { offset: 0, packed_bytes: 0, bytes: 0, crc: 0, method: STORED, limit: 0 },
            header: Vec::with_capacity(LOCAL_HEADER_BYTES),
            to_skip: 0,
            packed_left: 0,
            crc: crc32fast::Hasher::new(),
            inflate: None,
        }
    }

    /// Start on a member.
    ///
    /// # Errors
    /// It is packed in a way that cannot be read.
    pub(super) fn begin(&mut self, entry: Entry) -> Result<(), FormatError> {
        match entry.method {
            STORED if entry.packed_bytes != entry.bytes => {
                let Entry { bytes, packed_bytes, .. } = entry;
                let message =
                    format!("member `x.npy` is stored, yet {bytes} bytes take up {packed_bytes}");
                return Err(FormatError::new(entry.offset, message));
            }
            STORED => {}
            DEFLATED => match &mut self.inflate {
                Some(inflate) => inflate.state.reset(false),
                None => {
                    let window = vec![0; WINDOW_BYTES];
                    self.inflate = Some(Inflate { state: Decompress::new(false), window });
                }
            },
            method => {
                let message =
                    format!("member `x.npy` is compressed by method `{method}`, not deflate");
                return Err(FormatError::new(entry.offset, message));
            }
        }
        self.entry = entry;
        self.header.clear();
        self.to_skip = 0;
        self.packed_left = entry.packed_bytes;
        self.crc.reset();
        Ok(())
    }

    /// Bytes still to come; before the local header has come, a guess that is too long rather than too short.
    pub(super) fn left(&self, at: u64) -> u64 {
        if self.header.len() == LOCAL_HEADER_BYTES {
            return self.to_skip as u64 + self.packed_left;
        }
        // Name and zip64 field are 25 bytes in what numpy writes.
        let guess = (LOCAL_HEADER_BYTES - self.header.len()) as u64 + 32 + self.packed_left;
        guess.min(self.entry.limit.saturating_sub(at)).max(1)
    }

    /// Every byte of the member has come.
    pub(super) fn is_done(&self) -> bool {
        self.header.len() == LOCAL_HEADER_BYTES && self.to_skip == 0 && self.packed_left == 0
    }

    /// Take the next bytes of the file, `at` of which is the first; what comes after the member is not looked at.
    ///
    /// # Errors
    /// The member is not what it says.
    pub(super) fn feed(
        &mut self,
        at: u64,
        bytes: &[u8],
        array: &mut ArrayStream,
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        let mut rest = bytes;
        if self.header.len() < LOCAL_HEADER_BYTES {
            let (now, later) =
                rest.split_at(rest.len().min(LOCAL_HEADER_BYTES - self.header.len()));
            self.header.extend_from_slice(now);
            rest = later;
            if self.header.len() < LOCAL_HEADER_BYTES {
                return Ok(());
            }
            self.header_done()?;
        }
        let (skipped, later) = rest.split_at(rest.len().min(self.to_skip));
        self.to_skip -= skipped.len();
        if self.to_skip > 0 {
            return Ok(());
        }
        let packed = &later[..(later.len() as u64).min(self.packed_left) as usize];
        let start = at + (bytes.len() - later.len()) as u64;
        if self.packed_left == self.entry.packed_bytes {
            array.set_origin(start);
        }
        if self.entry.method == STORED {
            self.take(packed, array, sink)?;
        } else {
            self.inflated(packed, start, array, sink)?;
        }
        self.packed_left -= packed.len() as u64;
        if self.packed_left == 0 { self.finish(start + packed.len() as u64, array) } else { Ok(()) }
    }

    fn header_done(&mut self) -> Result<(), FormatError> {
        if !self.header.starts_with(b"PK\x03\x04") {
            return Err(FormatError::new(
                self.entry.offset,
                "no zip header where the directory says `x.npy` begins",
            ));
        }
        let lengths = [26, 28].map(|at| u16_at(&self.header, at).map_or(0, usize::from));
        self.to_skip = lengths.iter().sum();
        Ok(())
    }

    /// Bytes as they were before compression.
    fn take(
        &mut self,
        bytes: &[u8],
        array: &mut ArrayStream,
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        if self.check_crc {
            self.crc.update(bytes);
        }
        let used = array.feed(bytes, sink)?;
        self.check_length(array)?;
        if used < bytes.len() { Err(longer_than_array(array)) } else { Ok(()) }
    }

    /// By its header, the array must be as long as its member.
    fn check_length(&self, array: &ArrayStream) -> Result<(), FormatError> {
        match array.bytes() {
            Some(bytes) if bytes != self.entry.bytes => {
                let held = self.entry.bytes;
                let message =
                    format!("member `x.npy` holds {held} bytes, but its array is {bytes} long");
                Err(FormatError::new(self.entry.offset, message))
            }
            _ => Ok(()),
        }
    }

    fn inflated(
        &mut self,
        packed: &[u8],
        start: u64,
        array: &mut ArrayStream,
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        let Some(mut inflate) = self.inflate.take() else { return Ok(()) };
        let result = self.inflate_with(&mut inflate, packed, start, array, sink);
        self.inflate = Some(inflate);
        result
    }

    fn inflate_with(
        &mut self,
        inflate: &mut Inflate,
        packed: &[u8],
        start: u64,
        array: &mut ArrayStream,
        sink: &mut dyn PayloadSink,
    ) -> Result<(), FormatError> {
        let mut used = 0;
        loop {
            let (before_in, before_out) = (inflate.state.total_in(), inflate.state.total_out());
            let here = start + used as u64;
            let status = inflate
                .state
                .decompress(&packed[used..], &mut inflate.window, FlushDecompress::None)
                .map_err(|error| {
                    FormatError::new(here, format!("broken deflate stream: {error}"))
                })?;
            used += (inflate.state.total_in() - before_in) as usize;
            let made = (inflate.state.total_out() - before_out) as usize;
            self.take(&inflate.window[..made], array, sink)?;
            let ended = status == Status::StreamEnd;
            if ended && (used < packed.len() || packed.len() as u64 != self.packed_left) {
                return Err(FormatError::new(
                    start + used as u64,
                    "the deflate stream ends before its member",
                ));
            }
            // A full window may have hidden output that needs no more input.
            if ended || (used == packed.len() && made < inflate.window.len()) {
                return Ok(());
            }
            if made == 0 && inflate.state.total_in() == before_in {
                return Err(FormatError::new(
                    start + used as u64,
                    "broken deflate stream: it does not go on",
                ));
            }
        }
    }

    fn finish(&mut self, end: u64, array: &ArrayStream) -> Result<(), FormatError> {
        if !array.is_done() {
            let message =
                format!("member `x.npy` ends, but {} more bytes were expected", array.missing());
            return Err(FormatError::new(end, message));
        }
        let crc = self.crc.clone().finalize();
        if self.check_crc && crc != self.entry.crc {
            let stated = self.entry.crc;
            let message = format!("CRC-32 of `x.npy` is {crc:08x}, the archive says {stated:08x}");
            return Err(FormatError::new(self.entry.offset, message));
        }
        Ok(())
    }
}

fn longer_than_array(array: &ArrayStream) -> FormatError {
    FormatError::new(array.position(), "the array ends, but its member goes on")
}
