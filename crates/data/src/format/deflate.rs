//! Streaming compression and decompression by deflate, in constant memory. Shared by the formats that use deflate.

use super::{FileSink, FormatError, SinkError};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// Number of bytes compressed at once. At level 0 the output depends on it.
const PIECE_BYTES: usize = 64 << 10;
/// A gzip header (RFC 1952) without name, time and system, so that equal input gives equal bytes.
const GZIP_HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// Length of a gzip header without optional fields, and the flags of these fields.
const GZIP_HEADER_BYTES: usize = 10;
const HAS_CRC: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;

/// A sink that compresses the bytes of part 0 and passes them on to another sink.
pub(super) struct DeflateSink<'s> {
    inner: &'s mut dyn FileSink,
    level: Compression,
    is_zlib: bool,
    /// Created at the first use, like the buffers `space` and `packed`, because some files have no compressed bytes.
    deflate: Option<Compress>,
    crc: crc32fast::Hasher,
    space: Vec<u8>,
    packed: Vec<u8>,
    packed_bytes: u64,
}

impl<'s> DeflateSink<'s> {
    pub(super) fn new(level: u32, inner: &'s mut dyn FileSink) -> Self {
        Self::with_wrapper(level, false, inner)
    }

    /// A sink whose streams have the header and checksum of zlib (RFC 1950).
    pub(super) fn zlib(level: u32, inner: &'s mut dyn FileSink) -> Self {
        Self::with_wrapper(level, true, inner)
    }

    fn with_wrapper(level: u32, is_zlib: bool, inner: &'s mut dyn FileSink) -> Self {
        DeflateSink {
            inner,
            level: Compression::new(zlib_rs_level(level)),
            is_zlib,
            deflate: None,
            crc: crc32fast::Hasher::new(),
            space: Vec::new(),
            packed: Vec::new(),
            packed_bytes: 0,
        }
    }

    /// The sink for the bytes around the compressed streams.
    pub(super) fn inner(&mut self) -> &mut dyn FileSink {
        self.inner
    }

    /// CRC-32 of the stream's input so far.
    pub(super) fn crc(&self) -> u32 {
        self.crc.clone().finalize()
    }

    /// Bytes of the stream written so far.
    pub(super) fn packed_bytes(&self) -> u64 {
        self.packed_bytes
    }

    /// Begins another stream.
    pub(super) fn reset(&mut self) {
        if let Some(deflate) = &mut self.deflate {
            deflate.reset();
        }
        self.crc.reset();
        self.packed_bytes = 0;
    }

    /// Ends the stream.
    pub(super) fn finish(&mut self) -> Result<(), SinkError> {
        self.pack(0, FlushCompress::Finish)
    }

    /// Begins a stream in a gzip file.
    pub(super) fn begin_gzip(&mut self) -> Result<(), SinkError> {
        self.reset();
        self.write_inner(&GZIP_HEAD)
    }

    /// Ends a stream begun by [`DeflateSink::begin_gzip`].
    pub(super) fn finish_gzip(&mut self) -> Result<(), SinkError> {
        self.finish()?;
        let crc = self.crc();
        self.write_inner(&crc.to_le_bytes())?;
        // Gzip stores the length modulo 2³².
        let bytes = self.deflate.as_ref().map_or(0, Compress::total_in);
        self.write_inner(&(bytes as u32).to_le_bytes())
    }

    fn write_inner(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.packed_bytes += bytes.len() as u64;
        self.inner.write(0, bytes)
    }

    /// Compresses the first `len` bytes of `space`.
    fn pack(&mut self, len: usize, flush: FlushCompress) -> Result<(), SinkError> {
        self.crc.update(&self.space[..len]);
        self.packed.resize(PIECE_BYTES, 0);
        let deflate = self.deflate.get_or_insert_with(|| Compress::new(self.level, self.is_zlib));
        let mut used = 0;
        loop {
            let before_in = deflate.total_in();
            let before_out = deflate.total_out();
            let status = deflate.compress(&self.space[used..len], &mut self.packed, flush);
            let status =
                status.unwrap_or_else(|_| unreachable!("compression in memory cannot fail"));
            used += (deflate.total_in() - before_in) as usize;
            let out = (deflate.total_out() - before_out) as usize;
            self.packed_bytes += out as u64;
            self.inner.write(0, &self.packed[..out])?;
            let is_done = match flush {
                FlushCompress::Finish => status == Status::StreamEnd,
                _ => used == len,
            };
            if is_done {
                return Ok(());
            }
        }
    }
}

