//! Parses the factors of a design file or of flags. A factor is an entry of a map, with a dotted or nested key, or an item of a list. Its levels are
//! a list, or a range with an optional number of steps. Whether a key exists is checked elsewhere.

use super::{text, words};
use crate::factor::{self, Spacing, StudyFactor};
use feedrate_results::setting::{Setting, parse_number};
use feedrate_spec::problem::{Problem, Problems};
use feedrate_spec::workload::nearest;
use serde_json::{Map, Value};

/// Keys that describe a factor.
const FACTOR_KEYS: &[&str] = &["name", "key", "levels", "low", "high", "steps", "log"];

/// Maximum number of levels of a factor. More levels are assumed to be a mistake.
const LEVELS_MAX: usize = 1000;

/// Parses all factors, in the order of the text.
pub(crate) fn parse_factors(given: &Value, problems: &mut Problems) -> Vec<StudyFactor> {
    let mut found = Vec::new();
    match given {
        Value::Null => {}
        Value::Object(entries) => parse_section("", entries, &mut found, problems),
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                let location = format!("factors[{i}]");
                match item {
                    Value::Object(entries) => {
                        found.extend(parse_factor(&location, None, entries, problems))
                    }
                    other => problems.push(not_a_factor(&location, other)),
                }
            }
        }
        other => problems.push(not_a_factor("factors", other)),
    }
    found
}

fn not_a_factor(location: &str, value: &Value) -> Problem {
    Problem::error(location, format!("`{}` is not a factor", text(value)))
        .hint("write `KEY = [LEVEL, LEVEL]`, or a list of `{ key = KEY, levels = [LEVEL, LEVEL] }`")
}

/// Parses a map of factors. A map inside it that has one of [`FACTOR_KEYS`] is a factor; any other map is part of a dotted key, as TOML nests
/// `reader.batch_size = [1, 2]`.
fn parse_section(
    prefix: &str,
    entries: &Map<String, Value>,
    found: &mut Vec<StudyFactor>,
    problems: &mut Problems,
) {
    for (name, value) in entries {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let location = format!("factors.{key}");
        match value {
            Value::Object(inner) if FACTOR_KEYS.iter().any(|key| inner.contains_key(*key)) => {
                found.extend(parse_factor(&location, Some(&key), inner, problems));
            }
            Value::Object(inner) if inner.is_empty() => problems.push(no_levels(&location)),
            Value::Object(inner) => parse_section(&key, inner, found, problems),
            Value::Array(_) => {
                found.extend(problems.ok_or_push(create_factor(
                    &location,
                    None,
                    &key,
                    words(value),
                )));
            }
            _ => problems.push(not_a_factor(&location, value)),
        }
    }
}

fn no_levels(location: &str) -> Problem {
    Problem::error(location, "has no levels")
        .hint("write `KEY = [LEVEL, LEVEL]` or `KEY = { low = 1, high = 8 }`")
}

/// Parses one factor from a map. `map_key` is the map's key in its parent. If the map has an entry `key`, `map_key` is the name of the factor.
fn parse_factor(
    location: &str,
    map_key: Option<&str>,
    entries: &Map<String, Value>,
    problems: &mut Problems,
) -> Option<StudyFactor> {
    let before = problems.0.len();
    for unknown in entries.keys().filter(|key| !FACTOR_KEYS.contains(&key.as_str())) {
        let problem = Problem::error(format!("{location}.{unknown}"), "is not a key of a factor");
        problems.push(problem.hint(match nearest(unknown, FACTOR_KEYS.iter().copied()) {
            Some(suggestion) => format!("did you mean `{suggestion}`?"),
            None => format!("the keys are `{}`", FACTOR_KEYS.join("`, `")),
        }));
    }
    let Some(key) = entries.get("key").map(text).or_else(|| map_key.map(str::to_string)) else {
        let problem = Problem::error(location, "has no key");
        problems.push(problem.hint("write `key = \"reader.batch_size\"`"));
        return None;
    };
    let outer_name = map_key.filter(|map_key| *map_key != key).map(str::to_string);
    let name = entries.get("name").map(text).or(outer_name);
    let scale = problems.ok_or_push(parse_scale(location, entries.get("log")));
    let levels = match entries.get("levels") {
        None => parse_range(location, entries, scale?, problems)?,
        Some(levels) => {
            for key in ["low", "high", "steps"].iter().filter(|key| entries.contains_key(**key)) {
                problems.push(
                    Problem::error(format!("{location}.{key}"), "cannot be combined with `levels`")
                        .hint("give either `levels`, or `low` and `high`"),
                );
            }
            words(levels)
        }
    };
    let factor = problems.ok_or_push(create_factor(location, name, &key, levels))?;
    (problems.0.len() == before).then_some(StudyFactor { scale: scale?, ..factor })
}

