//! YAML text to a tree: one document, a map at its root, each key once. Expansion is bounded: a text whose
//! aliases would blow up is an error, never memory.

use super::tree::{Content, DEPTH_MAX, Entry, Node, brief, text_weight};
use crate::problem::{Place, Problem};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Bytes of text that are read.
const TEXT_MAX: usize = 1 << 20;
/// Values in the tree, aliases expanded; long text counts for several.
const WEIGHT_MAX: usize = 50_000;

/// The tree of `yaml`, whose places name the file `name`.
pub(super) fn from_yaml(name: &str, yaml: &str) -> Result<Node, Problem> {
    let builder =
        Builder { name, weight: 0, anchors: HashMap::new(), open: Vec::new(), root: None };
    if yaml.len() > TEXT_MAX {
        let message =
            format!("`{}` bytes of YAML are more than the limit of {TEXT_MAX}", yaml.len());
        return Err(builder.problem(Marker::new(0, 1, 0), message));
    }
    builder.build(Parser::new_from_str(yaml.strip_prefix('\u{feff}').unwrap_or(yaml)))
}

struct Builder<'a> {
    name: &'a str,
    weight: usize,
    /// Values that aliases may stand for.
    anchors: HashMap<usize, Node>,
    open: Vec<Frame>,
    root: Option<Node>,
}

/// A list or map whose end has not come.
struct Frame {
    place: Place,
    anchor: usize,
    items: Items,
}

enum Items {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, merges: Vec<Node>, key: Option<Key> },
}

struct Key {
    text: String,
    place: Place,
    merge: bool,
}

impl Builder<'_> {
    fn build(mut self, mut parser: Parser<'_, StrInput<'_>>) -> Result<Node, Problem> {
        let mut documents = 0;
        let mut end = Marker::new(0, 1, 0);
        while let Some(event) = parser.next_event() {
            let (event, span) = event.map_err(|e| self.syntax(&e))?;
            end = span.start;
            if let Event::DocumentStart(_) = event {
                documents += 1;
                if documents > 1 {
                    let problem =
                        self.problem(span.start, "a second YAML document begins here".into());
                    return Err(problem.hint("one file holds one workload"));
                }
            }
            self.event(event, span)?;
        }
        let empty = "give at least `model` and `dataset`, or `{}` for all defaults";
        match self.root.take() {
            Some(root) if root.is_null() => {
                Err(Problem::error("", "the file is empty").at(Some(root.place)).hint(empty))
            }
            Some(root) if root.entries().is_some() => Ok(root),
            Some(root) => {
                let message = format!("a workload is a map of keys, found `{}`", root.brief());
                Err(Problem::error("", message)
                    .at(Some(root.place))
                    .hint("write `key: value` lines"))
            }
            None => Err(self.problem(end, "the file is empty".into()).hint(empty)),
        }
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Problem> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.spend(text_weight(&text), span.start)?;
                let quoted = self.is_text(style, tag.as_ref(), span.start)?;
                let node = Node::scalar(text, quoted, self.place(span.start));
                self.finish(node, anchor, span.start)
            }
            Event::SequenceStart(anchor, tag) => {
                self.is_text(ScalarStyle::Plain, tag.as_ref(), span.start)?;
                self.begin(Items::List(Vec::new()), anchor, span.start)
            }
            Event::MappingStart(anchor, tag) => {
                self.is_text(ScalarStyle::Plain, tag.as_ref(), span.start)?;
                self.begin(
                    Items::Map { entries: Vec::new(), merges: Vec::new(), key: None },
                    anchor,
                    span.start,
                )
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span.start),
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor).cloned() else {
                    let message = "an alias inside the value it stands for";
                    return Err(self.problem(span.start, message.into()));
                };
                if self.open.len() + node.depth() > DEPTH_MAX {
                    return Err(self.problem(span.start, too_deep()));
                }
                self.spend(node.weight(), span.start)?;
                self.finish(Node { place: self.place(span.start), ..node }, 0, span.start)
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn begin(&mut self, items: Items, anchor: usize, at: Marker) -> Result<(), Problem> {
        self.spend(1, at)?;
        if self.open.len() >= DEPTH_MAX {
            return Err(self.problem(at, too_deep()));
        }
        self.open.push(Frame { place: self.place(at), anchor, items });
        Ok(())
    }

    fn end(&mut self, at: Marker) -> Result<(), Problem> {
        let Some(Frame { place, anchor, items }) = self.open.pop() else { return Ok(()) };
        let content = match items {
            Items::List(items) => Content::List(items),
            Items::Map { entries, merges, .. } => Content::Map(merged(entries, merges)?),
        };
        self.finish(Node { place, content }, anchor, at)
    }

    /// Put a whole value where it belongs.
    fn finish(&mut self, node: Node, anchor: usize, at: Marker) -> Result<(), Problem> {
        if anchor != 0 {
            self.spend(node.weight(), at)?;
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|frame| &mut frame.items) {
            None => self.root = Some(node),
            Some(Items::List(items)) => items.push(node),
            Some(Items::Map { key: key @ None, .. }) => *key = Some(key_of(node)?),
            Some(Items::Map { entries, merges, key }) => {
                let Some(Key { text, place, merge }) = key.take() else { return Ok(()) };
                if merge {
                    merges.push(node);
                } else {
                    entries.push(Entry { key: text, key_place: place, value: node });
                }
            }
        }
        Ok(())
    }

    fn spend(&mut self, weight: usize, at: Marker) -> Result<(), Problem> {
        self.weight = self.weight.saturating_add(weight);
        if self.weight > WEIGHT_MAX {
            let message = format!("larger than the limit of {WEIGHT_MAX} values, aliases expanded");
            return Err(self
                .problem(at, message)
                .hint("write the values out instead of nesting aliases"));
        }
        Ok(())
    }

    /// Whether a scalar is text whatever it looks like.
    fn is_text(
        &self,
        style: ScalarStyle,
        tag: Option<&Cow<'_, Tag>>,
        at: Marker,
    ) -> Result<bool, Problem> {
        match tag {
            None => Ok(style != ScalarStyle::Plain),
            Some(tag) if tag.is_yaml_core_schema() => match tag.suffix.as_str() {
                "str" => Ok(true),
                "int" | "float" | "bool" | "null" | "seq" | "map" => Ok(false),
                other => Err(self.problem(at, format!("the tag `!!{other}` is not supported"))),
            },
            Some(tag) if tag.handle.is_empty() && tag.suffix == "!" => Ok(true),
            Some(tag) => Err(self
                .problem(at, format!("the tag `{tag}` is not supported"))
                .hint("write plain values")),
        }
    }

    fn syntax(&self, error: &ScanError) -> Problem {
        let message = match error.info() {
            "recursion limit exceeded" => too_deep(),
            info => format!("not YAML: {info}"),
        };
        self.problem(*error.marker(), message)
    }

    fn place(&self, at: Marker) -> Place {
        Place::File { name: self.name.to_string(), line: at.line().max(1), column: at.col() + 1 }
    }

    fn problem(&self, at: Marker, message: String) -> Problem {
        Problem::error("", message).at(Some(self.place(at)))
    }
}

