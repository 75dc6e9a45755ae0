//! Attempts at the rows of a study, as the folders of their results tell them: `<results>/<model>/<experiment>/<time>/`.
//!
//! [`ABOUT_FILE`] says from the start whose run it is. Where the folder lies and which of the other two files it holds says what came
//! of it; nothing else is stored about a row.

use super::settings::{StudySettings, read_state, write_json};
use crate::files::{FilesError, failed};
use crate::place::{INCOMPLETE, SUPERSEDED, absent, put_aside};
use crate::row::RowKey;
use feedrate_measure::record::StudyRun;
use feedrate_measure::record::file::{self, RECORD_FILE, RecordFileError};
use feedrate_spec::plan::PlanDoubt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// In the folder of a run: a [`StudyRun`].
pub const ABOUT_FILE: &str = "study.json";
/// Written once the CSV says that the row is done.
const CHECKED_FILE: &str = "checked.json";
/// The reason why it came to no result.
const FAILED_FILE: &str = "failed.txt";
/// The same, once its row was begun again.
const RETRIED_FILE: &str = "failed-and-retried.txt";

/// All files of a study in the folder of a run.
pub(crate) const STUDY_FILES: [&str; 4] = [ABOUT_FILE, CHECKED_FILE, FAILED_FILE, RETRIED_FILE];

/// One start of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Counted over the study, from 1.
    pub number: u64,
    /// Key of the row that was run.
    pub key: RowKey,
    /// The folder of its results.
    pub run_dir: PathBuf,
    /// Outcome.
    pub outcome: Outcome,
}

/// Outcome of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It goes on, or its runner died.
    Running,
    /// Its record is whole. `None` until it was checked and the CSV says that its row is done.
    Complete(Option<Checked>),
    /// It was complete, and its row was set back.
    Superseded,
    /// It came to no result.
    Failed {
        /// In words.
        reason: String,
        /// Its row was begun again since.
        is_retried: bool,
    },
    /// It was broken off from outside; what it measured is not used.
    BrokenOff,
}

/// Results that were found to be those of their row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// From the start of the run to its end, without the making of its dataset.
    pub duration_s: f64,
    /// Duration of all else of its row but the making of its dataset: hooks, the wait for a quiet machine, processes that start. `None` of older results.
    #[serde(default)]
    pub setup_s: Option<f64>,
    /// Stands for the plan that was run: replicates have the same.
    pub plan: String,
    /// Doubts about the circumstances of the run.
    pub doubts: Vec<PlanDoubt>,
}

impl Attempt {
    /// The result of checking its record.
    pub fn checked(&self) -> Option<&Checked> {
        match &self.outcome {
            Outcome::Complete(checked) => checked.as_ref(),
            _ => None,
        }
    }

    /// Whether its results are whole and count.
    pub fn is_complete(&self) -> bool {
        matches!(self.outcome, Outcome::Complete(_))
    }

