//! References to other values of the workload, such as `${workload.model.name}`.

use super::super::tree::{Content, DEPTH_MAX, Node, at_or_below, brief};
use super::{Evaluation, WORKLOAD};
use crate::problem::Problem;

impl<'a> Evaluation<'a> {
    /// Returns the value at a path of the configuration, `None` if there is none.
    pub(super) fn lookup(&mut self, keys: &[String]) -> Result<Option<Node>, Problem> {
        let below = match keys.split_first() {
            Some((first, below)) if first == WORKLOAD && !below.is_empty() => below,
            Some((first, below)) if first == "hydra" => {
                let value = self.surroundings.hydra(&below.join("."));
                return Ok(
                    value.map(|text| Node::scalar(text, true, self.workload.location.clone()))
                );
            }
            _ => return Ok(None),
        };
        // After the limit, nothing more is copied.
        self.add_weight(0)?;
        self.used.insert(below.join("."));
        if self.is_private(keys) {
            self.private.extend(self.active.iter().cloned());
        }
        let mut node = self.workload;
        let resolved;
        for (index, key) in below.iter().enumerate() {
            if matches!(&node.content, Content::Scalar { text, .. } if text.contains("${")) {
                resolved = self.node(&keys[..=index], node)?;
                self.add_weight(resolved.weight())?;
                let found = below[index..].iter().try_fold(&resolved, |node, key| item(node, key));
                return Ok(found.cloned());
            }
            let Some(found) = self.item(node, key) else { return Ok(None) };
            node = found;
        }
        let value = self.node(keys, node)?;
        self.add_weight(value.weight())?;
        Ok(Some(value))
    }

    /// Whether a credential is at `keys`, below it, or around it.
    fn is_private(&self, keys: &[String]) -> bool {
        // Deeper values do not exist.
        (1..keys.len().min(DEPTH_MAX))
            .any(|length| self.private.contains(&keys[..length].join(".")))
            || at_or_below(&self.private, &keys.join("."))
    }

    /// Returns the item of a map or list of the workload.
    pub(super) fn item(&mut self, node: &'a Node, key: &str) -> Option<&'a Node> {
        let Content::Map(entries) = &node.content else { return item(node, key) };
        let by_key = || entries.iter().map(|entry| (entry.key.as_str(), &entry.value)).collect();
        self.maps.entry(node).or_insert_with(by_key).get(key).copied()
    }

    pub(super) fn unknown_key(&mut self, expression: &str, keys: &[String]) -> Problem {
        let path = keys.join(".");
        let message = format!("`{}`: there is no key `{}`", brief(expression), brief(&path));
        let found = keys.iter().try_fold(self.workload, |node, key| self.item(node, key));
        Problem::new(message).hint(match found {
            Some(_) => format!("write `${{{WORKLOAD}.{path}}}`"),
            None => "write `${workload.KEY}` with a key that the file or an override gives; defaults do not count".into(),
        })
    }
}

/// Returns the item of a map or list.
fn item<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    match &node.content {
        Content::List(items) => items.get(key.parse::<usize>().ok()?),
        Content::Map(_) | Content::Scalar { .. } => node.get(key),
    }
}
