//! Finds the mount and the device of a folder.

use super::proc::DeviceReads;
use feedrate_measure::record::Mount;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the mount of `path` or of its nearest existing ancestor.
pub fn mount_of(path: &Path) -> Option<Mount> {
    let existing = nearest_existing(path)?;
    let device = fs::metadata(&existing).ok()?.dev();
    let mut mount = mount_above(&existing)?;
    mount.device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    mount.free_bytes = free_bytes(&existing)?;
    let space = rustix::fs::statvfs(&existing).ok()?;
    mount.total_bytes =
        Some(space.f_blocks.saturating_mul(space.f_frsize)).filter(|bytes| *bytes > 0);
    if mount.file_system == "lustre" {
        mount.striping = striping("lfs", &existing);
    }
    Some(mount)
}

/// Returns the bytes that can be written to `path` or to its nearest existing ancestor.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let space = rustix::fs::statvfs(nearest_existing(path)?).ok()?;
    Some(space.f_bavail.saturating_mul(space.f_frsize))
}

/// Returns whether the kernel counts reads from `path` or from its nearest existing ancestor.
pub fn device_reads_of(path: &Path) -> DeviceReads {
    let mount = nearest_existing(path).and_then(|existing| mount_above(&existing));
    DeviceReads::from_mount(mount.as_ref())
}

/// Returns the mount of an absolute path without links.
fn mount_above(path: &Path) -> Option<Mount> {
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mounts: Vec<Mount> = mountinfo.lines().filter_map(parse_mountinfo).collect();
    let mount = mount_among(&mounts, path)?;
    Some(Mount { lower_file_systems: lower_file_systems(&mounts, mount), ..mount.clone() })
}

fn mount_among<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    above.max_by_key(|mount| mount.point.len())
}

/// Options of overlayfs with the folders of which an overlay consists.
const OVERLAY_FOLDERS: [&str; 4] = ["lowerdir=", "lowerdir+=", "datadir+=", "upperdir="];

/// Returns the types of the file systems below an overlay. Folders that this process cannot see, such as those of a container's image, and
/// relative ones are left out.
fn lower_file_systems(mounts: &[Mount], mount: &Mount) -> Vec<String> {
    if mount.file_system != "overlay" {
        return Vec::new();
    }
    let options = mount.super_options.split(',');
    let values = options.filter_map(|option| {
        OVERLAY_FOLDERS.iter().find_map(|folder_option| option.strip_prefix(folder_option))
    });
    let folders = values.flat_map(|value| value.split(':')).filter(|folder| !folder.is_empty());
    let visible = folders.filter_map(|folder| {
        let path = PathBuf::from(folder.replace("\\040", " "));
        if path.is_absolute() { fs::canonicalize(path).ok() } else { None }
    });
    let mut file_systems = Vec::new();
    for folder in visible {
        // The folders of an overlay may be on another overlay, but not on this one.
        let others = mounts.iter().filter(|other| other.point != mount.point);
        let others: Vec<Mount> = others.cloned().collect();
        if let Some(lower) = mount_among(&others, &folder) {
            file_systems.push(lower.file_system.clone());
            file_systems.extend(lower_file_systems(&others, lower));
        }
    }
    file_systems.sort();
    file_systems.dedup();
    file_systems
}

/// Mount options that make locks effective only on the local machine (nfs(5), mount.lustre(8)).
const LOCAL_LOCK_OPTIONS: [&str; 4] =
    ["local_lock=all", "local_lock=flock", "nolock", "localflock"];

/// Returns the option that makes locks on files of `mount` invisible to other machines, if it is set.
pub fn local_lock_option(mount: &Mount) -> Option<&str> {
    let mut options = mount.options.split(',').chain(mount.super_options.split(','));
    options.find(|option| LOCAL_LOCK_OPTIONS.contains(option))
}

