//! Drops dentries and inodes from the kernel's memory, and detects when this was done.

use feedrate_data::manifest::DropMark;
use std::{fs, io};

/// Drops all unused dentries and inodes, except for files in the page cache. Needs root and a writable `/proc/sys`, which most
/// containers do not have.
///
/// # Errors
/// The kernel does not allow it.
pub fn drop_metadata() -> io::Result<()> {
    fs::write("/proc/sys/vm/drop_caches", "2")
}

/// Returns a mark that changes with the next drop or restart of the machine. `None` if the kernel does not report drops.
pub fn drop_mark() -> Option<DropMark> {
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let vmstat = fs::read_to_string("/proc/vmstat").ok()?;
    let drops = vmstat.lines().find_map(|line| line.strip_prefix("drop_slab "))?;
    Some(DropMark { boot_id: boot_id.trim().into(), drops: drops.trim().parse().ok()? })
}
