//! Decompresses gzip files with one or more members, Zstandard files with one or more frames, and files that are one zlib
//! stream, one window at a time.

use super::{FormatError, HEAD_BYTES};
use flate2::bufread::GzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use std::io::{self, BufRead, ErrorKind, Read};
use std::ops::Range;
use zstd::stream::raw::{Decoder as ZstdDecoder, Operation};

/// Length of the window, and upper limit on the compressed bytes in memory.
const WINDOW_BYTES: usize = 64 << 10;

/// Extensions of compressed files, after the extension of their content.
pub const PACKED_EXTENSIONS: [&str; 3] = ["gz", "zst", "zstd"];
/// Length of the start of a Zstandard file that contains a block, which is decompressed as a whole.
const ZSTD_HEAD_BYTES: usize = 256 << 10;
/// First bytes of a Zstandard frame.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Kind of a compressed stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamKind {
    /// RFC 1952; a file may hold several members.
    Gzip,
    /// RFC 1950.
    Zlib,
    /// RFC 8878; a file may hold several frames.
    Zstd,
}

impl StreamKind {
    /// Recognises a stream by its first bytes.
    pub(super) fn recognise(head: &[u8]) -> Option<Self> {
        match *head {
            [0x1f, 0x8b, 8, ..] => Some(StreamKind::Gzip),
            [a, b, c, d, ..] if [a, b, c, d] == ZSTD_MAGIC => Some(StreamKind::Zstd),
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
            StreamKind::Zstd => "zstd",
        }
    }
}

/// Number of bytes at the start of a file that are enough to recognise its format, given its first [`HEAD_BYTES`] bytes.
pub fn head_bytes(start: &[u8]) -> usize {
    if start.starts_with(&ZSTD_MAGIC) { ZSTD_HEAD_BYTES } else { HEAD_BYTES }
}

/// The first bytes of the content of a compressed stream that begins with `head`, at most `bytes_max`; `None` if it is not such a
/// stream.
pub(super) fn unpack_head(head: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    let kind = StreamKind::recognise(head)?;
    let mut stream = Gunzip::new(kind);
    stream.begin(kind);
    let mut fed_bytes = 0;
    let mut content = Vec::new();
    while content.len() < bytes_max {
        // A stream that is broken here is not recognised, as other content is not.
        if stream.unpack(fed_bytes as u64).ok()? {
            content.extend_from_slice(stream.text());
            stream.consume_text(stream.text().len());
        } else if fed_bytes < head.len() {
            fed_bytes += stream.feed(&head[fed_bytes..]);
        } else {
            break;
        }
    }
    content.truncate(bytes_max);
    (!content.is_empty()).then_some(content)
}

enum StreamDecoder {
    Gzip(GzDecoder<PackedBytes>),
    Raw(RawStream),
}

/// A stream without members, over the bytes that were fed.
struct RawStream {
    decoder: RawDecoder,
    packed: PackedBytes,
    has_ended: bool,
    /// Whether the decoder may hold bytes that did not fit into the last window.
    has_output: bool,
}

enum RawDecoder {
    Zlib(Decompress),
    /// `None` if there was no memory for it.
    Zstd(Option<ZstdDecoder<'static>>),
}

/// Result of a step of a decoder.
struct DecoderStep {
    read_bytes: usize,
    written_bytes: usize,
    has_ended: bool,
}

impl RawDecoder {
    fn begin(&mut self) {
        match self {
            RawDecoder::Zlib(decoder) => decoder.reset(true),
            RawDecoder::Zstd(decoder) => {
                if decoder.as_mut().is_none_or(|decoder| decoder.reinit().is_err()) {
                    *decoder = ZstdDecoder::new().ok();
                }
            }
        }
    }

    fn run(&mut self, packed: &[u8], window: &mut [u8]) -> io::Result<DecoderStep> {
        match self {
            RawDecoder::Zlib(decoder) => {
                let before = [decoder.total_in(), decoder.total_out()];
                let status = decoder.decompress(packed, window, FlushDecompress::None);
                let status = status.map_err(io::Error::other)?;
                Ok(DecoderStep {
                    read_bytes: (decoder.total_in() - before[0]) as usize,
                    written_bytes: (decoder.total_out() - before[1]) as usize,
                    has_ended: status == Status::StreamEnd,
                })
            }
            RawDecoder::Zstd(decoder) => {
                let decoder = decoder.as_mut().ok_or(ErrorKind::OutOfMemory)?;
                let status = decoder.run_on_buffers(packed, window)?;
                Ok(DecoderStep {
                    read_bytes: status.bytes_read,
                    written_bytes: status.bytes_written,
                    has_ended: status.remaining == 0,
                })
            }
        }
    }
}

impl RawStream {
    fn new(decoder: RawDecoder, packed: PackedBytes) -> Self {
        RawStream { decoder, packed, has_ended: false, has_output: false }
    }

    fn begin(&mut self) {
        self.decoder.begin();
        self.has_ended = false;
        self.has_output = false;
    }

    /// Reads decompressed bytes; none at the end of the stream.
    fn read(&mut self, window: &mut [u8]) -> io::Result<usize> {
        while !self.has_ended {
            let step = self.decoder.run(self.packed.remaining(), window)?;
            self.packed.consume(step.read_bytes);
            self.has_ended = step.has_ended;
            self.has_output = !step.has_ended && step.written_bytes == window.len();
            if step.written_bytes > 0 {
                return Ok(step.written_bytes);
            }
            if !step.has_ended && self.packed.remaining().is_empty() {
                return Err(ErrorKind::WouldBlock.into());
            }
            if !step.has_ended && step.read_bytes == 0 {
                return Err(io::Error::other("it makes no progress"));
            }
        }
        Ok(0)
    }
}

impl StreamDecoder {
    fn new(kind: StreamKind, packed: PackedBytes) -> Self {
        let decoder = match kind {
            StreamKind::Gzip => return StreamDecoder::Gzip(GzDecoder::new(packed)),
            StreamKind::Zlib => RawDecoder::Zlib(Decompress::new(true)),
            StreamKind::Zstd => RawDecoder::Zstd(None),
        };
        StreamDecoder::Raw(RawStream::new(decoder, packed))
    }

