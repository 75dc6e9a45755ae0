//! Checks the keys and levels that a study sets: columns, keys of the workload, and settings of the study itself. Each is checked alone; planning a
//! row checks their combination.

use crate::factor::{self, COLUMNS};
use feedrate_results::hook::HOOK_PREFIX;
use feedrate_results::row::Row;
use feedrate_results::setting::STUDY_PREFIX;
use feedrate_session::surroundings::ProcessSurroundings;
use feedrate_spec::problem::{Problem, ProblemSeverity};
use feedrate_spec::workload::{self, Effect, KEYS, Override, Strictness, nearest};
use std::collections::BTreeMap;

/// State of the page cache before a run.
const CACHE: &str = "study.cache";
/// Levels of [`CACHE`].
const CACHE_LEVELS: &[&str] = &["cold", "warm", "as-is"];
/// Folder of the datasets, on the storage to be measured.
pub const DATA: &str = "study.data";

/// Returns the problems and warnings of setting `key` to `level`.
pub(crate) fn check(key: &str, level: &str, hooks: &BTreeMap<String, String>) -> Vec<Problem> {
    if let Some(reason) = factor::unwritable_reason(level) {
        let message = format!("`{}` cannot be written in a row", level.escape_debug());
        return vec![Problem::error(key, message).hint(format!("change it: {reason}"))];
    }
    if COLUMNS.contains(&key) {
        return factor::set_level(&mut Row::new("", 1), key, level).err().into_iter().collect();
    }
    match key.strip_prefix(STUDY_PREFIX) {
        Some(_) => check_study_setting(key, level, hooks).into_iter().collect(),
        None => check_workload_key(key, level),
    }
}

/// Returns the problem of setting `key`, which begins with `study.`, to `level`.
pub fn check_study_setting(
    key: &str,
    level: &str,
    hooks: &BTreeMap<String, String>,
) -> Option<Problem> {
    let refusal = |message: String, hint: String| Some(Problem::error(key, message).hint(hint));
    if let Some(name) = key.strip_prefix(HOOK_PREFIX) {
        if hooks.contains_key(name) {
            return None;
        }
        return refusal(
            format!("there is no hook `{name}`"),
            format!(
                "define its command: `[hooks]` with `{name} = \"COMMAND $1\"` in a design, `# hook {name}: COMMAND` in a CSV"
            ),
        );
    }
    match key {
        CACHE if CACHE_LEVELS.contains(&level) => None,
        CACHE => refusal(
            format!("`{level}` is not a state of the cache"),
            format!("it may be `{}`", CACHE_LEVELS.join("`, `")),
        ),
        DATA if !level.trim().is_empty() => None,
        DATA => {
            refusal("an empty path".into(), "give a folder on the storage to be measured".into())
        }
        _ => Some(unknown_key(key)),
    }
}

fn check_workload_key(key: &str, level: &str) -> Vec<Problem> {
    let text = format!("{key}={}", factor::format_level(key, level));
    let parsed = match Override::parse(&text) {
        Ok(parsed) => parsed,
        Err(problem) => return vec![problem],
    };
    let known = KEYS.iter().find(|info| info.path == key || info.aliases.contains(&key));
    match workload::parse_in(
        "",
        "{}",
        &[parsed],
        Strictness::Error,
        &ProcessSurroundings::at_no_time(),
    ) {
        Ok((_, warnings)) => {
            let mut found = warnings.0;
            found.extend(known.and_then(|info| no_effect_warning(key, info.effect)));
            found
        }
        Err(problems) if known.is_some() => problems
            .0
            .into_iter()
            .filter(|found| found.severity == ProblemSeverity::Error)
            .collect(),
        Err(_) => vec![unknown_key(key)],
    }
}

fn no_effect_warning(key: &str, effect: Effect) -> Option<Problem> {
    let message = match effect {
        Effect::Now => return None,
        Effect::NotYet { feature } => format!("belongs to {feature}, which is not built yet"),
        Effect::Nothing { reason } => format!("changes nothing: {reason}"),
    };
    Some(Problem::warning(key, message).hint("vary a key that has an effect: `feedrate list keys`"))
}

fn unknown_key(key: &str) -> Problem {
    let columns_and_settings = COLUMNS.into_iter().chain([CACHE, DATA]);
    let suggestion = nearest(key, columns_and_settings.chain(KEYS.iter().map(|info| info.path)));
    Problem::error(key, "is neither a column nor a key of a workload").hint(match suggestion {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!(
            "columns are `{}`; keys are in `feedrate list keys`; settings of the study are `{CACHE}`, `{DATA}`, `{HOOK_PREFIX}NAME`",
            COLUMNS.join("`, `")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_keys_and_levels_have_no_problem() {
        let hooks = BTreeMap::from([("governor".to_string(), "x".to_string())]);
        for (key, level) in [
            ("processes", "4"),
            ("accelerators", "4"),
            ("reader.batch_size", "4"),
            ("reader.file_shuffle", "off"),
            ("dataset.format", "png"),
            ("workflow.checkpoint", "False"),
            ("storage.engine", "io_uring"),
            ("study.cache", "cold"),
            ("study.data", "/mnt/my disk"),
            ("study.hook.governor", "performance"),
        ] {
            assert_eq!(check(key, level, &hooks), [], "{key}={level}");
        }
    }

    #[test]
    fn unknown_keys_and_levels_are_refused_with_a_suggestion() {
        for (key, level, expected) in [
            ("reader.batch_sise", "4", "reader.batch_size"),
            ("procesess", "4", "processes"),
            ("processes", "0", "`0` is not a whole number from 1 up"),
            ("reader.batch_size", "many", "reader.batch_size"),
            ("study.cash", "cold", "study.cache"),
            ("study.cache", "hot", "`cold`, `warm`, `as-is`"),
            ("study.data", " ", "an empty path"),
            ("study.hook.governor", "x", "there is no hook `governor`"),
            ("nothing like it at all", "x", "is not a key"),
            ("zzzzzzzzzzzz", "x", "columns are"),
        ] {
            let found = check(key, level, &BTreeMap::new());
            let text = found.iter().map(Problem::to_string).collect::<String>();
            assert!(text.contains("error") && text.contains(expected), "{key}={level}: {text}");
        }
    }

    #[test]
    fn a_key_without_effect_causes_a_warning() {
        let found = check("reader.pin_memory", "True", &BTreeMap::new());
        assert!(found.iter().any(|p| p.severity == ProblemSeverity::Warning), "{found:?}");
    }
}