/// The level of zlib-rs that compresses like `level` of zlib. Level 1 of zlib-rs uses fixed Huffman codes, so random
/// content grows by 5 % and is decompressed four times slower than with zlib.
fn zlib_rs_level(level: u32) -> u32 {
    if level == 1 { 2 } else { level }
}

impl FileSink for DeflateSink<'_> {
    fn space(&mut self, _part: usize) -> &mut [u8] {
        self.space.resize(PIECE_BYTES, 0);
        &mut self.space
    }

    fn advance(&mut self, _part: usize, len: usize) -> Result<(), SinkError> {
        self.pack(len, FlushCompress::None)
    }

    /// Not supported: compressed bytes cannot be changed later, so formats reserve nothing inside a stream.
    fn reserve(&mut self, part: usize, len: usize) -> Result<(), SinkError> {
        debug_assert!(false, "{len} bytes of part {part} cannot be reserved in a stream");
        Ok(())
    }

    fn patch(&mut self, part: usize, offset: u64, _bytes: &[u8]) -> Result<(), SinkError> {
        debug_assert!(false, "byte {offset} of part {part} is already compressed");
        Ok(())
    }
}

/// Decompresses a stream, one window at a time.
pub(super) struct Inflate {
    state: Decompress,
    is_zlib: bool,
    window: Vec<u8>,
}

/// Receives decompressed bytes with an offset.
pub(super) type InflateOutput<'t> = dyn FnMut(u64, &[u8]) -> Result<(), FormatError> + 't;

impl Inflate {
    pub(super) fn new() -> Self {
        Self::with_wrapper(false)
    }

    /// A decompressor for streams with the header and checksum of zlib (RFC 1950).
    pub(super) fn zlib() -> Self {
        Self::with_wrapper(true)
    }

    fn with_wrapper(is_zlib: bool) -> Self {
        Inflate { state: Decompress::new(is_zlib), is_zlib, window: vec![0; PIECE_BYTES] }
    }

    /// Begins another stream.
    pub(super) fn reset(&mut self) {
        self.state.reset(self.is_zlib);
    }

    /// Decompresses `packed`, which begins at `offset` of the file, up to its end or the end of the stream. `output`
    /// receives the decompressed bytes with the offset reached in the file. Returns the number of bytes used, and whether
    /// the stream has ended.
    pub(super) fn decompress(
        &mut self,
        packed: &[u8],
        offset: u64,
        output: &mut InflateOutput,
    ) -> Result<(usize, bool), FormatError> {
        let mut used = 0;
        loop {
            let before_in = self.state.total_in();
            let before_out = self.state.total_out();
            let status =
                self.state.decompress(&packed[used..], &mut self.window, FlushDecompress::None);
            let broken = |reason| {
                FormatError::new(offset + used as u64, format!("broken deflate stream: {reason}"))
            };
            let status = status.map_err(|error| broken(error.to_string()))?;
            let step_bytes = (self.state.total_in() - before_in) as usize;
            let output_bytes = (self.state.total_out() - before_out) as usize;
            let is_end = status == Status::StreamEnd;
            if !is_end && step_bytes == 0 && output_bytes == 0 && used < packed.len() {
                return Err(broken("it makes no progress".to_string()));
            }
            used += step_bytes;
            output(offset + used as u64, &self.window[..output_bytes])?;
            // With a full window, there may be more output without further input.
            let is_full = output_bytes == self.window.len();
            if is_end || (used == packed.len() && !is_full) {
                return Ok((used, is_end));
            }
        }
    }
}

/// Length of the gzip header (RFC 1952) that `header` begins with; `None` if it is incomplete.
pub(super) fn gzip_header_bytes(header: &[u8]) -> Option<usize> {
    let flags = header.get(3)?;
    let mut end = GZIP_HEADER_BYTES;
    if flags & HAS_EXTRA != 0 {
        let extra_bytes = header.get(end..)?.first_chunk().copied().map(u16::from_le_bytes)?;
        end += 2 + usize::from(extra_bytes);
    }
    for has_text in [HAS_NAME, HAS_COMMENT] {
        if flags & has_text != 0 {
            end += memchr::memchr(0, header.get(end..)?)? + 1;
        }
    }
    if flags & HAS_CRC != 0 {
        end += 2;
    }
    (end <= header.len()).then_some(end)
}
