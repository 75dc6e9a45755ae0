//! Factors as a design file or a flag says them: lists, ranges, steps; by key, nested or in a list. Which keys there are is not asked here.

use super::{text, words};
use crate::factor::{self, Spacing, StudyFactor};
use feedrate_results::setting::{Setting, number};
use feedrate_spec::problem::{Problem, Problems};
use feedrate_spec::workload::nearest;
use serde_json::{Map, Value};

/// Keys that say the levels of a factor.
const WORDS: &[&str] = &["name", "key", "levels", "low", "high", "steps", "log"];

/// More are not meant.
const LEVELS_MAX: usize = 1000;

/// All factors, in the order they were written.
pub(crate) fn factors(given: &Value, problems: &mut Problems) -> Vec<StudyFactor> {
    let mut found = Vec::new();
    match given {
        Value::Null => {}
        Value::Object(entries) => section("", entries, &mut found, problems),
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                let place = format!("factors[{i}]");
                match item {
                    Value::Object(entries) => {
                        found.extend(described(&place, None, entries, problems))
                    }
                    other => problems.push(no_factor(&place, other)),
                }
            }
        }
        other => problems.push(no_factor("factors", other)),
    }
    found
}

fn no_factor(place: &str, value: &Value) -> Problem {
    Problem::error(place, format!("`{}` is no factor", text(value)))
        .hint("write `KEY = [LEVEL, LEVEL]`, or a list of `{ key = KEY, levels = [LEVEL, LEVEL] }`")
}

/// A map is a factor where it has one of the words, else a section of keys: `reader.batch_size = [1, 2]` in TOML makes one.
fn section(
    above: &str,
    entries: &Map<String, Value>,
    found: &mut Vec<StudyFactor>,
    problems: &mut Problems,
) {
    for (name, value) in entries {
        let key = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        let place = format!("factors.{key}");
        match value {
            Value::Object(inner) if WORDS.iter().any(|word| inner.contains_key(*word)) => {
                found.extend(described(&place, Some(&key), inner, problems));
            }
            Value::Object(inner) if inner.is_empty() => problems.push(no_levels(&place)),
            Value::Object(inner) => section(&key, inner, found, problems),
            Value::Array(_) => {
                found.extend(problems.ok_or_push(listed(&place, None, &key, words(value))));
            }
            _ => problems.push(no_factor(&place, value)),
        }
    }
}

fn no_levels(place: &str) -> Problem {
    Problem::error(place, "has no levels")
        .hint("write `KEY = [LEVEL, LEVEL]` or `KEY = { low = 1, high = 8 }`")
}

/// Read one factor. Without `key`, the `written` one is it; with it, that is the factor's name.
fn described(
    place: &str,
    written: Option<&str>,
    entries: &Map<String, Value>,
    problems: &mut Problems,
) -> Option<StudyFactor> {
    let before = problems.0.len();
    for word in entries.keys().filter(|word| !WORDS.contains(&word.as_str())) {
        let problem = Problem::error(format!("{place}.{word}"), "a factor has no such word");
        problems.push(problem.hint(match nearest(word, WORDS.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it has `{}`", WORDS.join("`, `")),
        }));
    }
    let Some(key) = entries.get("key").map(text).or_else(|| written.map(str::to_string)) else {
        let problem = Problem::error(place, "has no key");
        problems.push(problem.hint("write `key = \"reader.batch_size\"`"));
        return None;
    };
    let of_key = written.filter(|written| *written != key).map(str::to_string);
    let name = entries.get("name").map(text).or(of_key);
    let scale = problems.ok_or_push(scale(place, entries.get("log")));
    let levels = match entries.get("levels") {
        None => range(place, entries, scale?, problems)?,
        Some(levels) => {
            for word in ["low", "high", "steps"].iter().filter(|word| entries.contains_key(**word))
            {
                problems.push(
                    Problem::error(format!("{place}.{word}"), "stands beside `levels`")
                        .hint("give either `levels`, or `low` and `high`"),
                );
            }
            words(levels)
        }
    };
    let factor = problems.ok_or_push(listed(place, name, &key, levels))?;
    (problems.0.len() == before).then_some(StudyFactor { scale: scale?, ..factor })
}

