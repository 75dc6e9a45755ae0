//! Named facts, and rendering of sentences from templates that refer to them. The end of a fact's name determines its unit.

use feedrate_spec::units;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Number of list items in a sentence if its template does not specify one.
const LISTED_MAX: usize = 5;

/// Nouns that a count's name may end with, in the singular; the rendered count is followed by the noun.
const NOUNS: [&str; 11] = [
    "accelerator",
    "batch",
    "checkpoint",
    "core",
    "epoch",
    "file",
    "process",
    "rank",
    "run",
    "sample",
    "step",
];

/// A number, text, or list.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Fact {
    Count(u64),
    Number(f64),
    Text(String),
    List(Vec<String>),
}

/// Facts by name; a name ends with the unit: `au_windowed_percent`, `read_bytes`, `waited_s`, `in_flight_batches`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Facts(BTreeMap<&'static str, Fact>);

impl Facts {
    /// Creates an empty set of facts.
    pub fn new() -> Self {
        Facts::default()
    }

    /// Facts with a single list; `None` if the list is empty.
    pub fn from_list(name: &'static str, items: Vec<String>) -> Option<Self> {
        (!items.is_empty()).then(|| Facts::new().with(name, items))
    }

    /// Adds a fact.
    #[must_use]
    pub fn with(mut self, name: &'static str, fact: impl Into<Fact>) -> Self {
        self.0.insert(name, fact.into());
        self
    }

    /// Adds a fact if it is known.
    #[must_use]
    pub fn with_known(self, name: &'static str, fact: Option<impl Into<Fact>>) -> Self {
        match fact {
            Some(fact) => self.with(name, fact),
            None => self,
        }
    }

    /// The fact with this name.
    pub fn get(&self, name: &str) -> Option<&Fact> {
        self.0.get(name)
    }

    /// Fills in a template.
    ///
    /// `{name}` is replaced by the fact with its unit, `{name:.2}` by the number with two decimals and no unit, or by at most two items of
    /// a list. `[this {name}|that {other}|else]` is replaced by the first alternative whose facts are all known; without one, it is removed.
    pub fn render(&self, template: &str) -> String {
        let mut text = String::new();
        let mut rest = template;
        while let Some((before, choice)) = rest.split_once('[') {
            text += &self.fill(before).unwrap_or_default();
            let (choice, after) = choice.split_once(']').unwrap_or((choice, ""));
            text += &choice.split('|').find_map(|part| self.fill(part)).unwrap_or_default();
            rest = after;
        }
        text + &self.fill(rest).unwrap_or_default()
    }

    /// Fills in a template without alternatives; `None` if one of its facts is unknown.
    fn fill(&self, template: &str) -> Option<String> {
        let mut parts = template.split('{');
        let mut text = parts.next()?.to_string();
        for part in parts {
            let (placeholder, after) = part.split_once('}')?;
            let (name, precision) = placeholder.split_once(":.").unwrap_or((placeholder, ""));
            let fact = self.get(name)?;
            text += &match precision.parse() {
                Ok(precision) => fact.with_precision(precision),
                Err(_) => fact.with_unit(name),
            };
            text += after;
        }
        Some(text)
    }
}

impl Fact {
    fn with_precision(&self, precision: usize) -> String {
        match self {
            Fact::Number(number) => format!("{number:.precision$}"),
            Fact::List(items) => shortened_list(items, precision),
            Fact::Count(_) | Fact::Text(_) => self.with_unit(""),
        }
    }

    /// Formats the fact with the unit that `name` ends with.
    fn with_unit(&self, name: &str) -> String {
        match self {
            Fact::Count(count) if name.ends_with("_bytes") => units::bytes(*count),
            Fact::Count(count) => {
                let word = name.rsplit('_').next().unwrap_or_default();
                let is_plural_of =
                    |noun: &&&str| word.strip_prefix(**noun).is_some_and(is_plural_ending);
                match NOUNS.iter().find(is_plural_of) {
                    Some(noun) => units::counted(*count, noun),
                    None => units::count(*count),
                }
            }
            Fact::Number(number) => number_with_unit(*number, name),
            Fact::Text(text) => text.clone(),
            Fact::List(items) => shortened_list(items, LISTED_MAX),
        }
    }
}

/// Joins at most `items_max` items, followed by the number of further items.
fn shortened_list(items: &[String], items_max: usize) -> String {
    let shown = items[..items.len().min(items_max)].join("; ");
    match items.len().saturating_sub(items_max) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

fn is_plural_ending(ending: &str) -> bool {
    ending == "s" || ending == "es"
}

fn number_with_unit(number: f64, name: &str) -> String {
    if name.ends_with("bytes_per_second") {
        units::bytes_per_second(number)
    } else if name.ends_with("mib_per_second") {
        format!("{number:.0} MiB/s")
    } else if name.ends_with("samples_per_second") {
        format!("{number:.1} samples/s")
    } else if name.ends_with("_percent") {
        format!("{number:.1} %")
    } else if name.ends_with("_bytes") {
        units::bytes(number as u64)
    } else if name.ends_with("_s") {
        units::seconds(number)
    } else {
        number.to_string()
    }
}

macro_rules! facts_from {
    ($($type:ty => |$value:ident| $fact:expr;)*) => {$(
        impl From<$type> for Fact {
            fn from($value: $type) -> Self {
                $fact
            }
        }
    )*};
}

facts_from! {
    u64 => |count| Fact::Count(count);
    u32 => |count| Fact::Count(count.into());
    usize => |count| Fact::Count(count as u64);
    f64 => |number| Fact::Number(number);
    &str => |text| Fact::Text(text.into());
    String => |text| Fact::Text(text);
    Vec<String> => |items| Fact::List(items);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(template: &str, expected: &str) {
        let facts = Facts::new()
            .with("au_percent", 48.25)
            .with("read_bytes", 240_000_000_u64)
            .with("delivered_bytes_per_second", 4e8)
            .with("whole_samples_per_second", 1.95)
            .with("waited_s", 0.5)
            .with("in_flight_batches", 1_u64)
            .with("planned_steps", 1200_u64)
            .with("epoch", 2_u32)
            .with("why", "interrupted")
            .with("letters", ["a", "b", "c", "d", "e", "f", "g"].map(String::from).to_vec())
            .with_known("missing", None::<f64>);
        assert_eq!(facts.render(template), expected);
    }

    #[test]
    fn the_name_of_a_fact_determines_its_unit() {
        check("{au_percent}", "48.2 %");
        check("{read_bytes} at {delivered_bytes_per_second}", "240 MB at 400 MB/s");
        check("{whole_samples_per_second:.2}, {whole_samples_per_second}", "1.95, 1.9 samples/s");
        check("{waited_s} in epoch {epoch}: {why}", "500 ms in epoch 2: interrupted");
        check("{in_flight_batches} of {planned_steps}", "1 batch of 1,200 steps");
        check("{letters}.", "a; b; c; d; e; and 2 more.");
        check("{letters:.1}", "a; and 6 more");
    }

    #[test]
    fn an_alternative_is_used_if_its_facts_are_known() {
        check("{epoch}[, {missing} more]", "2");
        check("[{missing} of {epoch}|{epoch}|none]: {why}", "2: interrupted");
        check("[{missing}|none]", "none");
        check("a [b", "a b");
    }

    #[test]
    fn facts_serialize_as_plain_json() {
        let facts = Facts::new().with("b_s", 0.5).with("a_steps", 3_u64).with("why", "so");
        let text = serde_json::to_string(&facts).unwrap();
        assert_eq!(text, r#"{"a_steps":3,"b_s":0.5,"why":"so"}"#);
    }
}
