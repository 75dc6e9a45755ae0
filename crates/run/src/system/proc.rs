//! Reads counters of the kernel. The files stay open, because they are read repeatedly. Missing counters are unknown.

use feedrate_measure::record::Mount;
use feedrate_measure::record::timeline::Sample;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Number of bytes that are read of most files. The needed lines are at the beginning.
const HEAD_BYTES: usize = 1024;
/// Size of `/proc/diskstats` on a large machine.
const DISKS_BYTES: usize = 64 << 10;
/// Size of a sector in `/proc/diskstats`, which is the same for all devices.
const SECTOR_BYTES: u64 = 512;

/// Counts since the start of the machine or the process; `None` if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Totals {
    /// Counts of a timeline's sample, except for the workers' reads, which the kernel does not count.
    pub(super) counts: Sample,
    /// Requested reads of the device, before the kernel merged some.
    pub(super) device_reads: Option<u64>,
    /// Time that the device was busy.
    pub(super) device_busy_ms: Option<u64>,
    /// Page faults of this process that waited for I/O.
    pub(super) major_page_faults: Option<u64>,
}

impl Totals {
    /// Returns the difference to `before`.
    pub(super) fn since(self, before: Totals) -> Totals {
        let mut added = self.combine_with(before, |now, before| Some(now?.saturating_sub(before?)));
        // This is the current size, and not a counter.
        added.counts.cached_bytes = self.counts.cached_bytes;
        added
    }

    /// Returns the larger of each count.
    pub(super) fn max(self, other: Totals) -> Totals {
        self.combine_with(other, Option::max)
    }

    /// Returns the busy share of all processors, for counts since an earlier time. Waiting for I/O does not count as busy.
    pub(super) fn cpu_busy_share(&self) -> Option<f64> {
        let busy_ticks = self.counts.cpu_busy_ticks?;
        let ticks = self.counts.cpu_ticks?;
        (ticks > 0).then(|| busy_ticks as f64 / ticks as f64)
    }

    fn combine_with(
        self,
        other: Totals,
        combine: fn(Option<u64>, Option<u64>) -> Option<u64>,
    ) -> Totals {
        Totals {
            counts: self.counts.combine_with(other.counts, combine),
            device_reads: combine(self.device_reads, other.device_reads),
            device_busy_ms: combine(self.device_busy_ms, other.device_busy_ms),
            major_page_faults: combine(self.major_page_faults, other.major_page_faults),
        }
    }
}

/// Whether `read_bytes` of a process counts its reads from a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceReads {
    /// The kernel counts reads of the file system.
    Counted,
    /// The kernel does not count them, so bytes read from the device are unknown.
    Unknown,
}

impl DeviceReads {
    /// Decides by the file systems of a mount; `None` if no folder is read.
    pub fn from_mount(mount: Option<&Mount>) -> Self {
        match mount.and_then(Mount::uncounted_file_system) {
            Some(_) => DeviceReads::Unknown,
            None => DeviceReads::Counted,
        }
    }
}

/// Open files of `/proc` and a buffer for them.
pub(super) struct Proc {
    io: Option<File>,
    process_stat: Option<File>,
    device_reads: DeviceReads,
    stat: Option<File>,
    meminfo: Option<File>,
    disks: Option<File>,
    /// `major:minor` of the watched disk.
    device: String,
    buffer: Vec<u8>,
}

impl Proc {
    /// Opens the files; `device` is the `major:minor` of a disk to watch.
    pub(super) fn open(device: Option<&str>, device_reads: DeviceReads) -> Self {
        Proc {
            io: File::open("/proc/self/io").ok(),
            process_stat: File::open("/proc/self/stat").ok(),
            device_reads,
            stat: File::open("/proc/stat").ok(),
            meminfo: File::open("/proc/meminfo").ok(),
            disks: device.and_then(|_| File::open("/proc/diskstats").ok()),
            device: device.unwrap_or_default().to_string(),
            buffer: vec![0; if device.is_some() { DISKS_BYTES } else { HEAD_BYTES }],
        }
    }

    /// Reads the current counts.
    pub(super) fn totals(&mut self) -> Totals {
        let mut totals = Totals::default();
        totals.counts.process_cpu_ns = process_cpu_ns();
        let io = text(self.io.as_ref(), &mut self.buffer[..HEAD_BYTES]);
        if self.device_reads == DeviceReads::Counted {
            totals.counts.process_device_read_bytes = field(io, "read_bytes:");
        }
        totals.counts.written_bytes = field(io, "wchar:");
        let process_stat = text(self.process_stat.as_ref(), &mut self.buffer[..HEAD_BYTES]);
        totals.major_page_faults = major_page_faults(process_stat);
        let meminfo = text(self.meminfo.as_ref(), &mut self.buffer[..HEAD_BYTES]);
        totals.counts.cached_bytes = field(meminfo, "Cached:").map(|kib| kib * 1024);
        totals.add_cpu(text(self.stat.as_ref(), &mut self.buffer[..HEAD_BYTES]));
        totals.add_disk(text(self.disks.as_ref(), &mut self.buffer), &self.device);
        totals
    }
}

