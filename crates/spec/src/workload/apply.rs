//! Aliases and overrides on the tree. No value is read here.

use super::keys::{KEYS, SECTION_ALIASES};
use super::overrides::{Action, Override};
use super::tree::Node;
use crate::problem::{Place, Problem, Problems};

/// Apply one override, as OmegaConf's `update` with merging does.
pub(super) fn apply(root: &mut Node, change: &Override) -> Result<(), Problem> {
    let key = match change.action {
        Action::Replace => change.key.clone(),
        Action::Set | Action::Add | Action::Delete => as_written(root, &change.key),
    };
    let given = root.at(&key);
    let problem = match (change.action, &change.value, given) {
        (Action::Delete, _, None) => Problem::new("is not given, so it cannot be deleted")
            .hint("leave the override out: the default holds"),
        (Action::Delete, Some(expected), Some(given)) if !expected.same(given) => {
            Problem::new(format!("is `{}`, so it is not deleted", given.brief()))
                .hint(format!("write `~{key}` to delete it whatever it is"))
        }
        (Action::Delete, _, Some(_)) => {
            root.remove(&key);
            return Ok(());
        }
        (Action::Add, Some(value), Some(given)) if value.is_scalar() && !given.is_null() => {
            Problem::new(format!("is given already: `{}`", given.brief()))
                .hint(format!("write `++{key}={}` to set it anyway", value.brief()))
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
    Err(problem.of_key(&key, &Place::Override(change.text.clone())))
}

/// A name in the place of a section is the section's `name`: that of a client, and up to DLIO 2.0.0 that of the model.
pub(super) fn named(root: &mut Node, section: &str) {
    let name = root.get(section).filter(|node| node.is_scalar() && !node.is_null());
    if let Some(name) = name.cloned() {
        root.set(&format!("{section}.name"), name);
    }
}

/// Rename aliases to the keys they stand for. What is given under both names is a warning.
pub(super) fn canonical(root: &mut Node, problems: &mut Problems) {
    for (alias, section) in SECTION_ALIASES {
        let own = root.get(alias).filter(|node| node.entries().is_some());
        if let (Some(_), Some(own)) = (root.get(section), own) {
            problems.push(
                Problem::warning(
                    *alias,
                    format!("both `{alias}` and `{section}` are given: `{alias}` wins"),
                )
                .at(Some(own.place.clone()))
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
            if root.at(key.path).is_some() {
                problems.push(
                    Problem::warning(*alias, format!("`{}` is given too, and wins", key.path))
                        .at(Some(node.place))
                        .hint(format!("leave `{alias}` out")),
                );
            } else {
                root.set(key.path, node);
            }
        }
    }
}

/// The name under which the tree gives `key`: the one that wins where there are several, as typed where there is none.
fn as_written(root: &Node, key: &str) -> String {
    let own = canonical_key(key);
    let info = KEYS.iter().find(|info| info.path == own);
    let aliases = info.map_or([].as_slice(), |info| info.aliases);
    let mut names: Vec<String> =
        [own.as_str()].iter().chain(aliases).map(|n| n.to_string()).collect();
    for (alias, section) in SECTION_ALIASES {
        let other =
            own.strip_prefix(section).filter(|rest| rest.is_empty() || rest.starts_with('.'));
        names.splice(0..0, other.map(|rest| format!("{alias}{rest}")));
    }
    let given = names.iter().find(|name| root.at(name).is_some());
    let beside = names.iter().find(|name| {
        let section = name.split('.').next().unwrap_or_default();
        SECTION_ALIASES.iter().any(|(alias, _)| *alias == section) && root.get(section).is_some()
    });
    given.or(beside).cloned().unwrap_or_else(|| key.to_string())
}

/// The key that a dotted key stands for: itself, unless it has an alias in it.
pub fn canonical_key(key: &str) -> String {
    let (first, rest) = key.split_at(key.find('.').unwrap_or(key.len()));
    let section = SECTION_ALIASES.iter().find(|(alias, _)| *alias == first);
    let own = section.map_or(key.to_string(), |(_, section)| format!("{section}{rest}"));
    let key = KEYS.iter().find(|key| key.aliases.contains(&own.as_str()));
    key.map_or(own, |key| key.path.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_called_by_its_own_name() {
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
