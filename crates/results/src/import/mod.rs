//! Reads results back: the record of a run, or the folder of a DLIO run, whole or not. What is found is told as it is; judging comes later.

mod names;
mod abilities;
mod json;
mod config;
mod log;
mod plan;
mod reported;
mod steps;
mod totals;
mod machine;
mod dlio;
mod find;
mod sample_bytes;
mod clocks;
#[cfg(any(test, feature = "example"))]
mod tests;

pub(crate) use abilities::{DlioAbility, dlio_has};
pub(crate) use config::HYDRA_FOLDERS;
pub(crate) use config::leaves;
pub use config::{Config, same_text};
pub use dlio::{DLIO, Imported};
pub use find::{FoundRun, LeftOut, RunOrigin, find, find_within};
pub(crate) use find::{OTHER_BENCHMARKS, begun_with, left_by_runs, time_of_name};
pub use log::Log;
pub use plan::AskedCounts;
pub use reported::Reported;
pub(crate) use sample_bytes::mean_sample_bytes;
#[cfg(any(test, feature = "example"))]
pub use tests::fake;
pub use totals::{Bound, CountedSteps, EpochTotal, Totals};

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

/// The contents of the folder of a DLIO run. Never fails: files that cannot be read are among its problems.
pub fn load_dlio(run_dir: &Path) -> Imported {
    load_dlio_with(run_dir, None)
}

/// The same, with the settings that lie in its subfolder `hydra`, where one is given.
pub fn load_dlio_with(run_dir: &Path, hydra: Option<&Path>) -> Imported {
    let names = find::file_names(run_dir).into_iter();
    let (placeholders, names): (Vec<String>, Vec<String>) =
        names.partition(|name| json::is_placeholder(&run_dir.join(name)));
    dlio::read(run_dir, &names, &placeholders, hydra)
}
