//! Factors as a design file or a flag says them: lists, ranges, steps; by key, nested or in a list. Which keys there are is not asked here.

use super::tree::Tree;
use crate::factor::{self, Factor, Scale};
use feedrate_results::setting::{Setting, number};
use feedrate_spec::problem::{Problem, Problems};
use feedrate_spec::workload::nearest;

/// Keys that say the levels of a factor.
const WORDS: &[&str] = &["name", "key", "levels", "low", "high", "steps", "log"];

/// More are not meant.
const LEVELS_MAX: usize = 1000;

/// All factors, in the order they were written.
pub(crate) fn factors(tree: &Tree, problems: &mut Problems) -> Vec<Factor> {
    let mut found = Vec::new();
    match tree {
        Tree::Map(entries) => section("", entries, &mut found, problems),
        Tree::List(items) => {
            for (i, item) in items.iter().enumerate() {
                let place = format!("factors[{i}]");
                match item {
                    Tree::Map(entries) => found.extend(described(&place, None, entries, problems)),
                    other => problems.push(no_factor(&place, other)),
                }
            }
        }
        other => problems.push(no_factor("factors", other)),
    }
    found
}

fn no_factor(place: &str, value: &Tree) -> Problem {
    Problem::error(place, format!("`{}` is no factor", value.text()))
        .hint("write `KEY = [LEVEL, LEVEL]`, or a list of `{ key = KEY, levels = [LEVEL, LEVEL] }`")
}

