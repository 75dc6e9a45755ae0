//! Arguments of a run that determine which data it reads. They are recorded because the plan can be made again from them and the workload.

use serde::{Deserialize, Serialize};

/// Command-line arguments that determine which data a run reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataRequest {
    /// Folder that contains the datasets, absolute.
    pub data_root: String,
    /// `--scale`.
    pub scale: f64,
    /// `--shrink-records`.
    pub shrink_records: f64,
    /// `--foreign`.
    pub foreign: bool,
}
