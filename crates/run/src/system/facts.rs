//! Host facts for the record, and the table `feedrate system` prints.

use super::mount::{block_device, mount_of};
use feedrate_measure::record::{Mount, System};
use feedrate_spec::units;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::path::Path;

/// Everything known of this machine, and of the folders a run uses.
pub fn system(data: Option<&Path>, results: Option<&Path>) -> System {
    let cpuinfo = last_cpu();
    let meminfo = meminfo();
    let memory_bytes = memory_in(&meminfo);
    let uname = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let data_mount = data.and_then(mount_of);
    System {
        hostname: text(uname.nodename()),
        components: components(&cpuinfo, memory_bytes, data_mount.as_ref()),
        cpus: cpus(),
        memory_bytes,
        processor: text(uname.machine()),
        kernel: text(uname.release()),
        cpuinfo,
        meminfo,
        data_mount,
        results_mount: results.and_then(mount_of),
    }
}

/// `MemTotal`.
pub fn memory_bytes() -> Option<u64> {
    memory_in(&meminfo())
}

/// Cores that nobody else is running on at this moment.
pub fn idle_cores() -> u32 {
    // The fourth field of loadavg is "runnable/all"; this process is one of the runnable.
    let runnable = read("/proc/loadavg")
        .split_whitespace()
        .nth(3)
        .and_then(|field| field.split('/').next()?.parse::<u32>().ok())
        .unwrap_or(1);
    cpus().saturating_sub(runnable.saturating_sub(1))
}

/// Let this process open as many files as the system allows: each worker holds one or more.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // Where it cannot be raised, opening fails later, and says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

fn components(
    cpuinfo: &[(String, String)],
    memory: Option<u64>,
    mount: Option<&Mount>,
) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let mut row = |component: &str, specification: String| {
        rows.push((component.to_string(), specification));
    };
    let model = ["model name", "Model", "cpu model", "Processor"]
        .iter()
        .find_map(|key| cpuinfo.iter().find(|(k, _)| k == key))
        .map_or("unknown model", |(_, model)| model.as_str());
    row("CPU", format!("{} × {model}", cpus()));
    row("Memory", memory.map_or("unknown".into(), units::bytes_binary));
    row("GPU", gpus());
    row("Storage", mount.map_or("unknown".into(), storage));
    row("Kernel", rustix::system::uname().release().to_string_lossy().into_owned());
    rows
}

/// Names of the NVIDIA devices the kernel's driver knows.
fn gpus() -> String {
    let Ok(folder) = fs::read_dir("/proc/driver/nvidia/gpus") else { return "none".into() };
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
        "{} on {}{disk}, {} free",
        mount.file_system,
        mount.source,
        units::bytes(mount.free_bytes)
    )
}

/// The last CPU of `/proc/cpuinfo`, without its number, as DLIO writes it.
fn last_cpu() -> Vec<(String, String)> {
    let cpuinfo = read("/proc/cpuinfo");
    let last = cpuinfo.trim_end().rsplit("\n\n").next().unwrap_or_default();
    let mut pairs = colon_pairs(last);
    pairs.retain(|(key, _)| key != "processor");
    pairs
}

/// The lines of `/proc/meminfo`.
pub(super) fn meminfo() -> Vec<(String, String)> {
    colon_pairs(&read("/proc/meminfo"))
}

fn memory_in(meminfo: &[(String, String)]) -> Option<u64> {
    let (_, total) = meminfo.iter().find(|(key, _)| key == "MemTotal")?;
    Some(total.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

fn colon_pairs(text: &str) -> Vec<(String, String)> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(key, value)| (key.trim().to_string(), value.trim().to_string()))
        .collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
