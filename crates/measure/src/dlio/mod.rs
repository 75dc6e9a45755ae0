//! DLIO's result files: the same names, keys, order, types and units, with corrected values. Unknown values are omitted, as strict
//! JSON has no NaN. This module only formats; metrics are computed elsewhere.

mod timestamp;
mod host;
mod summary;
mod epoch_stats;
mod output;
mod log;
mod report;
#[cfg(test)]
mod tests;

pub use log::{generation_log, log};
pub use report::report;
pub use timestamp::micros;

use crate::derived::Derived;
use crate::record::file::{NewFiles, RecordFileError, make_folder};
use crate::record::{EpochRecord, Record};
use crate::window::Scope;
use feedrate_spec::plan::Plan;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// Request of a run, as far as the record does not contain it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invocation {
    /// Folder of Hydra's files (`hydra.output_subdir`), usually `.hydra`; empty to write none.
    pub subfolder: String,
    /// Contents of Hydra's files.
    pub hydra: HydraText,
    /// Parts of the workflow, with DLIO's names; if empty, the parts of the plan.
    pub workflow: Vec<String>,
    /// Timestamps of the start and end of dataset generation, if it was requested; the end is empty until then.
    pub generation: Option<(String, String)>,
    /// Warnings to log before the first epoch.
    pub warnings: Vec<String>,
    /// Requested evaluations without any file; as in DLIO, their values are 0.
    pub empty_evaluations: Option<EmptyEvaluations>,
    /// Whether the two files of each rank are omitted.
    pub omits_rank_files: bool,
}

/// Schedule of evaluations without files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmptyEvaluations {
    /// Epoch after which the first evaluation takes place.
    pub after_epoch: u32,
    /// Number of epochs from one evaluation to the next.
    pub epochs_between: u32,
}

/// Contents of the files in `.hydra/`, as YAML.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HydraText {
    /// `config.yaml`: the resolved workload.
    pub config: String,
    /// `overrides.yaml`: a list with one entry per override, starting with `workload=NAME`.
    pub overrides: String,
    /// `hydra.yaml`: Hydra's own settings.
    pub hydra: String,
}

const SUMMARY: &str = "summary.json";
/// File with the output of `iostat`, which DLIO starts.
pub const IOSTAT: &str = "iostat.json";
/// Files in Hydra's folder.
pub const HYDRA_FILES: [&str; 3] = ["config.yaml", "overrides.yaml", "hydra.yaml"];

/// Names of the two files of a rank: the first contains its steps, the second its blocks.
fn rank_names(rank: usize) -> [String; 2] {
    ["output", "per_epoch_stats"].map(|name| format!("{rank}_{name}.json"))
}

/// Names of the files that [`write()`] creates for a record, except Hydra's.
pub fn file_names(record: &Record) -> impl Iterator<Item = String> {
    let ranks = (0..record.plan.accelerators as usize).flat_map(rank_names);
    let profile = record.plan.iostat_devices.as_ref().map(|_| IOSTAT);
    ranks.chain([SUMMARY, record.plan.log_name()].into_iter().chain(profile).map(str::to_string))
}

/// Writes all DLIO files of a run into `files`. Each accelerator is a rank in the sense of DLIO.
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

/// Writes DLIO's log and Hydra's files into `files`; they exist from the start of a run.
///
/// # Errors
/// A file cannot be written.
pub fn write_log(
    files: &mut NewFiles,
    record: &Record,
    invocation: &Invocation,
) -> Result<(), RecordFileError> {
    let log = log(record, invocation, Some(files.folder()));
    files.write(record.plan.log_name(), log.as_bytes())?;
    write_hydra(files, invocation)
}

/// Writes the files of a run that only generates data.
///
/// # Errors
/// A file cannot be written.
pub fn write_generation(
    folder: &Path,
    plan: &Plan,
    invocation: &Invocation,
) -> Result<(), RecordFileError> {
    let mut files = NewFiles::new(folder);
    files.write(plan.log_name(), generation_log(plan.accelerators, invocation).as_bytes())?;
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
    /// See [`Record::evaluation_record`].
    record: Option<Record>,
    empty: Option<EmptyEvaluations>,
}

impl Evaluations {
    fn new(record: &Record, empty: Option<EmptyEvaluations>) -> Self {
        Evaluations { record: record.evaluation_record(), empty }
    }

    /// The evaluation after epoch `number`.
    fn after(&self, number: u32) -> Option<Scope<'_>> {
        Scope::all_epochs(self.record.as_ref()?).find(|scope| scope.epoch.number == number)
    }

    /// Local wall-clock time at which an epoch ended, as DLIO defines it: after its evaluation. Empty if unknown.
    fn end_after(&self, training: &EpochRecord) -> String {
        let evaluation = self.after(training.number);
        evaluation.map_or_else(
            || epoch_stats::epoch_end(training).stamp,
            |evaluation| evaluation.epoch.ended.clone(),
        )
    }

    /// Whether an evaluation without files took place after epoch `number`.
    fn is_empty_after(&self, number: u32) -> bool {
        self.empty.is_some_and(|empty| {
            let epochs_since = number.checked_sub(empty.after_epoch);
            epochs_since.is_some_and(|epochs| epochs.is_multiple_of(empty.epochs_between.max(1)))
        })
    }
}

/// Serialises an object without its unknown entries, which are `null` or empty text.
fn without_unknown(object: impl Serialize) -> Value {
    let mut object = to_value(object);
    if let Some(map) = object.as_object_mut() {
        map.retain(|_, value| !value.is_null() && value != "");
    }
    object
}

fn to_value(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_else(|_| unreachable!("keys are text"))
}

/// Formats JSON like Python's `json.dump(…, indent=4)`.
fn python_json(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    value.serialize(&mut serializer).unwrap_or_else(|_| unreachable!("keys are text"));
    bytes
}