/// Returns the striping of a folder as reported by Lustre's tool `lfs`; `None` without the tool.
fn striping(lfs: &str, folder: &Path) -> Option<String> {
    let output = Command::new(lfs).args(["getstripe", "-d"]).arg(folder).output().ok()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    // The tool may print the folder first.
    let words = printed.split_whitespace().filter(|word| Path::new(word) != folder);
    let striping = words.collect::<Vec<_>>().join(" ");
    (output.status.success() && !striping.is_empty()).then_some(striping)
}

/// Returns the folder in `/sys` of a `major:minor` device. A partition has the folder of its disk.
pub(super) fn block_device(device: &str) -> Option<String> {
    let link = fs::canonicalize(format!("/sys/dev/block/{device}")).ok()?;
    let disk = if link.join("partition").exists() { link.parent()?.to_path_buf() } else { link };
    Some(disk.to_string_lossy().into_owned())
}

/// Returns the first line of a file; `None` if it is empty or cannot be read.
pub(super) fn read_line(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_string())
}

fn nearest_existing(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    absolute.ancestors().find_map(|folder| fs::canonicalize(folder).ok())
}

/// Parses a line of mountinfo (proc_pid_mountinfo(5)): fields up to ` - `, then type, source and super options.
pub(super) fn parse_mountinfo(line: &str) -> Option<Mount> {
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
        let mount = parse_mountinfo("36 35 98:0 /mnt1 /mnt/my\\040disk rw,noatime master:1 - ext3 /dev/root rw,errors=continue").unwrap();
        assert_eq!(mount.point, "/mnt/my disk");
        assert_eq!(mount.file_system, "ext3");
        assert_eq!(mount.source, "/dev/root");
        assert_eq!(mount.options, "rw,noatime");
        assert_eq!(mount.super_options, "rw,errors=continue");
        assert_eq!(parse_mountinfo("nonsense"), None);
    }

    #[test]
    fn file_systems_below_an_overlay_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        for name in ["fuse", "plain", "merged", "outer"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let root = root.display();
        let mounts: Vec<Mount> = [
            "1 0 8:1 / / rw - ext4 /dev/sda rw".to_string(),
            format!("2 1 0:2 / {root}/fuse rw - fuse.bindfs data rw"),
            format!("3 1 0:3 / {root}/merged rw - overlay none rw,lowerdir={root}/fuse:/no/such,upperdir={root}/plain"),
            format!("4 1 0:4 / {root}/outer rw - overlay none rw,lowerdir+={root}/merged,lowerdir=relative"),
        ]
        .iter()
        .map(|line| parse_mountinfo(line).unwrap())
        .collect();
        let below = |index: usize| lower_file_systems(&mounts, &mounts[index]);
        assert_eq!(below(0), [""; 0]);
        assert_eq!(below(2), ["ext4", "fuse.bindfs"]);
        assert_eq!(below(3), ["ext4", "fuse.bindfs", "overlay"]);
    }

    #[test]
    fn mounts_with_local_locks_are_recognised() {
        for (options, expected) in [
            ("nfs4 srv:/data rw,vers=4.2,local_lock=none,addr=10.0.0.1", None),
            ("nfs srv:/data rw,vers=3,nolock,local_lock=all", Some("nolock")),
            ("nfs srv:/data rw,vers=3,local_lock=flock", Some("local_lock=flock")),
            ("nfs srv:/data rw,vers=3,local_lock=posix", None),
            ("lustre 10.0.0.1@o2ib:/fs rw,flock,lazystatfs", None),
            ("lustre 10.0.0.1@o2ib:/fs rw,localflock", Some("localflock")),
        ] {
            let mount = parse_mountinfo(&format!("36 35 0:41 / /data rw - {options}")).unwrap();
            assert_eq!(local_lock_option(&mount), expected, "{options}");
        }
    }

    #[test]
    fn striping_is_read_from_the_tool() {
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
    fn a_missing_folder_has_the_mount_of_its_ancestor() {
        let here = mount_of(Path::new("/")).unwrap();
        let below = mount_of(Path::new("/no/such/folder")).unwrap();
        assert_eq!(here.point, below.point);
    }
}
