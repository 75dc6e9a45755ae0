//! Adds the flags of `study new` to a design. There is one method for each flag.

use super::{BaselineText, DesignText, text};
use feedrate_results::setting::{Setting, parse_number, split_outside_quotes, unquote};
use feedrate_spec::problem::Problem;
use serde_json::{Map, Value};

impl DesignText {
    /// Sets the kind of design and keeps its options.
    pub fn set_kind(&mut self, kind: &str) {
        self.set_in_design("kind", kind.into());
    }

    /// Sets an option of the design: `p=2`, `generators=D=AB,E=AC`.
    ///
    /// # Errors
    /// The option has no value.
    pub fn set_option(&mut self, text: &str) -> Result<(), Problem> {
        let (name, value) = split_pair(text, "--option", "p=2")?;
        self.set_in_design(name, parse_levels(value));
        Ok(())
    }

    /// Adds a factor: `reader.read_threads=1,4,8`, `reader.batch_size=1..16`, `train.computation_time=0.01..1:log`.
    ///
    /// # Errors
    /// The factor has no levels, or is given twice.
    pub fn add_factor(&mut self, text: &str) -> Result<(), Problem> {
        let (key, value) = split_pair(text, "--factor", "reader.read_threads=1,4,8")?;
        let mut factor = parse_range(value).unwrap_or_default();
        if factor.is_empty() {
            factor.insert("levels".into(), parse_levels(value));
        }
        factor.insert("key".into(), key.into());
        match &mut self.factors {
            Value::Array(items) => items.push(factor.into()),
            factors => {
                if insert(factors, key, factor.into()).is_some() {
                    return Err(Problem::error(format!("factors.{key}"), "is given twice")
                        .hint("put all its levels into one factor"));
                }
            }
        }
        Ok(())
    }

    /// Adds a hook: `governor=cpupower frequency-set -g $1`.
    ///
    /// # Errors
    /// The hook has no command.
    pub fn add_hook(&mut self, text: &str) -> Result<(), Problem> {
        let (name, command) = split_pair(text, "--hook", "governor=cpupower frequency-set -g $1")?;
        self.hooks.insert(name.into(), command.into());
        Ok(())
    }

    fn set_in_design(&mut self, key: &str, value: Value) {
        if !self.design.is_object() && !self.design.is_null() {
            self.design = Map::from_iter([("kind".into(), text(&self.design).into())]).into();
        }
        insert(&mut self.design, key, value);
    }
}

impl BaselineText {
    /// Adds an override: `reader.batch_size=4`. Replaces an earlier override of the same key.
    ///
    /// # Errors
    /// The text is not an override, or deletes a key.
    pub fn add_override(&mut self, text: &str) -> Result<(), Problem> {
        let (key, value) = parse_override(text)?;
        match &mut self.overrides {
            Value::Array(items) => items.push(text.into()),
            overrides => drop(insert(overrides, &key, unquote(&value).into())),
        }
        Ok(())
    }
}

/// Inserts a value into a map, which is created first if it is null. Returns the earlier value of the key.
fn insert(map: &mut Value, key: &str, value: Value) -> Option<Value> {
    if map.is_null() {
        *map = Value::Object(Map::new());
    }
    map.as_object_mut()?.insert(key.into(), value)
}

/// Parses the key and the value of an override.
///
/// # Errors
/// The text is not an override, or deletes a key.
pub(crate) fn parse_override(text: &str) -> Result<(String, String), Problem> {
    let Setting { key, value } = Setting::parse(text)?;
    let value = value.ok_or_else(|| {
        Problem::error("baseline.overrides", format!("`{text}` deletes a key"))
            .hint("leave out keys that the baseline does not set")
    })?;
    Ok((key, value))
}

/// Splits `NAME=VALUE`. The error shows an example.
fn split_pair<'a>(text: &'a str, flag: &str, example: &str) -> Result<(&'a str, &'a str), Problem> {
    let split = text.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
    split.filter(|(name, value)| !name.is_empty() && !value.is_empty()).ok_or_else(|| {
        Problem::error(flag, format!("`{text}` has no name or no value"))
            .hint(format!("write `{flag} '{example}'`"))
    })
}

/// Parses `LOW..HIGH` or `LOW..HIGH:log`; `None` for other text, which is a list of levels.
fn parse_range(levels: &str) -> Option<Map<String, Value>> {
    let (bounds, is_log) = match levels.strip_suffix(":log") {
        Some(bounds) => (bounds, true),
        None => (levels, false),
    };
    let (low, high) = bounds.split_once("..")?;
    parse_number(low).zip(parse_number(high))?;
    let entries = [("low", low.into()), ("high", high.into()), ("log", is_log.into())];
    Some(entries.map(|(key, value): (_, Value)| (key.to_string(), value)).into_iter().collect())
}

/// Parses levels, separated by commas.
fn parse_levels(text: &str) -> Value {
    let pieces = split_outside_quotes(text, |c| c == ',').into_iter();
    pieces.map(|piece| unquote(piece.trim())).collect()
}
