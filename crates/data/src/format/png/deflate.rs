//! A zlib stream for noise, in `IDAT` chunks: blocks of Huffman codes (RFC 1951), no matches.
//!
//! What Pillow writes of noise looks so, after a long search: nothing repeats, and all bytes are equally frequent. So
//! one table fits every block: 255 codes of 8 bits, and two of 9 for the byte 255 and the end. A code is then the
//! byte with its bits reversed. The bytes written depend on no library's version.

use super::super::{FileSink, SinkError};
use simd_adler32::Adler32;

/// Literals of a block, as zlib has them at its default level.
const BLOCK_LITERALS: u64 = 32_767;
/// Data in a chunk, as Pillow writes it.
const CHUNK_DATA_BYTES: usize = 64 << 10;
/// Room for what is stored beyond a full chunk.
const SPILL_BYTES: usize = 16;
/// From deflate with a window of 32 KiB, at zlib's default level.
const ZLIB_HEADER: [u8; 2] = [0x78, 0x9c];
const ALL_ONES: u64 = u64::MAX;

/// The end of a block: nine ones.
const END: (u64, u32) = (0x1ff, 9);

/// The head of a block after its bit for the last, as (value, bits): kind 2, 257 literal codes, 2 distance codes, 18
/// lengths of codes that write the lengths of those.
const BLOCK_HEAD: (u64, u32) = (2 | 1 << 7 | 14 << 12, 16);
/// Of the lengths 16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1 occur 16, 8, 9 and 1, each by 2 bits.
const LENGTH_LENGTHS: (u64, u32) = (2 | 2 << (4 * 3) | 2 << (6 * 3) | 2 << (17 * 3), 18 * 3);
/// Codes of lengths, their bits in writing order.
const LENGTH_1: (u64, u32) = (0, 2);
const LENGTH_8: (u64, u32) = (2, 2);
const LENGTH_9: (u64, u32) = (1, 2);
/// The last length six times more.
const SIX_MORE: (u64, u32) = (3 | 3 << 2, 4);
/// 255 times 8 is once, 42 times six more, twice more.
const SIXES: usize = 42;
const BLOCK_BITS: u64 = 1 + 16 + 18 * 3 + 3 * 2 + SIXES as u64 * 4 + 4 * 2 + 9;

/// Bytes of all chunks, if of `literals` bytes `full` are 255.
pub(super) fn estimated_bytes(literals: u64, full: u64) -> u64 {
    let bits = u128::from(literals) * 8
        + u128::from(full)
        + u128::from(literals.div_ceil(BLOCK_LITERALS) * BLOCK_BITS);
    let zlib = 2 + u64::try_from(bits.div_ceil(8)).unwrap_or(u64::MAX / 2) + 4;
    zlib + zlib.div_ceil(CHUNK_DATA_BYTES as u64) * super::chunks::CHUNK_BYTES
}

/// Writes a stream of a length that is known.
pub(super) struct Noise<'s> {
    sink: &'s mut dyn FileSink,
    chunk: Vec<u8>,
    filled: usize,
    /// Fewer than 8 between calls.
    bit_count: u32,
    bits: u64,
    left: u64,
    left_in_block: u64,
    adler: Adler32,
}

impl<'s> Noise<'s> {
    /// For `literals` bytes, 1 at least.
    pub(super) fn new(literals: u64, sink: &'s mut dyn FileSink) -> Self {
        let mut noise = Noise {
            sink,
            chunk: vec![0; CHUNK_DATA_BYTES + SPILL_BYTES],
            filled: 0,
            bit_count: 0,
            bits: 0,
            left: literals,
            left_in_block: 0,
            adler: Adler32::new(),
        };
        noise.chunk[..2].copy_from_slice(&ZLIB_HEADER);
        noise.filled = 2;
        noise
    }

