//! Checks keys and levels that a study sets: columns, keys of the workload, settings of the study itself. Whether a whole workload is right, only a plan knows.

use crate::factor::{self, COLUMNS};
use feedrate_results::hook::HOOK_PREFIX;
use feedrate_results::row::Row;
use feedrate_results::setting::STUDY_PREFIX;
use feedrate_spec::problem::{Problem, ProblemSeverity};
use feedrate_spec::workload::{self, Effect, KEYS, Override, Strictness, nearest};
use std::collections::BTreeMap;

/// How the page cache is found before a run.
const CACHE: &str = "study.cache";
/// Its levels.
const CACHE_LEVELS: &[&str] = &["cold", "warm", "as-is"];
/// Where datasets lie: a path on the storage to be measured.
pub const DATA: &str = "study.data";

/// Problems and warnings of setting `key` to `level`.
pub(crate) fn check(key: &str, level: &str, hooks: &BTreeMap<String, String>) -> Vec<Problem> {
    if let Some(why) = factor::unwritable(level) {
        let problem =
            Problem::error(key, format!("`{}` cannot stand in a row", level.escape_debug()));
        return vec![problem.hint(format!("change it: {why}"))];
    }
    if COLUMNS.contains(&key) {
        return factor::set(&mut Row::new("", 1), key, level).err().into_iter().collect();
    }
    match key.strip_prefix(STUDY_PREFIX) {
        Some(_) => of_study(key, level, hooks).into_iter().collect(),
        None => of_workload(key, level),
    }
}

/// The problem of setting `key`, which begins with `study.`, to `level`.
pub fn of_study(key: &str, level: &str, hooks: &BTreeMap<String, String>) -> Option<Problem> {
    let wrong = |message: String, hint: String| Some(Problem::error(key, message).hint(hint));
    if let Some(name) = key.strip_prefix(HOOK_PREFIX) {
        if hooks.contains_key(name) {
            return None;
        }
        return wrong(
            format!("there is no hook `{name}`"),
            format!(
                "give its command: `[hooks]` with `{name} = \"COMMAND $1\"` in a design, `# hook {name}: COMMAND` in a CSV"
            ),
        );
    }
    match key {
        CACHE if CACHE_LEVELS.contains(&level) => None,
        CACHE => wrong(
            format!("`{level}` is no state of the cache"),
            format!("it may be `{}`", CACHE_LEVELS.join("`, `")),
        ),
        DATA if !level.trim().is_empty() => None,
        DATA => wrong("an empty path".into(), "give a folder on the storage to be measured".into()),
        _ => Some(unknown(key)),
    }
}

fn of_workload(key: &str, level: &str) -> Vec<Problem> {
    let text = format!("{key}={}", factor::written(key, level));
    let parsed = match Override::parse(&text) {
        Ok(parsed) => parsed,
        Err(problem) => return vec![problem],
    };
    let known = KEYS.iter().find(|info| info.path == key || info.aliases.contains(&key));
    match workload::parse("", "{}", &[parsed], Strictness::Error) {
        Ok((_, warnings)) => {
            let mut all = warnings.0;
            all.extend(known.and_then(|info| without_effect(key, info.effect)));
            all
        }
        Err(problems) if known.is_some() => {
            problems.0.into_iter().filter(|p| p.severity == ProblemSeverity::Error).collect()
        }
        Err(_) => vec![unknown(key)],
    }
}

fn without_effect(key: &str, effect: Effect) -> Option<Problem> {
    let message = match effect {
        Effect::Now => return None,
        Effect::NotYet { feature } => format!("belongs to {feature}, which is not built yet"),
        Effect::Nothing { reason } => format!("changes nothing: {reason}"),
    };
    Some(
        Problem::warning(key, message)
            .hint("vary something that takes effect: `feedrate list keys`"),
    )
}

fn unknown(key: &str) -> Problem {
    let own = COLUMNS.into_iter().chain([CACHE, DATA]);
    let near = nearest(key, own.chain(KEYS.iter().map(|info| info.path)));
    Problem::error(key, "is neither a column nor a key of a workload").hint(match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "columns are `{}`; keys are in `feedrate list keys`; of the study's own there are `{CACHE}`, `{DATA}`, `{HOOK_PREFIX}NAME`",
            COLUMNS.join("`, `")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_set_is_known_before_a_run() {
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
    fn what_cannot_be_set_is_told_with_the_nearest_that_can() {
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
    fn a_key_without_effect_is_warned_of() {
        let found = check("reader.pin_memory", "True", &BTreeMap::new());
        assert!(found.iter().any(|p| p.severity == ProblemSeverity::Warning), "{found:?}");
    }
}
