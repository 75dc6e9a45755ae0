//! The kinds of values that keys can have: parsing, and messages about invalid values. This module names no keys.

use super::scalar::{self, Plain};
use super::suggest::nearest;
use super::tree::{Content, Entry, Node};
use crate::names;
use crate::problem::Problem;
use crate::shape::{ColumnType, Compression, Element, StateType, TableColumn};
use crate::units;
use serde::{Deserialize, Serialize};
use std::ops::RangeBounds;

impl Problem {
    /// Adds a hint with the word of `known` that is most similar to `word`, if there is a similar word.
    pub(super) fn did_you_mean<'a>(
        self,
        word: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        match nearest(word, known) {
            Some(similar) => self.hint(format!("did you mean `{similar}`?")),
            None => self,
        }
    }

    /// Prefixes the message with the field `name` of a compound value, and sets the location to the location of the field.
    pub(super) fn in_field(self, name: &str, node: &Node) -> Self {
        let message = format!("{name}: {}", self.message);
        Problem { message, ..self.with_location(Some(node.location.clone())) }
    }
}

/// A kind of value that keys can have.
pub(super) trait ValueKind {
    /// The type of parsed values.
    type Value;
    /// Name of the kind in reference pages.
    const NAME: &'static str;

    /// Parses one value.
    fn parse(node: &Node) -> Result<Self::Value, Problem>;
}

names! {
    /// The framework that is emulated.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the names are well-known frameworks")]
    pub enum Framework {
        #[default]
        Tensorflow = "tensorflow",
        Pytorch = "pytorch",
    }
}

names! {
    /// The calls that write a checkpoint.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum WriteInterface {
        /// System calls.
        #[default]
        Posix = "posix",
        /// Buffered streams of the C library.
        Stdio = "stdio",
    }
}

/// Order of files or samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shuffle {
    /// In the order of their names.
    #[default]
    Off,
    /// Shuffled by `train.seed`.
    Seed,
    /// Shuffled by a random seed. The plan of the run contains the seed.
    Random,
}

/// Hint for a number in quotes.
pub(super) const REMOVE_QUOTES: &str = "remove the quotes";

/// Returns the text of a scalar and its resolved value. Quoted scalars resolve to text.
pub(super) fn scalar_value<'a>(
    node: &'a Node,
    expected: &str,
) -> Result<(&'a str, Plain), Problem> {
    match &node.content {
        Content::Scalar { text, quoted: true } => Ok((text, Plain::Text)),
        Content::Scalar { text, quoted: false } => Ok((text, scalar::resolve(text))),
        Content::List(_) | Content::Map(_) => Err(wrong_kind(node, expected)),
    }
}

/// Creates the problem of a value that is not of the kind that `expected` describes.
pub(super) fn wrong_kind(node: &Node, expected: &str) -> Problem {
    let problem = Problem::new(format!("expected {expected}, found `{}`", node.brief()));
    match &node.content {
        Content::Scalar { text, quoted: true }
            if matches!(scalar::resolve(text), Plain::Int(_) | Plain::Float(_)) =>
        {
            problem.hint(REMOVE_QUOTES)
        }
        Content::Scalar { text, quoted: false }
            if text.len() > 1 && text.bytes().all(|b| b.is_ascii_digit()) =>
        {
            problem.hint("YAML reads a leading zero as octal: leave it out")
        }
        _ => problem,
    }
}

/// Parses a finite number that is not negative.
pub(super) fn number(node: &Node) -> Result<f64, Problem> {
    let value = match scalar_value(node, "a number")?.1 {
        Plain::Int(int) => int as f64,
        Plain::Float(float) => float,
        Plain::Null | Plain::Bool(_) | Plain::Text => {
            let problem = wrong_kind(node, "a number");
            return Err(match units::parse_seconds(&node.brief()) {
                Some(seconds) => problem.hint(format!("times are in seconds: `{seconds}`")),
                None => problem,
            });
        }
    };
    if !value.is_finite() {
        return Err(Problem::new(format!("`{}` is not a finite number", node.brief())));
    }
    if value < 0.0 {
        return Err(Problem::new(format!("`{}` is negative", node.brief()))
            .hint("give a number of at least 0"));
    }
    Ok(value)
}

