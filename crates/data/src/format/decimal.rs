//! Lengths of numbers that are written with decimal digits.

/// Digits of a number.
pub(super) fn digits(number: u64) -> u64 {
    number.checked_ilog10().map_or(1, |digits| u64::from(digits) + 1)
}

/// Digits of 0, `size`, 2 `size`, … together, of `count` numbers of at most 20 digits. Takes the same time for every
/// count.
pub(super) fn digits_of_multiples(size: u64, count: u64) -> u64 {
    let (size, count) = (u128::from(size), u128::from(count));
    // Every number has one digit, and one more from each power of ten on.
    let more = (1..20).map(|power| match size {
        0 => 0,
        size => count.saturating_sub(10u128.pow(power).div_ceil(size)),
    });
    u64::try_from(count + more.sum::<u128>()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_text() {
        for (size, count) in [(0, 3), (1, 0), (1, 10_001), (7, 1000), (999, 1002)] {
            let text: String = (0..count).map(|i| (i * size).to_string()).collect();
            assert_eq!(digits_of_multiples(size, count), text.len() as u64, "{count} of {size}");
            let sum: u64 = (0..count).map(|i| digits(i * size)).sum();
            assert_eq!(sum, text.len() as u64, "{count} of {size}");
        }
        assert_eq!(digits(u64::MAX), 20);
        assert_eq!(digits_of_multiples(1, u64::MAX), u64::MAX);
    }
}
