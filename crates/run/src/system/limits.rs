//! Finds the limits that the control groups of this process impose on reads of a block device (cgroups(7)).

use super::mount::{block_device, parse_mountinfo};
use feedrate_measure::record::ReadLimits;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the tightest limits of reads of `device`; `None` if there are none or they cannot be read.
pub(super) fn read_limits(device: &str) -> Option<ReadLimits> {
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let disk = fs::read_to_string(Path::new(&block_device(device)?).join("dev")).ok()?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    group_limits(&groups, &mountinfo, disk.trim())
}

/// Returns the tightest limits of control groups on reads of `disk`, a `major:minor`. `groups` has the lines of `/proc/self/cgroup`.
fn group_limits(groups: &str, mountinfo: &str, disk: &str) -> Option<ReadLimits> {
    let mut limits = ReadLimits::default();
    let tighten = |limit: &mut Option<u64>, other: Option<u64>| {
        *limit = (*limit).into_iter().chain(other).min();
    };
    let mount_point = |file_system: &str, option: Option<&str>| {
        let has_option = |options: &str| {
            option.is_none_or(|option| options.split(',').any(|other| other == option))
        };
        let mount = mountinfo
            .lines()
            .filter_map(parse_mountinfo)
            .find(|mount| mount.file_system == file_system && has_option(&mount.super_options))?;
        Some(PathBuf::from(mount.point))
    };
    for group in groups.lines() {
        let mut fields = group.splitn(3, ':').skip(1);
        let Some((controllers, path)) = fields.next().zip(fields.next()) else { continue };
        let path = path.trim_start_matches('/');
        if controllers.split(',').any(|controller| controller == "blkio") {
            // In version 1, the limits of a group do not apply to the groups below it.
            let Some(root) = mount_point("cgroup", Some("blkio")) else { continue };
            let value = |name: &str| {
                let file = root.join(path).join(format!("blkio.throttle.{name}"));
                disk_entry(&file, disk)?.trim().parse().ok()
            };
            tighten(&mut limits.bytes_per_second, value("read_bps_device"));
            tighten(&mut limits.requests_per_second, value("read_iops_device"));
        } else if controllers.is_empty() {
            let Some(root) = mount_point("cgroup2", None) else { continue };
            for folder in root.join(path).ancestors().take_while(|folder| folder.starts_with(&root))
            {
                let entry = disk_entry(&folder.join("io.max"), disk).unwrap_or_default();
                let value = |key: &str| {
                    entry.split(' ').find_map(|word| word.strip_prefix(key))?.parse().ok()
                };
                tighten(&mut limits.bytes_per_second, value("rbps="));
                tighten(&mut limits.requests_per_second, value("riops="));
            }
        }
    }
    (limits != ReadLimits::default()).then_some(limits)
}

/// Returns the line of a file that begins with the disk's number, without the number.
fn disk_entry(file: &Path, disk: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| Some(line.strip_prefix(disk)?.strip_prefix(' ')?.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limits of a group and of the groups above it; the tightest one applies.
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
        let root = root.path().display();
        let mountinfo = format!(
            "30 25 0:26 / {root}/v1 rw - cgroup cgroup rw,blkio\n31 25 0:27 / {root}/v2 rw - cgroup2 cgroup2 rw\n"
        );
        let parsed = |groups: &str| group_limits(groups, &mountinfo, "254:0");
        let limits = |bytes, requests| {
            Some(ReadLimits { bytes_per_second: bytes, requests_per_second: requests })
        };
        assert_eq!(parsed("7:blkio:/slow\n0::/\n"), limits(Some(13_000_000), None));
        assert_eq!(parsed("0::/a/b\n"), limits(Some(9_000_000), Some(50)));
        assert_eq!(parsed("0::/a\n"), limits(None, Some(50)));
        assert_eq!(parsed("7:blkio:/\n0::/gone\n"), None);
        assert_eq!(group_limits("7:blkio:/slow", &mountinfo, "254:1"), None);
    }
}