impl Totals {
    /// Adds fields 4 to 6, 10 and 13 of the device's line (Documentation/admin-guide/iostats.rst).
    fn add_disk(&mut self, diskstats: &str, device: &str) {
        let Some((major, minor)) = device.split_once(':') else { return };
        for line in diskstats.lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if fields.get(..2) == Some(&[major, minor]) {
                let field = |number: usize| fields.get(number - 1)?.parse::<u64>().ok();
                let bytes = |number| field(number).map(|sectors| sectors * SECTOR_BYTES);
                self.device_reads = field(4).zip(field(5)).map(|(reads, merged)| reads + merged);
                self.counts.device_read_bytes = bytes(6);
                self.counts.device_written_bytes = bytes(10);
                self.device_busy_ms = field(13);
            }
        }
    }

    /// Adds the first line of `/proc/stat`, which is the sum of all cores.
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

/// Reads the beginning of a file, up to the size of the buffer. Empty if it cannot be read.
fn text<'b>(file: Option<&File>, buffer: &'b mut [u8]) -> &'b str {
    let mut len = 0;
    // Some files of the kernel are returned in pieces.
    while let Some(file) = file
        && let Ok(read_bytes @ 1..) = file.read_at(&mut buffer[len..], len as u64)
    {
        len += read_bytes;
    }
    std::str::from_utf8(&buffer[..len]).unwrap_or_default()
}

fn field(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}

/// Field 12 of `/proc/self/stat`, `majflt` in proc(5). The name of the program, field 2, may contain blanks and parentheses.
fn major_page_faults(process_stat: &str) -> Option<u64> {
    let (_, fields) = process_stat.rsplit_once(')')?;
    fields.split_whitespace().nth(12 - 3)?.parse().ok()
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
        let counters = |device| {
            let mut totals = Totals::default();
            totals.add_disk(disks, device);
            [
                totals.counts.device_read_bytes,
                totals.counts.device_written_bytes,
                totals.device_busy_ms,
                totals.device_reads,
            ]
        };
        assert_eq!(counters("254:0"), [Some(16 * 512), Some(32 * 512), Some(0), Some(3)]);
        assert_eq!(counters("7:0"), [None; 4]);
        assert_eq!(counters("8:0")[2], Some(7));
        assert_eq!(field("rchar: 1\nread_bytes: 4096\n", "read_bytes:"), Some(4096));
        let stat = "71 (a) b) S 1 71 71 0 -1 4194560 5000 6000 70 8000 9 10 11 12 20 0 1 0";
        assert_eq!(major_page_faults(stat), Some(70));
        assert_eq!(major_page_faults(""), None);
        let mut totals = Totals::default();
        totals.add_cpu("cpu  10 0 20 60 10 0 0 0 0 0\n");
        assert_eq!((totals.counts.cpu_busy_ticks, totals.counts.cpu_ticks), (Some(30), Some(100)));
        assert_eq!(totals.cpu_busy_share(), Some(0.3));
    }

    #[test]
    fn device_bytes_are_unknown_where_the_kernel_does_not_count_them() {
        let read_bytes = |file_system: Option<&str>| {
            let mount =
                file_system.map(|name| Mount { file_system: name.into(), ..Mount::default() });
            let mut proc = Proc::open(None, DeviceReads::from_mount(mount.as_ref()));
            proc.totals().counts.process_device_read_bytes
        };
        assert!(read_bytes(None).is_some());
        assert!(read_bytes(Some("ext4")).is_some());
        assert_eq!(read_bytes(Some("fuse.bindfs")), None);
    }

    #[test]
    fn open_files_show_new_values() {
        let mut proc = Proc::open(None, DeviceReads::Counted);
        let before = proc.totals();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), vec![1; 100_000]).unwrap();
        let after = proc.totals();
        let added = after.since(before).counts;
        assert!(100_000 <= added.written_bytes.unwrap());
        assert!(0 < added.process_cpu_ns.unwrap());
        assert!(before.counts.cpu_ticks.unwrap() <= after.counts.cpu_ticks.unwrap());
        assert_eq!(after.counts.device_read_bytes, None);
        assert!(before.major_page_faults.unwrap() <= after.major_page_faults.unwrap());
    }
}
