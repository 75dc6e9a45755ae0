//! Compares file names so that numbers in them sort by value.

use std::cmp::Ordering;

/// Compares names with embedded numbers by value: `img_9` precedes `img_10`.
pub(super) fn natural_order(first: &str, second: &str) -> Ordering {
    let mut a = first.as_bytes();
    let mut b = second.as_bytes();
    while let (Some(&x), Some(&y)) = (a.first(), b.first()) {
        let order = if x.is_ascii_digit() && y.is_ascii_digit() {
            let x = take_number(&mut a);
            let y = take_number(&mut b);
            x.len().cmp(&y.len()).then(x.cmp(y))
        } else {
            a = &a[1..];
            b = &b[1..];
            x.cmp(&y)
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

/// Removes the digits at the start of a text and returns them without leading zeros.
fn take_number<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    *text = rest;
    let zeros = digits.iter().position(|&byte| byte != b'0').unwrap_or(digits.len());
    &digits[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_compared_by_value() {
        assert_eq!(natural_order("img_9.npz", "img_10.npz"), Ordering::Less);
        assert_eq!(natural_order("a/007", "a/7"), Ordering::Equal);
        assert_eq!(natural_order("b1", "a2"), Ordering::Greater);
        assert_eq!(natural_order("", "1"), Ordering::Less);
    }
}
