//! The conclusion of a study whose rows a chooser decided on, as its folder keeps it.

use crate::files::{STUDY_FILE, study_csv};
use crate::place::read_json;
use feedrate_measure::record::file::{RecordFileError, remove_parts_of, write_atomically};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// The file in the study's folder.
pub const CONCLUSION_FILE: &str = "conclusion.json";

/// The conclusion of a study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conclusion {
    /// Sentences for reports, each with its name.
    pub lines: Vec<ConclusionLine>,
    /// The schema of `object`: `scale` or `trials`.
    pub schema: String,
    /// Lines of the answer for a terminal.
    pub answer: Vec<String>,
    /// Lines that follow it there.
    pub rest: Vec<String>,
    /// The object of `--json`.
    pub object: Value,
}

/// A sentence with its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConclusionLine {
    /// Such as `Answer`.
    pub name: String,
    /// The sentence.
    pub value: String,
}

impl Conclusion {
    /// The conclusion in a folder; `None` where there is none.
    pub fn read(folder: &Path) -> Option<Self> {
        read_json(&folder.join(CONCLUSION_FILE))
    }

    /// The conclusion of the study in this CSV or folder; `None` where it has none.
    pub fn of_study(path: &Path) -> Option<Self> {
        let csv = study_csv(path).filter(|csv| csv.ends_with(STUDY_FILE))?;
        Self::read(csv.parent()?)
    }

    /// Write it into a folder.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), RecordFileError> {
        let path = folder.join(CONCLUSION_FILE);
        remove_parts_of(&path);
        let text = serde_json::to_vec(self).map_err(|error| RecordFileError::Io {
            action: "write",
            path: path.clone(),
            source: error.into(),
        })?;
        write_atomically(&path, &text)
    }
}