fn too_deep() -> String {
    format!("nested deeper than the limit of {DEPTH_MAX}")
}

fn key_of(node: Node) -> Result<Key, Problem> {
    match node.content {
        Content::Scalar { text, quoted } => {
            Ok(Key { merge: !quoted && text == "<<", text, place: node.place })
        }
        Content::List(_) | Content::Map(_) => {
            let message = format!("a key is a word, found `{}`", node.brief());
            Err(Problem::error("", message).at(Some(node.place)))
        }
    }
}

/// The entries of a map with those of `<<`: own keys win, then the earlier merge.
fn merged(entries: Vec<Entry>, merges: Vec<Node>) -> Result<Vec<Entry>, Problem> {
    let mut seen: HashMap<String, Place> = HashMap::with_capacity(entries.len());
    for entry in &entries {
        if let Some(first) = seen.insert(entry.key.clone(), entry.key_place.clone()) {
            let problem =
                Problem::error("", format!("the key `{}` is given twice", brief(&entry.key)));
            return Err(problem
                .at(Some(entry.key_place.clone()))
                .hint(format!("the first is at {first}")));
        }
    }
    let mut all = entries;
    let mut taken: HashSet<String> = seen.into_keys().collect();
    for source in merges {
        let maps = match source.content {
            Content::List(items) => items,
            content => vec![Node { place: source.place, content }],
        };
        for map in maps {
            let Content::Map(from) = map.content else {
                let message = format!("`<<` merges maps, found `{}`", map.brief());
                return Err(Problem::error("", message).at(Some(map.place)));
            };
            all.extend(from.into_iter().filter(|e| taken.insert(e.key.clone())));
        }
    }
    Ok(all)
}
