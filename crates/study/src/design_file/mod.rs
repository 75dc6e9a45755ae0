//! Design files, in TOML: what they say, as text. What it means is checked in `resolved_design`. Reads no file.

pub(crate) mod levels;
pub(crate) mod flags;
#[cfg(test)]
mod tests;

use crate::randomization::{Blocking, RunOrder};
use feedrate_spec::problem::{Place, Problem};
use feedrate_spec::workload::nearest;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A design as it was written, in a file or by flags.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DesignText {
    /// The kind, or a map of `kind` and its options.
    pub design: Value,
    /// Settings that all runs have in common.
    pub baseline: BaselineText,
    /// Factors: a map of keys and levels, or a list.
    pub factors: Value,
    /// Runs of each point; 1.
    pub replicates: Option<u32>,
    /// Meaning of a block [default: a replicate].
    pub blocks: Option<Blocking>,
    /// The order in a block; random.
    pub order: Option<RunOrder>,
    /// Seed of the random order [default: 1].
    pub seed: Option<u64>,
    /// Runs from one sentinel to the next; no sentinels.
    pub sentinel: Option<u32>,
    /// Runs in the middle, in each block; none.
    pub centre_points: Option<u32>,
    /// Commands for factors `study.hook.NAME`.
    pub hooks: BTreeMap<String, String>,
}

/// Settings that all runs have in common where no factor says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BaselineText {
    /// A bundled workload, or a YAML file.
    pub model: Option<String>,
    /// Epochs; the workload's.
    pub epochs: Option<u32>,
    /// Emulated accelerators; 1.
    #[serde(alias = "accelerators")]
    pub processes: Option<u32>,
    /// Seed of the order of samples; the workload's.
    pub seed: Option<u64>,
    /// Share of the files to use; 1.
    pub scale: Option<f64>,
    /// A map of keys and values, or a list of overrides.
    pub overrides: Value,
}

/// A value as an override says it; truths as Python writes them, and so the studies before ours.
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

/// The words of a list, or of one value.
pub(crate) fn words(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().map(text).collect(),
        other => vec![text(other)],
    }
}

/// Read a design file.
///
/// # Errors
/// The file is no TOML, or has a key that is none of a design.
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
    let near = unknown_field(&message);
    let place = Place::File { name: name.to_string(), line, column };
    let problem = Problem::error("", message).at(Some(place));
    match near {
        Some(near) => problem.hint(format!("did you mean `{near}`?")),
        None => problem.hint("see `feedrate study new --help`, and `feedrate list designs`"),
    }
}

/// The nearest of the names that serde lists: ``unknown field `x`, expected one of `a`, `b` ``.
fn unknown_field(message: &str) -> Option<String> {
    let (_, list) = message.split_once("unknown field")?;
    let mut words =
        list.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty());
    let wanted = words.next()?;
    nearest(wanted, words.filter(|word| !["expected", "one", "of"].contains(word)))
        .map(str::to_string)
}