/// Parses a whole number of any sign.
fn integer(node: &Node) -> Result<i128, Problem> {
    const EXPECTED: &str = "a whole number";
    match scalar_value(node, EXPECTED)?.1 {
        Plain::Int(int) => Ok(int),
        Plain::Float(float) if float.fract() == 0.0 && float.abs() < 1e18 => Ok(float as i128),
        Plain::Float(_) | Plain::Null | Plain::Bool(_) | Plain::Text => {
            Err(wrong_kind(node, EXPECTED))
        }
    }
}

fn convert<T: TryFrom<i128>>(node: &Node, value: i128) -> Result<T, Problem> {
    T::try_from(value).map_err(|_| {
        if value < 0 {
            Problem::new(format!("`{}` is negative", node.brief()))
                .hint("give a number of at least 0")
        } else {
            Problem::new(format!("`{}` is too large", node.brief()))
        }
    })
}

fn integer_in_range<T: TryFrom<i128> + PartialOrd>(
    node: &Node,
    range: impl RangeBounds<T>,
    expected: &str,
) -> Result<T, Problem> {
    let value = T::try_from(integer(node)?).ok().filter(|value| range.contains(value));
    value.ok_or_else(|| out_of_range(node, expected))
}

fn out_of_range(node: &Node, expected: &str) -> Problem {
    Problem::new(format!("expected a {expected}, found `{}`", node.brief()))
}

fn list_items<'a>(node: &'a Node, expected: &str) -> Result<&'a [Node], Problem> {
    match &node.content {
        Content::List(list_items) => Ok(list_items),
        Content::Scalar { .. } | Content::Map(_) => Err(wrong_kind(node, expected)),
    }
}

/// Defines kinds of values, each as `Name: "name on reference pages" => type, |node| parse;`.
macro_rules! kinds {
    ($($kind:ident: $name:expr => $value:ty, |$node:ident| $parse:expr;)*) => {$(
        #[derive(Debug)]
        pub(super) struct $kind;

        impl ValueKind for $kind {
            type Value = $value;
            const NAME: &'static str = $name;

            fn parse($node: &Node) -> Result<$value, Problem> {
                $parse
            }
        }
    )*};
}

