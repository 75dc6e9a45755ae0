//! The tree of a workload as written: scalars, lists and maps, each with its location. It is independent of the table of keys.

use crate::problem::Location;
use std::collections::BTreeSet;

/// Maximum depth of a tree.
pub(super) const DEPTH_MAX: usize = 32;

/// A value and its location.
#[derive(Clone, Debug)]
pub struct Node {
    /// The location of the value.
    pub location: Location,
    /// The value's content.
    pub content: Content,
}

/// Content of a node.
#[derive(Clone, Debug)]
pub enum Content {
    /// Text as written, without its quotes.
    Scalar {
        /// The text.
        text: String,
        /// Whether the scalar is text even if it looks like a number.
        quoted: bool,
    },
    /// Items in order.
    List(Vec<Node>),
    /// Entries in order, each key once.
    Map(Vec<Entry>),
}

/// A key of a map and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The location of the key.
    pub key_location: Location,
    /// The value.
    pub value: Node,
}

impl Node {
    /// Builds a scalar.
    pub(super) fn scalar(text: impl Into<String>, quoted: bool, location: Location) -> Self {
        Node { location, content: Content::Scalar { text: text.into(), quoted } }
    }

    /// Builds an empty map.
    pub(super) fn empty_map(location: Location) -> Self {
        Node { location, content: Content::Map(Vec::new()) }
    }

    /// Returns the size of the tree including this node. It is compared with a limit.
    pub(super) fn weight(&self) -> usize {
        match &self.content {
            Content::Scalar { text, .. } => text_weight(text),
            Content::List(items) => 1 + items.iter().map(Node::weight).sum::<usize>(),
            Content::Map(entries) => entries
                .iter()
                .fold(1, |sum, entry| sum + text_weight(&entry.key) + entry.value.weight()),
        }
    }

    /// Depth of nested lists and maps, including this node.
    pub(super) fn depth(&self) -> usize {
        match &self.content {
            Content::Scalar { .. } => 0,
            Content::List(items) => 1 + items.iter().map(Node::depth).max().unwrap_or(0),
            Content::Map(entries) => {
                1 + entries.iter().map(|entry| entry.value.depth()).max().unwrap_or(0)
            }
        }
    }

    /// Returns the value of `key`; `None` if the node is not a map or lacks the key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        Some(&self.entries()?.iter().find(|entry| entry.key == key)?.value)
    }

    /// Returns the value at a dotted path.
    pub fn node_at(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, |node, key| node.get(key))
    }

    /// Returns the entries of a map.
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.content {
            Content::Map(entries) => Some(entries),
            Content::Scalar { .. } | Content::List(_) => None,
        }
    }

    /// Returns the value of `key`. Adds null if the key is missing. A node that is not a map becomes a map.
    pub(super) fn entry(&mut self, key: &str, location: &Location) -> &mut Node {
        if !matches!(self.content, Content::Map(_)) {
            *self = Node::empty_map(location.clone());
        }
        let Content::Map(entries) = &mut self.content else { unreachable!("the node is a map") };
        let index = entries.iter().position(|entry| entry.key == key).unwrap_or_else(|| {
            entries.push(Entry {
                key: key.to_string(),
                key_location: location.clone(),
                value: Node::scalar("null", false, location.clone()),
            });
            entries.len() - 1
        });
        &mut entries[index].value
    }

    /// Removes and returns the value at a dotted path.
    pub(super) fn remove(&mut self, path: &str) -> Option<Node> {
        let Content::Map(entries) = &mut self.content else { return None };
        let (key, rest) =
            path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
        let index = entries.iter().position(|entry| entry.key == key)?;
        match rest {
            Some(rest) => entries[index].value.remove(rest),
            None => Some(entries.remove(index).value),
        }
    }

    /// Sets the value at a dotted path. A map is merged into an existing map; anything else replaces the old value.
    pub(super) fn set(&mut self, path: &str, value: Node) {
        let location = value.location.clone();
        path.split('.').fold(self, |node, key| node.entry(key, &location)).merge(value);
    }

    /// Merges the entries of two maps; any other content is replaced.
    fn merge(&mut self, other: Node) {
        match (&self.content, other.content) {
            (Content::Map(_), Content::Map(entries)) => {
                for Entry { key, value, .. } in entries {
                    let location = value.location.clone();
                    self.entry(&key, &location).merge(value);
                }
            }
            (_, content) => *self = Node { location: other.location, content },
        }
    }

    /// Whether two nodes have the same content. Locations and quotes are ignored.
    pub(super) fn has_same_content(&self, other: &Node) -> bool {
        match (&self.content, &other.content) {
            (Content::Scalar { text: a, .. }, Content::Scalar { text: b, .. }) => a == b,
            (Content::List(a), Content::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.has_same_content(b))
            }
            (Content::Map(a), Content::Map(b)) => {
                a.len() == b.len()
                    && a.iter().all(|entry| {
                        other
                            .get(&entry.key)
                            .is_some_and(|value| value.has_same_content(&entry.value))
                    })
            }
            _ => false,
        }
    }

    /// Whether the node is neither a list nor a map.
    pub(super) fn is_scalar(&self) -> bool {
        matches!(self.content, Content::Scalar { .. })
    }

    /// Whether the node is YAML's null.
    pub fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar { text, quoted: false } if super::scalar::is_null(text))
    }

    /// Formats the content for messages, shortened to one line.
    pub(super) fn brief(&self) -> String {
        brief(&self.one_line())
    }

    fn one_line(&self) -> String {
        match &self.content {
            Content::Scalar { text, quoted: false } if text.is_empty() => "null".into(),
            Content::Scalar { text, .. } => text.clone(),
            Content::List(items) => {
                let items: Vec<String> = items.iter().map(Node::one_line).collect();
                format!("[{}]", items.join(", "))
            }
            Content::Map(entries) => {
                let entries = entries
                    .iter()
                    .map(|entry| format!("{}: {}", entry.key, entry.value.one_line()));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Whether a set of dotted paths contains `path` or a path below it.
pub(super) fn at_or_below(paths: &BTreeSet<String>, path: &str) -> bool {
    let below = format!("{path}.");
    paths.contains(path)
        || paths.range(below.clone()..).next().is_some_and(|found| found.starts_with(&below))
}

/// Shortens a text to one line for messages.
pub(super) fn brief(text: &str) -> String {
    let short = text.chars().take(BRIEF_MAX).map(|c| if c.is_control() { ' ' } else { c });
    let ellipsis = if text.chars().nth(BRIEF_MAX).is_some() { "…" } else { "" };
    short.chain(ellipsis.chars()).collect()
}

/// Weight of a text: one, and one more for each 32 bytes.
pub(super) fn text_weight(text: &str) -> usize {
    1 + text.len() / 32
}

/// Number of characters of a value in messages.
const BRIEF_MAX: usize = 60;
