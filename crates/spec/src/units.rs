//! Formats and parses quantities, independently of the locale. MB is 10⁶ bytes, MiB is 2²⁰ bytes.

/// Bytes in a MiB, which DLIO calls MB.
pub const MIB: f64 = (1u64 << 20) as f64;
/// Bytes in a GiB, which DLIO calls GB.
pub const GIB: f64 = (1u64 << 30) as f64;

const DECIMAL: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
const BINARY: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// Rounds away floating-point noise: 55 instead of 55.00000000000001.
pub fn round_noise(number: f64) -> f64 {
    (number * 1e9).round() / 1e9
}

/// Formats bytes as `146.6 MB`: powers of 1000, at most four digits.
pub fn bytes(bytes: u64) -> String {
    with_prefix(bytes as f64, 1000.0, &DECIMAL)
}

/// Formats bytes as `139.8 MiB`: powers of 1024.
pub fn bytes_binary(bytes: u64) -> String {
    with_prefix(bytes as f64, 1024.0, &BINARY)
}

/// Formats a rate as `400 MB/s`.
pub fn bytes_per_second(rate: f64) -> String {
    format!("{}/s", with_prefix(rate, 1000.0, &DECIMAL))
}

/// Formats a rate for sentences, with three digits: `727 MB/s`, `1.23 GB/s`.
pub fn bytes_per_second_rounded(rate: f64) -> String {
    let (scaled, power) = divide_by_base(rate, 1000.0, 0.5);
    let number = if power == 0 { format!("{scaled:.0}") } else { three_digits(scaled) };
    format!("{number} {}/s", DECIMAL[power])
}

/// Formats a rate as `139.8 MiB/s`.
pub fn bytes_per_second_binary(rate: f64) -> String {
    format!("{}/s", with_prefix(rate, 1024.0, &BINARY))
}

/// Formats a rate as `12.3 samples/s`, with the unit `noun`.
pub fn per_second(rate: f64, noun: &str) -> String {
    let number = if rate.abs() >= 1e4 && rate.abs() < 1e18 {
        count(rate.round() as u64)
    } else {
        three_digits(rate)
    };
    format!("{number} {noun}/s")
}

/// Formats a duration: `1.25 s`, `340 ms`, `12 µs`, `3 min 20 s`, `2 h 5 min`.
pub fn seconds(seconds: f64) -> String {
    if !seconds.is_finite() {
        return seconds.to_string();
    }
    let size = seconds.abs();
    if size >= 60.0 {
        let sign = if seconds < 0.0 { "-" } else { "" };
        let rounded_s = size.round() as u64;
        return match (rounded_s / 3600, rounded_s / 60 % 60, rounded_s % 60) {
            (0, minutes, 0) => format!("{sign}{minutes} min"),
            (0, minutes, rest) => format!("{sign}{minutes} min {rest} s"),
            (hours, 0, _) => format!("{sign}{} h", count(hours)),
            (hours, minutes, _) => format!("{sign}{} h {minutes} min", count(hours)),
        };
    }
    let (value, unit) = match size {
        0.0 => (0.0, "s"),
        s if s >= 0.9995 => (seconds, "s"),
        s if s >= 0.9995e-3 => (seconds * 1e3, "ms"),
        s if s >= 0.9995e-6 => (seconds * 1e6, "µs"),
        _ => (seconds * 1e9, "ns"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Formats a number as `1,234,567`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number with its noun: `1 batch`, `12 batches`, `2 processes`.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = match number {
        1 => "",
        _ if noun.ends_with("ss") || noun.ends_with("ch") && noun != "epoch" => "es",
        _ => "s",
    };
    format!("{} {noun}{plural}", count(number))
}

/// Parses a non-negative number of bytes: `8MiB`, `1.5 GB`, `4096`, `64k`.
pub fn parse_bytes(text: &str) -> Option<f64> {
    let size = text.trim();
    let unit_start = size
        .char_indices()
        .find(|&(index, c)| c.is_ascii_alphabetic() && !is_exponent(size, index) || c == ' ')
        .map_or(size.len(), |(index, _)| index);
    let (number, unit) = size.split_at(unit_start);
    let is_number =
        !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit() || b"_.eE+-".contains(&b));
    let value: f64 = if is_number { number.replace('_', "").parse().ok()? } else { return None };
    let unit_bytes = unit_bytes(unit.trim_start())?;
    Some(value * unit_bytes).filter(|bytes| bytes.is_finite() && *bytes >= 0.0)
}

/// Parses a non-negative number of bytes per second: `500MB/s`, `1.5 GiB/s`, `400e6`.
pub fn parse_bytes_per_second(text: &str) -> Option<f64> {
    let rate = text.trim();
    parse_bytes(rate.strip_suffix("/s").unwrap_or(rate))
}

/// Parses a time with a unit in seconds: `20ms`, `1.5 s`.
pub fn parse_seconds(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 5] =
        [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let (number, unit_s) =
        UNITS.iter().find_map(|(unit, unit_s)| Some((text.strip_suffix(unit)?, unit_s)))?;
    let value: f64 = number.trim_end().parse().ok()?;
    let is_number = value.is_finite() && 0.0 <= value;
    is_number.then(|| round_noise(value * unit_s))
}

/// Whether the letter at `index` is the exponent mark of a number, as in `4e6`.
fn is_exponent(text: &str, index: usize) -> bool {
    let rest = &text.as_bytes()[index..];
    let digits = if matches!(rest.get(1), Some(b'+' | b'-')) { rest.get(2) } else { rest.get(1) };
    index > 0 && matches!(rest[0], b'e' | b'E') && digits.is_some_and(u8::is_ascii_digit)
}

/// Returns the bytes in a unit such as `MiB`, `kB` or `G`.
fn unit_bytes(unit: &str) -> Option<f64> {
    let short = unit.strip_suffix('B').unwrap_or(unit);
    let (letter, base) = match short.strip_suffix('i') {
        Some("") => return None,
        Some(letter) => (letter, 1024f64),
        None => (short, 1000.0),
    };
    let power = match letter.len() {
        0 => 0,
        1 => 1 + "kMGTPE".find(if letter == "K" { "k" } else { letter })?,
        _ => return None,
    };
    Some(base.powi(power as i32))
}

/// Formats `value` with the unit prefix that keeps it below `base`.
fn with_prefix(value: f64, base: f64, names: &[&str; 7]) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let (scaled, power) = divide_by_base(value, base, 0.05);
    let number = if power == 0 { format!("{scaled:.0}") } else { format!("{scaled:.1}") };
    format!("{} {}", number.strip_suffix(".0").unwrap_or(&number), names[power])
}

