//! The nearest single of a decimal number, where one multiplication of doubles can tell it: twice as fast as looking at all
//! digits. What it cannot tell it leaves to others.

use super::number::{ZEROS, eight_digits};

/// Powers of ten from 10^-`POWER_MAX` to 10^`POWER_MAX`.
const POWER_MAX: i32 = 60;
static POWERS: [f64; 2 * POWER_MAX as usize + 1] = powers();

/// Digits that a double holds exactly, whatever they are.
const DIGITS_MAX: usize = 15;
/// Bits of a double that a single does not have.
const LOST_BITS: u32 = 52 - 23;
/// A power and a product are each half a unit off at most; this is far more.
const DOUBT_UNITS: u64 = 8;

/// More than a field that is looked at has, with what is loaded behind it.
const WINDOW_BYTES: usize = 48;
/// Powers of ten that eight digits are shifted by, with room for an index of four bits.
const TENS: [u64; 16] = tens();

/// The number `text[start..end]`, written `[-]digits[.digits][e[-+]digits]`; `None` where it is written otherwise, has many
/// digits, lies too near the middle between two singles, or close to the end of `text`.
///
/// How long the parts are differs from number to number and cannot be foreseen: nothing branches on it.
#[inline(always)]
pub(super) fn nearest(text: &[u8], start: usize, end: usize) -> Option<f32> {
    let window: &[u8; WINDOW_BYTES] = text.get(start..)?.first_chunk()?;
    let end = end.wrapping_sub(start);
    let negative = window[0] == b'-';
    let mut at = usize::from(negative);
    let (mut digits, whole) = some_digits(window, at);
    at += whole;
    let mut behind = 0;
    if window[at] == b'.' {
        at += 1;
        // A second time for small numbers that are written without an exponent.
        for _ in 0..2 {
            let (number, count) = some_digits(window, at);
            digits = digits.wrapping_mul(TENS[count % 16]).wrapping_add(number);
            behind += count;
            at += count;
            if count < 8 {
                break;
            }
        }
    }
    if (whole + behind).wrapping_sub(1) >= DIGITS_MAX {
        return None;
    }
    let exponent = if at == end { 0 } else { exponent(window, at, end)? };
    let power = exponent - behind as i32;
    let power = POWERS.get(usize::try_from(power + POWER_MAX).ok()?)?;
    let magnitude = single(digits as f64 * power)?;
    // As a bit: a sign is as likely as none.
    Some(f32::from_bits(magnitude.to_bits() | u32::from(negative) << 31))
}

/// The number of the digits from `at` on, at most eight, and how many they are.
#[inline(always)]
fn some_digits(window: &[u8; WINDOW_BYTES], at: usize) -> (u64, usize) {
    let Some(eight) = window[at..].first_chunk() else { return (0, 0) };
    let word = u64::from_le_bytes(*eight) ^ ZEROS;
    // The lowest of these bits is that of the first byte that is no digit; those after it may be wrong.
    let others = (word.wrapping_add(0x7676_7676_7676_7676) | word) & 0x8080_8080_8080_8080;
    let count = others.trailing_zeros() / 8;
    // Digits move to the end, behind zeros; in two steps, as none may be left.
    let shift = 32 - 4 * count;
    (eight_digits(word << shift << shift, 0).0, count as usize)
}

/// What follows the digits: `e` and a number of at most two digits, up to `end`.
#[inline(always)]
fn exponent(window: &[u8; WINDOW_BYTES], at: usize, end: usize) -> Option<i32> {
    let (mark, sign) = (window[at], window[at + 1]);
    let from = at + 1 + usize::from(matches!(sign, b'-' | b'+'));
    let count = end.wrapping_sub(from);
    let digit = |at: usize| Some(window.get(at)?.wrapping_sub(b'0'));
    let (high, low) = (digit(end.wrapping_sub(2))?, digit(end.wrapping_sub(1))?);
    let high = if count == 2 { high } else { 0 };
    if mark | 0x20 != b'e' || count.wrapping_sub(1) >= 2 || high > 9 || low > 9 {
        return None;
    }
    let size = i32::from(10 * high + low);
    Some(if sign == b'-' { -size } else { size })
}

