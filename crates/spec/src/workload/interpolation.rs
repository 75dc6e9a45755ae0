//! Evaluates interpolations such as `${oc.env:SCRATCH}` in the tree of a workload, as OmegaConf 2.3 does
//! (`omegaconf/grammar/OmegaConfGrammar*.g4`). Depth and size of the results are limited, so that hostile workloads cause errors.

mod references;
mod resolvers;

use super::braces::{argument_length, interpolation_length, trailing_backslashes};
use super::keys::{CREDENTIALS, Workload};
use super::overrides::{is_typed, is_word, literal};
use super::scalar::{self, Plain};
use super::tree::{Content, DEPTH_MAX, Entry, Node, brief, text_weight};
use super::yaml::WEIGHT_MAX;
use crate::problem::{Location, Problem, Problems};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The values that interpolations take from outside the workload.
pub trait Surroundings {
    /// Returns the value of an environment variable.
    fn variable(&self, name: &str) -> Option<String>;
    /// Formats the current time as `strftime` does. `None` if the format is invalid.
    fn time(&self, format: &str) -> Option<String>;
    /// Returns a setting of Hydra, such as `runtime.cwd`.
    fn hydra(&self, key: &str) -> Option<String>;
}

/// No variables, time or settings. Bundled workloads need none.
pub struct NoSurroundings;

impl Surroundings for NoSurroundings {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn time(&self, _format: &str) -> Option<String> {
        None
    }

    fn hydra(&self, _key: &str) -> Option<String> {
        None
    }
}

/// A workload whose interpolations were evaluated.
pub(super) struct Interpolated {
    /// The workload. Values that could not be evaluated are left out.
    pub(super) root: Node,
    /// The dotted keys whose values were interpolations.
    pub(super) keys: BTreeSet<String>,
    /// The dotted keys that interpolations refer to.
    pub(super) used: BTreeSet<String>,
    /// The interpolations as written that credentials are made of, or that are made of credentials or of their variables, by dotted key.
    pub(super) private: BTreeMap<String, Node>,
    /// The interpolations that could not be evaluated.
    pub(super) problems: Problems,
}

/// Evaluates all interpolations in the map of a workload, whose path in the configuration is `workload`.
pub(super) fn interpolate(workload: &Node, surroundings: &dyn Surroundings) -> Interpolated {
    let mut evaluation = Evaluation::new(workload, surroundings);
    evaluation.credentials();
    let evaluated = evaluation.node(&[WORKLOAD.to_string()], workload);
    let Evaluation { done, used, private, mut problems, .. } = evaluation;
    let root = evaluated.unwrap_or_else(|problem| {
        problems.push(problem);
        Node::empty_map(workload.location.clone())
    });
    let written = |path: &String| Some((below_workload(path)?, done.get(path)?.written.clone()));
    let private = private.iter().filter_map(written).collect();
    let keys = done.into_keys().filter_map(|path| below_workload(&path)).collect();
    Interpolated { root, keys, used, private, problems }
}

/// Evaluates the interpolations in a text of Hydra's settings. A model without a name has its default name.
///
/// # Errors
/// Returns the problem of an interpolation.
pub fn interpolate_text(
    text: &str,
    workload: &Workload,
    surroundings: &dyn Surroundings,
) -> Result<String, Problem> {
    let mut root = workload.given.written.clone();
    let location = root.location.clone();
    if root.node_at("model.name").is_none() {
        root.set("model.name", Node::scalar(&workload.model_name, true, location.clone()));
    }
    let mut evaluation = Evaluation::new(&root, surroundings);
    evaluation.is_final = true;
    python_text(&evaluation.text(text, &[], &location)?)
}

/// The key of the workload in the configuration.
const WORKLOAD: &str = "workload";
/// Maximum number of interpolations, lists and maps around an interpolation, including those that it refers to.
const NESTING_MAX: usize = 100;

/// The result of an interpolation.
struct Done<'a> {
    written: &'a Node,
    result: Result<Node, Problem>,
}

