//! Collects facts about the machine for the record and for the table of `feedrate system`.

use super::cpu::{self, CpuTopology};
use super::limits;
use super::mount::{block_device, mount_of};
use super::network::{network_text, networks};
use feedrate_measure::record::file::read_folder;
use feedrate_measure::record::{Mount, Network, System};
use feedrate_spec::units;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::path::Path;

/// Describes this machine and the mounts of a run's folders.
pub fn system(data: Option<&Path>, results: Option<&Path>) -> System {
    let cpuinfo = last_cpu();
    let meminfo = meminfo();
    let memory_bytes = memory_in(&meminfo, "MemTotal");
    let uname = rustix::system::uname();
    let mut data_mount = data.and_then(mount_of);
    if let Some(mount) = &mut data_mount {
        mount.read_limits = limits::read_limits(&mount.device);
    }
    let networks = networks(Path::new("/sys/class/net"));
    let topology = CpuTopology::read(Path::new("/sys/devices/system/cpu"));
    System {
        hostname: hostname(),
        components: components(&cpuinfo, topology, memory_bytes, &networks, data_mount.as_ref()),
        cpus: cpus(),
        cpus_online: cpus_online(),
        sockets: topology.sockets,
        cores: topology.cores,
        memory_bytes,
        processor: uname.machine().to_string_lossy().into_owned(),
        kernel: uname.release().to_string_lossy().into_owned(),
        cpuinfo,
        meminfo,
        networks,
        data_mount,
        results_mount: results.and_then(mount_of),
    }
}

/// Returns the name of this machine.
pub fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns the size of the memory.
pub fn memory_bytes() -> Option<u64> {
    memory_in(&meminfo(), "MemTotal")
}

/// Returns the number of cores on which no other thread is running at the moment.
pub fn idle_cores() -> u32 {
    // The fourth field of loadavg is "runnable/all". The runnable threads include this one.
    let runnable = read("/proc/loadavg")
        .split_whitespace()
        .nth(3)
        .and_then(|field| field.split('/').next()?.parse::<u32>().ok())
        .unwrap_or(1);
    cpus().saturating_sub(runnable.saturating_sub(1))
}

/// Raises the limit of open files to the maximum, because each worker keeps one or more files open.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // If it cannot be raised, opening a file fails later with a message.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// Returns the number of CPUs of the machine, including those that this process may not use.
fn cpus_online() -> Option<u32> {
    count_list(&read("/sys/devices/system/cpu/online"))
}

/// Counts the numbers of a list in the kernel's notation: `0-3,8`.
fn count_list(list: &str) -> Option<u32> {
    let ranges = list.trim().split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        last.parse::<u32>().ok()?.checked_sub(first.parse().ok()?)?.checked_add(1)
    });
    ranges.sum()
}

fn components(
    cpuinfo: &[(String, String)],
    topology: CpuTopology,
    memory: Option<u64>,
    networks: &[Network],
    mount: Option<&Mount>,
) -> Vec<(String, String)> {
    let usable = cpus();
    let online = cpus_online().unwrap_or(usable);
    let cores = topology.text().map_or(String::new(), |text| format!(" ({text})"));
    let mut processors = format!("{online} × {}{cores}", cpu::model(cpuinfo));
    if online != usable {
        processors += &format!(", {usable} for this process");
    }
    [
        ("CPU", processors),
        ("Memory", memory.map_or("unknown".into(), units::bytes_binary)),
        ("GPU", gpus()),
        ("Network", network_text(networks)),
        ("Storage", mount.map_or("unknown".into(), storage)),
        ("Kernel", rustix::system::uname().release().to_string_lossy().into_owned()),
    ]
    .map(|(component, specification)| (component.to_string(), specification))
    .to_vec()
}

/// Returns the names of the GPUs that NVIDIA's kernel driver lists.
fn gpus() -> String {
    let Ok(folder) = read_folder("/proc/driver/nvidia/gpus") else { return "none".into() };
    let mut models: Vec<String> = folder
        .flatten()
        .filter_map(|gpu| {
            let pairs = colon_pairs(&fs::read_to_string(gpu.path().join("information")).ok()?);
            Some(pairs.iter().find(|(key, _)| key == "Model")?.1.clone())
        })
        .collect();
    models.sort();
    if models.is_empty() { "none".into() } else { models.join(", ") }
}

fn storage(mount: &Mount) -> String {
    let disk = block_device(&mount.device).map_or(String::new(), |disk| {
        let model = read(&format!("{disk}/device/model"));
        let rotating = read(&format!("{disk}/queue/rotational"));
        let kind = match rotating.trim() {
            "0" => " (no moving parts)",
            "1" => " (rotating)",
            _ => "",
        };
        format!(", {}{kind}", if model.trim().is_empty() { "unnamed disk" } else { model.trim() })
    });
    format!(
        "{} on {}{disk}, {} free{}",
        mount.file_system,
        mount.source,
        units::bytes(mount.free_bytes),
        mount.total_bytes.map_or(String::new(), |all| format!(" of {}", units::bytes(all)))
    )
}

/// Returns the last CPU of `/proc/cpuinfo` without its number, as DLIO writes it.
fn last_cpu() -> Vec<(String, String)> {
    let cpuinfo = read("/proc/cpuinfo");
    let last = cpuinfo.trim_end().rsplit("\n\n").next().unwrap_or_default();
    let mut pairs = colon_pairs(last);
    pairs.retain(|(key, _)| key != "processor");
    pairs
}

/// Returns the lines of `/proc/meminfo`.
pub(super) fn meminfo() -> Vec<(String, String)> {
    colon_pairs(&read("/proc/meminfo"))
}

/// Returns the value of a line of `/proc/meminfo`, in bytes.
pub(super) fn memory_in(meminfo: &[(String, String)], name: &str) -> Option<u64> {
    let (_, kib) = meminfo.iter().find(|(key, _)| key == name)?;
    Some(kib.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

pub(super) fn colon_pairs(text: &str) -> Vec<(String, String)> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(key, value)| (key.trim().to_string(), value.trim().to_string()))
        .collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel_are_counted() {
        let check = |list, count| assert_eq!(count_list(list), count, "{list}");
        check("0-1\n", Some(2));
        check("0", Some(1));
        check("0-3,8,10-11", Some(7));
        check("", None);
        check("3-1", None);
    }

    #[test]
    fn a_process_uses_no_more_than_the_machine_has() {
        assert!(cpus() <= cpus_online().unwrap());
    }
}
