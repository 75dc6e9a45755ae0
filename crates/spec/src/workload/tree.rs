//! The tree of a workload as written: scalars, lists and maps, each with its place. It knows no keys.

use crate::problem::Place;

/// Maximum depth of a tree.
pub(super) const DEPTH_MAX: usize = 32;

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// The place of the value.
    pub place: Place,
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
        /// Whether it is text even if it looks like a number.
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
    /// The place of the key.
    pub key_place: Place,
    /// The value.
    pub value: Node,
}

impl Node {
    /// Builds a scalar.
    pub(super) fn scalar(text: impl Into<String>, quoted: bool, place: Place) -> Self {
        Node { place, content: Content::Scalar { text: text.into(), quoted } }
    }

    /// Builds an empty map.
    pub(super) fn empty_map(place: Place) -> Self {
        Node { place, content: Content::Map(Vec::new()) }
    }

    /// Size of the tree, this node included, counted against a limit.
    pub(super) fn weight(&self) -> usize {
        match &self.content {
            Content::Scalar { text, .. } => text_weight(text),
            Content::List(items) => 1 + items.iter().map(Node::weight).sum::<usize>(),
            Content::Map(entries) => entries
                .iter()
                .fold(1, |sum, entry| sum + text_weight(&entry.key) + entry.value.weight()),
        }
    }

    /// Number of nested lists and maps, this one included.
    pub(super) fn depth(&self) -> usize {
        match &self.content {
            Content::Scalar { .. } => 0,
            Content::List(items) => 1 + items.iter().map(Node::depth).max().unwrap_or(0),
            Content::Map(entries) => {
                1 + entries.iter().map(|entry| entry.value.depth()).max().unwrap_or(0)
            }
        }
    }

    /// The value of `key`; `None` if the node is not a map or lacks the key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        Some(&self.entries()?.iter().find(|entry| entry.key == key)?.value)
    }

    /// The value at a dotted path.
    pub fn at(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, |node, key| node.get(key))
    }

    /// The entries of a map.
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.content {
            Content::Map(entries) => Some(entries),
            Content::Scalar { .. } | Content::List(_) => None,
        }
    }

    /// The value of `key`, added as null if it is missing. A node that is not a map becomes one.
    pub(super) fn entry(&mut self, key: &str, place: &Place) -> &mut Node {
        if !matches!(self.content, Content::Map(_)) {
            *self = Node::empty_map(place.clone());
        }
        let Content::Map(entries) = &mut self.content else { unreachable!("made a map above") };
        let at = entries.iter().position(|entry| entry.key == key).unwrap_or_else(|| {
            entries.push(Entry {
                key: key.to_string(),
                key_place: place.clone(),
                value: Node::scalar("null", false, place.clone()),
            });
            entries.len() - 1
        });
        &mut entries[at].value
    }

    /// Removes and returns the value at a dotted path.
    pub(super) fn remove(&mut self, path: &str) -> Option<Node> {
        let Content::Map(entries) = &mut self.content else { return None };
        let (key, rest) =
            path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
        let at = entries.iter().position(|entry| entry.key == key)?;
        match rest {
            Some(rest) => entries[at].value.remove(rest),
            None => Some(entries.remove(at).value),
        }
    }

    /// Sets the value at a dotted path. A map is merged into an existing map; anything else replaces the old value.
    pub(super) fn set(&mut self, path: &str, value: Node) {
        let place = value.place.clone();
        path.split('.').fold(self, |node, key| node.entry(key, &place)).merge(value);
    }

    fn merge(&mut self, other: Node) {
        match (&self.content, other.content) {
            (Content::Map(_), Content::Map(entries)) => {
                for Entry { key, value, .. } in entries {
                    let place = value.place.clone();
                    self.entry(&key, &place).merge(value);
                }
            }
            (_, content) => *self = Node { place: other.place, content },
        }
    }

    /// Whether two nodes have the same content; places and quotes are ignored.
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

    /// The content on one line for messages, shortened.
    pub(super) fn brief(&self) -> String {
        brief(&self.line())
    }

    fn line(&self) -> String {
        match &self.content {
            Content::Scalar { text, quoted: false } if text.is_empty() => "null".into(),
            Content::Scalar { text, .. } => text.clone(),
            Content::List(items) => {
                let items: Vec<String> = items.iter().map(Node::line).collect();
                format!("[{}]", items.join(", "))
            }
            Content::Map(entries) => {
                let entries =
                    entries.iter().map(|entry| format!("{}: {}", entry.key, entry.value.line()));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Shortens a text to one line for messages.
pub(super) fn brief(text: &str) -> String {
    let short = text.chars().take(BRIEF_MAX).map(|c| if c.is_control() { ' ' } else { c });
    let more = if text.chars().nth(BRIEF_MAX).is_some() { "…" } else { "" };
    short.chain(more.chars()).collect()
}

/// Weight of a text: one, and one more for each 32 bytes.
pub(super) fn text_weight(text: &str) -> usize {
    1 + text.len() / 32
}

/// Number of characters of a value in messages.
const BRIEF_MAX: usize = 60;
