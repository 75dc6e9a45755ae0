//! Counters of the kernel, which are looked at again and again: their files stay open. What is not there is unknown.

use super::read_accounting::counts_device_reads;
use feedrate_measure::record::timeline::Sample;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Most files have what is looked for in their first lines.
const HEAD_BYTES: usize = 1024;
/// All disks of a large machine.
const DISKS_BYTES: usize = 64 << 10;
/// `/proc/diskstats` counts sectors of this size whatever the device's own.
const SECTOR_BYTES: u64 = 512;

/// Counted since the machine or the process started. `None` is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Totals {
    /// Reads of the workers are not the kernel's to tell.
    pub(super) counts: Sample,
    /// Reads of the device, as they were asked for: the kernel may have merged some.
    pub(super) device_reads: Option<u64>,
    /// Time in which the device had something to do.
    pub(super) device_busy_ms: Option<u64>,
}

impl Totals {
    /// The counts added since `before`.
    pub(super) fn since(self, before: Totals) -> Totals {
        let mut added = self.with(before, |now, before| Some(now?.saturating_sub(before?)));
        // No counter: what there is now.
        added.counts.cached_bytes = self.counts.cached_bytes;
        added
    }

    /// The larger of each.
    pub(super) fn max(self, other: Totals) -> Totals {
        self.with(other, Option::max)
    }

    /// Share of the time of all processors, in counts since some time. Waiting for I/O is idle.
    pub(super) fn cpu_busy_share(&self) -> Option<f64> {
        let (busy, all) = (self.counts.cpu_busy_ticks?, self.counts.cpu_ticks?);
        (all > 0).then(|| busy as f64 / all as f64)
    }

    fn with(self, other: Totals, put: fn(Option<u64>, Option<u64>) -> Option<u64>) -> Totals {
        Totals {
            counts: self.counts.with(other.counts, put),
            device_reads: put(self.device_reads, other.device_reads),
            device_busy_ms: put(self.device_busy_ms, other.device_busy_ms),
        }
    }
}

/// Whether the process's `read_bytes` are the bytes that a device gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceReads {
    /// The kernel counts reads of the file system.
    Counted,
    /// It does not: they are unknown.
    Unknown,
}

impl DeviceReads {
    /// By the type of the file system that is read; `None` where no folder is.
    pub fn from_file_system(file_system: Option<&str>) -> Self {
        match file_system {
            Some(file_system) if !counts_device_reads(file_system) => DeviceReads::Unknown,
            _ => DeviceReads::Counted,
        }
    }
}

/// Open files, and memory to read them into.
pub(super) struct Proc {
    io: Option<File>,
    device_reads: DeviceReads,
    stat: Option<File>,
    meminfo: Option<File>,
    disks: Option<File>,
    /// The `major:minor` of the disk to watch.
    device: String,
    buffer: Vec<u8>,
}

impl Proc {
    /// Watch the disk `device`, too, where one is given.
    pub(super) fn open(device: Option<&str>, device_reads: DeviceReads) -> Self {
        Proc {
            io: File::open("/proc/self/io").ok(),
            device_reads,
            stat: File::open("/proc/stat").ok(),
            meminfo: File::open("/proc/meminfo").ok(),
            disks: device.and_then(|_| File::open("/proc/diskstats").ok()),
            device: device.unwrap_or_default().to_string(),
            buffer: vec![0; if device.is_some() { DISKS_BYTES } else { HEAD_BYTES }],
        }
    }

    /// As they are now.
    pub(super) fn totals(&mut self) -> Totals {
        let mut totals = Totals::default();
        totals.counts.process_cpu_ns = process_cpu_ns();
        let io = text(self.io.as_ref(), &mut self.buffer[..HEAD_BYTES]);
        if self.device_reads == DeviceReads::Counted {
            totals.counts.process_device_read_bytes = field(io, "read_bytes:");
        }
        totals.counts.written_bytes = field(io, "wchar:");
        let meminfo = text(self.meminfo.as_ref(), &mut self.buffer[..HEAD_BYTES]);
        totals.counts.cached_bytes = field(meminfo, "Cached:").map(|kib| kib * 1024);
        totals.add_cpu(text(self.stat.as_ref(), &mut self.buffer[..HEAD_BYTES]));
        totals.add_disk(text(self.disks.as_ref(), &mut self.buffer), &self.device);
        totals
    }
}

