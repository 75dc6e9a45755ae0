//! DLIO's files of one rank: `<rank>_output.json`, its steps, and `<rank>_per_epoch_stats.json`, when blocks began and ended. Values as they stand there.

use super::json::Number;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// Names of files in a run's folder begin with the rank.
pub(super) const OUTPUT: &str = "_output.json";
pub(super) const STATS: &str = "_per_epoch_stats.json";
/// The one file for all ranks that older DLIO writes.
pub(super) const STATS_OF_ALL: &str = "per_epoch_stats.json";

/// The rank that a file's name begins with.
pub(super) fn rank_of(name: &str, end: &str) -> Option<u32> {
    name.strip_suffix(end)?.parse().ok()
}

/// Whether a file of this name belongs to a rank.
pub(super) fn is_of_rank(name: &str) -> bool {
    rank_of(name, OUTPUT).or_else(|| rank_of(name, STATS)).is_some()
}

/// `<rank>_output.json`.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) epochs: BTreeMap<u32, OutputEpoch>,
    pub(super) hostname: Option<String>,
    pub(super) memory_gib: Option<Number>,
    pub(super) cpus: Option<u64>,
    pub(super) processor: Option<String>,
}

/// By block, `block1`, `block2`, … and `eval`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct OutputEpoch {
    #[serde(deserialize_with = "not_null")]
    pub(super) load: BTreeMap<String, Vec<Number>>,
    #[serde(deserialize_with = "not_null")]
    pub(super) proc: BTreeMap<String, Vec<Number>>,
    #[serde(deserialize_with = "not_null")]
    pub(super) compute: BTreeMap<String, Vec<Number>>,
    #[serde(deserialize_with = "not_null")]
    pub(super) throughput: BTreeMap<String, Number>,
}

/// `<rank>_per_epoch_stats.json`, or `per_epoch_stats.json` of older DLIO.
#[derive(Debug, Default)]
pub(super) struct Stats(pub(super) BTreeMap<u32, StatsEpoch>);

/// One epoch: its own span, and by name those of its blocks.
#[derive(Debug, Default)]
pub(super) struct StatsEpoch {
    pub(super) span: Span,
    pub(super) parts: BTreeMap<String, Span>,
}

/// From when to when; local wall-clock time.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Span {
    pub(super) start: Option<String>,
    pub(super) end: Option<String>,
    pub(super) duration: Option<Number>,
}

/// Reads a map whose keys are of several kinds; the function takes the value of each.
macro_rules! read_entries {
    ($type:ident, $take:expr) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Entries;
                impl<'de> Visitor<'de> for Entries {
                    type Value = $type;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a map")
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$type, A::Error> {
                        let mut value = $type::default();
                        while let Some(key) = map.next_key::<String>()? {
                            $take(&mut value, key, &mut map)?;
                        }
                        Ok(value)
                    }
                }
                deserializer.deserialize_map(Entries)
            }
        }
    };
}

read_entries!(Output, take_of_output);
read_entries!(Stats, take_of_stats);
read_entries!(StatsEpoch, take_of_epoch);

fn take_of_output<'de, A: MapAccess<'de>>(
    output: &mut Output,
    key: String,
    map: &mut A,
) -> Result<(), A::Error> {
    match (key.as_str(), key.parse()) {
        ("hostname", _) => output.hostname = text(map.next_value()?),
        ("host_processor_name", _) => output.processor = text(map.next_value()?),
        ("host_memory_GB", _) => output.memory_gib = Some(Number::new(&map.next_value()?)),
        ("host_cpu_count", _) => output.cpus = map.next_value::<Value>()?.as_u64(),
        (_, Ok(epoch)) => drop(output.epochs.insert(epoch, or_default(map)?)),
        _ => drop(map.next_value::<IgnoredAny>()?),
    }
    Ok(())
}

/// The next value, which may be null.
fn or_default<'de, A: MapAccess<'de>, T: Deserialize<'de> + Default>(
    map: &mut A,
) -> Result<T, A::Error> {
    Ok(map.next_value::<Option<T>>()?.unwrap_or_default())
}

fn not_null<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn text(value: Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_string)
}

fn take_of_stats<'de, A: MapAccess<'de>>(
    stats: &mut Stats,
    key: String,
    map: &mut A,
) -> Result<(), A::Error> {
    match key.parse() {
        Ok(epoch) => drop(stats.0.insert(epoch, or_default(map)?)),
        Err(_) => drop(map.next_value::<IgnoredAny>()?),
    }
    Ok(())
}

fn take_of_epoch<'de, A: MapAccess<'de>>(
    epoch: &mut StatsEpoch,
    key: String,
    map: &mut A,
) -> Result<(), A::Error> {
    match key.as_str() {
        "start" => epoch.span.start = map.next_value()?,
        "end" => epoch.span.end = map.next_value()?,
        "duration" => epoch.span.duration = map.next_value()?,
        block if block.starts_with("block") => drop(epoch.parts.insert(key, or_default(map)?)),
        _ => drop(map.next_value::<IgnoredAny>()?),
    }
    Ok(())
}
