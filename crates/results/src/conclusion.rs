//! The conclusion of a study whose rows were decided by a chooser, as stored in its folder.

use crate::place::read_json;
use feedrate_measure::record::file::{RecordFileError, remove_parts_of, write_atomically};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// Name of the file in the study's folder.
pub const CONCLUSION_FILE: &str = "conclusion.json";

/// The conclusion of a study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conclusion {
    /// Named sentences for reports.
    pub lines: Vec<ConclusionLine>,
    /// Schema of `object`: `scale` or `trials`.
    pub schema: String,
    /// Lines of the answer for a terminal.
    pub answer: Vec<String>,
    /// Lines that follow the answer on a terminal.
    pub rest: Vec<String>,
    /// Output of `--json`.
    pub object: Value,
}

/// A named sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConclusionLine {
    /// Name, such as `Answer`.
    pub name: String,
    /// The sentence.
    pub value: String,
}

impl Conclusion {
    /// Reads the conclusion in a folder; `None` if there is none.
    pub fn read(folder: &Path) -> Option<Self> {
        read_json(&folder.join(CONCLUSION_FILE))
    }

    /// Writes the conclusion to a folder.
    ///
    /// # Errors
    /// The file cannot be written.
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
