//! DLIO's timestamps, `2026-11-21T10:00:00.000000`, moved by a measured duration. Civil arithmetic only: no clock, no time zone.

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// `stamp` later by `ns` (earlier if negative). `None` if it is no timestamp.
pub(super) fn later(stamp: &str, ns: i64) -> Option<String> {
    let all = micros(stamp)?.checked_add(ns.div_euclid(1000))?;
    let (year, month, day) = civil(all.div_euclid(MICROS_PER_DAY));
    let micros = all.rem_euclid(MICROS_PER_DAY);
    let (seconds, micro) = (micros / 1_000_000, micros % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micro:06}"))
}

/// Microseconds from a fixed day to a timestamp of DLIO's files: only differences mean something. `None` if it is no timestamp.
pub fn micros(stamp: &str) -> Option<i64> {
    let (date, time) = stamp.split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    let (clock, fraction) = time.split_once('.')?;
    let [hour, minute, second] = numbers(clock, ':')?;
    if fraction.len() != 6 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let micro: i64 = fraction.parse().ok()?;
    let in_day = ((hour * 60 + minute) * 60 + second) * 1_000_000 + micro;
    Some(days(year, month, day) * MICROS_PER_DAY + in_day)
}

fn numbers(text: &str, between: char) -> Option<[i64; 3]> {
    let mut parts =
        text.split(between).map(|part| part.parse().ok().filter(|n| (0..10_000).contains(n)));
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

/// Days since 1970-03-01 or before (H. Hinnant, "chrono-compatible low-level date algorithms", 2021).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year
}

/// The inverse of [`days`].
fn civil(days: i64) -> (i64, i64, i64) {
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(stamp: &str, ns: i64, expected: Option<&str>) {
        assert_eq!(later(stamp, ns).as_deref(), expected);
    }

    #[test]
    fn days_months_and_years_are_carried() {
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
    }

    proptest! {
        #[test]
        fn there_and_back(day in 600_000..1_000_000i64) {
            let (year, month, date) = civil(day);
            prop_assert_eq!(days(year, month, date), day);
        }
    }
}
