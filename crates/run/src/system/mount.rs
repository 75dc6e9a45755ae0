//! Where a folder is mounted, and on what device.

use feedrate_measure::record::Mount;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The mount of `path`, or of the nearest folder above it that exists.
pub fn mount_of(path: &Path) -> Option<Mount> {
    let existing = existing(path)?;
    let device = fs::metadata(&existing).ok()?.dev();
    let mut mount = mount_above(&existing)?;
    mount.device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    mount.free_bytes = free_bytes(&existing)?;
    let space = rustix::fs::statvfs(&existing).ok()?;
    mount.total_bytes = Some(space.f_blocks.saturating_mul(space.f_frsize)).filter(|all| *all > 0);
    if mount.file_system == "lustre" {
        mount.striping = striping("lfs", &existing);
    }
    Some(mount)
}

/// Bytes that can be written to `path`, or to the nearest folder above it that exists.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let space = rustix::fs::statvfs(existing(path)?).ok()?;
    Some(space.f_bavail.saturating_mul(space.f_frsize))
}

/// The type of the file system of `path`, or of the nearest folder above it that exists.
pub fn file_system_of(path: &Path) -> Option<String> {
    Some(mount_above(&existing(path)?)?.file_system)
}

/// The line of mountinfo for an absolute path without links.
fn mount_above(path: &Path) -> Option<Mount> {
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mounts = mountinfo.lines().filter_map(parse);
    mounts.filter(|mount| path.starts_with(&mount.point)).max_by_key(|mount| mount.point.len())
}

/// Options by which a file system keeps locks to the machine that takes them (nfs(5), mount.lustre(8)).
const OWN_LOCKS: [&str; 4] = ["local_lock=all", "local_lock=flock", "nolock", "localflock"];

/// The option by which locks on files of `mount` mean nothing to other machines.
pub fn own_locks(mount: &Mount) -> Option<&str> {
    let mut options = mount.options.split(',').chain(mount.super_options.split(','));
    options.find(|option| OWN_LOCKS.contains(option))
}

/// The word of Lustre's tool on a folder; nothing where there is no such tool.
fn striping(lfs: &str, folder: &Path) -> Option<String> {
    let told = Command::new(lfs).args(["getstripe", "-d"]).arg(folder).output().ok()?;
    let text = String::from_utf8_lossy(&told.stdout);
    // It may say the folder first.
    let words = text.split_whitespace().filter(|word| Path::new(word) != folder);
    let text = words.collect::<Vec<_>>().join(" ");
    (told.status.success() && !text.is_empty()).then_some(text)
}

/// The folder of a `major:minor` device in `/sys`, of the whole disk where it is a partition.
pub(super) fn block_device(device: &str) -> Option<String> {
    let link = fs::canonicalize(format!("/sys/dev/block/{device}")).ok()?;
    let disk = if link.join("partition").exists() { link.parent()?.to_path_buf() } else { link };
    Some(disk.to_string_lossy().into_owned())
}

/// The first line of a file; `None` where that is empty or there is none.
pub(super) fn read_line(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_string())
}

fn existing(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    absolute.ancestors().find_map(|folder| fs::canonicalize(folder).ok())
}

/// One line of mountinfo (proc_pid_mountinfo(5)): fields up to ` - `, then type, source, super options.
pub(super) fn parse(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let left: Vec<&str> = left.split(' ').collect();
    let mut right = right.split(' ');
    Some(Mount {
        point: left.get(4)?.replace("\\040", " "),
        options: left.get(5)?.to_string(),
        file_system: right.next()?.to_string(),
        source: right.next()?.to_string(),
        super_options: right.next().unwrap_or_default().to_string(),
        ..Mount::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn mountinfo_lines_are_read() {
        let mount = parse("36 35 98:0 /mnt1 /mnt/my\\040disk rw,noatime master:1 - ext3 /dev/root rw,errors=continue").unwrap();
        assert_eq!(mount.point, "/mnt/my disk");
        assert_eq!(mount.file_system, "ext3");
        assert_eq!(mount.source, "/dev/root");
        assert_eq!(mount.options, "rw,noatime");
        assert_eq!(mount.super_options, "rw,errors=continue");
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn locks_that_other_machines_do_not_see_are_told() {
        for (options, expected) in [
            ("nfs4 srv:/data rw,vers=4.2,local_lock=none,addr=10.0.0.1", None),
            ("nfs srv:/data rw,vers=3,nolock,local_lock=all", Some("nolock")),
            ("nfs srv:/data rw,vers=3,local_lock=flock", Some("local_lock=flock")),
            ("nfs srv:/data rw,vers=3,local_lock=posix", None),
            ("lustre 10.0.0.1@o2ib:/fs rw,flock,lazystatfs", None),
            ("lustre 10.0.0.1@o2ib:/fs rw,localflock", Some("localflock")),
        ] {
            let mount = parse(&format!("36 35 0:41 / /data rw - {options}")).unwrap();
            assert_eq!(own_locks(&mount), expected, "{options}");
        }
    }

    #[test]
    fn striping_is_what_the_tool_says() {
        let folder = tempfile::tempdir().unwrap();
        let lfs = folder.path().join("lfs");
        let words = "stripe_count:  4 stripe_size:   1048576 pattern: raid0 stripe_offset: -1";
        fs::write(&lfs, format!("#!/bin/sh\necho \"$3\"\necho '{words}'\n")).unwrap();
        fs::set_permissions(&lfs, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(
            striping(&lfs.to_string_lossy(), folder.path()).unwrap(),
            "stripe_count: 4 stripe_size: 1048576 pattern: raid0 stripe_offset: -1"
        );
        assert_eq!(striping("false", folder.path()), None);
        assert_eq!(striping("/no/such/lfs", folder.path()), None);
    }

    #[test]
    fn a_folder_that_is_not_there_has_the_mount_above_it() {
        let here = mount_of(Path::new("/")).unwrap();
        let below = mount_of(Path::new("/no/such/folder")).unwrap();
        assert_eq!(here.point, below.point);
    }
}
