//! Settings of a study's row: overrides in Hydra's syntax, and settings of the study itself. Only parses and formats text.

use feedrate_spec::problem::Problem;
use feedrate_spec::workload::{KEYS, KeyInfo, Origin, Override};
use std::cmp::Ordering;

/// Prefix of keys that configure the study instead of the workload.
pub const STUDY_PREFIX: &str = "study.";

/// An override of a row: `++workload.reader.batch_size=4`, `~train.epochs`, `study.cache=cold`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Setting {
    /// Key without the prefixes `+`, `++`, `~` and `workload.`: `reader.batch_size`, `study.cache`.
    pub key: String,
    /// Value in the syntax of an override (quoted if necessary), or unquoted for a setting of the study. `None` deletes the key, which
    /// restores its default.
    pub value: Option<String>,
}

impl Setting {
    /// Creates a setting of `key` to `value`.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Self {
        Setting { key: key.into(), value: Some(value.into()) }
    }

    /// Parses one override. The prefixes `+`, `++` and `workload.` are optional; `~` deletes the key.
    ///
    /// # Errors
    /// The text is not an override.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        if let Some((key, value)) = study_setting(text) {
            return Ok(Setting::new(key, unquote(value)));
        }
        let parsed = Override::parse(text)?;
        let value = if text.starts_with('~') { None } else { text.split_once('=') };
        let value = value.map(|(_, value)| value.to_string());
        Ok(Setting { key: parsed.key(), value })
    }

    /// Formats the setting as `feedrate run` and the CSV accept it. DLIO accepts it too unless it is a setting of the study.
    pub fn text(&self) -> String {
        match (&self.value, self.is_study_setting()) {
            (Some(value), true) => format!("{}={}", self.key, quote(value)),
            (Some(value), false) => format!("++workload.{}={value}", self.key),
            (None, _) => format!("~workload.{}", self.key),
        }
    }

    /// Returns whether the setting is for the study's runner instead of the workload.
    pub fn is_study_setting(&self) -> bool {
        self.key.starts_with(STUDY_PREFIX)
    }

    /// Returns the last component of the key if it is unambiguous (see [`key_of_leaf`]), otherwise the full key.
    pub fn short_key(&self) -> &str {
        match self.key.rsplit_once('.') {
            Some((_, leaf)) if key_of_leaf(leaf) == Some(self.key.as_str()) => leaf,
            _ => &self.key,
        }
    }
}

/// Splits a setting of the study into key and value; `None` for any other text.
fn study_setting(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.trim_start_matches('+').split_once('=')?;
    key.starts_with(STUDY_PREFIX).then_some((key, value))
}

/// Returns the workload key whose last component is `leaf`. `None` if there are several, unless exactly one of them is in DLIO's schema.
pub fn key_of_leaf(leaf: &str) -> Option<&'static str> {
    let matching = KEYS.iter().filter(|key| key.path.rsplit('.').next() == Some(leaf));
    let matching: Vec<&KeyInfo> = matching.collect();
    let from_dlio: Vec<&KeyInfo> =
        matching.iter().copied().filter(|key| key.origin == Origin::Dlio).collect();
    match (&from_dlio[..], &matching[..]) {
        ([only], _) | (_, [only]) => Some(only.path),
        _ => None,
    }
}

/// Splits the overrides of a row at whitespace outside quotes and brackets.
pub fn split_overrides(cell: &str) -> Vec<String> {
    split_outside_quotes(cell, char::is_whitespace)
        .into_iter()
        .filter(|word| !word.is_empty())
        .collect()
}

/// Splits text at separators outside quotes and brackets.
pub fn split_outside_quotes(text: &str, is_separator: impl Fn(char) -> bool) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut depth = 0_u32;
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (None, c) if is_separator(c) && depth == 0 => {
                pieces.push(String::new());
                continue;
            }
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push(c);
        }
    }
    pieces
}

/// Parses a finite number.
pub fn parse_number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Orders the levels of a factor: numbers first, in ascending order. Other levels compare as equal, so a stable sort keeps their order.
pub fn compare_levels(a: &str, b: &str) -> Ordering {
    match (parse_number(a), parse_number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (a, b) => a.is_none().cmp(&b.is_none()),
    }
}

