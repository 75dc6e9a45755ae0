//! Parses YAML text into a tree. The text must be one document with a map at its root and unique keys. The size of the tree is limited,
//! so that nested aliases cause an error instead of exhausting the memory.

use super::scalar::{Plain, resolve};
use super::tree::{Content, DEPTH_MAX, Entry, Node, brief, text_weight};
use crate::problem::{Location, Problem};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, StrInput, Tag};
use serde_json::{Number, Value};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Maximum length of a text in bytes.
const TEXT_MAX: usize = 1 << 20;
/// Maximum number of values in a tree with expanded aliases. Long text counts as several values.
pub(super) const WEIGHT_MAX: usize = 50_000;

/// Parses a workload. Locations contain the file name `name`.
pub(super) fn from_yaml(name: &str, yaml: &str) -> Result<Node, Problem> {
    let hint_for_empty = "give at least `model` and `dataset`, or `{}` for all defaults";
    match parse_root(name, yaml, UnknownTags::Error)? {
        root if root.is_null() => Err(Problem::new("the file is empty")
            .with_location(Some(root.location))
            .hint(hint_for_empty)),
        root if root.entries().is_some() => Ok(root),
        root => {
            let message = format!("a workload is a map of keys, found `{}`", root.brief());
            Err(Problem::new(message)
                .with_location(Some(root.location))
                .hint("write `key: value` lines"))
        }
    }
}

/// Parses the only document in `yaml`. The root is null if there is no document.
fn parse_root(name: &str, yaml: &str, unknown_tags: UnknownTags) -> Result<Node, Problem> {
    let text = yaml.strip_prefix('\u{feff}').unwrap_or(yaml);
    let parser = Parser::new_from_str(text);
    let anchors = HashMap::new();
    let mut builder = TreeBuilder { name, parser, unknown_tags, weight: 0, depth: 0, anchors };
    if yaml.len() > TEXT_MAX {
        let message =
            format!("`{}` bytes of YAML are more than the limit of {TEXT_MAX}", yaml.len());
        return Err(builder.problem(Marker::new(0, 1, 0), message));
    }
    builder.parse_document()
}

/// Treatment of tags that are not in YAML's core schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnknownTags {
    /// An error, as in workloads.
    Error,
    /// Tagged scalars are text; lists and maps are read without their tag.
    Ignored,
}

/// Converts a YAML config of another program to JSON. Only `true` and `false` become booleans, since DLIO uses `off` as a word.
///
/// # Errors
/// Fails if the text is not YAML, has several documents, or is too large.
pub fn json_from_yaml(name: &str, yaml: &str) -> Result<Value, Problem> {
    parse_root(name, yaml, UnknownTags::Ignored).map(|root| json(&root.content))
}

/// Converts the content of a node to JSON, likewise.
pub(super) fn json(content: &Content) -> Value {
    match content {
        Content::Scalar { text, quoted: true } => text.as_str().into(),
        Content::Scalar { text, quoted: false } => match resolve(text) {
            Plain::Null => Value::Null,
            Plain::Bool(value) if text.eq_ignore_ascii_case(&value.to_string()) => value.into(),
            Plain::Int(number) => {
                Number::from_i128(number).map_or_else(|| (number as f64).into(), Value::Number)
            }
            Plain::Float(number) if number.is_finite() => number.into(),
            Plain::Bool(_) | Plain::Float(_) | Plain::Text => text.as_str().into(),
        },
        Content::List(items) => items.iter().map(|item| json(&item.content)).collect(),
        Content::Map(entries) => {
            entries.iter().map(|entry| (entry.key.clone(), json(&entry.value.content))).collect()
        }
    }
}

struct TreeBuilder<'a> {
    name: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    unknown_tags: UnknownTags,
    weight: usize,
    /// Number of lists and maps around the current value.
    depth: usize,
    /// The values that aliases can refer to.
    anchors: HashMap<usize, Node>,
}

impl<'a> TreeBuilder<'a> {
    /// Parses the only document. The root is null if there is no document.
    fn parse_document(&mut self) -> Result<Node, Problem> {
        let mut root = None;
        let mut end = Marker::new(0, 1, 0);
        while let Some((event, marker)) = self.next_event()? {
            end = marker;
            match event {
                Event::DocumentStart(_) if root.is_some() => {
                    let problem = self.problem(marker, "a second YAML document begins here");
                    return Err(problem.hint("one file holds one workload"));
                }
                Event::Nothing
                | Event::StreamStart
                | Event::StreamEnd
                | Event::DocumentStart(_)
                | Event::DocumentEnd => {}
                event => root = Some(self.parse_node(event, marker)?),
            }
        }
        let content = Content::Scalar { text: String::new(), quoted: false };
        Ok(root.unwrap_or_else(|| Node { location: self.location(end), content }))
    }

    fn next_event(&mut self) -> Result<Option<(Event<'a>, Marker)>, Problem> {
        match self.parser.next_event() {
            None => Ok(None),
            Some(Ok((event, span))) => Ok(Some((event, span.start))),
            Some(Err(error)) => Err(match error.info() {
                "recursion limit exceeded" => self.too_deep(*error.marker()),
                info => self.problem(*error.marker(), format!("not YAML: {info}")),
            }),
        }
    }

