//! Arithmetic with DLIO's timestamps, such as `2026-11-21T10:00:00.000000`. They are local times; no clock or time zone is read.

use jiff::SignedDuration;
use jiff::civil::{DateTime, date};

const FORMAT: &str = "%Y-%m-%dT%H:%M:%S.%6f";
const LENGTH: usize = "2026-11-21T10:00:00.000000".len();

/// Adds `ns`, which may be negative, to a timestamp. `None` if `stamp` is no timestamp.
pub(super) fn add_ns(stamp: &str, ns: i64) -> Option<String> {
    let sum = parse(stamp)?.checked_add(SignedDuration::from_nanos(ns)).ok()?;
    Some(sum.strftime(FORMAT).to_string())
}

/// Converts a timestamp of DLIO's files to microseconds since a fixed day. Only differences of two results are meaningful. `None` if `stamp` is no timestamp.
pub fn micros(stamp: &str) -> Option<i64> {
    let since_1970 = parse(stamp)?.duration_since(date(1970, 1, 1).at(0, 0, 0, 0));
    i64::try_from(since_1970.as_micros()).ok()
}

fn parse(stamp: &str) -> Option<DateTime> {
    if stamp.len() != LENGTH {
        return None;
    }
    DateTime::strptime(FORMAT, stamp).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stamp: &str, ns: i64, expected: Option<&str>) {
        assert_eq!(add_ns(stamp, ns).as_deref(), expected);
    }

    #[test]
    fn a_sum_carries_into_days_months_and_years() {
        check("2026-11-21T10:00:00.000000", 0, Some("2026-11-21T10:00:00.000000"));
        check("2026-11-21T10:00:00.000000", 23_727_128_999, Some("2026-11-21T10:00:23.727128"));
        check("2026-12-31T23:59:59.999999", 1000, Some("2027-01-01T00:00:00.000000"));
        check("2028-02-28T23:59:59.000000", 1_000_000_000, Some("2028-02-29T00:00:00.000000"));
        check("2026-02-28T23:59:59.000000", 1_000_000_000, Some("2026-03-01T00:00:00.000000"));
        check("2026-03-01T00:00:00.000000", -1, Some("2026-02-28T23:59:59.999999"));
        check("", 0, None);
        check("2026-13-01T00:00:00.000000", 0, None);
        check("2026-11-21T10:00:00.0", 0, None);
        check("2026-11-21 10:00:00.000000", 0, None);
        check("2026-02-30T10:00:00.000000", 0, None);
    }

    #[test]
    fn differences_are_counted_in_microseconds() {
        for (earlier, later, expected) in [
            ("2026-11-21T10:00:00.000000", "2026-11-21T10:00:00.000001", Some(1)),
            ("2026-12-31T23:59:59.500000", "2027-01-01T00:00:01.000000", Some(1_500_000)),
            ("2024-02-28T00:00:00.000000", "2024-03-01T00:00:00.000000", Some(172_800_000_000)),
            ("2026-11-21T10:00:00.000000", "2026-11-21T10:00", None),
        ] {
            let found = micros(later).zip(micros(earlier)).map(|(to, from)| to - from);
            assert_eq!(found, expected, "{earlier} to {later}");
        }
    }
}
