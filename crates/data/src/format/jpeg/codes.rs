//! Coefficients as bits: Huffman codes of their lengths (ITU T.81, annex F), and themselves.

use super::super::{FileSink, SinkError};
use super::blocks::Block;
use super::tables::Symbols;

/// Bytes gathered before they go to the sink.
const GATHERED_BYTES: usize = 64 << 10;
/// More than a block's bits take: 64 times 27 of them.
const BLOCK_BYTES: usize = 256;
/// No coefficient follows.
const END: usize = 0;
/// Sixteen zeros.
const ZEROS: usize = 0xf0;

/// By symbol: a code and its bits.
pub(super) struct Codes([(u16, u8); 256]);

impl Codes {
    pub(super) const fn new(table: &Symbols) -> Self {
        let mut codes = [(0, 0); 256];
        let (mut code, mut i, mut bits) = (0, 0, 1);
        while bits <= 16 {
            let end = i + table.counts[bits - 1] as usize;
            while i < end {
                codes[table.symbols[i] as usize] = (code, bits as u8);
                code += 1;
                i += 1;
            }
            code <<= 1;
            bits += 1;
        }
        Codes(codes)
    }
}

/// Writes coded blocks to a sink.
pub(super) struct Bits<'s> {
    sink: &'s mut dyn FileSink,
    gathered: Vec<u8>,
    filled: usize,
    /// Of the byte that the last block ended in.
    pending: Pending,
}

/// Fewer than 8 bits, the highest first; behind `count` of them all are zero.
#[derive(Clone, Copy, Default)]
struct Pending {
    bits: u64,
    count: u32,
}

impl<'s> Bits<'s> {
    pub(super) fn new(sink: &'s mut dyn FileSink) -> Self {
        // With room for a block, each byte of which may get one behind it.
        let gathered = vec![0; GATHERED_BYTES + 2 * BLOCK_BYTES];
        Bits { sink, gathered, filled: 0, pending: Pending::default() }
    }

    /// A block, of which the first coefficient is told by its distance from `last`, that of the block before.
    pub(super) fn block(
        &mut self,
        block: &Block,
        last: &mut i16,
        first: &Codes,
        others: &Codes,
    ) -> Result<(), SinkError> {
        let mut run = Run::new(self.pending);
        let distance = block.coefficients[0] - *last;
        *last = block.coefficients[0];
        run.coefficient(distance, 0, first);
        let mut nonzero = block.nonzero & !1;
        let mut at = 1;
        while nonzero != 0 {
            let next = nonzero.trailing_zeros() as usize;
            nonzero &= nonzero - 1;
            let mut zeros = next - at;
            while zeros > 15 {
                run.symbol(ZEROS, others);
                zeros -= 16;
            }
            run.coefficient(block.coefficients[next & 63], zeros << 4, others);
            at = next + 1;
        }
        if at < 64 {
            run.symbol(END, others);
        }
        self.append(&run)
    }

    /// A block beyond the picture: it is like the one before, and flat.
    pub(super) fn no_block(&mut self, first: &Codes, others: &Codes) -> Result<(), SinkError> {
        let mut run = Run::new(self.pending);
        run.symbol(0, first);
        run.symbol(END, others);
        self.append(&run)
    }

    /// End the last byte with ones. Gives the sink back.
    pub(super) fn finish(mut self) -> Result<&'s mut dyn FileSink, SinkError> {
        let mut run = Run::new(self.pending);
        run.put(0x7f, 7);
        self.append(&run)?;
        self.sink.write(0, &self.gathered[..self.filled])?;
        Ok(self.sink)
    }

    fn append(&mut self, run: &Run) -> Result<(), SinkError> {
        self.pending = run.pending;
        let (words, rest) = run.bytes[..run.filled].as_chunks::<8>();
        for word in words {
            if has_full_byte(u64::from_be_bytes(*word)) {
                self.bytes(word);
            } else {
                self.gathered[self.filled..][..8].copy_from_slice(word);
                self.filled += 8;
            }
        }
        self.bytes(rest);
        if self.filled >= GATHERED_BYTES {
            self.sink.write(0, &self.gathered[..self.filled])?;
            self.filled = 0;
        }
        Ok(())
    }

    /// A zero behind 255 says that it begins no marker.
    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.gathered[self.filled] = byte;
            self.gathered[self.filled + 1] = 0;
            self.filled += 1 + usize::from(byte == 255);
        }
    }
}

/// The bits of one block, which calls nothing else, so that what changes stays in registers.
struct Run {
    bytes: [u8; BLOCK_BYTES + 8],
    filled: usize,
    pending: Pending,
}

impl Run {
    fn new(pending: Pending) -> Self {
        Run { bytes: [0; BLOCK_BYTES + 8], filled: 0, pending }
    }

    #[inline]
    fn symbol(&mut self, symbol: usize, codes: &Codes) {
        let (code, count) = codes.0[symbol];
        self.put(code.into(), count.into());
    }

    /// The bits of `value`, of which the symbol tells how many there are. One less than a negative value is written.
    #[inline]
    fn coefficient(&mut self, value: i16, zeros: usize, codes: &Codes) {
        let count = 16 - value.unsigned_abs().leading_zeros();
        let low = (i32::from(value) + i32::from(value >> 15)) as u32 & ((1 << count) - 1);
        let (code, code_count) = codes.0[(zeros | count as usize) & 255];
        self.put(u32::from(code) << count | low, u32::from(code_count) + count);
    }

    /// Up to 27 bits. Stores whole bytes each time: whether a word is full cannot be foreseen.
    #[inline]
    fn put(&mut self, bits: u32, count: u32) {
        let Pending { bits: before, count: count_before } = self.pending;
        let count = count_before + count;
        let bits = before | u64::from(bits) << (64 - count);
        self.bytes[self.filled % BLOCK_BYTES..][..8].copy_from_slice(&bits.to_be_bytes());
        self.filled += (count / 8) as usize;
        self.pending = Pending { bits: bits << (count & !7), count: count % 8 };
    }
}

/// Whether one of eight bytes is 255.
fn has_full_byte(word: u64) -> bool {
    const LOW: u64 = u64::MAX / 255;
    (!word).wrapping_sub(LOW) & word & (LOW << 7) != 0
}
