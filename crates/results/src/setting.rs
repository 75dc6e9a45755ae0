//! One thing that a row of a study sets beside its columns: an override as Hydra writes it, or a setting of the study itself. Text in, text out.

use feedrate_spec::problem::Problem;
use feedrate_spec::workload::{KEYS, KeyInfo, Origin, Override};
use std::cmp::Ordering;

/// Keys of the study, not of the workload.
pub const STUDY_PREFIX: &str = "study.";

/// An override of a row: `++workload.reader.batch_size=4`, `~train.epochs`, `study.cache=cold`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Setting {
    /// Without `workload.` and signs: `reader.batch_size`, `study.cache`.
    pub key: String,
    /// As an override has it, in quotes where it needs them; of the study's own, without. `None` deletes the key, so that its default holds.
    pub value: Option<String>,
}

impl Setting {
    /// Set `key` to `value`.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Self {
        Setting { key: key.into(), value: Some(value.into()) }
    }

    /// Read one override, with or without its sign and `workload.`.
    ///
    /// # Errors
    /// It is no override.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        if let Some((key, value)) = of_study(text) {
            return Ok(Setting::new(key, unquoted(value)));
        }
        let parsed = Override::parse(text)?;
        let value = if text.starts_with('~') { None } else { text.split_once('=') };
        let value = value.map(|(_, value)| value.to_string());
        Ok(Setting { key: parsed.key(), value })
    }

    /// As `feedrate run` takes it, and as the CSV has it; DLIO takes it too unless it is the study's own.
    pub fn text(&self) -> String {
        match (&self.value, self.is_of_study()) {
            (Some(value), true) => format!("{}={}", self.key, quoted(value)),
            (Some(value), false) => format!("++workload.{}={value}", self.key),
            (None, _) => format!("~workload.{}", self.key),
        }
    }

    /// Whether it is for the runner, and no workload knows it.
    pub fn is_of_study(&self) -> bool {
        self.key.starts_with(STUDY_PREFIX)
    }

    /// The last word of its key where that says which key it is; else the whole key.
    pub fn short_key(&self) -> &str {
        match self.key.rsplit_once('.') {
            Some((_, leaf)) if key_of_leaf(leaf) == Some(self.key.as_str()) => leaf,
            _ => &self.key,
        }
    }
}

fn of_study(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.trim_start_matches('+').split_once('=')?;
    key.starts_with(STUDY_PREFIX).then_some((key, value))
}

/// The only key of a workload that ends in `leaf`; of several, the only one of DLIO's.
pub fn key_of_leaf(leaf: &str) -> Option<&'static str> {
    let named = KEYS.iter().filter(|key| key.path.rsplit('.').next() == Some(leaf));
    let named: Vec<&KeyInfo> = named.collect();
    let of_dlio: Vec<&KeyInfo> =
        named.iter().copied().filter(|key| key.origin == Origin::Dlio).collect();
    match (&of_dlio[..], &named[..]) {
        ([only], _) | (_, [only]) => Some(only.path),
        _ => None,
    }
}

/// Split the overrides of a row at blanks that no quote or bracket holds together.
pub fn split(cell: &str) -> Vec<String> {
    pieces(cell, char::is_whitespace).into_iter().filter(|word| !word.is_empty()).collect()
}

/// Split text at separators outside quotes and brackets.
pub fn pieces(text: &str, is_separator: impl Fn(char) -> bool) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let (mut depth, mut quote) = (0_u32, None);
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

/// A level as a finite number, if it is one.
pub fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Order of levels: numbers ascend, before all others, which keep theirs.
pub fn by_number(a: &str, b: &str) -> Ordering {
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (a, b) => a.is_none().cmp(&b.is_none()),
    }
}

/// A value in quotes where it would not be one word of an override. It holds not both kinds of quotes.
pub fn quoted(value: &str) -> String {
    if !value.is_empty() && value.chars().all(is_of_word) {
        return value.to_string();
    }
    let quote = if value.contains('\'') { '"' } else { '\'' };
    // Backslashes count only before a quote.
    let backslashes = value.len() - value.trim_end_matches('\\').len();
    format!("{quote}{value}{}{quote}", "\\".repeat(backslashes))
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || "_-./+:%@~".contains(c)
}

/// A value without the quotes around it.
pub fn unquoted(value: &str) -> String {
    let inner = ['\'', '"'].iter().find_map(|&q| value.strip_prefix(q)?.strip_suffix(q));
    let Some(inner) = inner else { return value.to_string() };
    let backslashes = inner.len() - inner.trim_end_matches('\\').len();
    inner[..inner.len() - backslashes / 2].to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_is_known_by_its_key_however_it_is_written() {
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
    fn levels_are_in_the_order_of_numbers() {
        let mut levels = ["npz", "16", "hdf5", "2", "1.5"];
        levels.sort_by(|a, b| by_number(a, b));
        assert_eq!(levels, ["1.5", "2", "16", "npz", "hdf5"]);
    }

    #[test]
    fn a_setting_of_the_study_stays_its_own() {
        let setting = Setting::parse("study.cache=cold").unwrap();
        assert_eq!(setting, Setting::new("study.cache", "cold"));
        assert!(setting.is_of_study());
        assert_eq!(setting.text(), "study.cache=cold");
        assert_eq!(setting.short_key(), "study.cache");
    }

    #[test]
    fn what_dlio_calls_so_is_called_so() {
        assert_eq!(key_of_leaf("format"), Some("dataset.format"));
        assert_eq!(Setting::new("checkpoint.format", "pt").short_key(), "checkpoint.format");
        assert_eq!(key_of_leaf("no_such_key"), None);
    }

    #[test]
    fn a_value_in_quotes_is_one_word_and_the_same_value() {
        for (value, expected) in [
            ("npz", "npz"),
            ("/mnt/a-b_c.d", "/mnt/a-b_c.d"),
            ("a b", "'a b'"),
            ("it's", "\"it's\""),
            (r"a b\", r"'a b\\'"),
            ("a,b", "'a,b'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(value), expected);
            assert_eq!(unquoted(expected), value);
            let text = format!("study.data={expected}");
            assert_eq!(split(&format!("{text} a=b")).len(), 2, "{text}");
            assert_eq!(Setting::parse(&text).unwrap(), Setting::new("study.data", value));
            assert_eq!(Setting::new("study.data", value).text(), text);
            assert!(Override::parse(&format!("dataset.data_folder={expected}")).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_no_override_is_refused() {
        assert!(Setting::parse("batch size").is_err());
    }

    #[test]
    fn overrides_are_split_at_blanks_outside_quotes_and_brackets() {
        for (cell, expected) in [
            ("", vec![]),
            ("  a=1  b=2 ", vec!["a=1", "b=2"]),
            ("a='x y' b=[1, 2]", vec!["a='x y'", "b=[1, 2]"]),
            ("a={b: 1, c: 2}", vec!["a={b: 1, c: 2}"]),
        ] {
            assert_eq!(split(cell), expected);
        }
    }
}