struct Evaluation<'a> {
    workload: &'a Node,
    /// The values of the maps that interpolations refer to, by the address of the map. A reference takes the same time in a map of any size.
    maps: HashMap<*const Node, HashMap<&'a str, &'a Node>>,
    surroundings: &'a dyn Surroundings,
    /// Whether the workload has no interpolations, so that `${` in it is text.
    is_final: bool,
    /// Results of the interpolations at dotted paths.
    done: HashMap<String, Done<'a>>,
    /// Dotted paths whose interpolations are being evaluated.
    active: Vec<String>,
    nesting: usize,
    /// Weight of all results.
    weight: usize,
    used: BTreeSet<String>,
    /// Dotted paths of values that may be credentials.
    private: BTreeSet<String>,
    /// Environment variables that credentials are made of.
    private_variables: BTreeSet<String>,
    /// Whether the credentials are being evaluated.
    in_credentials: bool,
    problems: Problems,
    /// Texts of the problems.
    reported: BTreeSet<String>,
}

impl<'a> Evaluation<'a> {
    fn new(workload: &'a Node, surroundings: &'a dyn Surroundings) -> Self {
        Evaluation {
            workload,
            maps: HashMap::new(),
            surroundings,
            is_final: false,
            done: HashMap::new(),
            active: Vec::new(),
            nesting: 0,
            weight: 0,
            used: BTreeSet::new(),
            private: BTreeSet::from([format!("{WORKLOAD}.{CREDENTIALS}")]),
            private_variables: BTreeSet::new(),
            in_credentials: false,
            problems: Problems::default(),
            reported: BTreeSet::new(),
        }
    }

    /// Evaluates the credentials before other values. Then the values that are evaluated, and the variables that are read, are those that
    /// credentials are made of.
    fn credentials(&mut self) {
        let mut path = vec![WORKLOAD.to_string()];
        let mut node = self.workload;
        for key in CREDENTIALS.split('.') {
            // The section itself may be an interpolation.
            if node.is_scalar() {
                break;
            }
            let Some(found) = self.item(node, key) else { return };
            path.push(key.to_string());
            node = found;
        }
        // The problem is reported with those of the other values.
        self.in_credentials = true;
        let _ = self.node(&path, node);
        self.in_credentials = false;
        self.private.extend(self.done.keys().cloned());
    }

    /// Returns the value at `path` without interpolations. Problems of values in a list or map are collected, unless another value refers to
    /// it.
    fn node(&mut self, path: &[String], node: &'a Node) -> Result<Node, Problem> {
        let content = match &node.content {
            Content::Scalar { text, .. } if self.is_final || !text.contains("${") => {
                return Ok(node.clone());
            }
            Content::Scalar { text, .. } => {
                return self.nested(|this| this.scalar(path, text, node));
            }
            Content::List(items) => Content::List(self.nested(|this| {
                let values = items.iter().enumerate();
                let values = values.map(|(index, item)| this.child(path, &index.to_string(), item));
                values.filter_map(Result::transpose).collect::<Result<_, _>>()
            })?),
            Content::Map(entries) => Content::Map(self.nested(|this| {
                let values = entries.iter().map(|entry| {
                    let value = this.child(path, &entry.key, &entry.value)?;
                    Ok(value.map(|value| Entry { value, ..entry.clone() }))
                });
                values.filter_map(Result::transpose).collect::<Result<_, _>>()
            })?),
        };
        Ok(Node { location: node.location.clone(), content })
    }

    /// Returns a value of a list or map, or `None` after adding its problem.
    fn child(
        &mut self,
        path: &[String],
        key: &str,
        node: &'a Node,
    ) -> Result<Option<Node>, Problem> {
        let path = [path, &[key.to_string()]].concat();
        match self.node(&path, node) {
            Err(problem) if self.active.is_empty() => {
                if self.reported.insert(problem.to_string()) {
                    self.problems.push(problem);
                }
                Ok(None)
            }
            result => result.map(Some),
        }
    }

    /// Evaluates something inside of the current value.
    fn nested<T>(
        &mut self,
        evaluate: impl FnOnce(&mut Self) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        if self.nesting == NESTING_MAX {
            let message =
                format!("interpolations are nested deeper than the limit of {NESTING_MAX}");
            return Err(Problem::new(message).hint("write the values out"));
        }
        self.nesting += 1;
        let result = evaluate(self);
        self.nesting -= 1;
        result
    }

