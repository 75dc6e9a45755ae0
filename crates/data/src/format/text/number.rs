//! One number of each element type: from text, to text.
//!
//! Text of a float is the shortest that reads back as the same float, so that every finite one returns bit for bit.

use super::{float16, single};

/// The longest text of a number that is written, with room to spare.
pub(super) const TEXT_BYTES_MAX: usize = 32;

/// An element as it is read and written.
pub(in super::super) trait Number: Copy {
    const BYTES: usize;

    /// The number that `text[start..end]` is, if it is written as most are. Looks at bytes before `start` too, to
    /// take whole words: close to the start of `text` it finds nothing.
    fn plain(text: &[u8], start: usize, end: usize) -> Option<Self>;

    /// The number that `field` is, however written.
    fn parse(field: &[u8]) -> Option<Self>;

    /// What stands for a missing number.
    fn missing() -> Option<Self>;

    /// Its little-endian bytes into `slot`, which has that many.
    fn put(self, slot: &mut [u8]);

    /// Append the text of the numbers that `payload` is, each with a comma after it.
    fn write_all(payload: &[u8], text: &mut Vec<u8>) {
        for bytes in payload.chunks_exact(Self::BYTES) {
            Self::write(bytes, text);
            text.push(b',');
        }
    }

    /// Append the text of the number that `bytes` are.
    fn write(bytes: &[u8], text: &mut Vec<u8>);
}

/// Eight digits `0`.
pub(super) const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The number whose digits are `text[start..end]`, at most 8 times `WORDS` of them, by eight digits at once
/// (Johnny Lee's and Mula's multiplication).
#[inline(always)]
fn digits<const WORDS: usize>(text: &[u8], start: usize, end: usize) -> Option<u64> {
    let len = end.wrapping_sub(start);
    if len.wrapping_sub(1) >= 8 * WORDS {
        return None;
    }
    let (words, _) = text.get(end.checked_sub(8 * WORDS)?..end)?.as_chunks::<8>();
    let mut number = 0u64;
    let mut wrong = 0;
    for (i, word) in words.iter().enumerate() {
        let wanted = len.saturating_sub(8 * (WORDS - 1 - i)).min(8) as u32;
        let mask = u64::MAX.checked_shl(64 - 8 * wanted).unwrap_or(0);
        let word = (u64::from_le_bytes(*word) ^ ZEROS) & mask;
        let eight;
        (eight, wrong) = eight_digits(word, wrong);
        number = match WORDS {
            1 => eight,
            2 => number.wrapping_mul(100_000_000).wrapping_add(eight),
            _ => number.checked_mul(100_000_000)?.checked_add(eight)?,
        };
    }
    (wrong == 0).then_some(number)
}

/// The number of eight digits less `ZEROS` each, the first in the lowest byte; and `wrong`, with more bits where one is no digit.
#[inline(always)]
pub(super) fn eight_digits(word: u64, wrong: u64) -> (u64, u64) {
    let more = (word.wrapping_add(0x7676_7676_7676_7676) | word) & 0x8080_8080_8080_8080;
    let pairs = word.wrapping_mul(10).wrapping_add(word >> 8);
    let high = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let low = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    (high.wrapping_add(low) >> 32, wrong | more)
}

/// Digits before a field that is looked at alone.
const PADDING_BYTES: usize = 24;

macro_rules! integers {
    ($($integer:ty: $words:literal),*) => {$(
        impl Number for $integer {
            const BYTES: usize = size_of::<$integer>();

            #[inline(always)]
            fn plain(text: &[u8], start: usize, end: usize) -> Option<Self> {
                let negative = <$integer>::MIN != 0 && text.get(start) == Some(&b'-');
                let size = digits::<$words>(text, start + usize::from(negative), end)?;
                if size > <$integer>::MAX as u64 + u64::from(negative) {
                    return None;
                }
                let number = size as $integer;
                Some(if negative { number.wrapping_neg() } else { number })
            }

            fn parse(field: &[u8]) -> Option<Self> {
                let mut padded = [b'0'; 2 * PADDING_BYTES];
                let end = PADDING_BYTES + field.len();
                padded.get_mut(PADDING_BYTES..end)?.copy_from_slice(field);
                Self::plain(&padded, PADDING_BYTES, end)
            }

            fn missing() -> Option<Self> {
                None
            }

            #[inline(always)]
            fn put(self, slot: &mut [u8]) {
                slot.copy_from_slice(&self.to_le_bytes());
            }

            #[inline(always)]
            fn write(bytes: &[u8], text: &mut Vec<u8>) {
                if let Some(bytes) = bytes.first_chunk() {
                    let number = <$integer>::from_le_bytes(*bytes);
                    text.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
                }
            }
        }
    )*};
}

integers!(u8: 1, i8: 1, u16: 1, i16: 1, u32: 2, i32: 2, u64: 3, i64: 3);

/// By byte: its text with a comma after it, and how long that is.
static BYTE_TEXTS: [([u8; 4], u8); 256] = byte_texts();