    fn kind(&self) -> StreamKind {
        match self {
            StreamDecoder::Gzip(_) => StreamKind::Gzip,
            StreamDecoder::Raw(RawStream { decoder: RawDecoder::Zlib(_), .. }) => StreamKind::Zlib,
            StreamDecoder::Raw(RawStream { decoder: RawDecoder::Zstd(_), .. }) => StreamKind::Zstd,
        }
    }

    fn packed(&self) -> &PackedBytes {
        match self {
            StreamDecoder::Gzip(decoder) => decoder.get_ref(),
            StreamDecoder::Raw(stream) => &stream.packed,
        }
    }

    fn packed_mut(&mut self) -> &mut PackedBytes {
        match self {
            StreamDecoder::Gzip(decoder) => decoder.get_mut(),
            StreamDecoder::Raw(stream) => &mut stream.packed,
        }
    }

    /// Whether the decoder may hold bytes that it can return without further input. Gzip ends with a checksum, which is read after
    /// all bytes.
    fn has_output(&self) -> bool {
        matches!(self, StreamDecoder::Raw(stream) if stream.has_output)
    }

    /// Whether all bytes of the stream were returned. Gzip reports its end by a read without bytes.
    fn has_ended(&self) -> bool {
        matches!(self, StreamDecoder::Raw(stream) if stream.has_ended)
    }

    /// Begins another stream, whose first bytes may be fed already.
    fn begin_stream(&mut self) {
        match self {
            StreamDecoder::Gzip(decoder) => {
                let packed = std::mem::take(decoder.get_mut());
                drop(decoder.reset(packed));
            }
            StreamDecoder::Raw(stream) => stream.begin(),
        }
    }

    fn read(&mut self, window: &mut [u8]) -> io::Result<usize> {
        match self {
            StreamDecoder::Gzip(decoder) => decoder.read(window),
            StreamDecoder::Raw(stream) => stream.read(window),
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
        !self.text.is_empty()
            || !self.decoder.packed().remaining().is_empty()
            || self.decoder.has_output()
    }

    /// Whether all members have ended and all text was taken.
    pub(super) fn is_complete(&self) -> bool {
        (self.is_between_members || self.decoder.has_ended()) && !self.has_more()
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

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    use std::io::Write;

    fn pack(kind: StreamKind, text: &[u8]) -> Vec<u8> {
        match kind {
            StreamKind::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            StreamKind::Zlib => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            StreamKind::Zstd => zstd::bulk::compress(text, 1).unwrap(),
        }
    }

    /// Decompresses a stream that arrives in pieces. Returns the text, and whether the stream has ended.
    fn unpack(stream: &mut Gunzip, packed: &[u8], piece_bytes: usize) -> (Vec<u8>, bool) {
        let mut text = Vec::new();
        let mut pieces = packed.chunks(piece_bytes);
        loop {
            if stream.unpack(packed.len() as u64).unwrap() {
                text.extend_from_slice(stream.text());
                stream.consume_text(stream.text().len());
            } else if let Some(piece) = pieces.next() {
                assert_eq!(stream.feed(piece), piece.len());
            } else {
                return (text, stream.is_complete());
            }
        }
    }

    #[test]
    fn streams_of_all_kinds_are_read_to_their_end() {
        let text: Vec<u8> =
            (0..300_000u32).flat_map(|n| (n.wrapping_mul(n) / 7).to_le_bytes()).collect();
        let zeros = vec![0; 4 * WINDOW_BYTES];
        let mut stream = Gunzip::new(StreamKind::Gzip);
        for kind in [StreamKind::Gzip, StreamKind::Zlib, StreamKind::Zstd] {
            for text in [&text[..], &zeros, b"x"] {
                let packed = pack(kind, text);
                assert_eq!(StreamKind::recognise(&packed), Some(kind));
                for piece_bytes in [1000, WINDOW_BYTES] {
                    stream.begin(kind);
                    let (unpacked, is_complete) = unpack(&mut stream, &packed, piece_bytes);
                    assert!(unpacked == text && is_complete, "{kind:?} in {piece_bytes}");
                    stream.begin(kind);
                    let cut = &packed[..packed.len() - 1];
                    let (_, is_complete) = unpack(&mut stream, cut, piece_bytes);
                    assert!(!is_complete, "{kind:?} without its last byte");
                }
            }
        }
        let two_frames = [pack(StreamKind::Zstd, b"a"), pack(StreamKind::Zstd, b"b")].concat();
        stream.begin(StreamKind::Zstd);
        assert_eq!(unpack(&mut stream, &two_frames, 5), (b"ab".to_vec(), true));
    }

    #[test]
    fn heads_of_streams_are_unpacked() {
        let text: Vec<u8> = (0..200_000u32).map(|n| (n.wrapping_mul(n) >> 9) as u8).collect();
        for kind in [StreamKind::Gzip, StreamKind::Zlib, StreamKind::Zstd] {
            let head = unpack_head(&pack(kind, &text), 5000);
            assert_eq!(head.as_deref(), Some(&text[..5000]), "{kind:?}");
        }
        assert_eq!(unpack_head(b"plain text", 5000), None);
        assert_eq!(unpack_head(&ZSTD_MAGIC, 5000), None);
    }
}
