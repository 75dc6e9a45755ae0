//! Decompresses gzip files with one or more members, and files that are one zlib stream, one window at a time.

use super::FormatError;
use flate2::bufread::{GzDecoder, ZlibDecoder};
use std::io::{self, BufRead, ErrorKind, Read};
use std::ops::Range;

/// Length of the window, and upper limit on the compressed bytes in memory.
const WINDOW_BYTES: usize = 64 << 10;

/// Wrapper of a deflate stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamKind {
    /// RFC 1952; a file may hold several members.
    Gzip,
    /// RFC 1950.
    Zlib,
}

impl StreamKind {
    /// Recognises a stream by its first bytes.
    pub(super) fn recognise(head: &[u8]) -> Option<Self> {
        match *head {
            [0x1f, 0x8b, 8, ..] => Some(StreamKind::Gzip),
            // Deflate with a window of 32 KiB, without a dictionary.
            [0x78, flags, ..] if flags & 0x20 == 0 && (0x7800 + u16::from(flags)) % 31 == 0 => {
                Some(StreamKind::Zlib)
            }
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            StreamKind::Gzip => "gzip",
            StreamKind::Zlib => "zlib",
        }
    }
}

enum StreamDecoder {
    Gzip(GzDecoder<PackedBytes>),
    Zlib(ZlibDecoder<PackedBytes>),
}

impl StreamDecoder {
    fn new(kind: StreamKind, packed: PackedBytes) -> Self {
        match kind {
            StreamKind::Gzip => StreamDecoder::Gzip(GzDecoder::new(packed)),
            StreamKind::Zlib => StreamDecoder::Zlib(ZlibDecoder::new(packed)),
        }
    }

    fn kind(&self) -> StreamKind {
        match self {
            StreamDecoder::Gzip(_) => StreamKind::Gzip,
            StreamDecoder::Zlib(_) => StreamKind::Zlib,
        }
    }

    fn packed(&self) -> &PackedBytes {
        match self {
            StreamDecoder::Gzip(decoder) => decoder.get_ref(),
            StreamDecoder::Zlib(decoder) => decoder.get_ref(),
        }
    }

    fn packed_mut(&mut self) -> &mut PackedBytes {
        match self {
            StreamDecoder::Gzip(decoder) => decoder.get_mut(),
            StreamDecoder::Zlib(decoder) => decoder.get_mut(),
        }
    }

    /// Begins another stream, whose first bytes may be fed already.
    fn begin_stream(&mut self) {
        let packed = std::mem::take(self.packed_mut());
        match self {
            StreamDecoder::Gzip(decoder) => drop(decoder.reset(packed)),
            StreamDecoder::Zlib(decoder) => drop(decoder.reset(packed)),
        }
    }

    fn read(&mut self, window: &mut [u8]) -> io::Result<usize> {
        match self {
            StreamDecoder::Gzip(decoder) => decoder.read(window),
            StreamDecoder::Zlib(decoder) => decoder.read(window),
        }
    }
}

/// Decompresses one file after another.
pub(super) struct Gunzip {
    decoder: StreamDecoder,
    window: Vec<u8>,
    /// Decompressed bytes in the window that have not been taken.
    text: Range<usize>,
    /// Whether the last member has ended and no byte of the next one was fed.
    is_between_members: bool,
}

impl Gunzip {
    pub(super) fn new(kind: StreamKind) -> Self {
        let packed = PackedBytes { bytes: Vec::with_capacity(WINDOW_BYTES), used: 0 };
        Gunzip {
            decoder: StreamDecoder::new(kind, packed),
            window: vec![0; WINDOW_BYTES],
            text: 0..0,
            is_between_members: true,
        }
    }

    /// Starts reading a file of this kind.
    pub(super) fn begin(&mut self, kind: StreamKind) {
        self.feed(&[]);
        if self.decoder.kind() == kind {
            self.decoder.begin_stream();
        } else {
            let packed = std::mem::take(self.decoder.packed_mut());
            self.decoder = StreamDecoder::new(kind, packed);
        }
        self.text = 0..0;
        self.is_between_members = true;
    }

    /// Decompressed bytes that have not been taken.
    pub(super) fn text(&self) -> &[u8] {
        &self.window[self.text.clone()]
    }

    /// Marks the first `len` bytes of [`Gunzip::text`] as taken.
    pub(super) fn consume_text(&mut self, len: usize) {
        self.text.start += len;
    }

    /// Whether more text may follow without further bytes of the file.
    pub(super) fn has_more(&self) -> bool {
        !self.text.is_empty() || !self.decoder.packed().remaining().is_empty()
    }

    /// Whether all members have ended and all text was taken.
    pub(super) fn is_complete(&self) -> bool {
        self.is_between_members && !self.has_more()
    }

    /// Takes the next bytes of the file, up to a limit, and returns their number. Must only be called after [`Gunzip::unpack`] has
    /// returned false.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> usize {
        let fed = &bytes[..bytes.len().min(WINDOW_BYTES)];
        let packed = self.decoder.packed_mut();
        packed.bytes.clear();
        packed.bytes.extend_from_slice(fed);
        packed.used = 0;
        fed.len()
    }

    /// Decompresses more text after all text has been taken. Returns false if bytes of the file must be fed first.
    /// `file_offset` is the offset of the next byte to feed and is used in errors.
    pub(super) fn unpack(&mut self, file_offset: u64) -> Result<bool, FormatError> {
        loop {
            if self.is_between_members {
                if self.decoder.packed().remaining().is_empty() {
                    return Ok(false);
                }
                self.decoder.begin_stream();
                self.is_between_members = false;
            }
            match self.decoder.read(&mut self.window) {
                Ok(0) => self.is_between_members = true,
                Ok(len) => {
                    self.text = 0..len;
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => {
                    let offset = file_offset - self.decoder.packed().remaining().len() as u64;
                    return Err(FormatError::new(
                        offset,
                        format!("broken {}: {error}", self.decoder.kind().name()),
                    ));
                }
            }
        }
    }
}

/// Compressed bytes that were fed. Reads beyond them return [`ErrorKind::WouldBlock`], since more may follow.
#[derive(Default)]
struct PackedBytes {
    bytes: Vec<u8>,
    used: usize,
}

impl PackedBytes {
    fn remaining(&self) -> &[u8] {
        &self.bytes[self.used..]
    }
}

impl Read for PackedBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.fill_buf()?.read(buffer)?;
        self.consume(len);
        Ok(len)
    }
}

impl BufRead for PackedBytes {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.remaining() {
            [] => Err(ErrorKind::WouldBlock.into()),
            remaining => Ok(remaining),
        }
    }

    fn consume(&mut self, len: usize) {
        self.used += len;
    }
}
