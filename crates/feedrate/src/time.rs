//! Times on the command line.

use crate::exit::UsageError;
use jiff::SignedDuration;

/// `90`, `30m`, `1h 30m` as seconds.
pub(crate) fn seconds(flag: &str, text: &str) -> Result<f64, UsageError> {
    let number = text.parse::<f64>().ok().filter(|seconds| seconds.is_finite());
    let with_unit = || text.parse::<SignedDuration>().ok().map(|time| time.as_secs_f64());
    number.or_else(with_unit).filter(|seconds| *seconds >= 0.0).ok_or_else(|| {
        UsageError::new(
            format!("`{flag} {text}` is no time"),
            "write seconds, or a time as `30m`, `8h`, `1h 30m`",
        )
    })
}
