//! Parses times on the command line. A unit is required, since a bare number could mean seconds or milliseconds.

use jiff::SignedDuration;

/// Parses `50ms`, `30m` or `1h 30m` into seconds. A number without a unit is accepted only if it is 0.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(0.0) => Ok(0.0),
        Ok(number) if number > 0.0 && number.is_finite() => {
            Err(format!("it has no unit: write `{text}s`, or `{text}ms`"))
        }
        _ => {
            let time = text.parse::<SignedDuration>().ok().map(|time| time.as_secs_f64());
            let time = time.filter(|seconds| *seconds >= 0.0);
            time.ok_or_else(|| "write a time as `50ms`, `30s`, `1h 30m`".to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit() {
        for (text, expected) in [
            ("50ms", Ok(0.05)),
            ("1.5s", Ok(1.5)),
            ("0.5 s", Ok(0.5)),
            ("1h 30m", Ok(5400.0)),
            ("0", Ok(0.0)),
            ("50", Err("it has no unit: write `50s`, or `50ms`")),
            ("0.05", Err("it has no unit: write `0.05s`, or `0.05ms`")),
            ("-1", Err("write a time as `50ms`, `30s`, `1h 30m`")),
            ("-1s", Err("write a time as `50ms`, `30s`, `1h 30m`")),
            ("soon", Err("write a time as `50ms`, `30s`, `1h 30m`")),
            ("", Err("write a time as `50ms`, `30s`, `1h 30m`")),
        ] {
            assert_eq!(seconds(text), expected.map_err(str::to_string), "{text}");
        }
    }
}