    /// Parses the value that begins with `event`.
    fn parse_node(&mut self, event: Event<'a>, marker: Marker) -> Result<Node, Problem> {
        let location = self.location(marker);
        let (content, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.add_weight(text_weight(&text), marker)?;
                let quoted = self.is_text(style, tag.as_ref(), marker)?;
                (Content::Scalar { text: text.into(), quoted }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.enter(tag.as_ref(), marker)?;
                let mut items = Vec::new();
                while let Some(item) = self.next_value()? {
                    items.push(item);
                }
                (Content::List(items), anchor)
            }
            Event::MappingStart(anchor, tag) => {
                self.enter(tag.as_ref(), marker)?;
                (Content::Map(self.parse_entries()?), anchor)
            }
            Event::Alias(anchor) => return self.resolve_alias(anchor, marker),
            _ => return Err(self.problem(marker, "a value is missing")),
        };
        let node = Node { location, content };
        if anchor != 0 {
            self.add_weight(node.weight(), marker)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    /// Checks the tag of a list or map, and starts reading its values.
    fn enter(&mut self, tag: Option<&Cow<'_, Tag>>, marker: Marker) -> Result<(), Problem> {
        self.is_text(ScalarStyle::Plain, tag, marker)?;
        self.add_weight(1, marker)?;
        if self.depth >= DEPTH_MAX {
            return Err(self.too_deep(marker));
        }
        self.depth += 1;
        Ok(())
    }

    /// Parses the next value of the current list or map. At the end of the list or map returns `None`.
    fn next_value(&mut self) -> Result<Option<Node>, Problem> {
        match self.next_event()? {
            None | Some((Event::SequenceEnd | Event::MappingEnd, _)) => {
                self.depth -= 1;
                Ok(None)
            }
            Some((event, marker)) => self.parse_node(event, marker).map(Some),
        }
    }

    /// Parses the entries of a map. Its own keys take precedence over merged keys (`<<`), and earlier merges over later merges.
    fn parse_entries(&mut self) -> Result<Vec<Entry>, Problem> {
        let mut entries = Vec::new();
        let mut merges = Vec::new();
        while let Some(Node { location: key_location, content }) = self.next_value()? {
            let Content::Scalar { text: key, quoted } = content else {
                let brief = Node { location: key_location.clone(), content }.brief();
                let message = format!("a key must be a word, found `{brief}`");
                return Err(Problem::new(message).with_location(Some(key_location)));
            };
            let Some(value) = self.next_value()? else { break };
            if !quoted && key == "<<" {
                merges.push(value);
            } else {
                entries.push(Entry { key, key_location, value });
            }
        }
        merge_maps(entries, merges)
    }

    fn resolve_alias(&mut self, anchor: usize, marker: Marker) -> Result<Node, Problem> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            return Err(self.problem(marker, "an alias inside the value that it refers to"));
        };
        if self.depth + node.depth() > DEPTH_MAX {
            return Err(self.too_deep(marker));
        }
        self.add_weight(node.weight(), marker)?;
        Ok(Node { location: self.location(marker), ..node })
    }

    /// Adds to the weight of the tree. Exceeding the limit is an error.
    fn add_weight(&mut self, weight: usize, marker: Marker) -> Result<(), Problem> {
        self.weight = self.weight.saturating_add(weight);
        if self.weight > WEIGHT_MAX {
            let message = format!("larger than the limit of {WEIGHT_MAX} values, aliases expanded");
            return Err(self
                .problem(marker, message)
                .hint("write the values out instead of nesting aliases"));
        }
        Ok(())
    }

    /// Whether style or tag mark a scalar as text, even if it looks like a number.
    fn is_text(
        &self,
        style: ScalarStyle,
        tag: Option<&Cow<'_, Tag>>,
        marker: Marker,
    ) -> Result<bool, Problem> {
        let is_ignored = self.unknown_tags == UnknownTags::Ignored;
        match tag {
            None => Ok(style != ScalarStyle::Plain),
            Some(tag) if tag.is_yaml_core_schema() => match tag.suffix.as_str() {
                "str" => Ok(true),
                "int" | "float" | "bool" | "null" | "seq" | "map" => Ok(false),
                _ if is_ignored => Ok(true),
                other => Err(self.problem(marker, format!("the tag `!!{other}` is not supported"))),
            },
            Some(tag) if tag.handle.is_empty() && tag.suffix == "!" => Ok(true),
            Some(_) if is_ignored => Ok(true),
            Some(tag) => Err(self
                .problem(marker, format!("the tag `{tag}` is not supported"))
                .hint("write plain values")),
        }
    }

    fn location(&self, marker: Marker) -> Location {
        Location::File {
            name: self.name.to_string(),
            line: marker.line().max(1),
            column: marker.col() + 1,
        }
    }

    fn too_deep(&self, marker: Marker) -> Problem {
        self.problem(marker, format!("nested deeper than the limit of {DEPTH_MAX}"))
    }

    fn problem(&self, marker: Marker, message: impl Into<String>) -> Problem {
        Problem::new(message).with_location(Some(self.location(marker)))
    }
}

/// Adds merged maps to the entries of a map.
fn merge_maps(entries: Vec<Entry>, merges: Vec<Node>) -> Result<Vec<Entry>, Problem> {
    let mut seen: HashMap<String, Location> = HashMap::with_capacity(entries.len());
    for entry in &entries {
        if let Some(first) = seen.insert(entry.key.clone(), entry.key_location.clone()) {
            let problem = Problem::new(format!("the key `{}` is given twice", brief(&entry.key)));
            return Err(problem
                .with_location(Some(entry.key_location.clone()))
                .hint(format!("the first is at {first}")));
        }
    }
    let mut all = entries;
    let mut used_keys: HashSet<String> = seen.into_keys().collect();
    for source in merges {
        let maps = match source.content {
            Content::List(items) => items,
            content => vec![Node { location: source.location, content }],
        };
        for map in maps {
            let Content::Map(merged) = map.content else {
                let message = format!("`<<` merges maps, found `{}`", map.brief());
                return Err(Problem::new(message).with_location(Some(map.location)));
            };
            all.extend(merged.into_iter().filter(|entry| used_keys.insert(entry.key.clone())));
        }
    }
    Ok(all)
}
