//! Reads JSON as Python writes it, of files that anybody may have written: bounded, and what is no JSON is told, never a panic.
//!
//! Python writes `NaN`, `Infinity` and `-Infinity`, which JSON does not have. They are read as texts of these names, so that whoever
//! looks at a value still knows which it was.

use super::names::OUTPUT;
use crate::place::absent;
use feedrate_measure::record::file::read_bounded;
use feedrate_spec::escape;
use serde_json::{Map, Value};
use std::path::Path;

/// No file that is larger is read: parsed, numbers take some twelve times their length.
const BYTES_MAX: u64 = 32 << 20;
/// The same of a rank's steps, which take some fifty bytes each.
const STEPS_BYTES_MAX: u64 = 256 << 20;

/// A file of DLIO's, by its keys.
pub(super) type Fields = Map<String, Value>;

/// The contents of a file; `None` where it is not there, or cannot be read, which is told.
pub(super) fn read(folder: &Path, name: &str, unreadable: &mut Vec<String>) -> Option<Fields> {
    let most = if name.ends_with(OUTPUT) { STEPS_BYTES_MAX } else { BYTES_MAX };
    let read = bytes(&folder.join(name), most)?.and_then(|bytes| parse(&bytes));
    read.map_err(|error| unreadable.push(format!("`{name}`: {error}"))).ok()
}

/// Beginnings of what lies in the place of a file that is elsewhere: the staff of MLPerf Storage left out what was too large to publish, and git keeps such files apart.
const PLACEHOLDERS: [&[u8]; 2] = [b"PRUNED BY ", b"version https://git-lfs.github.com/"];
const PLACEHOLDER_BYTES_MAX: u64 = 256;

/// Whether a file only says that it is not there.
pub(super) fn is_placeholder(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|of| of.is_file() && of.len() <= PLACEHOLDER_BYTES_MAX)
        && bytes(path, PLACEHOLDER_BYTES_MAX).is_none()
}

/// The bytes of a file that is no longer than `bytes_max`; `None` where it is not there, or only a placeholder is.
pub(super) fn bytes(path: &Path, bytes_max: u64) -> Option<Result<Vec<u8>, String>> {
    let read = absent(read_bounded(path, bytes_max)).map_err(|error| error.to_string());
    let file = read.map(|read| {
        read.filter(|bytes| !PLACEHOLDERS.iter().any(|start| bytes.starts_with(start)))
    });
    file.transpose()
}

fn parse(bytes: &[u8]) -> Result<Fields, String> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err("it is empty".into());
    }
    let bytes = escape::json_texts(bytes);
    match serde_json::from_slice(&bytes) {
        Ok(value) => Ok(value),
        Err(error) => match quoted(&bytes) {
            Some(strict) => serde_json::from_slice(&strict).map_err(explained),
            None => Err(explained(error)),
        },
    }
}

/// Editors of Windows begin a file with it.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

fn explained(error: serde_json::Error) -> String {
    if error.is_eof() { "it is cut short".into() } else { format!("it is no JSON: {error}") }
}

const NO_NUMBERS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];

/// The same with Python's words in quotes; `None` where there are none.
fn quoted(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len() + 64);
    let (mut at, mut in_text, mut found) = (0, false, false);
    while let Some(&byte) = bytes.get(at) {
        let word = NO_NUMBERS.iter().find(|word| !in_text && bytes[at..].starts_with(word));
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
                out.extend_from_slice(&bytes[at..bytes.len().min(at + length)]);
                in_text ^= byte == b'"';
                length
            }
        };
        at += length;
    }
    found.then_some(out)
}

/// A number, or NaN. Durations of blocks are text in DLIO's files.
pub(super) fn number(value: &Value) -> f64 {
    match value {
        Value::Number(number) => number.as_f64().unwrap_or(f64::NAN),
        // Rust's words are Python's: `Infinity`, `-Infinity`, `NaN`.
        Value::String(text) => text.trim().parse().unwrap_or(f64::NAN),
        _ => f64::NAN,
    }
}

/// Text, where it is any.
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
    fn pythons_json_is_read_and_what_is_none_is_told() {
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
        check("NaN\\", Err("no JSON"));
        check("\u{0}", Err("no JSON"));
        check(&"[".repeat(100_000), Err("no JSON"));
    }

    #[test]
    fn numbers_are_read_whatever_they_are_written_as() {
        let of = |text: &str| number(&parse(format!("{{\"x\": {text}}}").as_bytes()).unwrap()["x"]);
        assert_eq!(
            (of("1"), of("-2.5"), of("\"5.97\""), of("-Infinity")),
            (1.0, -2.5, 5.97, f64::NEG_INFINITY)
        );
        assert!(of("NaN").is_nan() && of("null").is_nan() && of("\"x\"").is_nan());
    }
}
