//! What DLIO's files say about the machine.

use super::Object;
use crate::facts::Facts;
use crate::record::System;
use serde_json::Value;

const GIB: f64 = (1u64 << 30) as f64;

/// DLIO's GB are 2^30 bytes.
pub(super) fn gib(bytes: u64) -> f64 {
    bytes as f64 / GIB
}

/// What each of the machines reads of the dataset, if they share it evenly.
pub(super) fn bytes_per_host(facts: &Facts) -> u64 {
    facts.dataset_bytes / facts.record.machines().len() as u64
}

/// 1 if what a machine reads of the dataset fits into its memory.
pub(super) fn potential_caching(facts: &Facts, system: &System) -> Option<u64> {
    let memory_bytes = system.memory_bytes?;
    Some(u64::from(bytes_per_host(facts) < memory_bytes))
}

/// A value of each machine, in their order; `None` if one is not known.
pub(super) fn each<T: Into<Value>>(
    facts: &Facts,
    value: impl Fn(&System) -> Option<T>,
) -> Option<Vec<T>> {
    facts.record.machines().iter().map(value).collect()
}

pub(super) fn cpu_count(system: &System) -> Option<u32> {
    (system.cpus > 0).then_some(system.cpus)
}

/// Lines of `/proc/cpuinfo` or `/proc/meminfo` as an object; `None` if there are none.
pub(super) fn lines(lines: &[(String, String)]) -> Option<Value> {
    let object: Object =
        lines.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
    (!lines.is_empty()).then(|| object.into())
}
