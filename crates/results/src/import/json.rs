//! Reads JSON in Python's dialect from untrusted files: sizes are limited, and invalid JSON is reported.
//!
//! Python writes `NaN`, `Infinity` and `-Infinity`, which JSON lacks. They are read as strings of these names, so that [`number`] can convert
//! them.

use super::names::OUTPUT;
use crate::place::none_if_missing;
use feedrate_measure::record::file::read_bounded;
use feedrate_spec::escape;
use serde_json::{Map, Value};
use std::path::Path;

/// Size limit of a file. Parsed numbers take about twelve times the memory of their text.
const BYTES_MAX: u64 = 32 << 20;
/// Size limit of a file with a rank's steps, which take about fifty bytes each.
const STEPS_BYTES_MAX: u64 = 256 << 20;

/// The top-level object of a file.
pub(super) type Fields = Map<String, Value>;

/// Reads a file; `None` if it is missing. Unreadable files are added to `unreadable` and also give `None`.
pub(super) fn read(folder: &Path, name: &str, unreadable: &mut Vec<String>) -> Option<Fields> {
    let bytes_max = if name.ends_with(OUTPUT) { STEPS_BYTES_MAX } else { BYTES_MAX };
    let parsed = bytes(&folder.join(name), bytes_max)?.and_then(|bytes| parse(&bytes));
    parsed.map_err(|error| unreadable.push(format!("`{name}`: {error}"))).ok()
}

/// Prefixes of placeholders for omitted files: MLPerf Storage prunes files that are too large to publish, and Git LFS stores pointers.
const PLACEHOLDERS: [&[u8]; 2] = [b"PRUNED BY ", b"version https://git-lfs.github.com/"];
const PLACEHOLDER_BYTES_MAX: u64 = 256;

/// Returns whether a file is a placeholder for an omitted file.
pub(super) fn is_placeholder(path: &Path) -> bool {
    let is_short = std::fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.len() <= PLACEHOLDER_BYTES_MAX);
    is_short && bytes(path, PLACEHOLDER_BYTES_MAX).is_none()
}

/// Reads at most `bytes_max` bytes of a file and fails for longer files. `None` if the file is missing or a placeholder.
pub(super) fn bytes(path: &Path, bytes_max: u64) -> Option<Result<Vec<u8>, String>> {
    let content = none_if_missing(read_bounded(path, bytes_max)).map_err(|error| error.to_string());
    let without_placeholders = content.map(|content| {
        content.filter(|bytes| !PLACEHOLDERS.iter().any(|start| bytes.starts_with(start)))
    });
    without_placeholders.transpose()
}

fn parse(bytes: &[u8]) -> Result<Fields, String> {
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err("it is empty".into());
    }
    let escaped = escape::escape_json_texts(text);
    match serde_json::from_slice(&escaped) {
        Ok(value) => Ok(value),
        Err(error) => match with_quoted_numbers(&escaped) {
            Some(strict) => serde_json::from_slice(&strict).map_err(explain),
            None => Err(explain(error)),
        },
    }
}

/// The byte order mark that some Windows editors write at the start of a file.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

fn explain(error: serde_json::Error) -> String {
    if error.is_eof() { "it is cut short".into() } else { format!("it is not JSON: {error}") }
}

/// Python's numbers that JSON lacks.
const NON_JSON_NUMBERS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];

/// Puts Python's non-finite numbers in quotes; `None` if there are none.
fn with_quoted_numbers(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len() + 64);
    let mut position = 0;
    let mut in_text = false;
    let mut found = false;
    while let Some(&byte) = bytes.get(position) {
        let word =
            NON_JSON_NUMBERS.iter().find(|word| !in_text && bytes[position..].starts_with(word));
        let length = match word {
            Some(word) => {
                out.push(b'"');
                out.extend_from_slice(word);
                out.push(b'"');
                found = true;
                word.len()
            }
            None => {
                let length = if in_text && byte == b'\\' { 2 } else { 1 };
                out.extend_from_slice(&bytes[position..bytes.len().min(position + length)]);
                in_text ^= byte == b'"';
                length
            }
        };
        position += length;
    }
    found.then_some(out)
}

/// Converts a value to a number, or to NaN if it is not one. DLIO writes the durations of blocks as strings.
pub(super) fn number(value: &Value) -> f64 {
    match value {
        Value::Number(number) => number.as_f64().unwrap_or(f64::NAN),
        // Rust parses Python's `Infinity`, `-Infinity` and `NaN`.
        Value::String(text) => text.trim().parse().unwrap_or(f64::NAN),
        _ => f64::NAN,
    }
}

/// Returns `MemTotal` in `host_meminfo` in GiB.
pub(super) fn memory_total_gib(fields: &Fields) -> Option<f64> {
    let total = fields.get("host_meminfo")?.get("MemTotal")?.as_str()?;
    let kib: f64 = total.strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib / f64::from(1 << 20))
}

/// Returns a non-empty string.
pub(super) fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let parsed = parse(text.as_bytes()).map(|fields| Value::from(fields).to_string());
        match (parsed, expected) {
            (Ok(value), Ok(expected)) => assert_eq!(value, expected),
            (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn pythons_json_is_read_and_errors_are_reported() {
        check(
            r#"{"a": NaN, "b": [-Infinity, Infinity]}"#,
            Ok(r#"{"a":"NaN","b":["-Infinity","Infinity"]}"#),
        );
        check(r#"{"NaN \" NaN": NaN}"#, Ok(r#"{"NaN \" NaN":"NaN"}"#));
        check(r#"{"a": 1}"#, Ok(r#"{"a":1}"#));
        check("\u{feff}{\"a\": 1}", Ok(r#"{"a":1}"#));
        check("", Err("empty"));
        check(" \n", Err("empty"));
        check(r#"{"a": [1, 2"#, Err("cut short"));
        check(r#"{"a": NaN, "b"#, Err("cut short"));
        check("NaN\\", Err("not JSON"));
        check("\u{0}", Err("not JSON"));
        check(&"[".repeat(100_000), Err("not JSON"));
    }

    #[test]
    fn numbers_are_read_from_numbers_and_strings() {
        let parsed =
            |text: &str| number(&parse(format!("{{\"x\": {text}}}").as_bytes()).unwrap()["x"]);
        assert_eq!(
            (parsed("1"), parsed("-2.5"), parsed("\"5.97\""), parsed("-Infinity")),
            (1.0, -2.5, 5.97, f64::NEG_INFINITY)
        );
        assert!(parsed("NaN").is_nan() && parsed("null").is_nan() && parsed("\"x\"").is_nan());
    }
}
