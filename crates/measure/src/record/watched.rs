//! Facts about a watched training loop, which is not part of feedrate. Its record has the load and compute times of steps and little else.

use serde::{Deserialize, Serialize};

/// Facts collected by the Python module that watches the loop. Unknown fields of such a record are 0, empty or missing, and no metric reads
/// them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// Type of the iterated loader.
    pub loader: String,
    /// Number of worker processes of the loader; `None` if unknown.
    pub workers: Option<u32>,
    /// Whether each step waited for the GPU before its end was timed; `None` if no GPU was found.
    pub synchronised: Option<bool>,
    /// Whether all processes have closed the record, which each does when it ends; `None` in old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<bool>,
    /// Bytes that read calls of the processes and their children returned, from any file; `None` if unknown.
    pub read_call_bytes: Option<u64>,
    /// Sum of the times of all reads of the data's block device during the epochs, over all machines; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_read_ns: Option<u64>,
    /// Processor time of loading: of the worker processes, or without them of the loop's thread while it waited for batches. `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loader_cpu_ns: Option<u64>,
    /// Time in which `loader_cpu_ns` was measured: that of the steps for each worker, or that of the waits. `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loader_time_ns: Option<u64>,
}