/// A map is a factor where it has one of the words, else a section of keys: `reader.batch_size = [1, 2]` in TOML makes one.
fn section(
    above: &str,
    entries: &[(String, Tree)],
    found: &mut Vec<Factor>,
    problems: &mut Problems,
) {
    for (name, value) in entries {
        let key = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        let place = format!("factors.{key}");
        match value {
            Tree::Map(inner) if inner.iter().all(|(word, _)| !WORDS.contains(&word.as_str())) => {
                if inner.is_empty() {
                    problems.push(no_levels(&place));
                }
                section(&key, inner, found, problems);
            }
            Tree::Map(inner) => found.extend(described(&place, Some(&key), inner, problems)),
            Tree::List(levels) => {
                let levels = levels.iter().map(Tree::text).collect();
                found.extend(listed(&place, None, &key, levels, problems));
            }
            Tree::Scalar(_) => problems.push(no_factor(&place, value)),
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
    entries: &[(String, Tree)],
    problems: &mut Problems,
) -> Option<Factor> {
    let before = problems.0.len();
    for (word, _) in entries.iter().filter(|(word, _)| !WORDS.contains(&word.as_str())) {
        let problem = Problem::error(format!("{place}.{word}"), "a factor has no such word");
        problems.push(problem.hint(match nearest(word, WORDS.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it has `{}`", WORDS.join("`, `")),
        }));
    }
    let get = |word: &str| entries.iter().find(|(known, _)| known == word).map(|(_, value)| value);
    let text = |word: &str| get(word).map(Tree::text);
    let Some(key) = text("key").or_else(|| written.map(str::to_string)) else {
        problems
            .push(Problem::error(place, "has no key").hint("write `key = \"reader.batch_size\"`"));
        return None;
    };
    let of_key = written.filter(|written| *written != key);
    let name = text("name").or_else(|| of_key.map(str::to_string));
    if let Some(levels) = get("levels") {
        let beside = ["low", "high", "steps"].into_iter().find(|word| get(word).is_some());
        if let Some(word) = beside {
            problems.push(
                Problem::error(format!("{place}.{word}"), "stands beside `levels`")
                    .hint("give either `levels`, or `low` and `high`"),
            );
        }
        let scale = scale(place, get("log"), problems);
        let factor = listed(place, name, &key, levels.words(), problems)?;
        return (problems.0.len() == before).then_some(Factor { scale, ..factor });
    }
    let range =
        RangeText { low: get("low"), high: get("high"), steps: get("steps"), log: get("log") };
    range.factor(place, name, &key, problems).filter(|_| problems.0.len() == before)
}

fn scale(place: &str, log: Option<&Tree>, problems: &mut Problems) -> Scale {
    match log.map(Tree::text).map(|text| text.to_ascii_lowercase()).as_deref() {
        None | Some("false") => Scale::Linear,
        Some("true") => Scale::Log,
        Some(other) => {
            problems.push(
                Problem::error(format!("{place}.log"), format!("`{other}` is not true or false"))
                    .hint("`true` spaces numbers by equal quotients"),
            );
            Scale::Linear
        }
    }
}

/// A factor of a list of levels.
pub(crate) fn listed(
    place: &str,
    name: Option<String>,
    key: &str,
    levels: Vec<String>,
    problems: &mut Problems,
) -> Option<Factor> {
    if levels.is_empty() {
        problems.push(no_levels(place));
        return None;
    }
    if levels.len() > LEVELS_MAX {
        problems.push(
            Problem::error(place, format!("has {} levels", levels.len()))
                .hint(format!("give at most {LEVELS_MAX}")),
        );
        return None;
    }
    for (i, level) in levels.iter().enumerate() {
        if levels[..i].iter().any(|other| Factor::is_same(other, level)) {
            problems.push(
                Problem::error(place, format!("has the level `{level}` twice"))
                    .hint("leave one out; the same run again is a replicate: `replicates = 2`"),
            );
            return None;
        }
    }
    let key = factor::canonical(key).to_string();
    let name = name.unwrap_or_else(|| Setting::new(key.as_str(), "").short_key().to_string());
    Some(Factor { name, key, levels, scale: Scale::Linear, between: false, baseline: None })
}

/// A range, as it was written.
pub(crate) struct RangeText<'a> {
    pub(crate) low: Option<&'a Tree>,
    pub(crate) high: Option<&'a Tree>,
    pub(crate) steps: Option<&'a Tree>,
    pub(crate) log: Option<&'a Tree>,
}

impl RangeText<'_> {
    /// Its factor: of so many steps, or of all numbers between.
    pub(crate) fn factor(
        &self,
        place: &str,
        name: Option<String>,
        key: &str,
        problems: &mut Problems,
    ) -> Option<Factor> {
        let before = problems.0.len();
        if self.low.is_none() && self.high.is_none() {
            problems.push(no_levels(place));
            return None;
        }
        let low = bound(place, "low", self.low, problems);
        let high = bound(place, "high", self.high, problems);
        let scale = scale(place, self.log, problems);
        let steps = self.steps.and_then(|steps| count(place, steps, problems));
        let (low, high) = low.zip(high).filter(|_| problems.0.len() == before)?;
        let (from, to) = number(&low).zip(number(&high))?;
        if from >= to {
            problems.push(
                Problem::error(place, format!("`low` is `{low}`, not below `high`, `{high}`"))
                    .hint("exchange them, or set them apart"),
            );
            return None;
        }
        if scale == Scale::Log && from <= 0.0 {
            problems.push(
                Problem::error(place, format!("a logarithmic scale from `{low}`"))
                    .hint("begin above 0, or leave `log` out"),
            );
            return None;
        }
        let whole = [&low, &high].iter().all(|text| text.parse::<i64>().is_ok());
        let levels = match steps {
            Some(steps) => factor::steps(from, to, scale, steps, whole),
            None => vec![low, high],
        };
        let factor = listed(place, name, key, levels, problems)?;
        Some(Factor { scale, between: steps.is_none(), ..factor })
    }
}

fn bound(place: &str, word: &str, value: Option<&Tree>, problems: &mut Problems) -> Option<String> {
    let place = format!("{place}.{word}");
    let Some(text) = value.map(Tree::text) else {
        problems.push(Problem::error(place, "is missing").hint("a range has `low` and `high`"));
        return None;
    };
    if number(&text).is_none() {
        problems.push(
            Problem::error(place, format!("`{text}` is no number"))
                .hint("a range is of numbers; give other levels as a list"),
        );
        return None;
    }
    Some(text)
}

fn count(place: &str, steps: &Tree, problems: &mut Problems) -> Option<u32> {
    let text = steps.text();
    let count = text.parse().ok().filter(|n: &u32| (2..=LEVELS_MAX as u32).contains(n));
    if count.is_none() {
        problems.push(
            Problem::error(format!("{place}.steps"), format!("`{text}` is not a number of levels"))
                .hint(format!("give a whole number from 2 to {LEVELS_MAX}")),
        );
    }
    count
}