kinds! {
    Flag: "boolean" => bool, |node| flag(node);
    OptionalFlag: "boolean or null" => Option<bool>, |node| optional::<Flag>(node);
    Count: "whole number" => u64, |node| convert(node, integer(node)?);
    Count32: "whole number" => u32, |node| convert(node, integer(node)?);
    OptionalCount: "whole number or -1" => Option<u64>, |node| unless_minus_one::<Count>(node);
    OptionalPositive: "whole number from 1, or -1" => Option<u64>, |node| unless_minus_one::<Positive>(node).map_err(|problem| hint_kind(problem, Self::NAME));
    OptionalPositive32: "whole number from 1, or null" => Option<u32>, |node| optional::<Positive32>(node).map_err(|problem| hint_kind(problem, Self::NAME));
    OptionalCheckpoints: "whole number from 0 to 100000, or -1" => Option<u64>, |node| unless_minus_one::<Checkpoints>(node).map_err(|problem| hint_kind(problem, Self::NAME));
    OptionalCount32: "whole number or null" => Option<u32>, |node| optional::<Count32>(node);
    Number: "number" => f64, |node| number(node);
    OptionalNumber: "number or -1" => Option<f64>, |node| match scalar_value(node, "a number")?.1 {
        Plain::Null | Plain::Int(-1) => Ok(None),
        Plain::Float(-1.0) => Ok(None),
        Plain::Bool(_) | Plain::Int(_) | Plain::Float(_) | Plain::Text => number(node).map(Some),
    };
    NumberOrNull: "number or null" => Option<f64>, |node| optional::<Number>(node);
    Wait: "number from 0 to 3600" => f64, |node| match number(node)? {
        value if value <= 3600.0 => Ok(value),
        _ => Err(out_of_range(node, Self::NAME)),
    };
    Share: "number from 0 to 1" => f64, |node| match number(node)? {
        value if value <= 1.0 => Ok(value),
        _ => Err(Problem::new(format!("`{}` is above 1", node.brief())).hint("give a share: `0.9` is 90 %")),
    };
    OptionalShare: "number from 0 to 1, or null" => Option<f64>, |node| optional::<Share>(node);
    TargetPercent: "number from 0 to 100" => f64, |node| match number(node)? {
        value if 0.0 < value && value <= 1.0 => Err(Problem::new(format!("`{}` is not a percentage", node.brief())).hint(format!("it is in percent: write `{}`", 100.0 * value))),
        value if value <= 100.0 => Ok(value),
        _ => Err(out_of_range(node, Self::NAME)),
    };
    OptionalTargetPercent: "number from 0 to 100, or null" => Option<f64>, |node| optional::<TargetPercent>(node);
    Bytes: "bytes" => f64, |node| bytes(node);
    WholeBytes: "bytes" => u64, |node| whole_bytes(node);
    OptionalBytes: "bytes or null" => Option<u64>, |node| optional::<WholeBytes>(node);
    Rate: "bytes per second" => f64, |node| rate(node);
    OptionalRate: "bytes per second or null" => Option<f64>, |node| optional::<Rate>(node);
    Text: "text" => String, |node| text(node);
    OptionalText: "text or null" => Option<String>, |node| optional::<Text>(node);
    OptionalRequests: "large | library | null" => Option<String>, |node| optional::<RequestsName>(node);
    Texts: "list of texts" => Vec<String>, |node| match &node.content {
        Content::List(list_items) => list_items.iter().map(|item| text(item).map_err(|problem| problem.with_location(Some(item.location.clone())))).collect(),
        Content::Scalar { .. } | Content::Map(_) => text(node).map(|value| vec![value]),
    };
    Counts: "list of whole numbers" => Vec<u64>, |node| list_items(node, "a list of whole numbers, such as `[64, 64]`")?
        .iter()
        .map(|item| integer(item).and_then(|value| convert(item, value)).map_err(|problem| problem.with_location(Some(item.location.clone()))))
        .collect();
    Options: "map" => Vec<(String, String)>, |node| options(node);
    Factors: "map of numbers" => Vec<(u32, f64)>, |node| factors(node);
    Columns: "list of columns" => Vec<TableColumn>, |node| list_items(node, "a list of columns, such as `[{name: x, dtype: float32, size: 64}]`")?
        .iter()
        .map(|item| column(item).map_err(|problem| problem.with_location(Some(item.location.clone()))))
        .collect();
    ShuffleKind: "off | seed | random" => Shuffle, |node| shuffle(node);
    InMemory: "on_demand | memory" => bool, |node| {
        Ok(choice(node, &["on_demand", "memory"])? != "on_demand")
    };
    Datatype: "int8 | uint8 | fp16 | bf16 | fp32 | fp64" => StateType, |node| {
        Ok(StateType::from_name(&choice(node, &StateType::ALL.map(StateType::name))?).unwrap_or(StateType::Fp16))
    };
    CompressionKind: "none | gzip | lzf | bz2 | zip | xz" => Compression, |node| {
        Ok(Compression::from_name(&choice(node, &Compression::ALL.map(Compression::name))?).unwrap_or_default())
    };
    FrameworkName: "tensorflow | pytorch" => Framework, |node| {
        Ok(Framework::from_name(&choice(node, &Framework::ALL.map(Framework::name))?).unwrap_or_default())
    };
    InterfaceName: "posix | stdio" => WriteInterface, |node| {
        Ok(WriteInterface::from_name(&choice(node, &WriteInterface::ALL.map(WriteInterface::name))?).unwrap_or_default())
    };
    ElementKind: "numpy type" => Element, |node| element(node);
    // Here `null` is the name of a format, not a missing value.
    FormatName: "text" => String, |node| match &node.content {
        Content::Scalar { text, .. } if text == "null" => Ok("null".into()),
        _ => text(node),
    };
    StorageType: "local_fs | direct_fs | memory | null | s3 | gcs | azure | parallel_fs | aistore" => String, |node| match &node.content {
        Content::Scalar { text, .. } if text == "null" => Ok("null".into()),
        Content::Scalar { text, .. } if text == "file" => Ok("local_fs".into()),
        Content::Scalar { text, .. } if text == "s3dlio" => Ok("s3".into()),
        _ => choice(node, &["local_fs", "direct_fs", "memory", "null", "s3", "gcs", "azure", "parallel_fs", "aistore"]),
    };
}

/// Defines kinds of whole numbers, each as `Name: "name on reference pages" => type, range;`.
macro_rules! ranges {
    ($($kind:ident: $name:literal => $value:ty, $range:expr;)*) => {
        kinds! {$($kind: $name => $value, |node| integer_in_range(node, $range, $name);)*}
    };
}

/// Maximum number of subfolders of the training or the evaluation files.
pub(crate) const FOLDERS_MAX: u64 = 1_000_000;

/// Maximum number of epochs of a workload.
pub const EPOCHS_MAX: u32 = 100_000;

