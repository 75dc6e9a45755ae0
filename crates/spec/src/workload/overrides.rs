//! Parses overrides in the syntax of Hydra 1.3 (`hydra/grammar/OverrideParser.g4`): `key=value`, `+key=`, `++key=`, `~key`.
//! `apply.rs` applies them to a workload.

use super::braces::interpolation_length;
use super::scalar::{self, Plain};
use super::tree::{Content, DEPTH_MAX, Entry, Node, brief};
use crate::problem::{Location, Problem};

/// One override of a workload's key, as typed on the command line.
#[derive(Clone, Debug)]
pub struct Override {
    pub(super) text: String,
    pub(super) action: Action,
    pub(super) key: String,
    pub(super) value: Option<Node>,
}

/// Effect of an override.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// `key=value` and `++key=value`: sets the key, whether it is given or not.
    Set,
    /// `key=value` with Hydra's meaning: changes a key that is given.
    Replace,
    /// `+key=value`: sets a key that is not given.
    Add,
    /// `~key`: restores the default.
    Delete,
}

/// Returns the key in the text of an override, without `workload.`. Returns a text that is not an override unchanged.
pub fn overridden_key(text: &str) -> &str {
    let key = text.split('=').next().unwrap_or_default().trim_start_matches('+');
    key.strip_prefix("workload.").unwrap_or(key)
}

impl Override {
    /// Parses an override; the prefix `workload.` is optional.
    ///
    /// # Errors
    /// Returns a problem whose location is the override.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        Self::parse_with(text, Action::Set)
    }

    /// Like [`Override::parse`], but as in Hydra, `key=value` cannot be applied to a key that is not given.
    ///
    /// # Errors
    /// Returns a problem whose location is the override.
    pub fn parse_as_hydra(text: &str) -> Result<Self, Problem> {
        Self::parse_with(text, Action::Replace)
    }

    fn parse_with(text: &str, unprefixed: Action) -> Result<Self, Problem> {
        let location = Location::Override(text.to_string());
        let (action, rest) = if let Some(rest) = text.strip_prefix("++") {
            (Action::Set, rest)
        } else if let Some(rest) = text.strip_prefix('+') {
            (Action::Add, rest)
        } else if let Some(rest) = text.strip_prefix('~') {
            (Action::Delete, rest)
        } else {
            (unprefixed, text)
        };
        let (typed_key, value_text) = match rest.split_once('=') {
            Some((key, value)) => (key.trim(), Some(value)),
            None => (rest.trim(), None),
        };
        let key = workload_key(typed_key).map_err(|problem| problem.with_key("", &location))?;
        if value_text.is_none() && action != Action::Delete {
            let problem = Problem::new("an override needs a value").hint("write `KEY=VALUE`");
            return Err(problem.with_key(key, &location));
        }
        let value = match value_text.map(str::trim_start) {
            None => None,
            Some("") if action == Action::Delete => None,
            Some(text) => Some(
                value_node(text, &location).map_err(|problem| problem.with_key(key, &location))?,
            ),
        };
        Ok(Override { text: text.to_string(), action, key: key.to_string(), value })
    }

    /// Returns the key and the values of a sweep over several runs, such as `reader.read_threads=1,2,4`; `None` for other text.
    pub fn sweep(text: &str) -> Option<(&str, &str)> {
        let (typed_key, typed_values) = text.trim_start_matches('+').split_once('=')?;
        let key = workload_key(typed_key.trim()).ok()?;
        let values = typed_values.trim();
        let mut reader =
            OverrideReader { rest: values, location: &Location::Override(text.into()) };
        reader.read_element(&[], 0).ok()?;
        reader.skip_space();
        (reader.peek() == Some(',')).then_some((key, values))
    }

    /// Returns the override as typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the dotted key, without `workload.`.
    pub fn key(&self) -> String {
        self.key.clone()
    }
}

/// Parses a value in the grammar of overrides. The table of keys gives its defaults in this grammar.
pub(super) fn literal(text: &str) -> Option<Node> {
    value_node(text, &Location::Override(text.to_string())).ok()
}

