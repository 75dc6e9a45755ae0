//! Parses designs from the text of TOML files or from flags. `resolved_design` checks them afterwards. Reads no files.

pub(crate) mod levels;
pub(crate) mod flags;
#[cfg(test)]
mod tests;

use crate::randomization::{Blocking, RunOrder};
use feedrate_spec::problem::{Location, Problem};
use feedrate_spec::workload::nearest;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// An unchecked design, from a file or flags.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DesignText {
    /// Kind of design, or a map of `kind` and its options.
    pub design: Value,
    /// Settings that all runs have in common.
    pub baseline: BaselineText,
    /// Factors: a map from keys to levels, or a list.
    pub factors: Value,
    /// Runs of each point [default: 1].
    pub replicates: Option<u32>,
    /// Runs that form a block [default: a replicate].
    pub blocks: Option<Blocking>,
    /// Order of the runs in a block [default: random].
    pub order: Option<RunOrder>,
    /// Seed of the random order [default: 1].
    pub seed: Option<u64>,
    /// Runs between sentinels [default: no sentinels].
    pub sentinel: Option<u32>,
    /// Centre points in each block [default: 0].
    pub centre_points: Option<u32>,
    /// Commands for factors `study.hook.NAME`.
    pub hooks: BTreeMap<String, String>,
}

/// Settings of all runs, unless a factor sets another value.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BaselineText {
    /// A bundled workload, or a YAML file.
    pub model: Option<String>,
    /// Epochs [default: the workload's].
    pub epochs: Option<u32>,
    /// Emulated accelerators [default: 1].
    #[serde(alias = "accelerators")]
    pub processes: Option<u32>,
    /// Seed of the order of samples [default: the workload's].
    pub seed: Option<u64>,
    /// Share of the files to use [default: 1].
    pub scale: Option<f64>,
    /// A map of keys and values, or a list of overrides.
    pub overrides: Value,
}

/// Formats a value as an override. Booleans are written as in Python, like in studies of DLIO.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Number(number) if number.is_f64() => {
            number.as_f64().map_or(String::new(), |number| number.to_string())
        }
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(_) => format!("[{}]", words(value).join(",")),
        Value::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("{key}:{}", text(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
        }
    }
}

/// Formats the items of a list, or a single value.
pub(crate) fn words(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().map(text).collect(),
        other => vec![text(other)],
    }
}

/// Parses the text of a design file called `name`.
///
/// # Errors
/// The text is not TOML, or has an unknown key.
pub fn parse(name: &str, text: &str) -> Result<DesignText, Problem> {
    if [".yaml", ".yml"].iter().any(|end| name.to_ascii_lowercase().ends_with(end)) {
        return Err(problem(name, 1, 1, "designs are written in TOML, not in YAML")
            .hint("write a file `NAME.toml` with lines such as `design = \"two_level\"` and `factors.processes = [1, 8]`"));
    }
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        problem(name, line, column, error.message())
    })
}

fn problem(name: &str, line: usize, column: usize, message: &str) -> Problem {
    let message = message.lines().next().unwrap_or_default().to_string();
    let suggestion = suggest_field(&message);
    let place = Location::File { name: name.to_string(), line, column };
    let problem = Problem::error("", message).with_location(Some(place));
    match suggestion {
        Some(field) => problem.hint(format!("did you mean `{field}`?")),
        None => problem.hint("see `feedrate study new --help`, and `feedrate list designs`"),
    }
}

/// Returns the closest name in serde's error ``unknown field `x`, expected one of `a`, `b` ``; `None` for other errors.
fn suggest_field(message: &str) -> Option<String> {
    let (_, list) = message.split_once("unknown field")?;
    let mut words =
        list.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let wanted = words.next()?;
    nearest(wanted, words.filter(|word| !["expected", "one", "of"].contains(word)))
        .map(str::to_string)
}