fn scale(place: &str, log: Option<&Value>) -> Result<Spacing, Problem> {
    match log.map(|log| text(log).to_ascii_lowercase()).as_deref() {
        None | Some("false") => Ok(Spacing::Linear),
        Some("true") => Ok(Spacing::Log),
        Some(other) => {
            let problem =
                Problem::error(format!("{place}.log"), format!("`{other}` is not true or false"));
            Err(problem.hint("`true` spaces numbers by equal quotients"))
        }
    }
}

/// A factor of a list of levels.
fn listed(
    place: &str,
    name: Option<String>,
    key: &str,
    levels: Vec<String>,
) -> Result<StudyFactor, Problem> {
    if levels.is_empty() {
        return Err(no_levels(place));
    }
    if levels.len() > LEVELS_MAX {
        return Err(Problem::error(place, format!("has {} levels", levels.len()))
            .hint(format!("give at most {LEVELS_MAX}")));
    }
    for (i, level) in levels.iter().enumerate() {
        if levels[..i].iter().any(|other| StudyFactor::is_same(other, level)) {
            return Err(Problem::error(place, format!("has the level `{level}` twice"))
                .hint("leave one out; the same run again is a replicate: `replicates = 2`"));
        }
    }
    let key = factor::canonical(key).to_string();
    let name = name.unwrap_or_else(|| Setting::new(key.as_str(), "").short_key().to_string());
    Ok(StudyFactor { name, key, levels, scale: Spacing::Linear, baseline: None })
}

/// The levels of a range: its two ends, or the requested number of steps.
fn range(
    place: &str,
    entries: &Map<String, Value>,
    scale: Spacing,
    problems: &mut Problems,
) -> Option<Vec<String>> {
    if !entries.contains_key("low") && !entries.contains_key("high") {
        problems.push(no_levels(place));
        return None;
    }
    let [low, high] =
        ["low", "high"].map(|word| problems.ok_or_push(bound(place, word, entries.get(word))));
    let steps = entries.get("steps").map(|steps| problems.ok_or_push(count(place, steps)));
    let (low, high) = low.zip(high)?;
    let (from, to) = number(&low).zip(number(&high))?;
    if from >= to {
        problems.push(
            Problem::error(place, format!("`low` is `{low}`, not below `high`, `{high}`"))
                .hint("exchange them, or set them apart"),
        );
        return None;
    }
    if scale == Spacing::Log && from <= 0.0 {
        problems.push(
            Problem::error(place, format!("a logarithmic scale from `{low}`"))
                .hint("begin above 0, or leave `log` out"),
        );
        return None;
    }
    let is_whole = [&low, &high].iter().all(|text| text.parse::<i64>().is_ok());
    match steps {
        Some(steps) => Some(factor::steps(from, to, scale, steps?, is_whole)),
        None => Some(vec![low, high]),
    }
}

fn bound(place: &str, word: &str, value: Option<&Value>) -> Result<String, Problem> {
    let place = format!("{place}.{word}");
    let Some(text) = value.map(text) else {
        return Err(Problem::error(place, "is missing").hint("a range has `low` and `high`"));
    };
    if number(&text).is_none() {
        return Err(Problem::error(place, format!("`{text}` is no number"))
            .hint("a range is of numbers; give other levels as a list"));
    }
    Ok(text)
}

fn count(place: &str, steps: &Value) -> Result<u32, Problem> {
    let text = text(steps);
    let count = text.parse().ok().filter(|n: &u32| (2..=LEVELS_MAX as u32).contains(n));
    count.ok_or_else(|| {
        Problem::error(format!("{place}.steps"), format!("`{text}` is not a number of levels"))
            .hint(format!("give a whole number from 2 to {LEVELS_MAX}"))
    })
}
