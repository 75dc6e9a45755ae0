//! Applies aliases and overrides to the tree of a workload. It does not parse values.

use super::keys::{KEYS, SECTION_ALIASES};
use super::overrides::{Action, Override};
use super::tree::Node;
use crate::problem::{Location, Problem, Problems};

/// Applies one override, as OmegaConf's `update` with merging does.
pub(super) fn apply(root: &mut Node, change: &Override) -> Result<(), Problem> {
    let key = match change.action {
        Action::Replace => change.key.clone(),
        Action::Set | Action::Add | Action::Delete => name_in_tree(root, &change.key),
    };
    let given = root.node_at(&key);
    // `dlio_benchmark` ignores overrides outside `workload`.
    let is_below_workload = change.text.trim_start_matches(['+', '~']).starts_with("workload.");
    let prefix = if is_below_workload { "workload." } else { "" };
    let problem = match (change.action, &change.value, given) {
        (Action::Delete, _, None) => Problem::new("is not given, so it cannot be deleted")
            .hint("leave the override out: the default applies already"),
        (Action::Delete, Some(expected), Some(given)) if !expected.has_same_content(given) => {
            Problem::new(format!("is `{}`, so it is not deleted", given.brief()))
                .hint(format!("write `~{prefix}{key}` to delete any value"))
        }
        (Action::Delete, _, Some(_)) => {
            root.remove(&key);
            return Ok(());
        }
        (Action::Add, Some(value), Some(given)) if value.is_scalar() && !given.is_null() => {
            Problem::new(format!("is given already: `{}`", given.brief()))
                .hint(format!("write `++{prefix}{key}={}` to set it anyway", value.brief()))
        }
        (Action::Replace, Some(value), None) => {
            Problem::new("is not given, so it cannot be overridden")
                .hint(format!("to append to your config use `++workload.{key}={}`", value.brief()))
        }
        (_, value, _) => {
            if let Some(value) = value {
                root.set(&key, value.clone());
            }
            return Ok(());
        }
    };
    Err(problem.with_key(&key, &Location::Override(change.text.clone())))
}

/// Moves a name that is given instead of a section into the section's `name`: `client: NAME`, and `model: NAME` of DLIO up to 2.0.0.
pub(super) fn expand_name(root: &mut Node, section: &str) {
    let name = root.get(section).filter(|node| node.is_scalar() && !node.is_null());
    if let Some(name) = name.cloned() {
        root.set(&format!("{section}.name"), name);
    }
}

/// Renames aliases to their keys. A key that is given under both names is a warning.
pub(super) fn rename_aliases(root: &mut Node, problems: &mut Problems) {
    for (alias, section) in SECTION_ALIASES {
        let alias_section = root.get(alias).filter(|node| node.entries().is_some());
        if let (Some(_), Some(alias_section)) = (root.get(section), alias_section) {
            problems.push(
                Problem::warning(
                    *alias,
                    format!("both `{alias}` and `{section}` are given: `{alias}` wins"),
                )
                .with_location(Some(alias_section.location.clone()))
                .hint(format!("keep one of them; DLIO would ignore all of `{section}`")),
            );
        }
        if let Some(node) = root.remove(alias).filter(|node| !node.is_null()) {
            root.set(section, node);
        }
    }
    for key in KEYS {
        for alias in key.aliases {
            let Some(node) = root.remove(alias) else { continue };
            if root.node_at(key.path).is_some() {
                problems.push(
                    Problem::warning(*alias, format!("`{}` is given too, and wins", key.path))
                        .with_location(Some(node.location))
                        .hint(format!("leave `{alias}` out")),
                );
            } else {
                root.set(key.path, node);
            }
        }
    }
}

/// Returns the name that an override of `key` must change: the alias or key in the tree, or `key` itself if the tree has none. If the tree
/// has several, returns the name that takes precedence.
fn name_in_tree(root: &Node, key: &str) -> String {
    let canonical = canonical_key(key);
    let info = KEYS.iter().find(|info| info.path == canonical);
    let aliases = info.map_or([].as_slice(), |info| info.aliases);
    let mut names: Vec<String> =
        [canonical.as_str()].iter().chain(aliases).map(|name| name.to_string()).collect();
    for (alias, section) in SECTION_ALIASES {
        let rest =
            canonical.strip_prefix(section).filter(|rest| rest.is_empty() || rest.starts_with('.'));
        names.splice(0..0, rest.map(|rest| format!("{alias}{rest}")));
    }
    let given = names.iter().find(|name| root.node_at(name).is_some());
    let in_given_section = names.iter().find(|name| {
        let section = name.split('.').next().unwrap_or_default();
        SECTION_ALIASES.iter().any(|(alias, _)| *alias == section) && root.get(section).is_some()
    });
    given.or(in_given_section).cloned().unwrap_or_else(|| key.to_string())
}

/// Replaces aliases in a dotted key: an alias of its section, or of the whole key.
pub fn canonical_key(key: &str) -> String {
    let (first, rest) = key.split_at(key.find('.').unwrap_or(key.len()));
    let section = SECTION_ALIASES.iter().find(|(alias, _)| *alias == first);
    let path = section.map_or(key.to_string(), |(_, section)| format!("{section}{rest}"));
    let info = KEYS.iter().find(|info| info.aliases.contains(&path.as_str()));
    info.map_or(path, |info| info.path.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_replaced_by_keys() {
        for (key, expected) in [
            ("train.epochs", "train.epochs"),
            ("data_reader", "reader"),
            ("data_reader.batch_size", "reader.batch_size"),
            ("data_reader_x", "data_reader_x"),
            ("dataset.record_length", "dataset.record_length_bytes"),
            ("model.model_size", "model.model_size_bytes"),
            ("unknown.key", "unknown.key"),
            ("", ""),
        ] {
            assert_eq!(canonical_key(key), expected);
        }
    }
}
