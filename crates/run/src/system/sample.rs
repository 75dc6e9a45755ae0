//! What the machine did during an epoch: device bytes, CPU time, page cache, clock.

use super::facts::meminfo;
use crate::clock::Clock;
use feedrate_data::storage::{Storage, StorageError};
use feedrate_measure::record::HostEpoch;
use feedrate_spec::plan::layout::Layout;
use std::fs;

/// Files looked at for residency, at most; a larger dataset is sampled evenly.
const RESIDENCY_FILES_MAX: u64 = 2048;
/// `/proc/diskstats` counts sectors of this size whatever the device's own.
const SECTOR_BYTES: u64 = 512;
/// What a clock may wander in an epoch without having been stepped.
const CLOCK_STEP_MIN_NS: u64 = 1_000_000;

/// Counters at the start of an epoch.
pub struct Sampler {
    device: Option<String>,
    at_start: Counters,
    meminfo: Vec<(String, String)>,
    clock: Clock,
    clock_step_ns: i64,
}

#[derive(Clone, Copy, Default)]
struct Counters {
    process_read_bytes: Option<u64>,
    device_bytes: Option<(u64, u64)>,
    process_cpu_ns: Option<u64>,
    cpu_ticks: Option<(u64, u64)>,
}

/// Dataset bytes in the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Residency {
    /// Scaled up from the files looked at; `None` where it cannot be known.
    pub bytes: Option<u64>,
    /// Share of the files looked at.
    pub sampled_share: f64,
}

impl Sampler {
    /// Start counting. `device` is the `major:minor` under the dataset.
    pub fn start(device: Option<&str>, clock: Clock) -> Self {
        Sampler {
            device: device.map(str::to_string),
            at_start: Counters::read(device),
            meminfo: meminfo(),
            clock,
            clock_step_ns: clock.wall_step_ns(),
        }
    }

    /// What happened since; residency is left to the caller.
    pub fn finish(&self) -> HostEpoch {
        let (before, after) = (self.at_start, Counters::read(self.device.as_deref()));
        let since = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
        let reads = |c: Counters| c.device_bytes.map(|(read, _)| read);
        let writes = |c: Counters| c.device_bytes.map(|(_, written)| written);
        let step_ns = self.clock.wall_step_ns() - self.clock_step_ns;
        HostEpoch {
            process_device_read_bytes: since(before.process_read_bytes, after.process_read_bytes),
            device_read_bytes: since(reads(before), reads(after)),
            device_write_bytes: since(writes(before), writes(after)),
            process_cpu_ns: since(before.process_cpu_ns, after.process_cpu_ns),
            cpu_busy_share: busy_share(before.cpu_ticks, after.cpu_ticks),
            clock_step_ns: Some(if step_ns.unsigned_abs() < CLOCK_STEP_MIN_NS {
                0
            } else {
                step_ns
            }),
            meminfo: self.meminfo.clone(),
            ..HostEpoch::default()
        }
    }
}

/// How much of the training files is in the page cache.
///
/// # Errors
/// A file could not be looked at.
pub fn residency(storage: &dyn Storage, layout: &Layout) -> Result<Residency, StorageError> {
    sampled(layout, |path| storage.resident_bytes(path))
}

/// How long the training files are, counted as [`residency`] counts.
///
/// # Errors
/// A file could not be looked at.
pub fn file_bytes(storage: &dyn Storage, layout: &Layout) -> Result<Option<u64>, StorageError> {
    sampled(layout, |path| storage.stat(path)).map(|sampled| sampled.bytes)
}

fn sampled(
    layout: &Layout,
    bytes_of: impl Fn(&str) -> Result<Option<u64>, StorageError>,
) -> Result<Residency, StorageError> {
    let files = layout.files_train();
    let looked = files.min(RESIDENCY_FILES_MAX);
    if looked == 0 {
        return Ok(Residency::default());
    }
    let mut path = String::new();
    let mut bytes: u64 = 0;
    for i in 0..looked {
        layout
            .write_path((u128::from(i) * u128::from(files) / u128::from(looked)) as u64, &mut path);
        match bytes_of(&path)? {
            Some(of_file) => bytes += of_file,
            None => return Ok(Residency::default()),
        }
    }
    let sampled_share = looked as f64 / files as f64;
    Ok(Residency { bytes: Some((bytes as f64 / sampled_share) as u64), sampled_share })
}

impl Counters {
    fn read(device: Option<&str>) -> Self {
        Counters {
            process_read_bytes: field(&read("/proc/self/io"), "read_bytes:"),
            device_bytes: device.and_then(|device| disk_bytes(&read("/proc/diskstats"), device)),
            process_cpu_ns: process_cpu_ns(),
            cpu_ticks: cpu_ticks(&read("/proc/stat")),
        }
    }
}

pub(super) fn field(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}

/// Bytes read and written: fields 6 and 10 of the device's line (Documentation/admin-guide/iostats.rst).
pub(super) fn disk_bytes(diskstats: &str, device: &str) -> Option<(u64, u64)> {
    let field = |i: usize| disk_field(diskstats, device, i);
    Some((field(5)? * SECTOR_BYTES, field(9)? * SECTOR_BYTES))
}

/// Time in which the device had something to do: field 13.
pub(super) fn disk_busy_ms(diskstats: &str, device: &str) -> Option<u64> {
    disk_field(diskstats, device, 12)
}

fn disk_field(diskstats: &str, device: &str, index: usize) -> Option<u64> {
    let (major, minor) = device.split_once(':')?;
    let line = diskstats.lines().find(|line| {
        let mut fields = line.split_whitespace();
        fields.next() == Some(major) && fields.next() == Some(minor)
    })?;
    line.split_whitespace().nth(index)?.parse().ok()
}

/// (busy, all) ticks of all cores; waiting for I/O is idle.
pub(super) fn cpu_ticks(stat: &str) -> Option<(u64, u64)> {
    let ticks = || stat.lines().next().into_iter().flat_map(str::split_whitespace).skip(1).take(8);
    let all: u64 = ticks().filter_map(|field| field.parse::<u64>().ok()).sum();
    let idle = |i: usize| ticks().nth(i)?.parse::<u64>().ok();
    Some((all - idle(3)? - idle(4)?, all))
}

pub(super) fn busy_share(before: Option<(u64, u64)>, after: Option<(u64, u64)>) -> Option<f64> {
    let ((busy_before, all_before), (busy, all)) = (before?, after?);
    let elapsed = all.saturating_sub(all_before);
    (elapsed > 0).then(|| busy.saturating_sub(busy_before) as f64 / elapsed as f64)
}

pub(super) fn process_cpu_ns() -> Option<u64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(u64::try_from(time.tv_sec).ok()? * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?)
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_from_their_lines() {
        let disks = "   8       0 sda 100 0 2000 5 50 0 400 9 0 7 0\n 254       0 vda 1 2 16 3 4 5 32 6 0 0 0\n";
        assert_eq!(disk_bytes(disks, "254:0"), Some((16 * 512, 32 * 512)));
        assert_eq!(disk_bytes(disks, "7:0"), None);
        assert_eq!(disk_busy_ms(disks, "8:0"), Some(7));
        assert_eq!(field("rchar: 1\nread_bytes: 4096\n", "read_bytes:"), Some(4096));
        assert_eq!(cpu_ticks("cpu  10 0 20 60 10 0 0 0 0 0\n"), Some((30, 100)));
        assert_eq!(busy_share(Some((30, 100)), Some((80, 200))), Some(0.5));
    }
}