    /// The next bytes; after the last, [`Noise::finish`].
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.adler.write(bytes);
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.left_in_block == 0 {
                self.begin_block()?;
            }
            let now = self.left_in_block.min(rest.len() as u64) as usize;
            self.literals(&rest[..now])?;
            rest = &rest[now..];
            self.left -= now as u64;
            self.left_in_block -= now as u64;
            if self.left_in_block == 0 {
                self.put(END)?;
            }
        }
        Ok(())
    }

    /// End the stream. Gives the sink back.
    pub(super) fn finish(mut self) -> Result<&'s mut dyn FileSink, SinkError> {
        debug_assert_eq!(self.left, 0, "all bytes were announced");
        // To the next whole byte.
        self.put((0, (8 - self.bit_count) % 8))?;
        for byte in self.adler.finish().to_be_bytes() {
            self.put((u64::from(byte), 8))?;
        }
        if self.filled > 0 {
            write_chunk(b"IDAT", &self.chunk[..self.filled], self.sink)?;
        }
        Ok(self.sink)
    }

    fn begin_block(&mut self) -> Result<(), SinkError> {
        self.left_in_block = self.left.min(BLOCK_LITERALS);
        self.put((u64::from(self.left_in_block == self.left), 1))?;
        for word in [BLOCK_HEAD, LENGTH_LENGTHS, LENGTH_8] {
            self.put(word)?;
        }
        for _ in 0..SIXES {
            self.put(SIX_MORE)?;
        }
        for word in [LENGTH_8, LENGTH_8, LENGTH_9, LENGTH_9, LENGTH_1, LENGTH_1] {
            self.put(word)?;
        }
        Ok(())
    }

    fn literals(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        let (words, rest) = bytes.as_chunks::<8>();
        for bytes in words {
            let word = u64::from_le_bytes(*bytes);
            if has_full_byte(word) {
                self.single_literals(bytes)?;
                continue;
            }
            let codes = word.reverse_bits().swap_bytes();
            self.store(self.bits | codes << self.bit_count);
            // In two steps, as a shift by 64 is none.
            self.bits = codes >> 1 >> (63 - self.bit_count);
            self.filled += 8;
            self.spill()?;
        }
        self.single_literals(rest)
    }

    fn single_literals(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        for &byte in bytes {
            // The byte 255 is eight ones and a zero.
            self.put((u64::from(byte.reverse_bits()), 8 + u32::from(byte == 255)))?;
        }
        Ok(())
    }

    /// A few bits, the lowest first.
    fn put(&mut self, (value, count): (u64, u32)) -> Result<(), SinkError> {
        self.bits |= value << self.bit_count;
        self.bit_count += count;
        self.store(self.bits);
        let whole = self.bit_count / 8;
        self.filled += whole as usize;
        self.bits >>= 8 * whole;
        self.bit_count %= 8;
        self.spill()
    }

    fn store(&mut self, bits: u64) {
        self.chunk[self.filled..][..8].copy_from_slice(&bits.to_le_bytes());
    }

    /// Write the chunk once it is full.
    fn spill(&mut self) -> Result<(), SinkError> {
        if self.filled < CHUNK_DATA_BYTES {
            return Ok(());
        }
        write_chunk(b"IDAT", &self.chunk[..CHUNK_DATA_BYTES], self.sink)?;
        self.chunk.copy_within(CHUNK_DATA_BYTES..self.filled, 0);
        self.filled -= CHUNK_DATA_BYTES;
        Ok(())
    }
}

/// Whether one of eight bytes is 255.
fn has_full_byte(word: u64) -> bool {
    const LOW: u64 = ALL_ONES / 255;
    const HIGH: u64 = LOW << 7;
    let inverse = !word;
    inverse.wrapping_sub(LOW) & !inverse & HIGH != 0
}

/// A chunk with its checksum.
pub(super) fn write_chunk(
    kind: &[u8; 4],
    data: &[u8],
    sink: &mut dyn FileSink,
) -> Result<(), SinkError> {
    let mut crc = crc32fast::Hasher::new();
    crc.update(kind);
    crc.update(data);
    sink.write(0, &(data.len() as u32).to_be_bytes())?;
    sink.write(0, kind)?;
    sink.write(0, data)?;
    sink.write(0, &crc.finalize().to_be_bytes())
}
