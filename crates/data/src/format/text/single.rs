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

/// Of `[-]digits[.digits][e[-+]digits]`; `None` where it is written otherwise, has many digits, or lies too near the middle
/// between two singles.
#[inline(always)]
pub(super) fn nearest(field: &[u8]) -> Option<f32> {
    let (negative, rest) = match field {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (mut digits, mut count, mut point) = (0u64, 0usize, None);
    let mut at = 0;
    while let Some(&byte) = rest.get(at) {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            digits = digits.wrapping_mul(10).wrapping_add(u64::from(digit));
            count += 1;
        } else if byte == b'.' && point.is_none() {
            point = Some(count);
            // Most have many digits there.
            if let Some(eight) = rest[at + 1..].first_chunk::<8>() {
                let (number, wrong) = eight_digits(u64::from_le_bytes(*eight) ^ ZEROS, 0);
                if wrong == 0 {
                    digits = digits.wrapping_mul(100_000_000).wrapping_add(number);
                    (count, at) = (count + 8, at + 8);
                }
            }
        } else {
            break;
        }
        at += 1;
    }
    if count == 0 || count > DIGITS_MAX {
        return None;
    }
    let power = exponent(&rest[at..])? - (count - point.unwrap_or(count)) as i32;
    let power = POWERS.get(usize::try_from(power + POWER_MAX).ok()?)?;
    let double = digits as f64 * power;
    let magnitude = single(double)?;
    Some(if negative { -magnitude } else { magnitude })
}

/// What follows the digits: nothing, or `e` and a number of at most two digits.
#[inline(always)]
fn exponent(rest: &[u8]) -> Option<i32> {
    let (negative, digits) = match rest {
        [] => return Some(0),
        [b'e' | b'E', b'-', digits @ ..] => (true, digits),
        [b'e' | b'E', b'+', digits @ ..] | [b'e' | b'E', digits @ ..] => (false, digits),
        _ => return None,
    };
    if digits.is_empty() || digits.len() > 2 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let size = digits.iter().fold(0, |size, digit| 10 * size + i32::from(digit - b'0'));
    Some(if negative { -size } else { size })
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
