//! Mounts of a run's folders, with limits of their devices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The mount that contains a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mount {
    /// Mount point.
    pub point: String,
    /// Type of the file system, such as `ext4`, `nfs4` or `lustre`.
    pub file_system: String,
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