ranges! {
    Positive: "whole number from 1" => u64, 1..;
    Positive32: "whole number from 1" => u32, 1..;
    Epochs: "whole number from 1 to 100000" => u32, 1..=EPOCHS_MAX;
    Folders: "whole number from 0 to 1000000" => u64, ..=FOLDERS_MAX;
    Threads: "whole number from 0 to 4096" => u32, ..=4096;
    Checkpoints: "whole number from 0 to 100000" => u64, ..=100_000;
    CompressionLevel: "whole number from 0 to 9" => u32, ..=9;
    ZeroStage: "whole number from 0 to 3" => u32, ..=3;
    Percent: "whole number from 0 to 100" => u32, ..=100;
}

/// Defines kinds of text that allow only some words, each as `Name: "a" | "b";`.
macro_rules! choices {
    ($($kind:ident: $first:literal $(| $rest:literal)*;)*) => {
        kinds! {$(
            $kind: (concat!($first $(, " | ", $rest)*)) => String, |node| choice(node, &[$first $(, $rest)*]);
        )*}
    };
}

choices! {
    Sampler: "auto" | "iterative" | "index" | "none";
    ProcessStart: "fork" | "spawn" | "forkserver" | "None" | "null";
    FileAccess: "multi" | "shared" | "same" | "collective" | "broadcast" | "mpio" | "posix";
    Scaling: "strong" | "weak";
    StageMoment: "start";
    SplitName: "auto" | "shards" | "samples";
    RequestsName: "large" | "library";
    CheckpointType: "rank_zero" | "all_ranks";
    CheckpointMode: "default" | "subset";
    Profiler: "none" | "iostat" | "darshan" | "tensorboard";
}

fn optional<K: ValueKind>(node: &Node) -> Result<Option<K::Value>, Problem> {
    if node.is_null() { Ok(None) } else { K::parse(node).map(Some) }
}

fn unless_minus_one<K: ValueKind>(node: &Node) -> Result<Option<K::Value>, Problem> {
    if node.is_null() || integer(node)? == -1 { Ok(None) } else { K::parse(node).map(Some) }
}

/// Adds a hint with all values of the kind. The message itself mentions only numbers.
fn hint_kind(problem: Problem, expected: &str) -> Problem {
    problem.hint(format!("give a {expected}"))
}

fn flag(node: &Node) -> Result<bool, Problem> {
    const EXPECTED: &str = "`true` or `false`";
    match &node.content {
        Content::Scalar { text, .. } => {
            scalar::boolean(text).ok_or_else(|| wrong_kind(node, EXPECTED))
        }
        Content::List(_) | Content::Map(_) => Err(wrong_kind(node, EXPECTED)),
    }
}

fn text(node: &Node) -> Result<String, Problem> {
    let (text, plain) = scalar_value(node, "text")?;
    if plain == Plain::Null {
        return Err(wrong_kind(node, "text"));
    }
    if text.contains('\0') {
        return Err(Problem::new("a text with a zero byte"));
    }
    Ok(text.to_string())
}

