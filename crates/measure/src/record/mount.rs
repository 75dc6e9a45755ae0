//! Mounts of a run's folders, with limits of their devices.

use super::{HostEpoch, Record};
use crate::file_system::{caches_only_in_pages, counts_device_reads};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The mount that contains a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mount {
    /// Mount point.
    pub point: String,
    /// Type of the file system, such as `ext4`, `nfs4` or `lustre`.
    pub file_system: String,
    /// Types of the file systems below an overlay, as far as their folders are visible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lower_file_systems: Vec<String>,
    /// Source device or export.
    pub source: String,
    /// Mount options.
    pub options: String,
    /// Options of the file system itself, which all of its mounts share. NFS, Lustre and BeeGFS report their options here.
    #[serde(default)]
    pub super_options: String,
    /// Lustre's striping of new files in the folder, as printed by `lfs getstripe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub striping: Option<String>,
    /// `st_dev` as `major:minor`.
    pub device: String,
    /// Limits that control groups impose on this process; `None` if there are none or they are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_limits: Option<ReadLimits>,
    /// Bytes free for this user.
    pub free_bytes: u64,
    /// Size of the file system in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
}

/// Rates at which a process may read from a block device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadLimits {
    /// Bytes per second of all processes that share the limit; `None` means no limit.
    pub bytes_per_second: Option<u64>,
    /// Requests per second of all processes that share the limit; `None` means no limit.
    pub requests_per_second: Option<u64>,
}

impl Mount {
    /// Types of the file system and of those below it.
    fn file_systems(&self) -> impl Iterator<Item = &str> {
        [&self.file_system].into_iter().chain(&self.lower_file_systems).map(String::as_str)
    }

    /// Type of the file system, or of one below it, if the kernel does not count reads of it.
    pub fn uncounted_file_system(&self) -> Option<&str> {
        self.file_systems().find(|name| !name.is_empty() && !counts_device_reads(name))
    }
}

impl Record {
    fn data_mounts(&self) -> impl Iterator<Item = &Mount> {
        self.machines().iter().filter_map(|machine| machine.data_mount.as_ref())
    }

    /// Type of the dataset's file system on a machine if the kernel does not count reads of it.
    pub fn uncounted_file_system(&self) -> Option<&str> {
        self.data_mounts().find_map(Mount::uncounted_file_system)
    }

    /// Whether memory outside of the page cache may serve reads of the dataset on a machine.
    pub fn has_hidden_caches(&self) -> bool {
        let mut names = self.data_mounts().flat_map(Mount::file_systems);
        names.any(|name| !name.is_empty() && !caches_only_in_pages(name))
    }

    /// Removes counts of bytes from the device if the kernel does not count reads of the file system. Watched loops and older versions
    /// recorded them as 0.
    pub(super) fn remove_uncounted_reads(&mut self) {
        if self.uncounted_file_system().is_none() {
            return;
        }
        let remove = |host: &mut HostEpoch| host.process_device_read_bytes = None;
        for epoch in self.epochs.iter_mut().chain(&mut self.evaluations) {
            remove(&mut epoch.host);
            epoch.nodes.iter_mut().for_each(remove);
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.process_device_read_bytes = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::simple;
    use crate::record::file;

    fn check(file_system: &str, expected: Option<u64>) {
        check_overlay(file_system, &[], expected);
    }

    fn check_overlay(file_system: &str, lower: &[&str], expected: Option<u64>) {
        let mut record = simple(&[(10, 5, 1, 100)]);
        record.epochs[0].host.process_device_read_bytes = Some(0);
        record.system.data_mount = Some(Mount {
            file_system: file_system.into(),
            lower_file_systems: lower.iter().map(ToString::to_string).collect(),
            ..Mount::default()
        });
        let folder = tempfile::tempdir().unwrap();
        file::write(folder.path(), &record).unwrap();
        let read_back = file::read(folder.path()).unwrap();
        assert_eq!(read_back.epochs[0].host.process_device_read_bytes, expected, "{file_system}");
    }

    #[test]
    fn a_recorded_count_is_unknown_if_the_kernel_does_not_count_reads() {
        check("ext4", Some(0));
        check("tmpfs", Some(0));
        check("fuse.bindfs", None);
        check("lustre", None);
        check("", Some(0));
        check_overlay("overlay", &["ext4", "tmpfs"], Some(0));
        check_overlay("overlay", &["ext4", "fuse.bindfs"], None);
    }
}