const fn byte_texts() -> [([u8; 4], u8); 256] {
    let mut texts = [([0; 4], 0); 256];
    let mut number = 0;
    while number < 256 {
        let digits = [number / 100, number / 10 % 10, number % 10];
        let mut from = 0;
        while from < 2 && digits[from] == 0 {
            from += 1;
        }
        let (text, len) = &mut texts[number];
        let mut i = from;
        while i < 3 {
            text[i - from] = b'0' + digits[i] as u8;
            i += 1;
        }
        text[3 - from] = b',';
        *len = (4 - from) as u8;
        number += 1;
    }
    texts
}

/// As [`Number::write_all`] of `u8`, several times as fast: four bytes are stored whatever is needed of them.
pub(super) fn write_bytes(payload: &[u8], text: &mut Vec<u8>) {
    let mut at = text.len();
    text.resize(at + 4 * payload.len(), 0);
    for byte in payload {
        let (four, len) = BYTE_TEXTS[usize::from(*byte)];
        text[at..at + 4].copy_from_slice(&four);
        at += usize::from(len);
    }
    text.truncate(at);
}

macro_rules! floats {
    ($($float:ty: $plain:expr),*) => {$(
        impl Number for $float {
            const BYTES: usize = size_of::<$float>();

            #[inline(always)]
            fn plain(text: &[u8], start: usize, end: usize) -> Option<Self> {
                $plain(text, start, end).or_else(|| Self::parse(text.get(start..end)?))
            }

            #[inline(always)]
            fn parse(field: &[u8]) -> Option<Self> {
                fast_float2::parse(field).ok()
            }

            fn missing() -> Option<Self> {
                Some(<$float>::NAN)
            }

            #[inline(always)]
            fn put(self, slot: &mut [u8]) {
                slot.copy_from_slice(&self.to_le_bytes());
            }

            #[inline(always)]
            fn write(bytes: &[u8], text: &mut Vec<u8>) {
                if let Some(bytes) = bytes.first_chunk() {
                    let number = <$float>::from_le_bytes(*bytes);
                    text.extend_from_slice(zmij::Buffer::new().format(number).as_bytes());
                }
            }
        }
    )*};
}

floats!(f32: single::nearest, f64: |_, _, _| None);

/// A half, by its bits.
#[derive(Clone, Copy)]
pub(in super::super) struct Half(u16);

impl Number for Half {
    const BYTES: usize = 2;

    #[inline(always)]
    fn plain(text: &[u8], start: usize, end: usize) -> Option<Self> {
        Self::parse(text.get(start..end)?)
    }

    #[inline(always)]
    fn parse(field: &[u8]) -> Option<Self> {
        f64::parse(field).map(|number| Half(float16::from_f64(number)))
    }

    fn missing() -> Option<Self> {
        Some(Half(float16::from_f64(f64::NAN)))
    }

    #[inline(always)]
    fn put(self, slot: &mut [u8]) {
        self.0.put(slot);
    }

    fn write(bytes: &[u8], text: &mut Vec<u8>) {
        if let Some(bytes) = bytes.first_chunk() {
            let number = float16::shortest(u16::from_le_bytes(*bytes));
            text.extend_from_slice(zmij::Buffer::new().format(number).as_bytes());
        }
    }
}

/// Bytes whose commas are looked for at once.
const BLOCK_BYTES: usize = 64;

/// Read numbers that end in commas, from `text[from]` on, into `slots`, while they are plain and there is room: bytes
/// used, and numbers. One space may stand before a number.
pub(in super::super) fn plain_run<N: Number>(
    text: &[u8],
    from: usize,
    slots: &mut [u8],
) -> (usize, usize) {
    let mut slots = slots.chunks_exact_mut(N::BYTES);
    let (mut start, mut count) = (from, 0);
    let (blocks, _) = text[from..].as_chunks::<BLOCK_BYTES>();
    let mut block_start = from;
    for block in blocks {
        let mut commas = commas_in(block);
        while commas != 0 {
            let end = block_start + commas.trailing_zeros() as usize;
            commas &= commas - 1;
            let space = usize::from(text[start] == b' ');
            let Some(number) = N::plain(text, start + space, end) else {
                return (start - from, count);
            };
            let Some(slot) = slots.next() else { return (start - from, count) };
            number.put(slot);
            start = end + 1;
            count += 1;
        }
        // No comma since a block before this one: the field is long, or the row ends.
        if start < block_start {
            break;
        }
        block_start += BLOCK_BYTES;
    }
    (start - from, count)
}

/// A bit for each comma.
#[inline(always)]
fn commas_in(block: &[u8; BLOCK_BYTES]) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    const COMMAS: u64 = 0x2c2c_2c2c_2c2c_2c2c;
    let (words, _) = block.as_chunks::<8>();
    let mut mask = 0;
    for (i, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word) ^ COMMAS;
        // The top bit of each byte that is zero, exactly; then all of them side by side.
        let zero = !((word & LOW).wrapping_add(LOW) | word | LOW);
        let bits = (zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= bits << (8 * i);
    }
    mask
}