    fn scalar(&mut self, path: &[String], text: &str, written: &'a Node) -> Result<Node, Problem> {
        let name = path.join(".");
        if let Some(done) = self.done.get(&name) {
            return done.result.clone();
        }
        let location = &written.location;
        if let Some(first) = self.active.iter().position(|active| *active == name) {
            let chain: Vec<&str> = self.active[first..].iter().map(String::as_str).collect();
            let message =
                format!("`{}` refers to itself: {} → {name}", brief(text), chain.join(" → "));
            return Err(Problem::new(message).hint("give one of them a value"));
        }
        self.active.push(name.clone());
        let result = self.text(text, path, location).and_then(|node| self.limited(path, node));
        self.active.pop();
        let key = below_workload(&name).unwrap_or_default();
        let result = result.map_err(|problem| match problem.location {
            Some(_) => problem,
            None => problem.with_key(&key, location),
        });
        self.done.insert(name, Done { written, result: result.clone() });
        result
    }

    /// Checks the size of a result.
    fn limited(&mut self, path: &[String], node: Node) -> Result<Node, Problem> {
        self.add_weight(node.weight())?;
        if path.len() + node.depth() > DEPTH_MAX {
            return Err(Problem::new(format!("nested deeper than the limit of {DEPTH_MAX}")));
        }
        Ok(node)
    }

    fn add_weight(&mut self, weight: usize) -> Result<(), Problem> {
        self.weight = self.weight.saturating_add(weight);
        if self.weight > WEIGHT_MAX {
            let message = format!("interpolations expand to more than {WEIGHT_MAX} values");
            return Err(Problem::new(message).hint("write the values out"));
        }
        Ok(())
    }

