//! Reads JSON as Python writes it, of files that anybody may have written: bounded, and what is no JSON is told, never a panic.
//!
//! Python writes `NaN`, `Infinity` and `-Infinity`, which JSON does not have. They are read as texts of these names, so that whoever
//! looks at a value still knows which it was.

use serde::de::{DeserializeOwned, Deserializer, Visitor};
use serde_json::Value;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// No file that is larger is read.
const BYTES_MAX: u64 = 256 << 20;

/// The contents of a file; `None` where it is not there.
///
/// # Errors
/// It cannot be read; the error says why.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Option<Result<T, String>> {
    Some(bytes(path, BYTES_MAX)?.and_then(|bytes| parse(&bytes)))
}

/// The bytes of a file that is no longer than `bytes_max`; `None` where it is not there.
pub(super) fn bytes(path: &Path, bytes_max: u64) -> Option<Result<Vec<u8>, String>> {
    // A pipe would be waited for when it is opened.
    let opened = match std::fs::metadata(path) {
        Ok(about) if !about.is_file() => return Some(Err("it is no file".into())),
        Ok(_) => File::open(path),
        Err(error) => Err(error),
    };
    match opened {
        Ok(file) => Some(bytes_of(&file, bytes_max)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => Some(Err(error.to_string())),
    }
}

fn bytes_of(file: &File, bytes_max: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes_max < bytes.len() as u64 {
        return Err(format!("it is larger than {bytes_max} bytes"));
    }
    Ok(bytes)
}

/// # Errors
/// It is no JSON; the error says why.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err("it is empty".into());
    }
    match serde_json::from_slice(bytes) {
        Ok(value) => Ok(value),
        Err(error) => match quoted(bytes) {
            Some(strict) => serde_json::from_slice(&strict).map_err(explained),
            None => Err(explained(error)),
        },
    }
}

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

/// A number that may be none: `NaN`, null and what is no number at all are NaN.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number(pub(super) f64);

impl Number {
    /// As a JSON value has it.
    pub(super) fn new(value: &Value) -> Self {
        Number(match value {
            Value::Number(number) => number.as_f64().unwrap_or(f64::NAN),
            Value::String(text) => of_text(text),
            _ => f64::NAN,
        })
    }
}

/// Durations of blocks are text in DLIO's files.
fn of_text(text: &str) -> f64 {
    match text {
        "Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        _ => text.trim().parse().unwrap_or(f64::NAN),
    }
}

impl<'de> serde::Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl<'de> Visitor<'de> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_f64<E>(self, value: f64) -> Result<Number, E> {
        Ok(Number(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Number, E> {
        Ok(Number(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Number, E> {
        Ok(Number(value as f64))
    }

    fn visit_str<E>(self, value: &str) -> Result<Number, E> {
        Ok(Number(of_text(value)))
    }

    fn visit_unit<E>(self) -> Result<Number, E> {
        Ok(Number(f64::NAN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let parsed = parse::<Value>(text.as_bytes()).map(|value| value.to_string());
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
        let of = |text: &str| parse::<Number>(text.as_bytes()).unwrap().0;
        assert_eq!(
            (of("1"), of("-2.5"), of("\"5.97\""), of("-Infinity")),
            (1.0, -2.5, 5.97, f64::NEG_INFINITY)
        );
        assert!(of("NaN").is_nan() && of("null").is_nan() && of("\"x\"").is_nan());
    }
}