fn choice(node: &Node, choices: &[&'static str]) -> Result<String, Problem> {
    let expected = format!("one of `{}`", choices.join("`, `"));
    let (text, _) = scalar_value(node, &expected)?;
    if choices.contains(&text) {
        return Ok(text.to_string());
    }
    Err(wrong_kind(node, &expected).did_you_mean(text, choices.iter().copied()))
}

fn bytes(node: &Node) -> Result<f64, Problem> {
    let (text, plain) = scalar_value(node, "bytes")?;
    match (plain, units::parse_bytes(text)) {
        (Plain::Text, Some(bytes)) if text.ends_with('B') => Ok(bytes),
        (Plain::Text | Plain::Null | Plain::Bool(_), _) => {
            Err(wrong_kind(node, "bytes, such as `1048576` or `1MiB`"))
        }
        (Plain::Int(_) | Plain::Float(_), _) => number(node),
    }
}

fn whole_bytes(node: &Node) -> Result<u64, Problem> {
    if let Ok((_, Plain::Int(_))) = scalar_value(node, "bytes") {
        return convert(node, integer(node)?);
    }
    let bytes = bytes(node)?;
    if bytes.fract() != 0.0 || bytes > 1e18 {
        return Err(Problem::new(format!("`{}` is not a whole number of bytes", node.brief())));
    }
    Ok(bytes as u64)
}

fn rate(node: &Node) -> Result<f64, Problem> {
    let (text, plain) = scalar_value(node, "bytes per second")?;
    let rate = match (plain, units::parse_bytes_per_second(text)) {
        (Plain::Text, Some(rate)) if text.contains('B') => rate,
        (Plain::Text | Plain::Null | Plain::Bool(_), _) => {
            return Err(wrong_kind(node, "bytes per second, such as `400e6` or `400MB/s`"));
        }
        (Plain::Int(_) | Plain::Float(_), _) => number(node)?,
    };
    if rate < 1.0 {
        return Err(Problem::new(format!("`{}` is less than one byte per second", node.brief()))
            .hint("leave it out for no limit"));
    }
    Ok(rate)
}

fn options(node: &Node) -> Result<Vec<(String, String)>, Problem> {
    match &node.content {
        Content::Map(entries) => entries
            .iter()
            .map(|Entry { key, value, .. }| {
                let text = text(value).map_err(|problem| problem.in_field(key, value))?;
                Ok((key.clone(), text))
            })
            .collect(),
        Content::Scalar { .. } if node.is_null() => Ok(Vec::new()),
        Content::Scalar { .. } | Content::List(_) => Err(wrong_kind(node, "a map")),
    }
}

fn factors(node: &Node) -> Result<Vec<(u32, f64)>, Problem> {
    const HINT: &str =
        "give accelerators, numbered from 0, and factors above 0, such as `{1: 2.0}`";
    let entries = match &node.content {
        Content::Map(entries) => entries.as_slice(),
        Content::Scalar { .. } if node.is_null() => &[],
        Content::Scalar { .. } | Content::List(_) => {
            return Err(wrong_kind(node, "a map").hint(HINT));
        }
    };
    let factor = |entry: &Entry| {
        let accelerator = entry.key.parse();
        let factor = number(&entry.value)?;
        match accelerator {
            Ok(accelerator) if factor > 0.0 => Ok((accelerator, factor)),
            _ => Err(wrong_kind(&entry.value, "a factor of an accelerator").hint(HINT)),
        }
    };
    entries
        .iter()
        .map(|entry| factor(entry).map_err(|problem| problem.in_field(&entry.key, &entry.value)))
        .collect()
}

/// Parses a column: its name, or a map with its name, type and size. Other keys, which DLIO ignores, are ignored.
fn column(node: &Node) -> Result<TableColumn, Problem> {
    let Content::Map(entries) = &node.content else {
        let name = text(node)?;
        return Ok(TableColumn { name, column_type: ColumnType::default(), size: 1 });
    };
    let mut name = None;
    let mut column_type = ColumnType::default();
    let mut size = 1;
    for Entry { key, value, .. } in entries {
        let parsed = match key.as_str() {
            "name" => text(value).map(|text| name = Some(text)),
            "dtype" => choice(value, &ColumnType::ALL.map(ColumnType::name))
                .map(|text| column_type = ColumnType::from_name(&text).unwrap_or_default()),
            "size" => Positive::parse(value).map(|values| size = values),
            _ => Ok(()),
        };
        parsed.map_err(|problem| problem.in_field(key, value))?;
    }
    let name = name.ok_or_else(|| Problem::new("a column without a name".to_string()))?;
    Ok(TableColumn { name, column_type, size })
}

fn shuffle(node: &Node) -> Result<Shuffle, Problem> {
    const CHOICES: &[&str] = &["off", "seed", "random"];
    if let Content::Scalar { text, .. } = &node.content {
        match scalar::boolean(text) {
            Some(false) => return Ok(Shuffle::Off),
            Some(true) => {
                return Err(wrong_kind(node, "one of `off`, `seed`, `random`")
                    .hint("write `seed` to shuffle by `train.seed`"));
            }
            None => {}
        }
    }
    Ok(match choice(node, CHOICES)?.as_str() {
        "seed" => Shuffle::Seed,
        "random" => Shuffle::Random,
        _ => Shuffle::Off,
    })
}

fn element(node: &Node) -> Result<Element, Problem> {
    let (text, _) = scalar_value(node, "a numpy type")?;
    let found = Element::ALL
        .into_iter()
        .find(|element| element.name() == text || element.npy_descr() == text);
    found.ok_or_else(|| {
        let names = Element::ALL.map(Element::name);
        let problem =
            wrong_kind(node, "a numpy type").hint(format!("available types: {}", names.join(", ")));
        problem.did_you_mean(text, names)
    })
}
