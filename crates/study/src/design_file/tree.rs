//! A value of a design file as it was written: text, list or map, the order kept. Means nothing yet.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// Text, a number or a truth, as an override says it.
    Scalar(String),
    /// A list.
    List(Vec<Tree>),
    /// A map, in the order it was written.
    Map(Vec<(String, Tree)>),
}

impl Default for Tree {
    fn default() -> Self {
        Tree::Map(Vec::new())
    }
}

impl Tree {
    /// As an override says it.
    pub(crate) fn text(&self) -> String {
        let joined = |items: Vec<String>| items.join(",");
        match self {
            Tree::Scalar(text) => text.clone(),
            Tree::List(items) => format!("[{}]", joined(items.iter().map(Tree::text).collect())),
            Tree::Map(entries) => {
                let entry = |(key, value): &(String, Tree)| format!("{key}:{}", value.text());
                format!("{{{}}}", joined(entries.iter().map(entry).collect()))
            }
        }
    }

    /// The words of a scalar or a list.
    pub(crate) fn words(&self) -> Vec<String> {
        match self {
            Tree::List(items) => items.iter().map(Tree::text).collect(),
            other => vec![other.text()],
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, a list or a map")
    }

    /// As Python writes it, and so the studies before ours.
    fn visit_bool<E: Error>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Scalar(if value { "True" } else { "False" }.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.to_string()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.to_string()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.to_string()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.to_string()))
    }

    fn visit_unit<E: Error>(self) -> Result<Tree, E> {
        Err(E::custom("a value is missing"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut map: Vec<(String, Tree)> = Vec::new();
        while let Some((key, value)) = entries.next_entry::<String, Tree>()? {
            if map.iter().any(|(known, _)| *known == key) {
                return Err(A::Error::custom(format!("the key `{key}` is given twice")));
            }
            map.push((key, value));
        }
        Ok(Tree::Map(map))
    }
}
