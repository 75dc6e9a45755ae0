//! Limits that the control groups of this process set to reads of a block device (cgroups(7)).

use super::mount::{block_device, parse};
use feedrate_measure::record::ReadLimits;
use std::fs;
use std::path::{Path, PathBuf};

/// The least of each kind; `None` where none is set, or none can be seen.
pub(super) fn of_reads(device: &str) -> Option<ReadLimits> {
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let disk = fs::read_to_string(Path::new(&block_device(device)?).join("dev")).ok()?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    of_groups(&groups, &mountinfo, disk.trim())
}

/// `groups` are the lines of `/proc/self/cgroup`.
fn of_groups(groups: &str, mountinfo: &str, disk: &str) -> Option<ReadLimits> {
    let mut limits = ReadLimits::default();
    let least = |limit: &mut Option<u64>, other: Option<u64>| {
        *limit = (*limit).into_iter().chain(other).min();
    };
    let point = |file_system: &str, option: &str| {
        let mut mounts = mountinfo.lines().filter_map(parse);
        let is_it = |options: &str| option.is_empty() || options.split(',').any(|is| is == option);
        let found = mounts.find(|it| it.file_system == file_system && is_it(&it.super_options));
        found.map(|mount| PathBuf::from(mount.point))
    };
    for group in groups.lines() {
        let mut fields = group.splitn(3, ':').skip(1);
        let Some((controllers, path)) = fields.next().zip(fields.next()) else { continue };
        let path = path.trim_start_matches('/');
        if controllers.split(',').any(|is| is == "blkio") {
            // Limits of version 1 are of a group alone, not of those below it.
            let Some(folder) = point("cgroup", "blkio").map(|point| point.join(path)) else {
                continue;
            };
            let value = |file: &str| {
                of_disk(&folder.join(format!("blkio.throttle.{file}")), disk)?.trim().parse().ok()
            };
            least(&mut limits.bytes_per_second, value("read_bps_device"));
            least(&mut limits.requests_per_second, value("read_iops_device"));
        } else if controllers.is_empty() {
            let Some(point) = point("cgroup2", "") else { continue };
            for folder in
                point.join(path).ancestors().take_while(|folder| folder.starts_with(&point))
            {
                let words = of_disk(&folder.join("io.max"), disk).unwrap_or_default();
                let value = |key: &str| {
                    words.split(' ').find_map(|word| word.strip_prefix(key))?.parse().ok()
                };
                least(&mut limits.bytes_per_second, value("rbps="));
                least(&mut limits.requests_per_second, value("riops="));
            }
        }
    }
    (limits != ReadLimits::default()).then_some(limits)
}

/// Words of a file on a disk, behind its number.
fn of_disk(file: &Path, disk: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| Some(line.strip_prefix(disk)?.strip_prefix(' ')?.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The group and those above it, of which the tightest limit holds.
    #[test]
    fn limits_of_both_versions_are_read() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("v1/slow/blkio.throttle.read_bps_device", "8:0 5\n254:0 13000000\n");
        write("v1/slow/blkio.throttle.read_iops_device", "");
        write("v2/a/io.max", "254:0 rbps=max wbps=max riops=50 wiops=max\n");
        write("v2/a/b/io.max", "254:0 rbps=9000000 wbps=7 riops=200 wiops=max\n");
        let at = root.path().display();
        let mountinfo = format!(
            "30 25 0:26 / {at}/v1 rw - cgroup cgroup rw,blkio\n31 25 0:27 / {at}/v2 rw - cgroup2 cgroup2 rw\n"
        );
        let of = |groups: &str| of_groups(groups, &mountinfo, "254:0");
        let limits = |bytes, requests| {
            Some(ReadLimits { bytes_per_second: bytes, requests_per_second: requests })
        };
        assert_eq!(of("7:blkio:/slow\n0::/\n"), limits(Some(13_000_000), None));
        assert_eq!(of("0::/a/b\n"), limits(Some(9_000_000), Some(50)));
        assert_eq!(of("0::/a\n"), limits(None, Some(50)));
        assert_eq!(of("7:blkio:/\n0::/gone\n"), None);
        assert_eq!(of_groups("7:blkio:/slow", &mountinfo, "254:1"), None);
    }
}
