//! Numbers as the report writes them, in the units that its headings name. What is not known is a dash.

pub(super) use crate::table::UNKNOWN;
use std::cmp::Ordering;

/// `99.7`: percent, with one decimal.
pub(super) fn percent(value: Option<f64>) -> String {
    decimals(value, 1)
}

/// `146.6`: of bytes per second, in MB/s.
pub(super) fn megabytes(value: Option<f64>) -> String {
    significant(value.map(|rate| rate / 1e6))
}

/// Three significant digits at least, and no more decimals than that takes.
pub(super) fn significant(value: Option<f64>) -> String {
    let places = match value.map(f64::abs) {
        Some(size) if size >= 100.0 => 1,
        Some(size) if size >= 1.0 || size == 0.0 => 2,
        Some(size) if size > 1e-9 => (2.0 - size.log10().floor()).max(4.0) as usize,
        _ => 4,
    };
    decimals(value, places)
}

fn decimals(value: Option<f64>, places: usize) -> String {
    value
        .filter(|value| value.is_finite())
        .map_or(UNKNOWN.into(), |value| format!("{value:.places$}"))
}

/// `96.9 % [95.5 %, 98.2 %]`, without ends where there are none.
pub fn with_ends(middle: f64, ends: Option<(f64, f64)>, text: impl Fn(f64) -> String) -> String {
    let ends = ends.map(|(low, high)| format!(" [{}, {}]", text(low), text(high)));
    text(middle) + &ends.unwrap_or_default()
}

/// `2` before `10`, numbers before words.
pub(super) fn by_value(a: &str, b: &str) -> Ordering {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a.total_cmp(&b),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_count() {
        for (value, expected) in [
            (Some(1234.56), "1234.6"),
            (Some(12.345), "12.35"),
            (Some(0.012345), "0.0123"),
            (Some(-0.000_012_345), "-0.0000123"),
            (Some(0.0), "0.00"),
            (Some(f64::NAN), UNKNOWN),
            (None, UNKNOWN),
        ] {
            assert_eq!(significant(value), expected);
        }
        assert_eq!(percent(Some(99.96)), "100.0");
        assert_eq!(megabytes(Some(146_600_628.0)), "146.6");
    }

    #[test]
    fn values_are_in_the_order_of_numbers() {
        let mut values = ["npz", "16", "hdf5", "2", "1.5"];
        values.sort_by(|a, b| by_value(a, b));
        assert_eq!(values, ["1.5", "2", "16", "hdf5", "npz"]);
    }
}
