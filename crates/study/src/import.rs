//! Reads the folder of a run back.

use feedrate_measure::record::Record;
use feedrate_measure::record::file::{self, RecordFileError};
use std::path::Path;

/// The record in the folder of a run.
///
/// # Errors
/// There is none, or it is of a later version.
pub fn load_run(run_dir: &Path) -> Result<Record, RecordFileError> {
    file::read(run_dir)
}