/// Divides `value` by `base` until its printed form is below `base`. Rounding for print may add up to `rounding`.
/// Returns the quotient and the number of divisions.
fn divide_by_base(value: f64, base: f64, rounding: f64) -> (f64, usize) {
    let mut scaled = value;
    let mut power = 0;
    while scaled.abs() >= base - rounding && scaled.is_finite() && power + 1 < DECIMAL.len() {
        scaled /= base;
        power += 1;
    }
    (scaled, power)
}

/// Formats with three significant digits below 1000, without trailing zeros.
fn three_digits(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_string();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floating_point_noise_is_rounded_away() {
        for percent in [7.0, 29.0, 55.0, 57.0, 90.1] {
            assert_eq!(round_noise(percent / 100.0 * 100.0), percent);
        }
        assert_eq!(
            [0.07, 0.29, 0.55, 0.57].map(|share| round_noise(share * 100.0)),
            [7.0, 29.0, 55.0, 57.0]
        );
    }

    #[test]
    fn bytes_are_decimal_or_binary() {
        for (value, decimal, binary) in [
            (0, "0 B", "0 B"),
            (999, "999 B", "999 B"),
            (1000, "1 kB", "1000 B"),
            (1024, "1 kB", "1 KiB"),
            (146_600_628, "146.6 MB", "139.8 MiB"),
            (8 << 20, "8.4 MB", "8 MiB"),
            (999_990_000, "1 GB", "953.7 MiB"),
            (2_048_000_000, "2 GB", "1.9 GiB"),
            (u64::MAX, "18.4 EB", "16 EiB"),
        ] {
            assert_eq!(bytes(value), decimal);
            assert_eq!(bytes_binary(value), binary);
        }
    }

    #[test]
    fn rates_have_a_unit() {
        assert_eq!(bytes_per_second(400e6), "400 MB/s");
        assert_eq!(bytes_per_second(0.4), "0 B/s");
        assert_eq!(bytes_per_second_binary(146_600_628.0), "139.8 MiB/s");
        assert_eq!(per_second(12.345, "samples"), "12.3 samples/s");
        assert_eq!(per_second(123_456.7, "samples"), "123,457 samples/s");
        assert_eq!(bytes_per_second(f64::NAN), "NaN/s");
        for (rate, expected) in [
            (726.9e6, "727 MB/s"),
            (1.2345e9, "1.23 GB/s"),
            (999.6e6, "1 GB/s"),
            (12.34e3, "12.3 kB/s"),
            (9.0, "9 B/s"),
        ] {
            assert_eq!(bytes_per_second_rounded(rate), expected);
        }
    }

    #[test]
    fn durations_have_a_suitable_unit() {
        for (value, expected) in [
            (0.0, "0 s"),
            (1.25, "1.25 s"),
            (0.323, "323 ms"),
            (0.9999, "1 s"),
            (0.064296, "64.3 ms"),
            (12.5e-6, "12.5 µs"),
            (3e-9, "3 ns"),
            (59.5, "59.5 s"),
            (60.0, "1 min"),
            (200.0, "3 min 20 s"),
            (7500.0, "2 h 5 min"),
            (-0.5, "-500 ms"),
        ] {
            assert_eq!(seconds(value), expected, "{value}");
        }
    }

    #[test]
    fn counts_have_separators() {
        for (value, expected) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (277_203_535, "277,203,535")]
        {
            assert_eq!(count(value), expected);
        }
    }

    #[test]
    fn sizes_are_parsed() {
        for (text, expected) in [
            ("4096", Some(4096.0)),
            ("8MiB", Some(8_388_608.0)),
            ("1.5GB", Some(1.5e9)),
            ("1.5 GB", Some(1.5e9)),
            ("64k", Some(64e3)),
            ("64Ki", Some(65536.0)),
            ("4e6", Some(4e6)),
            ("4e6B", Some(4e6)),
            ("2E", Some(2e18)),
            ("1_000B", Some(1000.0)),
            ("-1MB", None),
            ("MB", None),
            ("", None),
            ("inf", None),
            ("8 Mib", None),
            ("8iB", None),
            ("8 M B", None),
            ("1e400", None),
            ("µ", None),
        ] {
            assert_eq!(parse_bytes(text), expected, "{text}");
        }
        for (text, expected) in [
            ("500MB/s", Some(5e8)),
            ("1.5 GiB/s", Some(1_610_612_736.0)),
            ("400e6", Some(4e8)),
            ("fast", None),
        ] {
            assert_eq!(parse_bytes_per_second(text), expected, "{text}");
        }
    }
}
