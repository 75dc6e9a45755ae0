//! The arguments of a run that decide which data it reads: with them and its workload, its plan can be made again, also with a change.

use serde::{Deserialize, Serialize};

/// Arguments of the command line that decide which data is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataRequest {
    /// Folder that datasets lie in, absolute.
    pub data_root: String,
    /// `--scale`.
    pub scale: f64,
    /// `--shrink-records`.
    pub shrink_records: f64,
    /// `--foreign`.
    pub foreign: bool,
}
