//! Attempts to run the rows of a study. They are stored only in the result folders `<results>/<model>/<experiment>/<time>/`:
//! [`ABOUT_FILE`] identifies the study and the row from the start of the run on. The outcome follows from the location of the folder and from
//! the presence of [`CHECKED_FILE`] or [`FAILED_FILE`] in it.

use super::settings::{StudySettings, read_state, write_json};
use crate::files::{FilesError, io_error};
use crate::place::{INCOMPLETE, SUPERSEDED, none_if_missing, put_aside};
use crate::row::RowKey;
use feedrate_measure::record::StudyRun;
use feedrate_measure::record::file::{self, RECORD_FILE, RecordFileError, read_folder};
use feedrate_spec::plan::PlanDoubt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the file with the [`StudyRun`] that a result folder belongs to.
pub const ABOUT_FILE: &str = "study.json";
/// Name of the file with [`CheckResult`], which is written after the row is marked as done in the CSV.
const CHECKED_FILE: &str = "checked.json";
/// Name of the file with the reason of a failure.
const FAILED_FILE: &str = "failed.txt";
/// New name of [`FAILED_FILE`] once the row is started again.
const RETRIED_FILE: &str = "failed-and-retried.txt";

/// Names of all files that a study adds to a result folder.
pub(crate) const STUDY_FILES: [&str; 4] = [ABOUT_FILE, CHECKED_FILE, FAILED_FILE, RETRIED_FILE];

/// One attempt to run a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Number of the attempt within the study, from 1.
    pub number: u64,
    /// Key of the row.
    pub key: RowKey,
    /// Result folder.
    pub run_dir: PathBuf,
    /// Outcome of the attempt.
    pub outcome: Outcome,
}

/// Outcome of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The run is still active, or its runner died.
    Running,
    /// The record is complete. `None` until the results are checked and the row is marked as done in the CSV.
    Complete(Option<CheckResult>),
    /// The run was complete, and its row was reset to pending.
    Superseded,
    /// The run ended without a result.
    Failed {
        /// Description of the failure.
        reason: String,
        /// Whether the row was started again after the failure.
        is_retried: bool,
    },
    /// The run was stopped from outside. Its measurements are not used.
    Interrupted,
}

/// Result of checking that the results of an attempt belong to its row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Duration of the run, without the generation of its dataset.
    pub duration_s: f64,
    /// Additional time that the row took, without the generation of its dataset: hooks, the wait for a quiet machine, the start of processes.
    /// `None` in results of older versions.
    #[serde(default)]
    pub setup_s: Option<f64>,
    /// Hash of the plan, which is the same for all replicates.
    pub plan: String,
    /// Doubts about the circumstances of the run.
    pub doubts: Vec<PlanDoubt>,
}

impl Attempt {
    /// Returns the result of checking a complete attempt.
    pub fn checked(&self) -> Option<&CheckResult> {
        match &self.outcome {
            Outcome::Complete(checked) => checked.as_ref(),
            _ => None,
        }
    }

    /// Returns whether the results are complete and not superseded.
    pub fn is_complete(&self) -> bool {
        matches!(self.outcome, Outcome::Complete(_))
    }

