//! A workload from YAML text and overrides: every problem at once, each with its place. Decides nothing.

use super::apply;
use super::keys::{Given, KEYS, Origin, Workload};
use super::overrides::Override;
use super::suggest::nearest_key;
use super::tree::{Content, Entry, Node, brief};
use super::words::of_others;
use super::yaml::from_yaml;
use crate::problem::{Place, Problem, ProblemSeverity, Problems};
use crate::units::counted;
use std::collections::BTreeMap;

/// Problems that are listed; more are counted.
const PROBLEMS_MAX: usize = 100;

/// Treatment of unknown keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// It stops the command, as `feedrate` does.
    Error,
    /// It is mentioned and ignored, as DLIO ignores it.
    Warning,
}

/// Read a workload. `name` is what places call the file; on success the problems are warnings.
///
/// # Errors
/// All problems, where one is an error.
pub fn parse(
    name: &str,
    yaml: &str,
    overrides: &[Override],
    unknown_keys: Strictness,
) -> Result<(Workload, Problems), Problems> {
    let root = from_yaml(name, yaml)?;
    let mut written = below_workload(root)?;
    let mut problems = Problems::default();
    apply::named(&mut written, "model");
    apply::named(&mut written, "client");
    for change in overrides {
        if let Err(problem) = apply::apply(&mut written, change) {
            problems.push(problem);
        }
        // The next may be a cost beside the name.
        apply::named(&mut written, "client");
    }
    let mut tree = written.clone();
    apply::canonical(&mut tree, &mut problems);
    let mut walk = KeyWalk { places: BTreeMap::new(), problems, unknown_keys };
    walk.section("", &tree);
    let KeyWalk { places, mut problems, .. } = walk;
    let mut workload = Workload::read(Given { written, tree, places }, &mut problems);
    fold_deviations(&mut workload, &mut problems);
    let problems = listed(problems);
    if problems.has_errors() { Err(problems) } else { Ok((workload, problems)) }
}

/// A root may be the workload, or hold it under `workload`, as `.hydra/config.yaml` does.
fn below_workload(root: Node) -> Result<Node, Problem> {
    let Content::Map(entries) = root.content else { return Ok(root) };
    if !entries.iter().any(|e| e.key == "workload") {
        return Ok(Node { place: root.place, content: Content::Map(entries) });
    }
    if let Some(other) = entries.iter().find(|e| e.key != "workload") {
        return Err(Problem::error(brief(&other.key), "stands beside `workload`")
            .at(Some(other.key_place.clone()))
            .hint("put it inside `workload`, or take it out"));
    }
    let Some(Entry { value, .. }) = entries.into_iter().next() else {
        return Ok(Node::empty_map(root.place));
    };
    if value.entries().is_none() {
        let message = format!("expected a map of keys, found `{}`", value.brief());
        return Err(Problem::error("workload", message).at(Some(value.place)));
    }
    Ok(value)
}

struct KeyWalk {
    places: BTreeMap<String, Place>,
    problems: Problems,
    unknown_keys: Strictness,
}

impl KeyWalk {
    /// Note where keys are given, and what is no key.
    fn section(&mut self, path: &str, node: &Node) {
        for entry in node.entries().unwrap_or_default() {
            let full =
                if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
            if entry.key.contains('.') {
                self.dotted(path, entry);
            } else if let Some(key) = KEYS.iter().find(|key| key.path == full) {
                if key.origin == Origin::Ignored {
                    self.problems.push(
                        Problem::warning(&full, "has no effect: DLIO ignores it too")
                            .at(Some(entry.value.place.clone()))
                            .hint(format!("leave it out. {}", key.meaning)),
                    );
                }
                self.places.insert(full, entry.value.place.clone());
            } else if is_section(&full) {
                self.places.insert(full.clone(), entry.value.place.clone());
                if entry.value.entries().is_some() {
                    self.section(&full, &entry.value);
                } else if !entry.value.is_null() {
                    self.not_a_section(&full, &entry.value);
                }
            } else {
                self.unknown(&full, &entry.key_place);
            }
        }
    }

    fn not_a_section(&mut self, path: &str, node: &Node) {
        let first = KEYS.iter().find(|key| is_below(key.path, path)).map_or("", |key| key.path);
        let message = format!("is a section, found `{}`", node.brief());
        let problem = Problem::error(path, message).at(Some(node.place.clone()));
        self.problems.push(problem.hint(format!("give its keys, as `{first}`")));
    }

    fn dotted(&mut self, path: &str, entry: &Entry) {
        let inside = if path.is_empty() { "the file" } else { path };
        self.problems.push(
            Problem::error(path, format!("the key `{}` has a dot", brief(&entry.key)))
                .at(Some(entry.key_place.clone()))
                .hint(format!("in {inside}, nest the sections instead; dots are for overrides")),
        );
    }

    fn unknown(&mut self, path: &str, place: &Place) {
        let problem = match self.unknown_keys {
            Strictness::Error => Problem::error("", format!("unknown key `{}`", brief(path))),
            Strictness::Warning => {
                Problem::warning("", format!("unknown key `{}` is ignored", brief(path)))
            }
        };
        let near = if self.problems.0.len() < PROBLEMS_MAX { near(path) } else { None };
        self.problems.push(problem.at(Some(place.clone())).hint(match (of_others(path), near) {
            (Some(hint), _) => hint.to_string(),
            (None, Some(near)) => format!("did you mean `{near}`?"),
            (None, None) => "`feedrate list keys` has all keys".to_string(),
        }));
    }
}

fn near(path: &str) -> Option<&'static str> {
    let keys: Vec<&str> =
        KEYS.iter().filter(|k| k.origin != Origin::Ignored).map(|k| k.path).collect();
    nearest_key(path, &keys)
}

/// Whether any key lies below `path`.
fn is_section(path: &str) -> bool {
    KEYS.iter().any(|key| is_below(key.path, path))
}

fn is_below(key: &str, section: &str) -> bool {
    key.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'))
}

/// `computation_time_stdev` and its like are part of the time they stand beside.
fn fold_deviations(w: &mut Workload, problems: &mut Problems) {
    let (reader, train, evaluation) = (
        w.reader_preprocess_time_stdev,
        w.train_computation_time_stdev,
        w.evaluation_eval_time_stdev,
    );
    for (key, time, stdev) in [
        ("reader.preprocess_time_stdev", &mut w.reader_preprocess_time, reader),
        ("train.computation_time_stdev", &mut w.train_computation_time, train),
        ("evaluation.eval_time_stdev", &mut w.evaluation_eval_time, evaluation),
    ] {
        match (time.with_stdev(stdev), w.given.places.get(key)) {
            (Ok(folded), _) => *time = folded,
            (Err(problem), Some(place)) => problems.push(problem.of_key(key, place)),
            (Err(_), None) => unreachable!("a default has no deviation: {key}"),
        }
    }
}

/// In the order of the file, then of the command line; the rest is counted.
fn listed(mut problems: Problems) -> Problems {
    problems.0.sort_by_key(|problem| match &problem.place {
        Some(Place::File { line, column, .. }) => (*line, *column),
        Some(Place::Override(_)) | None => (usize::MAX, 0),
    });
    let more = problems.0.len().saturating_sub(PROBLEMS_MAX);
    if more > 0 {
        let worst =
            if problems.has_errors() { ProblemSeverity::Error } else { ProblemSeverity::Warning };
        problems.0.truncate(PROBLEMS_MAX);
        problems.push(Problem {
            severity: worst,
            ..Problem::error("", format!("and {}", counted(more as u64, "more problem")))
        });
    }
    problems
}
