//! Lengths of numbers in decimal notation.

/// Number of decimal digits.
pub(super) fn digit_count(number: u64) -> u64 {
    number.checked_ilog10().map_or(1, |digits| u64::from(digits) + 1)
}

/// Total digits of the `count` numbers 0, `size`, 2 `size`, …, each of at most 20 digits. Runs in constant
/// time.
pub(super) fn digits_of_multiples(size: u64, count: u64) -> u64 {
    let wide_size = u128::from(size);
    let wide_count = u128::from(count);
    // Every number has one digit, and one more for each power of ten that it reaches.
    let further_digits = (1..20).map(|power| match wide_size {
        0 => 0,
        _ => wide_count.saturating_sub(10u128.pow(power).div_ceil(wide_size)),
    });
    u64::try_from(wide_count + further_digits.sum::<u128>()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digit_counts_match_the_printed_numbers() {
        for (size, count) in [(0, 3), (1, 0), (1, 10_001), (7, 1000), (999, 1002)] {
            let text: String = (0..count).map(|i| (i * size).to_string()).collect();
            assert_eq!(digits_of_multiples(size, count), text.len() as u64, "{count} of {size}");
            let sum: u64 = (0..count).map(|i| digit_count(i * size)).sum();
            assert_eq!(sum, text.len() as u64, "{count} of {size}");
        }
        assert_eq!(digit_count(u64::MAX), 20);
        assert_eq!(digits_of_multiples(1, u64::MAX), u64::MAX);
    }
}
