//! Reads a workload from YAML text and overrides, and reports all its problems at once, each with its location. The planner checks how
//! values fit together.

use super::apply;
use super::interpolation::{Interpolated, NoSurroundings, Surroundings, interpolate};
use super::keys::{Given, KEYS, Origin, Workload};
use super::overrides::Override;
use super::suggest::nearest_key;
use super::tree::{Content, Entry, Node, at_or_below, brief};
use super::value::REMOVE_QUOTES;
use super::words::hint_for_foreign_key;
use super::yaml::from_yaml;
use crate::problem::{Location, Problem, ProblemSeverity, Problems};
use crate::units::counted;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of problems in a list. Further problems are only counted.
const PROBLEMS_MAX: usize = 100;
/// Maximum number of keys of a section that a hint lists.
const SMALL_SECTION_KEYS: usize = 5;

/// Treatment of unknown keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// Unknown keys stop the command, as in `feedrate`.
    Error,
    /// Unknown keys are reported and ignored, as in DLIO.
    Warning,
}

/// Reads a workload. `name` is the file's name in messages. On success the problems are warnings.
///
/// # Errors
/// Returns all problems if one of them is an error.
pub fn parse(
    name: &str,
    yaml: &str,
    overrides: &[Override],
    unknown_keys: Strictness,
) -> Result<(Workload, Problems), Problems> {
    parse_in(name, yaml, overrides, unknown_keys, &NoSurroundings)
}

/// Like [`parse`], with interpolations of values from outside the workload.
///
/// # Errors
/// Returns all problems if one of them is an error.
pub fn parse_in(
    name: &str,
    yaml: &str,
    overrides: &[Override],
    unknown_keys: Strictness,
    surroundings: &dyn Surroundings,
) -> Result<(Workload, Problems), Problems> {
    let mut problems = Problems::default();
    let composed = compose(name, yaml, overrides, &mut problems)?;
    let interpolated = interpolate(&composed, surroundings);
    let Interpolated { root: written, keys, used, private, problems: unevaluated } = interpolated;
    problems.0.extend(unevaluated.0);
    let mut tree = written.clone();
    apply::rename_aliases(&mut tree, &mut problems);
    let mut walk = KeyWalk { locations: BTreeMap::new(), problems, unknown_keys, used };
    walk.visit_section("", &tree);
    let KeyWalk { locations, mut problems, .. } = walk;
    let mut workload = Workload::read(Given { written, tree, private, locations }, &mut problems);
    fold_deviations(&mut workload, &mut problems);
    for problem in problems.0.iter_mut().filter(|problem| keys.contains(&problem.key)) {
        if problem.hint.as_deref() == Some(REMOVE_QUOTES) {
            let hint = "variables are text: write `${oc.decode:${oc.env:NAME}}` for a number";
            problem.hint = Some(hint.into());
        }
    }
    let sorted = sort_and_limit(problems);
    if sorted.has_errors() { Err(sorted) } else { Ok((workload, sorted)) }
}

/// Returns the map of the workload with overrides applied. Its interpolations are not evaluated.
pub(super) fn compose(
    name: &str,
    yaml: &str,
    overrides: &[Override],
    problems: &mut Problems,
) -> Result<Node, Problem> {
    let mut written = workload_map(from_yaml(name, yaml)?)?;
    apply::expand_name(&mut written, "model");
    apply::expand_name(&mut written, "client");
    for change in overrides {
        if let Err(problem) = apply::apply(&mut written, change) {
            problems.push(problem);
        }
        // Expand it now, because the next override may set a cost of this client.
        apply::expand_name(&mut written, "client");
    }
    Ok(written)
}

/// Returns the map of the workload: the root, or the value of its only key `workload`, as in `.hydra/config.yaml`.
fn workload_map(root: Node) -> Result<Node, Problem> {
    let Content::Map(entries) = root.content else { return Ok(root) };
    if let Some(defaults) =
        entries.iter().find(|entry| entry.key == "defaults" && !is_only_self(&entry.value))
    {
        return Err(Problem::error("defaults", "Hydra's lists of other files are not supported")
            .with_location(Some(defaults.key_location.clone()))
            .hint("copy the keys of those files into this one"));
    }
    if !entries.iter().any(|entry| entry.key == "workload") {
        return Ok(Node { location: root.location, content: Content::Map(entries) });
    }
    if let Some(other) = entries.iter().find(|entry| entry.key != "workload") {
        return Err(Problem::error(brief(&other.key), "is given beside `workload`")
            .with_location(Some(other.key_location.clone()))
            .hint("move it into `workload`, or remove it"));
    }
    let Some(Entry { value, .. }) = entries.into_iter().next() else {
        return Ok(Node::empty_map(root.location));
    };
    if value.entries().is_none() {
        let message = format!("expected a map of keys, found `{}`", value.brief());
        return Err(Problem::error("workload", message).with_location(Some(value.location)));
    }
    Ok(value)
}

/// Whether a list of Hydra names no other file.
fn is_only_self(list: &Node) -> bool {
    let is_self =
        |item: &Node| matches!(&item.content, Content::Scalar { text, .. } if text == "_self_");
    matches!(&list.content, Content::List(items) if items.iter().all(is_self))
}

struct KeyWalk {
    locations: BTreeMap<String, Location>,
    problems: Problems,
    unknown_keys: Strictness,
    /// Keys that interpolations refer to.
    used: BTreeSet<String>,
}

