//! Facts about a watched training loop, which is not feedrate's own. Its steps' load and compute times are known, and little else.

use serde::{Deserialize, Serialize};

/// Facts that the watching Python module collects. Other parts of such a record that are unknown are 0, empty or missing, and no metric
/// reads them.
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