/// Checks a dotted key and removes `workload.` from its start.
fn workload_key(typed: &str) -> Result<&str, Problem> {
    let key = typed.strip_prefix("workload.").unwrap_or(typed);
    if key == "workload" {
        return Err(Problem::new("`workload` is not a key of a workload")
            .hint("give the workload's name before the overrides: `feedrate run NAME KEY=VALUE`"));
    }
    if key.starts_with("hydra.") {
        return Err(Problem::new(format!("`{typed}` configures Hydra, not the workload"))
            .hint("only keys of the workload can be overridden"));
    }
    if key.split('.').count() > DEPTH_MAX || !key.split('.').all(is_key) {
        return Err(Problem::new(format!("`{}` is not a key", brief(typed)))
            .hint("write `section.key=VALUE`, as in `reader.batch_size=4`"));
    }
    Ok(key)
}

fn is_key(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$')
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-$".contains(c))
}

fn value_node(text: &str, location: &Location) -> Result<Node, Problem> {
    let mut reader = OverrideReader { rest: text, location };
    if text.is_empty() {
        return Ok(Node::scalar("", true, location.clone()));
    }
    let node = reader.read_element(&[], 0)?;
    reader.skip_space();
    match reader.peek() {
        None => Ok(node),
        Some(',') => Err(Problem::new(format!("`{text}` is a sweep over several values")).hint(
            "an override sets one value: write `[a,b]` for a list; `feedrate study new` makes several runs",
        )),
        Some(c) => Err(Problem::new(format!("`{c}` is not expected in `{text}`")).hint(QUOTE)),
    }
}

const QUOTE: &str = "put text with special characters in quotes: `key='a,b'`";

struct OverrideReader<'a> {
    rest: &'a str,
    location: &'a Location,
}