impl KeyWalk {
    /// Records the locations of keys, and a problem for everything that is not a key.
    fn visit_section(&mut self, path: &str, node: &Node) {
        for entry in node.entries().unwrap_or_default() {
            let full =
                if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
            if entry.key.contains('.') {
                self.refuse_dotted_key(path, entry);
            } else if let Some(key) = KEYS.iter().find(|key| key.path == full) {
                if key.origin == Origin::Ignored {
                    self.problems.push(
                        Problem::warning(&full, "has no effect: DLIO ignores it too")
                            .with_location(Some(entry.value.location.clone()))
                            .hint(format!("leave it out. {}", key.meaning)),
                    );
                }
                self.locations.insert(full, entry.value.location.clone());
            } else if is_section(&full) {
                self.locations.insert(full.clone(), entry.value.location.clone());
                if entry.value.entries().is_some() {
                    self.visit_section(&full, &entry.value);
                } else if !entry.value.is_null() {
                    self.refuse_scalar_section(&full, &entry.value);
                }
            } else if !at_or_below(&self.used, &full) {
                self.report_unknown_key(&full, &entry.key_location);
            }
        }
    }

    fn refuse_scalar_section(&mut self, path: &str, node: &Node) {
        let first = KEYS.iter().find(|key| is_below(key.path, path)).map_or("", |key| key.path);
        let message = format!("is a section, found `{}`", node.brief());
        let problem = Problem::error(path, message).with_location(Some(node.location.clone()));
        self.problems.push(problem.hint(format!("give its keys, as `{first}`")));
    }

    fn refuse_dotted_key(&mut self, path: &str, entry: &Entry) {
        let inside = if path.is_empty() { "the file" } else { path };
        self.problems.push(
            Problem::error(path, format!("the key `{}` has a dot", brief(&entry.key)))
                .with_location(Some(entry.key_location.clone()))
                .hint(format!("in {inside}, nest the sections instead; dots are for overrides")),
        );
    }

    fn report_unknown_key(&mut self, path: &str, location: &Location) {
        let problem = match self.unknown_keys {
            Strictness::Error => Problem::error("", format!("unknown key `{}`", brief(path))),
            Strictness::Warning => {
                Problem::warning("", format!("unknown key `{}` is ignored", brief(path)))
            }
        };
        let similar = if self.problems.0.len() < PROBLEMS_MAX { similar_key(path) } else { None };
        let hint = match (hint_for_foreign_key(path), similar) {
            (Some(hint), _) => hint.to_string(),
            (None, Some(similar)) => format!("did you mean `{similar}`?"),
            (None, None) => match keys_of_small_section(path) {
                Some(keys) => format!("give one of {keys}"),
                None => "`feedrate list keys` shows all keys".to_string(),
            },
        };
        self.problems.push(problem.with_location(Some(location.clone())).hint(hint));
    }
}

fn similar_key(path: &str) -> Option<&'static str> {
    let keys: Vec<&str> =
        KEYS.iter().filter(|key| key.origin != Origin::Ignored).map(|key| key.path).collect();
    nearest_key(path, &keys)
}

/// The keys of the section of `path`, if it has few.
fn keys_of_small_section(path: &str) -> Option<String> {
    let (section, _) = path.rsplit_once('.')?;
    let keys = KEYS.iter().filter(|key| key.origin != Origin::Ignored);
    let keys = keys.filter(|key| is_below(key.path, section));
    let keys: Vec<String> = keys.map(|key| format!("`{}`", key.path)).collect();
    (1..=SMALL_SECTION_KEYS).contains(&keys.len()).then(|| keys.join(", "))
}

/// Whether `path` is the section of a key.
fn is_section(path: &str) -> bool {
    KEYS.iter().any(|key| is_below(key.path, path))
}

fn is_below(key: &str, section: &str) -> bool {
    key.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'))
}

/// Moves each separate standard deviation, such as `computation_time_stdev`, into the specification of its time.
fn fold_deviations(w: &mut Workload, problems: &mut Problems) {
    let reader_stdev = w.reader_preprocess_time_stdev;
    let train_stdev = w.train_computation_time_stdev;
    let evaluation_stdev = w.evaluation_eval_time_stdev;
    for (key, time, stdev) in [
        ("reader.preprocess_time_stdev", &mut w.reader_preprocess_time, reader_stdev),
        ("train.computation_time_stdev", &mut w.train_computation_time, train_stdev),
        ("evaluation.eval_time_stdev", &mut w.evaluation_eval_time, evaluation_stdev),
    ] {
        match (time.with_stdev(stdev), w.given.locations.get(key)) {
            (Ok(folded), _) => *time = folded,
            (Err(problem), Some(location)) => problems.push(problem.with_key(key, location)),
            (Err(_), None) => unreachable!("a default has no deviation: {key}"),
        }
    }
}

/// Sorts problems by their location in the file, then on the command line. Problems beyond the limit are only counted.
fn sort_and_limit(mut problems: Problems) -> Problems {
    problems.0.sort_by_key(|problem| match &problem.location {
        Some(Location::File { line, column, .. }) => (*line, *column),
        Some(Location::Override(_)) | None => (usize::MAX, 0),
    });
    let omitted = problems.0.len().saturating_sub(PROBLEMS_MAX);
    if omitted > 0 {
        let worst =
            if problems.has_errors() { ProblemSeverity::Error } else { ProblemSeverity::Warning };
        problems.0.truncate(PROBLEMS_MAX);
        problems.push(Problem {
            severity: worst,
            ..Problem::error("", format!("and {}", counted(omitted as u64, "more problem")))
        });
    }
    problems
}
