//! The machine in DLIO's files.

use super::Object;
use crate::derived::Derived;
use crate::record::System;
use serde_json::Value;

const GIB: f64 = (1u64 << 30) as f64;

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
pub(super) fn each<T: Into<Value>>(
    derived: &Derived,
    value: impl Fn(&System) -> Option<T>,
) -> Option<Vec<T>> {
    derived.record.machines().iter().map(value).collect()
}

pub(super) fn cpu_count(system: &System) -> Option<u32> {
    Some(system.all_cpus()).filter(|cpus| *cpus > 0)
}

/// Facts about each machine that DLIO does not tell; `None` if nothing is known of any.
pub(super) fn machines(derived: &Derived) -> Option<Vec<Value>> {
    let machines: Vec<Object> = derived.record.machines().iter().map(machine).collect();
    let is_known = machines.iter().any(|machine| !machine.0.is_empty());
    is_known.then(|| machines.into_iter().map(Value::from).collect())
}

fn machine(system: &System) -> Object {
    let mut object = Object::default();
    object.put_text("hostname", &system.hostname);
    object.put_known("cpus_usable", Some(system.cpus).filter(|cpus| *cpus > 0));
    let networks = system.networks.iter().map(|network| {
        let mut object = Object::default();
        object.put_text("name", &network.name);
        object.put_known("speed_Mbit_per_second", network.speed_mbit_per_second);
        Value::from(object)
    });
    let networks: Vec<Value> = networks.collect();
    object.put_known("networks", (!networks.is_empty()).then_some(networks));
    if let Some(mount) = &system.data_mount {
        object.put_text("data_file_system", &mount.file_system);
        object.put_text("data_source", &mount.source);
        object.put_text("data_mount_options", &mount.options);
        object.put_text("data_file_system_options", &mount.super_options);
        object.put_known("data_striping", mount.striping.clone());
    }
    object
}

/// Lines of `/proc/cpuinfo` or `/proc/meminfo` as an object; `None` if there are none.
pub(super) fn lines(lines: &[(String, String)]) -> Option<Value> {
    let object: Object =
        lines.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
    (!lines.is_empty()).then(|| object.into())
}
