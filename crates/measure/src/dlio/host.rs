//! Entries of DLIO's files that describe machines.

use super::{to_value, without_unknown};
use crate::derived::Derived;
use crate::record::System;
use feedrate_spec::units::GIB;
use serde::Serialize;
use serde_json::Value;

/// Converts bytes to GiB, which DLIO calls GB.
pub(super) fn gib(bytes: u64) -> f64 {
    bytes as f64 / GIB
}

/// Bytes of the dataset per machine, assuming even shares.
pub(super) fn bytes_per_host(derived: &Derived) -> u64 {
    derived.dataset_bytes / derived.record.machines().len() as u64
}

/// 1 if a machine's share of the dataset fits into its memory, otherwise 0; `None` if its memory is unknown.
pub(super) fn potential_caching(derived: &Derived, system: &System) -> Option<u64> {
    let memory_bytes = system.memory_bytes?;
    Some(u64::from(bytes_per_host(derived) < memory_bytes))
}

/// A value for each machine, in order; `None` if one of them is unknown.
pub(super) fn value_per_machine<T>(
    derived: &Derived,
    value: impl Fn(&System) -> Option<T>,
) -> Option<Vec<T>> {
    derived.record.machines().iter().map(value).collect()
}

pub(super) fn cpu_count(system: &System) -> Option<u32> {
    Some(system.all_cpus()).filter(|cpus| *cpus > 0)
}

/// Entries with facts about each machine that DLIO does not write; `None` if no fact is known.
pub(super) fn machine_entries(derived: &Derived) -> Option<Vec<Value>> {
    let machines: Vec<Value> = derived.record.machines().iter().map(machine_entry).collect();
    let is_known = machines.iter().filter_map(Value::as_object).any(|machine| !machine.is_empty());
    is_known.then_some(machines)
}

#[derive(Serialize)]
struct MachineEntry<'a> {
    hostname: &'a str,
    cpus_usable: Option<u32>,
    networks: Option<Vec<Value>>,
    data_file_system: Option<&'a str>,
    data_source: Option<&'a str>,
    data_mount_options: Option<&'a str>,
    data_file_system_options: Option<&'a str>,
    data_striping: Option<Value>,
}

#[derive(Serialize)]
struct NetworkEntry<'a> {
    name: &'a str,
    #[serde(rename = "speed_Mbit_per_second")]
    speed_mbit_per_second: Option<u64>,
}

fn machine_entry(system: &System) -> Value {
    let networks = system.networks.iter().map(|network| {
        let speed_mbit_per_second = network.speed_mbit_per_second;
        without_unknown(NetworkEntry { name: &network.name, speed_mbit_per_second })
    });
    let networks: Vec<Value> = networks.collect();
    let mount = system.data_mount.as_ref();
    without_unknown(MachineEntry {
        hostname: &system.hostname,
        cpus_usable: Some(system.cpus).filter(|cpus| *cpus > 0),
        networks: (!networks.is_empty()).then_some(networks),
        data_file_system: mount.map(|mount| &*mount.file_system),
        data_source: mount.map(|mount| &*mount.source),
        data_mount_options: mount.map(|mount| &*mount.options),
        data_file_system_options: mount.map(|mount| &*mount.super_options),
        data_striping: mount.and_then(|mount| mount.striping.as_ref()).map(to_value),
    })
}

/// Converts lines of `/proc/cpuinfo` or `/proc/meminfo` to an object; `None` if there are none.
pub(super) fn proc_object(lines: &[(String, String)]) -> Option<Value> {
    (!lines.is_empty()).then(|| lines.iter().cloned().collect())
}