    /// Evaluates the text of the value at `path`. The only interpolation of a text keeps its type.
    fn text(&mut self, text: &str, path: &[String], location: &Location) -> Result<Node, Problem> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let before = &rest[..at];
            let backslashes = trailing_backslashes(before);
            out.push_str(&before[..at - backslashes.div_ceil(2)]);
            if backslashes % 2 == 1 {
                out.push_str("${");
                rest = &rest[at + 2..];
                continue;
            }
            let length = interpolation_length(&rest[at..]).ok_or_else(|| unclosed(&rest[at..]))?;
            let (expression, after) = rest[at..].split_at(length);
            let value = self.nested(|this| this.interpolation(expression, path, location))?;
            if at == 0 && length == text.len() {
                return Ok(Node { location: location.clone(), ..value });
            }
            let value = python_text(&value)?;
            self.add_weight(text_weight(&value))?;
            out.push_str(&value);
            rest = after;
        }
        out.push_str(rest);
        Ok(Node::scalar(out, true, location.clone()))
    }

    /// Evaluates one interpolation, with its braces.
    fn interpolation(
        &mut self,
        expression: &str,
        path: &[String],
        location: &Location,
    ) -> Result<Node, Problem> {
        let malformed = |expected: &str| {
            let problem = Problem::new(format!("`{}`: {expected}", brief(expression)));
            problem.hint(
                "write `${workload.KEY}`, `${oc.env:NAME,DEFAULT}`, or `\\${` for the text `${`",
            )
        };
        let inner = expression[2..expression.len() - 1].trim();
        let key = inner.trim_start_matches('.');
        let dots = inner.len() - key.len();
        let mut parts = Vec::new();
        let mut part = String::new();
        let mut rest = key;
        while let Some(c) = rest.chars().next() {
            if rest.starts_with("${") {
                let length = interpolation_length(rest).ok_or_else(|| unclosed(rest))?;
                let value =
                    self.nested(|this| this.interpolation(&rest[..length], path, location))?;
                part.push_str(&python_text(&value)?);
                rest = &rest[length..];
                continue;
            }
            rest = &rest[c.len_utf8()..];
            match c {
                ':' if dots == 0 => {
                    parts.push(part.trim_end().to_string());
                    let arguments = self.arguments(rest.trim_start(), path, location)?;
                    return self.call(&parts.join("."), &arguments, expression, location);
                }
                '.' | '[' => {
                    // In `a[b].c` the bracket has ended the part already.
                    if !part.is_empty() {
                        parts.push(std::mem::take(&mut part));
                    }
                }
                ']' => parts.push(std::mem::take(&mut part)),
                '\\' | '{' | '}' | '(' | ')' | ':' | '\'' | '"' => {
                    return Err(malformed(&format!("`{c}` is not expected in a key")));
                }
                c => part.push(c),
            }
        }
        if !part.is_empty() {
            parts.push(part);
        }
        if parts.is_empty() || parts.iter().any(|part| part.trim() != part || part.is_empty()) {
            return Err(malformed("a key is missing"));
        }
        let keys = match dots {
            0 => parts,
            dots => {
                let Some(parent) = path.len().checked_sub(dots) else {
                    return Err(malformed("there are not that many sections around it"));
                };
                [&path[..parent], &parts].concat()
            }
        };
        match self.lookup(&keys)? {
            Some(value) => Ok(value),
            None => Err(self.unknown_key(expression, &keys)),
        }
    }

    /// Parses the arguments of a resolver, up to the closing brace of its interpolation.
    fn arguments(
        &mut self,
        text: &str,
        path: &[String],
        location: &Location,
    ) -> Result<Vec<Node>, Problem> {
        let mut arguments = Vec::new();
        let mut rest = text.trim();
        if rest.is_empty() {
            return Ok(arguments);
        }
        loop {
            let length = argument_length(rest);
            arguments.push(self.argument(rest[..length].trim(), path, location)?);
            match rest[length..].strip_prefix(',') {
                Some(after) => rest = after,
                None => return Ok(arguments),
            }
        }
    }

    fn argument(
        &mut self,
        text: &str,
        path: &[String],
        location: &Location,
    ) -> Result<Node, Problem> {
        let mut chars = text.chars();
        match chars.next() {
            Some(quote @ ('\'' | '"')) if chars.next_back() == Some(quote) => {
                let inner = chars.as_str().replace(&format!("\\{quote}"), &quote.to_string());
                let value = self.text(&inner, path, location)?;
                return Ok(Node::scalar(python_text(&value)?, true, location.clone()));
            }
            Some('[' | '{') => {
                let value = literal(text).filter(|_| !text.contains("${"));
                return value.ok_or_else(|| not_expected(text));
            }
            _ => {}
        }
        if text.contains("${") {
            return self.text(text, path, location);
        }
        let plain = unescape(text);
        if plain.contains(['\'', '"', '[', ']', '{', '}']) && plain == text {
            return Err(not_expected(text));
        }
        let is_text = plain != text || !is_typed(&plain);
        let plain = if is_word(&plain) { plain.to_ascii_lowercase() } else { plain };
        Ok(Node::scalar(plain, is_text, location.clone()))
    }
}

fn unclosed(text: &str) -> Problem {
    Problem::new(format!("`{}`: `${{` without its `}}`", brief(text)))
        .hint("close it, or write `\\${` for the text `${`")
}

fn not_expected(text: &str) -> Problem {
    Problem::new(format!("`{}` is not expected in an interpolation", brief(text)))
        .hint("put text with special characters in quotes")
}

/// Removes the backslashes before special characters.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match chars.peek() {
            Some(&next) if c == '\\' && "\\()[]{}:=, \t".contains(next) => {
                out.push(next);
                chars.next();
            }
            _ => out.push(c),
        }
    }
    out
}

/// Returns the key without `workload.`.
fn below_workload(path: &str) -> Option<String> {
    path.strip_prefix(WORKLOAD)?.strip_prefix('.').map(str::to_string)
}

/// Formats a value as Python's `str` does.
fn python_text(node: &Node) -> Result<String, Problem> {
    let Content::Scalar { text, quoted } = &node.content else {
        let message = format!("`{}` cannot be part of a text", node.brief());
        return Err(Problem::new(message).hint("refer to a single value"));
    };
    Ok(match if *quoted { Plain::Text } else { scalar::resolve(text) } {
        Plain::Null => "None".into(),
        Plain::Bool(true) => "True".into(),
        Plain::Bool(false) => "False".into(),
        Plain::Int(int) => int.to_string(),
        Plain::Float(float) => scalar::python_float(float),
        Plain::Text => text.clone(),
    })
}
