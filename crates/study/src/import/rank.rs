//! What DLIO writes of one rank: `<rank>_output.json`, its steps, and `<rank>_per_epoch_stats.json`, when blocks began and ended. Values as they stand there.

use super::json::Number;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// `<rank>_output.json`.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) epochs: BTreeMap<u32, OutputEpoch>,
    pub(super) hostname: Option<String>,
}

/// By block, `block1`, `block2`, … and `eval`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct OutputEpoch {
    pub(super) load: BTreeMap<String, Vec<Number>>,
    pub(super) proc: BTreeMap<String, Vec<Number>>,
    pub(super) compute: BTreeMap<String, Vec<Number>>,
    pub(super) throughput: BTreeMap<String, Number>,
    pub(super) au: BTreeMap<String, Number>,
}

/// `<rank>_per_epoch_stats.json`, or `per_epoch_stats.json` of older DLIO.
#[derive(Debug, Default)]
pub(super) struct Stats(pub(super) BTreeMap<u32, StatsEpoch>);

/// One epoch: its own span, and by name those of blocks, checkpoints and evaluation.
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
        ("hostname", _) => output.hostname = map.next_value()?,
        (_, Ok(epoch)) => drop(output.epochs.insert(epoch, map.next_value()?)),
        _ => drop(map.next_value::<IgnoredAny>()?),
    }
    Ok(())
}

fn take_of_stats<'de, A: MapAccess<'de>>(
    stats: &mut Stats,
    key: String,
    map: &mut A,
) -> Result<(), A::Error> {
    match key.parse() {
        Ok(epoch) => drop(stats.0.insert(epoch, map.next_value()?)),
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
        _ => drop(epoch.parts.insert(key, map.next_value()?)),
    }
    Ok(())
}
