//! Counters of the kernel that are looked at again and again: their files stay open. What is not there is unknown.

use super::sample::{cpu_ticks, disk_bytes, field, process_cpu_ns};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// What is looked for lies in the first lines of most files.
const HEAD_BYTES: usize = 1024;
/// All disks of a large machine.
const DISKS_BYTES: usize = 64 << 10;

/// Since the machine or the process started. `None` is not known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) read_bytes: Option<u64>,
    pub(super) operations: Option<u64>,
    pub(super) written_bytes: Option<u64>,
    pub(super) process_device_read_bytes: Option<u64>,
    pub(super) device_read_bytes: Option<u64>,
    pub(super) device_written_bytes: Option<u64>,
    pub(super) cpu_busy_ticks: Option<u64>,
    pub(super) cpu_ticks: Option<u64>,
    pub(super) process_cpu_ns: Option<u64>,
    /// No counter: what there is now.
    pub(super) cached_bytes: Option<u64>,
}

/// Open files, and memory to read them into.
pub(super) struct Proc {
    io: Option<File>,
    stat: Option<File>,
    meminfo: Option<File>,
    disks: Option<(File, String)>,
    buffer: Vec<u8>,
}

impl Proc {
    /// `device`: the disk to watch.
    pub(super) fn open(device: Option<&str>) -> Self {
        let open = |path| File::open(path).ok();
        let disks = device.and_then(|device| Some((open("/proc/diskstats")?, device.to_string())));
        let buffer = vec![0; if disks.is_some() { DISKS_BYTES } else { HEAD_BYTES }];
        Proc {
            io: open("/proc/self/io"),
            stat: open("/proc/stat"),
            meminfo: open("/proc/meminfo"),
            disks,
            buffer,
        }
    }

    /// As they are now; reading of workers is not theirs to tell.
    pub(super) fn totals(&mut self) -> Totals {
        let buffer = &mut self.buffer;
        let io = text(self.io.as_ref(), &mut buffer[..HEAD_BYTES]);
        let process_device_read_bytes = field(io, "read_bytes:");
        let written_bytes = field(io, "wchar:");
        let cached_bytes = field(text(self.meminfo.as_ref(), &mut buffer[..HEAD_BYTES]), "Cached:");
        let cpu = cpu_ticks(text(self.stat.as_ref(), &mut buffer[..HEAD_BYTES]));
        let disk = self
            .disks
            .as_ref()
            .and_then(|(file, device)| disk_bytes(text(Some(file), buffer), device));
        Totals {
            read_bytes: None,
            operations: None,
            written_bytes,
            process_device_read_bytes,
            device_read_bytes: disk.map(|(read, _)| read),
            device_written_bytes: disk.map(|(_, written)| written),
            cpu_busy_ticks: cpu.map(|(busy, _)| busy),
            cpu_ticks: cpu.map(|(_, all)| all),
            process_cpu_ns: process_cpu_ns(),
            cached_bytes: cached_bytes.map(|kib| kib * 1024),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_stay_open_show_what_is_new() {
        let mut proc = Proc::open(None);
        let before = proc.totals();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), vec![1; 100_000]).unwrap();
        let after = proc.totals();
        assert!(100_000 <= after.written_bytes.unwrap() - before.written_bytes.unwrap());
        assert!(before.process_cpu_ns.unwrap() < after.process_cpu_ns.unwrap());
        assert!(before.cpu_ticks.unwrap() <= after.cpu_ticks.unwrap());
        assert_eq!(after.device_read_bytes, None);
    }
}
