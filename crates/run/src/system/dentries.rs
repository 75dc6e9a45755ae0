//! Dentries and inodes in the kernel's memory: how often they were dropped, and dropping them.

use feedrate_data::manifest::DropMark;
use std::{fs, io};

/// Drop all dentries and inodes that nobody uses; those of files in the page cache stay. The kernel lets root do it, and nobody
/// where `/proc/sys` is read-only, as in most containers.
///
/// # Errors
/// It is not allowed.
pub fn drop_metadata() -> io::Result<()> {
    fs::write("/proc/sys/vm/drop_caches", "2")
}

/// This machine as it is until the next drop. `None` where the kernel does not tell.
pub fn drop_mark() -> Option<DropMark> {
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let vmstat = fs::read_to_string("/proc/vmstat").ok()?;
    let drops = vmstat.lines().find_map(|line| line.strip_prefix("drop_slab "))?;
    Some(DropMark { boot_id: boot_id.trim().into(), drops: drops.trim().parse().ok()? })
}
