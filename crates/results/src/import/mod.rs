//! Reads result folders: feedrate's records, and folders of DLIO runs, complete or not. It reports contents unchanged; [`crate::run`] and
//! [`crate::doubt`] judge them.

mod names;
mod abilities;
mod json;
mod config;
mod log;
mod plan;
mod reported;
mod recorded;
mod spans;
mod steps;
mod totals;
mod machine;
mod dlio;
mod find;
mod sample_bytes;
mod clocks;
mod contradictions;
#[cfg(any(test, feature = "example"))]
mod tests;

pub(crate) use abilities::{DlioAbility, dlio_has};
pub use config::HYDRA_FOLDERS;
pub use config::{Config, normalized_text};
pub(crate) use config::{leaves, override_key, setting_key};
pub(crate) use dlio::ReportedBlock;
pub use dlio::{DLIO, Imported};
pub use find::{FoundRun, LeftOut, RunOrigin, find, find_within};
pub(crate) use find::{OTHER_BENCHMARKS, left_by_runs, sibling_with_ranks, time_of_name};
pub use log::Log;
pub(crate) use names::PROVENANCE;
pub(crate) use names::SUMMARY;
pub use plan::ConfiguredCounts;
pub(crate) use recorded::recorded_settings;
pub use reported::Reported;
pub(crate) use sample_bytes::mean_sample_bytes;
pub(crate) use spans::CheckpointSpan;
#[cfg(any(test, feature = "example"))]
pub use tests::fake;
pub use totals::{Bound, CountedSteps, EpochTotal, Totals};

use feedrate_measure::record::Record;
use feedrate_measure::record::file::{self, RecordFileError};
use std::path::Path;

/// Reads the record in the folder of a run, and finds what contradicts it in `config.yaml` beside it and in its own parts.
///
/// # Errors
/// There is no record, or a later version wrote it.
pub fn load_run(run_dir: &Path) -> Result<Record, RecordFileError> {
    let record = file::read(run_dir)?;
    let contradictions = contradictions::contradictions(run_dir, &record);
    Ok(Record { contradictions, ..record })
}

/// Reads the folder of a DLIO run. It never fails: unreadable files are listed in the result.
pub fn load_dlio(run_dir: &Path) -> Imported {
    load_dlio_with(run_dir, None)
}

/// Reads the folder of a DLIO run, with the settings in its subfolder `hydra` instead of the detected one, if given.
pub fn load_dlio_with(run_dir: &Path, hydra: Option<&Path>) -> Imported {
    let names = find::file_names(run_dir).into_iter();
    let (placeholders, names): (Vec<String>, Vec<String>) =
        names.partition(|name| json::is_placeholder(&run_dir.join(name)));
    dlio::read(run_dir, &names, &placeholders, hydra)
}