impl Totals {
    /// Fields 4 to 6, 10 and 13 of the device's line (Documentation/admin-guide/iostats.rst).
    fn add_disk(&mut self, diskstats: &str, device: &str) {
        let Some((major, minor)) = device.split_once(':') else { return };
        for line in diskstats.lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if fields.get(..2) == Some(&[major, minor]) {
                let [whole, merged, read, written, busy_ms] =
                    [4, 5, 6, 10, 13].map(|field| fields.get(field - 1)?.parse::<u64>().ok());
                self.device_reads = whole.zip(merged).map(|(whole, merged)| whole + merged);
                self.counts.device_read_bytes = read.map(|sectors| sectors * SECTOR_BYTES);
                self.counts.device_written_bytes = written.map(|sectors| sectors * SECTOR_BYTES);
                self.device_busy_ms = busy_ms;
            }
        }
    }

    /// The first line is of all cores together.
    fn add_cpu(&mut self, stat: &str) {
        let fields = stat.lines().next().unwrap_or_default().split_whitespace();
        let ticks: Vec<u64> =
            fields.skip(1).take(8).filter_map(|field| field.parse().ok()).collect();
        if let [_, _, _, idle, waiting, ..] = ticks[..] {
            let all = ticks.iter().sum();
            self.counts.cpu_ticks = Some(all);
            self.counts.cpu_busy_ticks = Some(all - idle - waiting);
        }
    }
}

/// A file from its beginning, as much as the buffer holds; empty where it cannot be read.
fn text<'b>(file: Option<&File>, buffer: &'b mut [u8]) -> &'b str {
    let mut len = 0;
    // Some files of the kernel come in pieces.
    while let Some(file) = file
        && let Ok(come @ 1..) = file.read_at(&mut buffer[len..], len as u64)
    {
        len += come;
    }
    std::str::from_utf8(&buffer[..len]).unwrap_or_default()
}

fn field(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}

fn process_cpu_ns() -> Option<u64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(u64::try_from(time.tv_sec).ok()? * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_from_their_lines() {
        let disks = "   8       0 sda 100 0 2000 5 50 0 400 9 0 7 0\n 254       0 vda 1 2 16 3 4 5 32 6 0 0 0\n";
        let of_disk = |device| {
            let mut totals = Totals::default();
            totals.add_disk(disks, device);
            [
                totals.counts.device_read_bytes,
                totals.counts.device_written_bytes,
                totals.device_busy_ms,
                totals.device_reads,
            ]
        };
        assert_eq!(of_disk("254:0"), [Some(16 * 512), Some(32 * 512), Some(0), Some(3)]);
        assert_eq!(of_disk("7:0"), [None; 4]);
        assert_eq!(of_disk("8:0")[2], Some(7));
        assert_eq!(field("rchar: 1\nread_bytes: 4096\n", "read_bytes:"), Some(4096));
        let mut totals = Totals::default();
        totals.add_cpu("cpu  10 0 20 60 10 0 0 0 0 0\n");
        assert_eq!((totals.counts.cpu_busy_ticks, totals.counts.cpu_ticks), (Some(30), Some(100)));
        assert_eq!(totals.cpu_busy_share(), Some(0.3));
    }

    #[test]
    fn device_bytes_are_unknown_where_the_kernel_does_not_count_them() {
        let read_bytes = |file_system| {
            let mut proc = Proc::open(None, DeviceReads::from_file_system(file_system));
            proc.totals().counts.process_device_read_bytes
        };
        assert!(read_bytes(None).is_some());
        assert!(read_bytes(Some("ext4")).is_some());
        assert_eq!(read_bytes(Some("fuse.bindfs")), None);
    }

    #[test]
    fn files_that_stay_open_show_what_is_new() {
        let mut proc = Proc::open(None, DeviceReads::Counted);
        let before = proc.totals();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), vec![1; 100_000]).unwrap();
        let after = proc.totals();
        let added = after.since(before).counts;
        let (before, after) = (before.counts, after.counts);
        assert!(100_000 <= added.written_bytes.unwrap());
        assert!(0 < added.process_cpu_ns.unwrap());
        assert!(before.cpu_ticks.unwrap() <= after.cpu_ticks.unwrap());
        assert_eq!(after.device_read_bytes, None);
    }
}