impl<'a> OverrideReader<'a> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    /// Skips whitespace and then `wanted`, if it is next. Returns whether it was.
    fn skip_char(&mut self, wanted: char) -> bool {
        self.skip_space();
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Reads one value, up to one of `ends`.
    fn read_element(&mut self, ends: &[char], depth: usize) -> Result<Node, Problem> {
        if depth > DEPTH_MAX {
            return Err(Problem::new(format!("nested deeper than the limit of {DEPTH_MAX}")));
        }
        self.skip_space();
        let content = match self.peek() {
            Some('[') => self.read_list(depth)?,
            Some('{') => self.read_dict(depth)?,
            Some(quote @ ('\'' | '"')) => {
                Content::Scalar { text: self.read_quoted(quote)?, quoted: true }
            }
            _ => return self.read_unquoted(ends),
        };
        Ok(Node { location: self.location.clone(), content })
    }

    fn read_list(&mut self, depth: usize) -> Result<Content, Problem> {
        let mut items = Vec::new();
        self.skip_char('[');
        let unclosed = Problem::new("a list without its `]`").hint("write `[1,2]`");
        self.read_items(']', unclosed, |reader| {
            items.push(reader.read_element(&[',', ']'], depth + 1)?);
            Ok(())
        })?;
        Ok(Content::List(items))
    }

    fn read_dict(&mut self, depth: usize) -> Result<Content, Problem> {
        const HINT: &str = "write `{mean:1.0,stdev:0.1}`";
        let mut entries: Vec<Entry> = Vec::new();
        self.skip_char('{');
        let unclosed = Problem::new("a dictionary without its `}`").hint(HINT);
        self.read_items('}', unclosed, |reader| {
            reader.skip_space();
            let end = reader.rest.find([':', ',', '}', '{', '[', ']', '\'', '"']);
            let Some(end) = end.filter(|&end| end > 0 && reader.rest[end..].starts_with(':'))
            else {
                let message = "a key and `:` are expected after `{` or `,`";
                return Err(Problem::new(message).hint(HINT));
            };
            let key = reader.rest[..end].trim().to_string();
            reader.rest = &reader.rest[end + 1..];
            let value = reader.read_element(&[',', '}'], depth + 1)?;
            if entries.iter().any(|e| e.key == key) {
                return Err(Problem::new(format!("the key `{key}` is given twice")));
            }
            entries.push(Entry { key, key_location: reader.location.clone(), value });
            Ok(())
        })?;
        Ok(Content::Map(entries))
    }

    /// Reads items separated by commas, up to and including `close`.
    fn read_items(
        &mut self,
        close: char,
        unclosed: Problem,
        mut item: impl FnMut(&mut Self) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        if self.skip_char(close) {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.skip_char(close) {
                return Ok(());
            }
            if !self.skip_char(',') {
                return Err(unclosed);
            }
        }
    }

    /// Reads a quoted text. Only backslashes before a quote are special: two of them mean one backslash, and a single one escapes the quote.
    fn read_quoted(&mut self, quote: char) -> Result<String, Problem> {
        let mut text = String::new();
        let mut backslashes = 0;
        for (index, c) in self.rest.char_indices().skip(1) {
            if c == '\\' {
                backslashes += 1;
                continue;
            }
            let literal_backslashes = if c == quote { backslashes / 2 } else { backslashes };
            text.extend(std::iter::repeat_n('\\', literal_backslashes));
            if c == quote && backslashes % 2 == 0 {
                self.rest = &self.rest[index + 1..];
                return Ok(text);
            }
            backslashes = 0;
            text.push(c);
        }
        Err(Problem::new(format!("a text without its closing `{quote}`"))
            .hint("the shell removes quotes: quote twice, `'key=\"text\"'`"))
    }

    fn read_unquoted(&mut self, ends: &[char]) -> Result<Node, Problem> {
        let mut text = String::new();
        let mut trimmed_len = 0;
        let mut escaped = false;
        let mut chars = self.rest.char_indices();
        let end = loop {
            let Some((index, c)) = chars.next() else { break self.rest.len() };
            match c {
                '\\' => match self.rest[index + 1..].chars().next() {
                    Some(next) if "\\()[]{}:=, \t".contains(next) => {
                        chars.next();
                        text.push(next);
                        trimmed_len = text.len();
                        escaped = true;
                    }
                    _ => text.push(c),
                },
                '$' if self.rest[index..].starts_with("${") => {
                    let length = interpolation_length(&self.rest[index..]).ok_or_else(|| {
                        Problem::new("an interpolation without its `}`").hint("write `${KEY}`")
                    })?;
                    let interpolation = &self.rest[index..index + length];
                    text.push_str(interpolation);
                    trimmed_len = text.len();
                    escaped = true;
                    chars.nth(interpolation.chars().count() - 2);
                    continue;
                }
                '(' | ')' => {
                    return Err(Problem::new(format!(
                        "`{c}`: functions and sweeps are not supported"
                    ))
                    .hint(QUOTE));
                }
                '[' | '{' | '}' | ']' | ',' | '\'' | '"' | '=' => break index,
                _ => text.push(c),
            }
            if !c.is_whitespace() {
                trimmed_len = text.len();
            }
        };
        text.truncate(trimmed_len);
        let stopped = self.rest[end..].chars().next();
        if let Some(c) = stopped.filter(|c| !ends.contains(c) && *c != ',') {
            return Err(Problem::new(format!("`{c}` is not expected in a value without quotes"))
                .hint(QUOTE));
        }
        self.rest = &self.rest[end..];
        if text.is_empty() {
            return Err(Problem::new("a value is missing")
                .hint("leave out the comma, or write `''` for empty text"));
        }
        let is_text = escaped || !is_typed(&text);
        let value = if is_word(&text) { text.to_ascii_lowercase() } else { text };
        Ok(Node::scalar(value, is_text, self.location.clone()))
    }
}

/// Whether Hydra reads `text` as a number, null, `true` or `false` (in any case). It reads `yes` and `off` as text.
pub(super) fn is_typed(text: &str) -> bool {
    is_word(text) || matches!(scalar::resolve(text), Plain::Int(_) | Plain::Float(_))
}

/// Whether `text` is `true`, `false` or `null` in any case.
pub(super) fn is_word(text: &str) -> bool {
    ["true", "false", "null"].iter().any(|word| text.eq_ignore_ascii_case(word))
}
