//! Where a folder of a run is mounted, and what its device may give.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a folder is mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mount {
    /// Mount point.
    pub point: String,
    /// `ext4`, `nfs4`, `lustre`.
    pub file_system: String,
    /// Source device or export.
    pub source: String,
    /// Mount options.
    pub options: String,
    /// Options of the file system itself, the same in each of its mounts: those of NFS, Lustre, BeeGFS are here.
    #[serde(default)]
    pub super_options: String,
    /// How Lustre stripes what is made in the folder, in the words of `lfs getstripe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub striping: Option<String>,
    /// `st_dev` as `major:minor`.
    pub device: String,
    /// Limits that control groups set to this process; `None` where there are none that are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_limits: Option<ReadLimits>,
    /// Bytes free for this user.
    pub free_bytes: u64,
    /// Bytes that the file system has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
}

/// The rate at which a process may read of a block device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadLimits {
    /// Bytes of all that share the limit; `None` is no limit.
    pub bytes_per_second: Option<u64>,
    /// Requests of all that share the limit; `None` is no limit.
    pub requests_per_second: Option<u64>,
}
