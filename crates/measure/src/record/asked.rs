//! The wishes of a run beside its workload: with both, its plan can be made again, and with a change.

use serde::{Deserialize, Serialize};

/// Arguments of the command line that decide which data is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AskedData {
    /// Folder that datasets lie in, absolute.
    pub data_root: String,
    /// `--scale`.
    pub scale: f64,
    /// `--shrink-records`.
    pub shrink_records: f64,
    /// `--foreign`.
    pub foreign: bool,
}