/// Quotes a value if an override needs quotes around it, for example because it contains a space. The value must not contain both kinds of
/// quotes.
pub fn quote(value: &str) -> String {
    if !value.is_empty() && value.chars().all(needs_no_quotes) {
        return value.to_string();
    }
    let quote = if value.contains('\'') { '"' } else { '\'' };
    // A backslash is an escape only before a quote.
    let backslashes = value.len() - value.trim_end_matches('\\').len();
    format!("{quote}{value}{}{quote}", "\\".repeat(backslashes))
}

fn needs_no_quotes(c: char) -> bool {
    c.is_alphanumeric() || "_-./+:%@~".contains(c)
}

/// Removes the quotes around a value.
pub fn unquote(value: &str) -> String {
    let inner = ['\'', '"'].iter().find_map(|&q| value.strip_prefix(q)?.strip_suffix(q));
    let Some(inner) = inner else { return value.to_string() };
    let backslashes = inner.len() - inner.trim_end_matches('\\').len();
    inner[..inner.len() - backslashes / 2].to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_parses_to_the_same_setting_with_and_without_prefixes() {
        for text in
            ["reader.batch_size=4", "+reader.batch_size=4", "++workload.reader.batch_size=4"]
        {
            let setting = Setting::parse(text).unwrap();
            assert_eq!(setting, Setting::new("reader.batch_size", "4"));
            assert_eq!(setting.text(), "++workload.reader.batch_size=4");
            assert_eq!(setting.short_key(), "batch_size");
        }
        let deleted = Setting::parse("~workload.train.epochs").unwrap();
        assert_eq!(deleted, Setting { key: "train.epochs".into(), value: None });
        assert_eq!(deleted.text(), "~workload.train.epochs");
    }

    #[test]
    fn numeric_levels_sort_by_value_before_other_levels() {
        let mut levels = ["npz", "16", "hdf5", "2", "1.5"];
        levels.sort_by(|a, b| compare_levels(a, b));
        assert_eq!(levels, ["1.5", "2", "16", "npz", "hdf5"]);
    }

    #[test]
    fn settings_of_the_study_have_no_workload_prefix() {
        let setting = Setting::parse("study.cache=cold").unwrap();
        assert_eq!(setting, Setting::new("study.cache", "cold"));
        assert!(setting.is_study_setting());
        assert_eq!(setting.text(), "study.cache=cold");
        assert_eq!(setting.short_key(), "study.cache");
    }

    #[test]
    fn a_short_key_stands_for_the_key_of_dlio() {
        assert_eq!(key_of_leaf("format"), Some("dataset.format"));
        assert_eq!(Setting::new("checkpoint.format", "pt").short_key(), "checkpoint.format");
        assert_eq!(key_of_leaf("no_such_key"), None);
    }

    #[test]
    fn quoted_values_are_one_word_and_parse_back() {
        for (value, expected) in [
            ("npz", "npz"),
            ("/mnt/a-b_c.d", "/mnt/a-b_c.d"),
            ("a b", "'a b'"),
            ("it's", "\"it's\""),
            (r"a b\", r"'a b\\'"),
            ("a,b", "'a,b'"),
            ("", "''"),
        ] {
            assert_eq!(quote(value), expected);
            assert_eq!(unquote(expected), value);
            let text = format!("study.data={expected}");
            assert_eq!(split_overrides(&format!("{text} a=b")).len(), 2, "{text}");
            assert_eq!(Setting::parse(&text).unwrap(), Setting::new("study.data", value));
            assert_eq!(Setting::new("study.data", value).text(), text);
            assert!(Override::parse(&format!("dataset.data_folder={expected}")).is_ok(), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_an_override_is_refused() {
        assert!(Setting::parse("batch size").is_err());
    }

    #[test]
    fn overrides_are_split_at_whitespace_outside_quotes_and_brackets() {
        for (cell, expected) in [
            ("", vec![]),
            ("  a=1  b=2 ", vec!["a=1", "b=2"]),
            ("a='x y' b=[1, 2]", vec!["a='x y'", "b=[1, 2]"]),
            ("a={b: 1, c: 2}", vec!["a={b: 1, c: 2}"]),
        ] {
            assert_eq!(split_overrides(cell), expected);
        }
    }
}
