//! Half-precision floats: conversion to and from wider floats, and their shortest decimal text.

/// The bits of the half-precision float nearest to `value`, ties to even (IEEE 754).
pub(super) fn from_f64(value: f64) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let magnitude = value.abs();
    let bits = if magnitude.is_nan() {
        0x7e00
    } else if magnitude >= 65520.0 {
        0x7c00
    } else {
        let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(-14);
        // Scaling by a power of two is exact. If the fraction overflows, the addition raises the exponent.
        let fraction = round_to_integer(magnitude * power_of_two(10 - exponent)) as u16;
        (((exponent + 14) as u16) << 10) + fraction
    };
    sign | bits
}

/// The value of a half-precision float.
pub(super) fn to_f64(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match bits >> 10 & 0x1f {
        0 => fraction * power_of_two(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1024.0 + fraction) * power_of_two(i32::from(exponent) - 25),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

/// The integer nearest to a small number, ties to even. The addition of 2⁵² rounds the fraction away. The method
/// `round_ties_even` is slower, because it calls a library function on x86-64.
fn round_to_integer(magnitude: f64) -> f64 {
    const NO_FRACTION: f64 = (1u64 << 52) as f64;
    (magnitude + NO_FRACTION) - NO_FRACTION
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// Number of decimal digits that distinguish any two halves.
const DIGITS_MAX: i32 = 5;

const POWERS_OF_TEN: [f64; 13] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12];

/// The 64-bit float with the fewest decimal digits whose nearest half is the given one. Its shortest text is also the
/// shortest text of the half, since 64-bit floats have more precision.
pub(super) fn shortest_decimal(bits: u16) -> f64 {
    let value = to_f64(bits);
    let magnitude = value.abs();
    if magnitude == 0.0 || !magnitude.is_finite() {
        return value;
    }
    let first_place = POWERS_OF_TEN.iter().take_while(|&&power| magnitude >= power).count() as i32;
    let leading_zeros = if first_place > 0 {
        0
    } else {
        POWERS_OF_TEN.iter().take_while(|&&power| magnitude * power < 1.0).count() as i32 - 1
    };
    let found = (1..=DIGITS_MAX)
        .map(|digits| round_to_places(magnitude, digits - first_place + leading_zeros))
        .find(|&candidate| from_f64(candidate) == bits & 0x7fff);
    found.unwrap_or(magnitude).copysign(value)
}

/// Rounds `magnitude` to `places` decimal places. Products of 11 bits and a small power of ten are exact, and quotients are
/// rounded only once.
fn round_to_places(magnitude: f64, places: i32) -> f64 {
    let power = POWERS_OF_TEN[places.unsigned_abs() as usize];
    if places < 0 {
        round_to_integer(magnitude / power) * power
    } else {
        round_to_integer(magnitude * power) / power
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finite_half_survives_a_round_trip() {
        for bits in (0..=u16::MAX).filter(|bits| bits & 0x7c00 != 0x7c00) {
            assert_eq!(from_f64(to_f64(bits)), bits);
            let short = shortest_decimal(bits);
            assert_eq!(from_f64(short), bits);
            let text = format!("{:e}", short.abs());
            let digits = text.split('e').next().unwrap().chars().filter(char::is_ascii_digit);
            assert!(digits.count() <= DIGITS_MAX as usize, "{text}");
        }
    }

    #[test]
    fn rounding_goes_to_the_nearest_and_ties_to_even() {
        for bits in 0..0x7bff {
            let (low, high) = (to_f64(bits), to_f64(bits + 1));
            let middle = (low + high) / 2.0;
            assert_eq!(from_f64(middle), if bits % 2 == 0 { bits } else { bits + 1 });
            assert_eq!(from_f64(middle.next_down()), bits);
            assert_eq!(from_f64(middle.next_up()), bits + 1);
        }
        assert_eq!(from_f64(65519.9), 0x7bff);
        assert_eq!(from_f64(65520.0), 0x7c00);
        assert_eq!(from_f64(f64::NEG_INFINITY), 0xfc00);
        assert!(to_f64(from_f64(f64::NAN)).is_nan());
        assert_eq!(from_f64(-1e-300), 0x8000);
    }

    #[test]
    fn halves_have_the_expected_shortest_text() {
        for (bits, text) in [(0x2e66, "0.1"), (1, "6e-8"), (0x7bff, "65500.0"), (0xbc00, "-1.0")] {
            assert_eq!(zmij::Buffer::new().format(shortest_decimal(bits)), text);
        }
    }
}