fn parse_scale(location: &str, log: Option<&Value>) -> Result<Spacing, Problem> {
    match log.map(|log| text(log).to_ascii_lowercase()).as_deref() {
        None | Some("false") => Ok(Spacing::Linear),
        Some("true") => Ok(Spacing::Log),
        Some(other) => {
            let problem = Problem::error(
                format!("{location}.log"),
                format!("`{other}` is not true or false"),
            );
            Err(problem.hint("`true` spaces the levels logarithmically"))
        }
    }
}

/// Creates a factor from its levels. Without `name`, the last part of the key is the name.
fn create_factor(
    location: &str,
    name: Option<String>,
    key: &str,
    levels: Vec<String>,
) -> Result<StudyFactor, Problem> {
    if levels.is_empty() {
        return Err(no_levels(location));
    }
    if levels.len() > LEVELS_MAX {
        return Err(Problem::error(location, format!("has {} levels", levels.len()))
            .hint(format!("give at most {LEVELS_MAX}")));
    }
    for (i, level) in levels.iter().enumerate() {
        if levels[..i].iter().any(|other| StudyFactor::is_same(other, level)) {
            return Err(Problem::error(location, format!("has the level `{level}` twice"))
                .hint("leave one out; to repeat runs, use `replicates = 2`"));
        }
    }
    let key = factor::canonical(key).to_string();
    let factor_name =
        name.unwrap_or_else(|| Setting::new(key.as_str(), "").short_key().to_string());
    Ok(StudyFactor { name: factor_name, key, levels, scale: Spacing::Linear, baseline: None })
}

/// Parses a range. Its levels are the two ends, or as many as `steps` gives.
fn parse_range(
    location: &str,
    entries: &Map<String, Value>,
    scale: Spacing,
    problems: &mut Problems,
) -> Option<Vec<String>> {
    if !entries.contains_key("low") && !entries.contains_key("high") {
        problems.push(no_levels(location));
        return None;
    }
    let low = problems.ok_or_push(parse_bound(location, "low", entries.get("low")));
    let high = problems.ok_or_push(parse_bound(location, "high", entries.get("high")));
    let steps = entries.get("steps").map(|steps| problems.ok_or_push(parse_steps(location, steps)));
    let (low, high) = low.zip(high)?;
    let (from, to) = parse_number(&low).zip(parse_number(&high))?;
    if from >= to {
        problems.push(
            Problem::error(location, format!("`low` is `{low}`, not below `high`, `{high}`"))
                .hint("swap them, or choose different ones"),
        );
        return None;
    }
    if scale == Spacing::Log && from <= 0.0 {
        problems.push(
            Problem::error(location, format!("a logarithmic scale cannot start at `{low}`"))
                .hint("start above 0, or leave `log` out"),
        );
        return None;
    }
    let is_integer = [&low, &high].iter().all(|text| text.parse::<i64>().is_ok());
    match steps {
        Some(steps) => Some(factor::steps(from, to, scale, steps?, is_integer)),
        None => Some(vec![low, high]),
    }
}

fn parse_bound(location: &str, key: &str, value: Option<&Value>) -> Result<String, Problem> {
    let bound_place = format!("{location}.{key}");
    let Some(text) = value.map(text) else {
        return Err(Problem::error(bound_place, "is missing").hint("a range has `low` and `high`"));
    };
    if parse_number(&text).is_none() {
        return Err(Problem::error(bound_place, format!("`{text}` is not a number"))
            .hint("a range needs numbers; give other levels as a list"));
    }
    Ok(text)
}

fn parse_steps(location: &str, steps: &Value) -> Result<u32, Problem> {
    let text = text(steps);
    let count = text.parse().ok().filter(|levels: &u32| (2..=LEVELS_MAX as u32).contains(levels));
    count.ok_or_else(|| {
        Problem::error(format!("{location}.steps"), format!("`{text}` is not a number of levels"))
            .hint(format!("give a whole number from 2 to {LEVELS_MAX}"))
    })
}
