//! The machine in DLIO's files.

use super::known;
use crate::derived::Derived;
use crate::record::System;
use feedrate_spec::units::GIB;
use serde_json::{Value, json};

/// DLIO's GB are 2^30 bytes.
pub(super) fn gib(bytes: u64) -> f64 {
    bytes as f64 / GIB
}

/// Bytes of the dataset that each machine reads, if they share it evenly.
pub(super) fn bytes_per_host(derived: &Derived) -> u64 {
    derived.dataset_bytes / derived.record.machines().len() as u64
}

/// 1 if what a machine reads of the dataset fits into its memory.
pub(super) fn potential_caching(derived: &Derived, system: &System) -> Option<u64> {
    let memory_bytes = system.memory_bytes?;
    Some(u64::from(bytes_per_host(derived) < memory_bytes))
}

/// A value of each machine, in their order; `None` if one is not known.
pub(super) fn each<T>(derived: &Derived, value: impl Fn(&System) -> Option<T>) -> Option<Vec<T>> {
    derived.record.machines().iter().map(value).collect()
}

pub(super) fn cpu_count(system: &System) -> Option<u32> {
    Some(system.all_cpus()).filter(|cpus| *cpus > 0)
}

/// Facts about each machine that DLIO does not tell; `None` if nothing is known of any.
pub(super) fn machines(derived: &Derived) -> Option<Vec<Value>> {
    let machines: Vec<Value> = derived.record.machines().iter().map(machine).collect();
    let is_known = machines.iter().any(|machine| *machine != json!({}));
    is_known.then_some(machines)
}

fn machine(system: &System) -> Value {
    let networks = system.networks.iter().map(|network| {
        known(json!({ "name": network.name, "speed_Mbit_per_second": network.speed_mbit_per_second, }))
    });
    let networks: Vec<Value> = networks.collect();
    let mount = system.data_mount.as_ref();
    known(json!({
        "hostname": system.hostname,
        "cpus_usable": Some(system.cpus).filter(|cpus| *cpus > 0),
        "networks": (!networks.is_empty()).then_some(networks),
        "data_file_system": mount.map(|mount| &mount.file_system),
        "data_source": mount.map(|mount| &mount.source),
        "data_mount_options": mount.map(|mount| &mount.options),
        "data_file_system_options": mount.map(|mount| &mount.super_options),
        "data_striping": mount.and_then(|mount| mount.striping.as_ref()),
    }))
}

/// Lines of `/proc/cpuinfo` or `/proc/meminfo` as an object; `None` if there are none.
pub(super) fn lines(lines: &[(String, String)]) -> Option<Value> {
    (!lines.is_empty()).then(|| lines.iter().cloned().collect())
}
