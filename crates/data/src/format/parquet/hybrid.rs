//! Decodes definition levels and dictionary indexes, which are stored as runs of one value or as packed bits
//! (`Encodings.md`, "RLE / bit-packing hybrid").

/// Upper limit on the bits of a number.
const WIDTH_MAX: u32 = 32;

/// Position in a sequence of numbers. The bytes are an argument of each method.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HybridReader {
    width: u32,
    offset: usize,
    run: NumberRun,
}

#[derive(Clone, Copy, Debug)]
enum NumberRun {
    Same { value: u32, left: u64 },
    Packed { bit: usize, left: u64 },
}

impl Default for NumberRun {
    fn default() -> Self {
        NumberRun::Same { value: 0, left: 0 }
    }
}

impl HybridReader {
    /// The sequence of numbers of `width` bits that begins at `offset` of the bytes; `None` if they are too wide.
    pub(super) fn new(width: u32, offset: usize) -> Option<Self> {
        // Numbers of 0 bits are all 0 and take no bytes.
        let left = if width == 0 { u64::MAX } else { 0 };
        let run = NumberRun::Same { value: 0, left };
        (width <= WIDTH_MAX).then_some(HybridReader { width, offset, run })
    }

    /// The next number, and the least number of times that it is repeated. `None` at the end of the bytes.
    pub(super) fn peek_run(&mut self, bytes: &[u8]) -> Option<(u32, u64)> {
        loop {
            match self.run {
                NumberRun::Same { value, left } if left > 0 => return Some((value, left)),
                NumberRun::Packed { bit, left } if left > 0 => {
                    return Some((self.unpack(bytes, bit)?, 1));
                }
                _ => self.run = self.next_run(bytes)?,
            }
        }
    }

    /// Skips `count` numbers, at most as many as [`HybridReader::peek_run`] returned.
    pub(super) fn skip(&mut self, count: u64) {
        match &mut self.run {
            NumberRun::Same { left, .. } => *left = left.saturating_sub(count),
            NumberRun::Packed { bit, left } => {
                *left = left.saturating_sub(count);
                *bit += self.width as usize * count as usize;
            }
        }
    }

    fn next_run(&mut self, bytes: &[u8]) -> Option<NumberRun> {
        let mut head = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = *bytes.get(self.offset)?;
            self.offset += 1;
            head |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return self.run_from_head(head, bytes);
            }
        }
        None
    }

    fn run_from_head(&mut self, head: u64, bytes: &[u8]) -> Option<NumberRun> {
        let count = head >> 1;
        let start = self.offset;
        if head & 1 == 0 {
            self.offset += self.width.div_ceil(8) as usize;
            let field = bytes.get(start..self.offset)?;
            let value = field.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
            return Some(NumberRun::Same { value, left: count });
        }
        // Groups of 8 numbers. The last group may be truncated after its last number.
        let packed_bytes = usize::try_from(count).ok()?.checked_mul(self.width as usize)?;
        self.offset = start.checked_add(packed_bytes)?.min(bytes.len());
        Some(NumberRun::Packed { bit: start * 8, left: count * 8 })
    }

    fn unpack(&self, bytes: &[u8], bit: usize) -> Option<u32> {
        let last = (bit + self.width as usize - 1) / 8;
        let touched = bytes.get(bit / 8..=last)?;
        let word = touched.iter().rev().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
        Some((word >> (bit % 8) & ((1 << self.width) - 1)) as u32)
    }
}
