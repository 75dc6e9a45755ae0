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

/// 1 if the dataset fits into the memory.
pub(super) fn potential_caching(facts: &Facts) -> Option<u64> {
    let memory_bytes = facts.record.system.memory_bytes?;
    Some(u64::from(facts.dataset_bytes < memory_bytes))
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
