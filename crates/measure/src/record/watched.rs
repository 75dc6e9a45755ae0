//! A training loop of somebody's own that was watched: load and compute of its steps are known, and little beside.

use serde::{Deserialize, Serialize};

/// Findings of the watching Python module. Elsewhere in such a record what it cannot know is 0, empty or left out, and no metric reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// The type of what was iterated.
    pub loader: String,
    /// Worker processes of the loader; `None` where it does not tell.
    pub workers: Option<u32>,
    /// Whether each step waited for the GPU before its end was timed; `None` where no GPU was seen.
    pub synchronised: Option<bool>,
    /// Bytes that read calls of the processes and their children returned, whatever they read; `None` where that is not known.
    pub read_call_bytes: Option<u64>,
}