    /// Stores that the results were checked and that the CSV marks the row as done.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn mark_checked(&mut self, checked: CheckResult) -> Result<(), FilesError> {
        self.outcome = Outcome::Complete(Some(checked));
        self.write_outcome()
    }

    /// Writes the file that stores the outcome, if the outcome has one.
    fn write_outcome(&self) -> Result<(), FilesError> {
        match &self.outcome {
            Outcome::Complete(Some(checked)) => {
                let path = self.run_dir.join(CHECKED_FILE);
                // A killed runner may have left a partial file, and no other process writes this file.
                file::remove_parts_of(&path);
                write_json(&path, checked)?;
            }
            Outcome::Failed { reason, is_retried } => {
                let name = if *is_retried { RETRIED_FILE } else { FAILED_FILE };
                file::write_atomically(&self.run_dir.join(name), reason.as_bytes())?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends the attempt without a result and moves its folder to the incomplete runs. `reason` is `None` if it was interrupted from outside.
    ///
    /// # Errors
    /// The reason cannot be written, or the folder cannot be moved.
    pub fn give_up(&mut self, reason: Option<String>) -> Result<(), FilesError> {
        self.outcome = match reason {
            Some(reason) => Outcome::Failed { reason, is_retried: false },
            None => Outcome::Interrupted,
        };
        self.write_outcome()?;
        self.move_aside(INCOMPLETE)
    }

    /// Moves the folder of a failed attempt to the incomplete runs, unless its runner has already done so.
    ///
    /// # Errors
    /// The folder cannot be moved.
    pub fn put_aside_failed(&mut self) -> Result<(), FilesError> {
        let is_aside = self.run_dir.parent().is_some_and(|folder| folder.ends_with(INCOMPLETE));
        if is_aside { Ok(()) } else { self.move_aside(INCOMPLETE) }
    }

    /// Stores that the row of a failed attempt is started again, so that the failure no longer determines the row's status.
    ///
    /// # Errors
    /// The file with the reason cannot be renamed.
    pub fn retry(&mut self) -> Result<(), FilesError> {
        let Outcome::Failed { is_retried, .. } = &mut self.outcome else { return Ok(()) };
        *is_retried = true;
        let path = self.run_dir.join(FAILED_FILE);
        let renamed = none_if_missing(fs::rename(&path, self.run_dir.join(RETRIED_FILE)));
        renamed.map(drop).map_err(io_error("rename", &path))
    }

    /// Moves the results to the superseded runs, so that they no longer count.
    ///
    /// # Errors
    /// The folder cannot be moved.
    pub fn supersede(&mut self) -> Result<(), FilesError> {
        self.move_aside(SUPERSEDED)?;
        self.outcome = Outcome::Superseded;
        Ok(())
    }

    fn move_aside(&mut self, subfolder: &str) -> Result<(), FilesError> {
        let moved = put_aside(&self.run_dir, subfolder);
        self.run_dir = moved.map_err(io_error("put aside", &self.run_dir))?;
        Ok(())
    }

    fn read(run_dir: PathBuf, id: &str, aside: &str) -> io::Result<Option<Self>> {
        let about = read_json::<StudyRun>(&run_dir.join(ABOUT_FILE))?.unwrap_or_default();
        match about.key {
            Some(key) if about.id.as_deref() == Some(id) => {
                let outcome = outcome(&run_dir, aside)?;
                Ok(Some(Attempt { number: about.attempt, key: RowKey(key), run_dir, outcome }))
            }
            _ => Ok(None),
        }
    }
}

/// Returns the row of the result in `run_dir` and its check; `None` unless it is a checked result of another study than `id`.
pub(super) fn read_result(run_dir: &Path, id: Option<&str>) -> Option<(RowKey, CheckResult)> {
    let about = read_json::<StudyRun>(&run_dir.join(ABOUT_FILE)).ok()??;
    if about.id.is_some() && about.id.as_deref() == id {
        return None;
    }
    match outcome(run_dir, "").ok()? {
        Outcome::Complete(Some(checked)) => Some((RowKey(about.key?), checked)),
        _ => None,
    }
}

/// Derives the outcome from the files in `run_dir` and from `aside`, the folder around it within the experiment (empty for none).
fn outcome(run_dir: &Path, aside: &str) -> io::Result<Outcome> {
    if aside == SUPERSEDED {
        return Ok(Outcome::Superseded);
    }
    for (name, is_retried) in [(FAILED_FILE, false), (RETRIED_FILE, true)] {
        if let Some(reason) = none_if_missing(read_state(&run_dir.join(name)))? {
            let reason = String::from_utf8_lossy(&reason).into_owned();
            return Ok(Outcome::Failed { reason, is_retried });
        }
    }
    if !aside.is_empty() {
        return Ok(Outcome::Interrupted);
    }
    let checked = read_json::<CheckResult>(&run_dir.join(CHECKED_FILE))?;
    let is_complete = match checked {
        Some(_) => run_dir.join(RECORD_FILE).exists(),
        None => file::read(run_dir).is_ok_and(|record| record.complete),
    };
    Ok(if is_complete { Outcome::Complete(checked) } else { Outcome::Running })
}

/// Writes the file that identifies the study and the row of a result folder.
///
/// # Errors
/// The file cannot be written.
pub fn write_about(run_dir: &Path, about: &StudyRun) -> Result<(), RecordFileError> {
    write_json(&run_dir.join(ABOUT_FILE), about)
}

/// Reads all attempts of a study, in the order of their starts.
pub(super) fn read_all(settings: &StudySettings) -> Result<Vec<Attempt>, FilesError> {
    let mut attempts = Vec::new();
    for model in folders(&settings.results)? {
        for experiment in folders(&model)? {
            for aside in ["", INCOMPLETE, SUPERSEDED] {
                for run_dir in folders(&experiment.join(aside))? {
                    let read_error = io_error("read", &run_dir);
                    let attempt = Attempt::read(run_dir, &settings.id, aside);
                    attempts.extend(attempt.map_err(read_error)?);
                }
            }
        }
    }
    attempts.sort_by_key(|attempt| attempt.number);
    Ok(attempts)
}

/// Lists the subfolders of a folder, sorted; none if the folder is missing.
fn folders(folder: &Path) -> Result<Vec<PathBuf>, FilesError> {
    let entries = none_if_missing(read_folder(folder)).map_err(io_error("look into", folder))?;
    let paths = entries.into_iter().flatten().map(|entry| Ok(entry?.path()));
    let mut found: Vec<PathBuf> =
        paths.collect::<io::Result<_>>().map_err(io_error("look into", folder))?;
    found.retain(|path| path.is_dir());
    found.sort();
    Ok(found)
}

fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    // feedrate writes these files atomically, so a file that cannot be parsed is not from feedrate.
    Ok(none_if_missing(read_state(path))?.and_then(|text| serde_json::from_slice(&text).ok()))
}
