//! Aliases and overrides on the tree. No value is read here.

use super::keys::{KEYS, SECTION_ALIASES};
use super::overrides::{Action, Override};
use super::tree::{Content, Node};
use crate::problem::{Place, Problem, Problems};

/// Apply one override, as OmegaConf's `update` with merging does.
pub(super) fn apply(root: &mut Node, change: &Override) -> Result<(), Problem> {
    let path = canonical_path(&change.path);
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let dotted = path.join(".");
    let problem = |message: String| {
        Problem::error(dotted.clone(), message).at(Some(Place::Override(change.text.clone())))
    };
    let given = root.at(&dotted);
    match (change.action, &change.value) {
        (Action::Delete, expected) => {
            let Some(given) = given else {
                return Err(problem("is not given, so it cannot be deleted".into())
                    .hint("leave the override out: the default holds"));
            };
            if expected.as_ref().is_some_and(|expected| !expected.same(given)) {
                return Err(problem(format!("is `{}`, so it is not deleted", given.brief()))
                    .hint(format!("write `~{dotted}` to delete it whatever it is")));
            }
            root.remove(&path);
        }
        (Action::Add, Some(value)) => {
            let whole = matches!(value.content, Content::Scalar { .. });
            if let Some(given) = given.filter(|given| whole && !given.is_null()) {
                return Err(problem(format!("is given already: `{}`", given.brief()))
                    .hint(format!("write `++{dotted}={}` to set it anyway", value.brief())));
            }
            root.set(&path, value.clone());
        }
        (Action::Replace, Some(value)) if given.is_none() => {
            return Err(problem("is not given, so it cannot be overridden".into()).hint(format!(
                "to append to your config use `++workload.{dotted}={}`",
                value.brief()
            )));
        }
        (Action::Set | Action::Replace, Some(value)) => root.set(&path, value.clone()),
        (Action::Add | Action::Set | Action::Replace, None) => {}
    }
    Ok(())
}

/// Up to DLIO 2.0.0 `model` was the model's name; it is a section since.
pub(super) fn named_model(root: &mut Node) {
    let is_name = |node: &&Node| matches!(node.content, Content::Scalar { .. }) && !node.is_null();
    if let Some(name) = root.get("model").filter(is_name).cloned() {
        root.set(&["model", "name"], name);
    }
}

/// Rename aliases to the keys they stand for. What is given under both names is a warning.
pub(super) fn canonical(root: &mut Node, problems: &mut Problems) {
    for (alias, section) in SECTION_ALIASES {
        if root.get(section).is_some()
            && root.get(alias).is_some_and(|node| node.entries().is_some())
        {
            let node = root.get(alias);
            let place = node.map(|node| node.place.clone());
            problems.push(
                Problem::warning(
                    *alias,
                    format!("both `{alias}` and `{section}` are given: `{alias}` wins"),
                )
                .at(place)
                .hint(format!("keep one of them; DLIO would ignore all of `{section}`")),
            );
        }
        if let Some(node) = root.remove(&[alias]).filter(|node| !node.is_null()) {
            root.set(&[section], node);
        }
    }
    for key in KEYS {
        for alias in key.aliases {
            let alias_path: Vec<&str> = alias.split('.').collect();
            let Some(node) = root.remove(&alias_path) else { continue };
            if root.at(key.path).is_some() {
                problems.push(
                    Problem::warning(*alias, format!("`{}` is given too, and wins", key.path))
                        .at(Some(node.place))
                        .hint(format!("leave `{alias}` out")),
                );
            } else {
                let path: Vec<&str> = key.path.split('.').collect();
                root.set(&path, node);
            }
        }
    }
}

/// The key that a dotted key stands for: itself, unless it has an alias in it.
pub fn canonical_key(key: &str) -> String {
    let path: Vec<String> = key.split('.').map(str::to_string).collect();
    canonical_path(&path).join(".")
}

fn canonical_path(path: &[String]) -> Vec<String> {
    let mut path = path.to_vec();
    for (alias, section) in SECTION_ALIASES {
        if path[0] == *alias {
            path[0] = (*section).to_string();
        }
    }
    let dotted = path.join(".");
    match KEYS.iter().find(|key| key.aliases.contains(&dotted.as_str())) {
        Some(key) => key.path.split('.').map(str::to_string).collect(),
        None => path,
    }
}
