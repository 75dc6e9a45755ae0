//! State of a study beside its CSV: how its runs are made, and what came of them, as the folders of its results say.

mod settings;
mod attempt;
mod status;
#[cfg(test)]
mod tests;

pub(crate) use attempt::STUDY_FILES;
pub use attempt::{ABOUT_FILE, Attempt, Checked, Outcome, write_about};
pub use settings::{Launching, StudySettings};
pub use status::{RowState, Status};

use crate::files::{FilesError, Lock, StudyFiles};
use crate::row::Row;

/// State of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StudyState {
    /// How the runs are made; `None` before the first.
    pub settings: Option<StudySettings>,
    /// In the order of their starts.
    pub attempts: Vec<Attempt>,
}

impl StudyState {
    /// Read the state of a study.
    ///
    /// # Errors
    /// It cannot be read, or is that of another study.
    pub fn read(files: &StudyFiles) -> Result<Self, FilesError> {
        let Some(settings) = StudySettings::read(files)? else {
            return files.refuse_journal().map(|()| Self::default());
        };
        let settings = settings.moved_to(&files.csv, &files.state)?;
        let attempts = attempt::read_all(&settings)?;
        Ok(StudyState { settings: Some(settings), attempts })
    }

    /// Read the state of a study that is to be run.
    ///
    /// # Errors
    /// It cannot be read or written, or is that of another study.
    pub fn open(files: &StudyFiles, _lock: &Lock) -> Result<Self, FilesError> {
        let before = StudySettings::read(files)?;
        let state = Self::read(files)?;
        // A study that was moved says where it lies now, so that a copy of it is known for one.
        if let (Some(before), Some(now)) = (before, &state.settings)
            && before != *now
        {
            now.write(files)?;
        }
        Ok(state)
    }

    /// Where each row stands, in their order.
    pub fn places(&self, rows: &[Row]) -> Vec<RowState<'_>> {
        status::places(rows, &self.attempts)
    }

    /// Whether any run came to a result.
    pub fn has_results(&self) -> bool {
        let mut attempts = self.attempts.iter();
        attempts.any(|of| of.is_complete() || of.outcome == Outcome::Superseded)
    }
}