    /// Note that its results were checked and that the CSV says so.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn mark(&mut self, checked: Checked) -> Result<(), FilesError> {
        self.outcome = Outcome::Complete(Some(checked));
        self.write_outcome()
    }

    /// Write the file that says what came of it.
    fn write_outcome(&self) -> Result<(), FilesError> {
        match &self.outcome {
            Outcome::Complete(Some(checked)) => {
                let path = self.run_dir.join(CHECKED_FILE);
                // The runner, who alone writes it, may have been killed doing so.
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

    /// Put it aside, with the reason where it failed by itself.
    ///
    /// # Errors
    /// The reason cannot be written, or the folder not moved.
    pub fn give_up(&mut self, reason: Option<String>) -> Result<(), FilesError> {
        self.outcome = match reason {
            Some(reason) => Outcome::Failed { reason, is_retried: false },
            None => Outcome::BrokenOff,
        };
        self.write_outcome()?;
        self.move_aside(INCOMPLETE)
    }

    /// Put it aside if it failed and its runner died before it had.
    ///
    /// # Errors
    /// The folder cannot be moved.
    pub fn put_aside_failed(&mut self) -> Result<(), FilesError> {
        let is_aside = self.run_dir.parent().is_some_and(|folder| folder.ends_with(INCOMPLETE));
        if is_aside { Ok(()) } else { self.move_aside(INCOMPLETE) }
    }

    /// Note that its row is begun again, so that its failure says nothing of the row any more.
    ///
    /// # Errors
    /// The file of its reason cannot be renamed.
    pub fn retry(&mut self) -> Result<(), FilesError> {
        let Outcome::Failed { is_retried, .. } = &mut self.outcome else { return Ok(()) };
        *is_retried = true;
        let path = self.run_dir.join(FAILED_FILE);
        let renamed = absent(fs::rename(&path, self.run_dir.join(RETRIED_FILE)));
        renamed.map(drop).map_err(failed("rename", &path))
    }

    /// Put its results aside: they count no more.
    ///
    /// # Errors
    /// The folder cannot be moved.
    pub fn supersede(&mut self) -> Result<(), FilesError> {
        self.move_aside(SUPERSEDED)?;
        self.outcome = Outcome::Superseded;
        Ok(())
    }

    fn move_aside(&mut self, under: &str) -> Result<(), FilesError> {
        let moved = put_aside(&self.run_dir, under);
        self.run_dir = moved.map_err(failed("put aside", &self.run_dir))?;
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

fn outcome(run_dir: &Path, aside: &str) -> io::Result<Outcome> {
    if aside == SUPERSEDED {
        return Ok(Outcome::Superseded);
    }
    for (name, is_retried) in [(FAILED_FILE, false), (RETRIED_FILE, true)] {
        if let Some(reason) = absent(read_state(&run_dir.join(name)))? {
            let reason = String::from_utf8_lossy(&reason).into_owned();
            return Ok(Outcome::Failed { reason, is_retried });
        }
    }
    if !aside.is_empty() {
        return Ok(Outcome::BrokenOff);
    }
    let checked = read_json::<Checked>(&run_dir.join(CHECKED_FILE))?;
    let is_complete = match checked {
        Some(_) => run_dir.join(RECORD_FILE).exists(),
        None => file::read(run_dir).is_ok_and(|record| record.complete),
    };
    Ok(if is_complete { Outcome::Complete(checked) } else { Outcome::Running })
}

/// Say in the folder of a run whose it is.
///
/// # Errors
/// It cannot be written.
pub fn write_about(run_dir: &Path, about: &StudyRun) -> Result<(), RecordFileError> {
    write_json(&run_dir.join(ABOUT_FILE), about)
}

/// All attempts of a study, in the order of their starts.
pub(super) fn read_all(settings: &StudySettings) -> Result<Vec<Attempt>, FilesError> {
    let mut attempts = Vec::new();
    for model in folders(&settings.results)? {
        for experiment in folders(&model)? {
            for aside in ["", INCOMPLETE, SUPERSEDED] {
                for run_dir in folders(&experiment.join(aside))? {
                    let failed = failed("read", &run_dir);
                    attempts.extend(Attempt::read(run_dir, &settings.id, aside).map_err(failed)?);
                }
            }
        }
    }
    attempts.sort_by_key(|attempt| attempt.number);
    Ok(attempts)
}

/// Folders in a folder that may not be there.
fn folders(folder: &Path) -> Result<Vec<PathBuf>, FilesError> {
    let entries = absent(fs::read_dir(folder)).map_err(failed("look into", folder))?;
    let paths = entries.into_iter().flatten().map(|entry| Ok(entry?.path()));
    let mut found: Vec<PathBuf> =
        paths.collect::<io::Result<_>>().map_err(failed("look into", folder))?;
    found.retain(|path| path.is_dir());
    found.sort();
    Ok(found)
}

fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    // Each is written in one step: what cannot be parsed is not ours.
    Ok(absent(read_state(path))?.and_then(|text| serde_json::from_slice(&text).ok()))
}
