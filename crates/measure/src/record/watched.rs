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
    /// Bytes that read calls of the processes and their children returned, from any file; `None` if unknown.
    pub read_call_bytes: Option<u64>,
}