/// Rounded, where the doubt about the last bits of `double` does not matter.
#[inline(always)]
fn single(double: f64) -> Option<f32> {
    if double == 0.0 {
        return Some(0.0);
    }
    if !(f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX)).contains(&double) {
        return None;
    }
    let lost = double.to_bits() & ((1 << LOST_BITS) - 1);
    let middle = 1 << (LOST_BITS - 1);
    (lost.abs_diff(middle) > DOUBT_UNITS).then_some(double as f32)
}

/// By multiplication and division of exact powers: those up to 10^22 are exact, the others a few units off at most.
const fn powers() -> [f64; 2 * POWER_MAX as usize + 1] {
    const EXACT: i32 = 22;
    let mut all = [1.0; 2 * POWER_MAX as usize + 1];
    let mut power = 1;
    while power <= POWER_MAX {
        let step = if power <= EXACT { power - 1 } else { power - EXACT };
        let larger = all[(POWER_MAX + step) as usize]
            * if power <= EXACT { 10.0 } else { all[(POWER_MAX + EXACT) as usize] };
        all[(POWER_MAX + power) as usize] = larger;
        all[(POWER_MAX - power) as usize] = 1.0 / larger;
        power += 1;
    }
    all
}

const fn tens() -> [u64; 16] {
    let mut tens = [1; 16];
    let mut i = 1;
    while i < 16 {
        tens[i] = tens[i - 1] * 10;
        i += 1;
    }
    tens
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    /// As a field among others.
    fn nearest(field: &[u8]) -> Option<f32> {
        let text = [b"7,", field, b",1234567890123456789012345678901234567890123456789"].concat();
        super::nearest(&text, 2, 2 + field.len())
    }

    proptest! {
        #[test]
        fn what_is_told_is_the_nearest(digits in 0u64..1_000_000_000_000_000, point in 0usize..16, power in -50i32..50, negative: bool) {
            let mut text = format!("{digits:015}");
            text.insert(point.min(15), '.');
            let text = format!("{}{text}e{power}", if negative { "-" } else { "" });
            if let Some(number) = nearest(text.as_bytes()) {
                prop_assert_eq!(number.to_bits(), text.parse::<f32>().unwrap().to_bits(), "{}", text);
            }
        }

        /// Also close to the middle between two singles, where it may not know.
        #[test]
        fn middles_are_never_rounded_wrongly(bits in 0x0080_0000u32..0x7f00_0000, off in -2i64..3) {
            let middle = (f64::from(f32::from_bits(bits)) + f64::from(f32::from_bits(bits + 1))) / 2.0;
            let text = format!("{:e}", f64::from_bits((middle.to_bits() as i64 + off) as u64));
            if let Some(number) = nearest(text.as_bytes()) {
                prop_assert_eq!(number, text.parse::<f32>().unwrap(), "{}", text);
            }
        }

        #[test]
        fn shortest_texts_are_told_rightly(bits in 0x0200_0000u32..0x7e00_0000) {
            let number = f32::from_bits(bits);
            let mut buffer = zmij::Buffer::new();
            // A shortest text can be the very middle, which is left to others.
            if let Some(told) = nearest(buffer.format(number).as_bytes()) {
                prop_assert_eq!(told, number);
            }
        }
    }

    #[test]
    fn what_is_no_plain_number_is_left_to_others() {
        for text in [
            "",
            "-",
            ".",
            "1e",
            "1e+",
            "1e100",
            "1.2.3",
            "nan",
            " 1",
            "1 ",
            "0x1",
            "1234567890123456",
        ] {
            assert_eq!(nearest(text.as_bytes()), None, "{text}");
        }
        assert_eq!(nearest(b"-0").map(f32::to_bits), Some((-0.0f32).to_bits()));
        for (text, number) in
            [(".5", 0.5), ("12345678.25", 12_345_678.0), ("-1.2345678e-20", -1.234_567_8e-20)]
        {
            assert_eq!(nearest(text.as_bytes()), Some(number), "{text}");
        }
    }
}
