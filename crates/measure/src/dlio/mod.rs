//! DLIO's result files: the same names, keys, order, types and units, with values computed correctly. What cannot be known is
//! left out, as strict JSON has no NaN. Only forms are made here, no numbers.

mod timestamp;
mod host;
mod summary;
mod output;
mod epoch_stats;
mod log;
mod report;
#[cfg(test)]
mod tests;

pub use log::{generation_log, log};
pub use report::report;
pub use timestamp::micros;

use crate::derived::Derived;
use crate::record::Record;
use crate::record::file::{NewFiles, RecordFileError, make_folder};
use crate::window::Scope;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// How a run was asked for, which its record does not know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invocation {
    /// `hydra.output_subdir`, `.hydra`; empty where none is wanted.
    pub subfolder: String,
    /// Its files, as YAML.
    pub hydra: HydraText,
    /// The parts of the workflow, as DLIO names them; those of the plan where it is empty.
    pub doing: Vec<String>,
    /// When the making of the dataset began and ended, where it was asked for.
    pub generation: Option<(String, String)>,
    /// Lines before the first epoch.
    pub warnings: Vec<String>,
    /// Evaluations that were asked for, and have no files: as in DLIO they leave zeros.
    pub empty_evaluations: Option<EmptyEvaluations>,
    /// Leave out the two files of each rank.
    pub omits_rank_files: bool,
}

/// When evaluations without files come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmptyEvaluations {
    /// The first comes after this epoch.
    pub after_epoch: u32,
    /// Epochs from one to the next.
    pub epochs_between: u32,
}

/// Files of `.hydra/`, as YAML.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HydraText {
    /// `config.yaml`: the resolved workload.
    pub config: String,
    /// `overrides.yaml`: a list, one override an entry, `workload=NAME` first.
    pub overrides: String,
    /// `hydra.yaml`: Hydra's own settings.
    pub hydra: String,
}

const SUMMARY: &str = "summary.json";
const LOG: &str = "dlio.log";
/// The file that DLIO has `iostat` write.
pub const IOSTAT: &str = "iostat.json";
/// Files in Hydra's folder.
pub const HYDRA_FILES: [&str; 3] = ["config.yaml", "overrides.yaml", "hydra.yaml"];

/// Those of one of DLIO's ranks: its steps, and its blocks.
fn rank_names(rank: usize) -> [String; 2] {
    ["output", "per_epoch_stats"].map(|what| format!("{rank}_{what}.json"))
}

/// Names of DLIO's files that [`write()`] makes of a record, but for Hydra's.
pub fn file_names(record: &Record) -> impl Iterator<Item = String> {
    let ranks = (0..record.plan.accelerators as usize).flat_map(rank_names);
    let profile = record.plan.iostat_devices.as_ref().map(|_| IOSTAT);
    ranks.chain([SUMMARY, LOG].into_iter().chain(profile).map(str::to_string))
}

/// Write all of DLIO's files of a run among `files`. An accelerator is one of DLIO's ranks.
///
/// # Errors
/// A file cannot be written.
pub fn write(
    files: &mut NewFiles,
    record: &Record,
    invocation: &Invocation,
) -> Result<(), RecordFileError> {
    let derived = Derived::new(record);
    let evaluations = Evaluations::new(record, invocation.empty_evaluations);
    let ranks = if invocation.omits_rank_files { 0 } else { record.plan.accelerators as usize };
    for rank in 0..ranks {
        let output = output::output_json(&derived, &evaluations, rank);
        let stats = epoch_stats::epoch_stats_json(record, &evaluations, rank);
        for (name, value) in rank_names(rank).iter().zip([output, stats]) {
            files.write(name, &python_json(&value))?;
        }
    }
    let summary = summary::summary_json(&derived, &evaluations);
    files.write(SUMMARY, &python_json(&summary))?;
    write_log(files, record, invocation)
}

/// Write DLIO's log and Hydra's files among `files`: those that are there from the start of a run.
///
/// # Errors
/// A file cannot be written.
pub fn write_log(
    files: &mut NewFiles,
    record: &Record,
    invocation: &Invocation,
) -> Result<(), RecordFileError> {
    let log = log(record, invocation, Some(files.folder()));
    files.write(LOG, log.as_bytes())?;
    write_hydra(files, invocation)
}

/// Write what a run leaves that only makes data.
///
/// # Errors
/// A file cannot be written.
pub fn write_generation(
    folder: &Path,
    processes: u32,
    invocation: &Invocation,
) -> Result<(), RecordFileError> {
    let mut files = NewFiles::new(folder);
    files.write(LOG, generation_log(processes, invocation).as_bytes())?;
    write_hydra(&mut files, invocation)?;
    files.publish()
}

fn write_hydra(files: &mut NewFiles, invocation: &Invocation) -> Result<(), RecordFileError> {
    let Invocation { subfolder, hydra: HydraText { config, overrides, hydra }, .. } = invocation;
    if subfolder.is_empty() {
        return Ok(());
    }
    make_folder(&files.folder().join(subfolder))?;
    for (name, text) in HYDRA_FILES.iter().zip([config, overrides, hydra]) {
        files.write(&format!("{subfolder}/{name}"), text.as_bytes())?;
    }
    Ok(())
}

/// The evaluations of a run.
struct Evaluations {
    /// As a record of their own.
    record: Option<Record>,
    empty: Option<EmptyEvaluations>,
}

impl Evaluations {
    fn new(record: &Record, empty: Option<EmptyEvaluations>) -> Self {
        Evaluations { record: record.of_evaluations(), empty }
    }

    /// The one that came after epoch `number`.
    fn after(&self, number: u32) -> Option<Scope<'_>> {
        Scope::each(self.record.as_ref()?).find(|scope| scope.epoch.number == number)
    }

    /// Whether one of no files came after epoch `number`.
    fn is_empty_after(&self, number: u32) -> bool {
        self.empty.is_some_and(|empty| {
            let since = number.checked_sub(empty.after_epoch);
            since.is_some_and(|since| since.is_multiple_of(empty.epochs_between.max(1)))
        })
    }
}

/// An object without what is not known: `null`, or empty text.
fn known(object: impl Into<Value>) -> Value {
    let mut object = object.into();
    if let Some(map) = object.as_object_mut() {
        map.retain(|_, value| !value.is_null() && value != "");
    }
    object
}

/// A file as Python's `json.dump(…, indent=4)` writes it.
fn python_json(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    value.serialize(&mut serializer).unwrap_or_else(|_| unreachable!("keys are text"));
    bytes
}
