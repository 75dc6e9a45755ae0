//! Reads result folders: feedrate's records, and folders of DLIO runs, complete or not. It reports contents unchanged; [`crate::run`] and
//! [`crate::doubt`] judge them.

mod names;
mod abilities;
mod json;
mod config;
mod log;
mod plan;
mod reported;
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
pub(crate) use config::HYDRA_FOLDERS;
pub(crate) use config::leaves;
pub use config::{Config, normalized_text};
pub(crate) use contradictions::{Contradiction, config_contradictions, record_contradictions};
pub(crate) use dlio::ReportedBlock;
pub use dlio::{DLIO, Imported};
pub use find::{FoundRun, LeftOut, RunOrigin, find, find_within};
pub(crate) use find::{OTHER_BENCHMARKS, left_by_runs, sibling_with_ranks, time_of_name};
pub use log::Log;
pub(crate) use names::SUMMARY;
pub use plan::ConfiguredCounts;
pub use reported::Reported;
pub(crate) use sample_bytes::mean_sample_bytes;
pub(crate) use spans::CheckpointSpan;
#[cfg(any(test, feature = "example"))]
pub use tests::fake;
pub use totals::{Bound, CountedSteps, EpochTotal, Totals};

use feedrate_measure::doubt::CONFIG_DISAGREES;
use feedrate_measure::record::Record;
use feedrate_measure::record::file::{self, RecordFileError};
use feedrate_spec::plan::PlanDoubt;
use std::path::Path;

/// Reads the record in the folder of a run. If the settings in DLIO's files beside it, or in other parts of the record, contradict it, the record gets the
/// doubt [`CONFIG_DISAGREES`].
///
/// # Errors
/// There is no record, or a later version wrote it.
pub fn load_run(run_dir: &Path) -> Result<Record, RecordFileError> {
    let mut record = file::read(run_dir)?;
    let contradictions = record_contradictions(run_dir, &record);
    record.doubts.extend(config_disagrees(&contradictions));
    Ok(record)
}

/// The doubt about settings that the files of a run state differently. `None` if there are none.
fn config_disagrees(contradictions: &[Contradiction]) -> Option<PlanDoubt> {
    let texts: Vec<&str> =
        contradictions.iter().map(|found| &*found.text).take(CONTRADICTIONS_MAX).collect();
    (!texts.is_empty()).then(|| PlanDoubt {
        name: CONFIG_DISAGREES.into(),
        evidence: texts.join("; "),
        advice: "find out which of them is right before using any number; repeat the run if that is unknown".into(),
    })
}

/// Maximum number of contradictions in a doubt.
const CONTRADICTIONS_MAX: usize = 5;

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
