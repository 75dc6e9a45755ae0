//! State of a study beyond its CSV: its settings, and its attempts as read from the result folders.

mod settings;
mod attempt;
mod status;
mod adopted;
#[cfg(test)]
mod tests;

pub use adopted::{ADOPTED, ContradictingRun};
pub(crate) use attempt::STUDY_FILES;
pub use attempt::{ABOUT_FILE, Attempt, CheckResult, Outcome, write_about};
pub use settings::{LaunchSettings, StudySettings};
pub use status::{RowState, Status};

use crate::files::{FilesError, Lock, StudyFiles};
use crate::row::Row;
use adopted::Adopted;
use std::path::Path;

/// State of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StudyState {
    /// Settings of the study; `None` before its first run.
    pub settings: Option<StudySettings>,
    /// Attempts, in the order of their starts.
    pub attempts: Vec<Attempt>,
    /// Runs of other programs in the folders of rows marked as done that have other settings than their rows.
    pub contradicting: Vec<ContradictingRun>,
}

impl StudyState {
    /// Reads the state of a study. A copy of a study has the results that were copied with it.
    ///
    /// # Errors
    /// The state cannot be read.
    pub fn read(files: &StudyFiles) -> Result<Self, FilesError> {
        let settings = match StudySettings::read(files)? {
            Some(settings) => Some(settings.relocate(&files.csv)),
            None => files.refuse_journal().map(|()| None)?,
        };
        let started = settings.as_ref().map(attempt::read_all).transpose()?.unwrap_or_default();
        let beside = files.csv.parent().unwrap_or(Path::new(""));
        let mut results = vec![beside.join("../results"), beside.join("results")];
        results.extend(settings.as_ref().map(|settings| settings.results.clone()));
        results.retain(|folder| folder.is_dir());
        let id = settings.as_ref().map(|settings| settings.id.as_str());
        let mut adopted = Adopted::default();
        if !results.is_empty()
            && let Ok(table) = files.table()
        {
            let rows: Vec<Row> = table.rows().cloned().collect();
            adopted = adopted::adopt(&rows, &started, &results, id);
        }
        let Adopted { mut attempts, contradicting } = adopted;
        attempts.extend(started);
        Ok(StudyState { settings, attempts, contradicting })
    }

    /// Refuses to run a copy of a study, which could change the original.
    ///
    /// # Errors
    /// The state cannot be read, or belongs to another study.
    pub fn refuse_copy(files: &StudyFiles) -> Result<(), FilesError> {
        StudySettings::read(files)?.map_or(Ok(()), |stored| stored.refuse_copy(files))
    }

    /// Reads the state of a study that will be run, and updates the stored paths of a study that was moved.
    ///
    /// # Errors
    /// The state cannot be read or written, or belongs to another study.
    pub fn open(files: &StudyFiles, _lock: &Lock) -> Result<Self, FilesError> {
        Self::refuse_copy(files)?;
        let stored = StudySettings::read(files)?;
        let state = Self::read(files)?;
        // Otherwise a copy of the moved study could not be recognised as a copy.
        if let (Some(stored), Some(current)) = (stored, &state.settings)
            && stored != *current
        {
            current.write(files)?;
        }
        Ok(state)
    }

    /// Returns the state of each row, in the order of `rows`.
    pub fn row_states(&self, rows: &[Row]) -> Vec<RowState<'_>> {
        status::row_states(rows, &self.attempts)
    }

    /// Returns whether any run of feedrate has produced a result.
    pub fn has_results(&self) -> bool {
        let mut attempts = self.attempts.iter().filter(|attempt| attempt.number != ADOPTED);
        attempts.any(|attempt| attempt.is_complete() || attempt.outcome == Outcome::Superseded)
    }
}
