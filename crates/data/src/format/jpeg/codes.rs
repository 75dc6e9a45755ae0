//! Coefficients as bits: Huffman codes of their lengths (ITU T.81, annex F), and themselves.

use super::super::{FileSink, SinkError};
use super::noise::{Noise, WORDS};
use super::tables::Symbols;

/// Coded bytes that are gathered before they go to the sink; a power of two.
const CODED_BYTES: usize = 32 << 10;
/// More than a block's bits take.
const BLOCK_BYTES: usize = 8 * (WORDS + 1);

/// Bits that are written together.
#[derive(Clone, Copy)]
pub(super) struct Word {
    pub(super) value: u64,
    pub(super) bits: u32,
}

impl Word {
    /// The code of the number of bits of `value`, and of the zeros before it; then those bits. One less than a negative
    /// value is written.
    pub(super) fn of(codes: &[(u32, u32); 256], zeros: usize, value: i32) -> Self {
        let bits = u32::BITS - value.unsigned_abs().leading_zeros();
        let low = (value - i32::from(value < 0)) as u32 & ((1 << bits) - 1);
        let (code, code_bits) = codes[zeros << 4 | bits as usize];
        Word { value: u64::from(code << bits | low), bits: code_bits + bits }
    }

    /// With its first bit the highest.
    fn high(self) -> Self {
        Word { value: self.value << (64 - self.bits), ..self }
    }
}

/// By symbol: a code and its bits.
pub(super) fn by_symbol(table: &Symbols) -> [(u32, u32); 256] {
    let mut codes = [(0, 0); 256];
    let mut symbols = table.symbols.iter();
    let mut code = 0;
    for (bits, count) in (1..).zip(table.counts) {
        for symbol in symbols.by_ref().take(count.into()) {
            codes[usize::from(*symbol)] = (code, bits);
            code += 1;
        }
        code <<= 1;
    }
    codes
}

/// Writes coded blocks to a sink.
pub(super) struct Bits<'s> {
    sink: &'s mut dyn FileSink,
    coded: Box<[u8; CODED_BYTES + 8]>,
    end: End,
    /// What is coded, with a zero behind each 255.
    stuffed: Vec<u8>,
}

/// Where coded bits end.
#[derive(Clone, Copy, Default)]
struct End {
    /// Of whole words.
    bytes: usize,
    /// The bits after them, fewer than 64, the highest first; behind `count` of them all are zero.
    bits: u64,
    count: u32,
}

impl<'s> Bits<'s> {
    pub(super) fn new(sink: &'s mut dyn FileSink) -> Self {
        let coded = Box::new([0; CODED_BYTES + 8]);
        Bits { sink, coded, end: End::default(), stuffed: vec![0; 2 * CODED_BYTES] }
    }

    /// The block of `noise` that `content` stands for. Its first coefficient is told by its distance from `last`, that of
    /// the block before.
    #[inline(always)]
    pub(super) fn block(
        &mut self,
        noise: &Noise,
        content: &[u8; 64],
        last: &mut i16,
    ) -> Result<(), SinkError> {
        if self.end.bytes > CODED_BYTES - BLOCK_BYTES {
            self.send()?;
        }
        let (words, _) = content.as_chunks::<8>();
        let [choice, free @ ..]: &[[u8; 8]; WORDS + 1] =
            words.first_chunk().unwrap_or(&[[0; 8]; WORDS + 1]);
        let (first, pattern) = noise.block(u64::from_le_bytes(*choice));
        // A copy, so that it stays in registers.
        let mut end = self.end;
        end.put(noise.distance(first, *last).high(), &mut self.coded);
        pattern.words(free).for_each(|word| end.put(word, &mut self.coded));
        self.end = end;
        *last = first;
        Ok(())
    }

    /// End the last byte with ones. Gives the sink back.
    pub(super) fn finish(mut self) -> Result<&'s mut dyn FileSink, SinkError> {
        let ones = Word { value: 0x7f, bits: 7 };
        self.end.put(ones.high(), &mut self.coded);
        let End { bytes, bits, count } = self.end;
        self.coded[bytes..bytes + 8].copy_from_slice(&bits.to_be_bytes());
        self.end.bytes += (count / 8) as usize;
        self.send()?;
        Ok(self.sink)
    }

    /// Whole bytes go to the sink.
    fn send(&mut self) -> Result<(), SinkError> {
        let mut filled = 0;
        let (words, rest) = self.coded[..self.end.bytes].as_chunks::<8>();
        for word in words {
            if has_full_byte(u64::from_le_bytes(*word)) {
                stuff(word, &mut self.stuffed, &mut filled);
            } else {
                self.stuffed[filled..filled + 8].copy_from_slice(word);
                filled += 8;
            }
        }
        stuff(rest, &mut self.stuffed, &mut filled);
        self.end.bytes = 0;
        self.sink.write(0, &self.stuffed[..filled])
    }
}

impl End {
    /// Append bits that are the highest of their word, and all that are set there. Whether they fill a word cannot be
    /// foreseen: it is stored each time.
    #[inline(always)]
    fn put(&mut self, word: Word, coded: &mut [u8; CODED_BYTES + 8]) {
        let bits = self.bits | word.value >> self.count;
        coded[self.bytes % CODED_BYTES..][..8].copy_from_slice(&bits.to_be_bytes());
        let count = self.count + word.bits;
        let (full, rest) = (count >= 64, word.value << 1 << (63 - self.count));
        self.bits = if full { rest } else { bits };
        self.bytes += usize::from(full) * 8;
        self.count = count % 64;
    }
}

/// A zero behind 255 says that it begins no marker.
fn stuff(bytes: &[u8], stuffed: &mut [u8], filled: &mut usize) {
    for &byte in bytes {
        stuffed[*filled] = byte;
        stuffed[*filled + 1] = 0;
        *filled += 1 + usize::from(byte == 255);
    }
}

/// Whether one of eight bytes is 255.
fn has_full_byte(word: u64) -> bool {
    const LOW: u64 = u64::MAX / 255;
    (!word).wrapping_sub(LOW) & word & (LOW << 7) != 0
}
