//! How the runs of a study are made: one small file in the study's folder, the same from its first run to its last.

use crate::files::{FilesError, StudyFiles, failed};
use crate::place::absent;
use feedrate_measure::record::file::{self, RecordFileError, read_bounded};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The longest that is read of a study's state: a line each of ten thousands of runs.
const STATE_BYTES_MAX: u64 = 64 << 20;

/// How the runs of a study are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudySettings {
    /// The CSV of the study. Paths below its folder move with it.
    pub csv: PathBuf,
    /// Identity of the study; what it made carries it.
    pub id: String,
    /// The folder that runs start in; relative paths of workloads count from it.
    pub folder: PathBuf,
    /// Where results go.
    pub results: PathBuf,
    /// Where datasets lie; `None` leaves it to the workloads.
    pub data: Option<PathBuf>,
    /// Share of files and samples of rows that say nothing else.
    pub scale: f64,
    /// Share of each record's bytes.
    pub shrink_records: f64,
    /// State of the page cache before each run that says nothing else.
    pub cache: String,
    /// How processes are started.
    pub launching: Launching,
}

/// How the processes of a run are started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Launching {
    /// A member of the family `launch`.
    pub launch: String,
    /// Lines of bash before each run.
    pub prologue: Vec<String>,
    /// More arguments of the launcher.
    pub arguments: Vec<String>,
    /// Accelerators of each process; `None` is one.
    pub accelerators_per_rank: Option<u32>,
}

impl StudySettings {
    /// Read the settings of a study; `None` before its first run.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn read(files: &StudyFiles) -> Result<Option<Self>, FilesError> {
        let failed = failed("use", &files.settings());
        let text = absent(read_state(&files.settings())).map_err(&failed)?;
        let parsed = text.map(|text| serde_json::from_slice(&text)).transpose();
        parsed.map_err(|error| failed(error.into()))
    }

    /// Keep them with the study; they are on the disk when this returns.
    ///
    /// # Errors
    /// They cannot be written. The old ones are still there.
    pub fn write(&self, files: &StudyFiles) -> Result<(), FilesError> {
        Ok(write_json(&files.settings(), self)?)
    }

    /// The same for the study where it lies now.
    ///
    /// # Errors
    /// They are those of another study, whose CSV is still there.
    pub(super) fn moved_to(self, csv: &Path, state: &Path) -> Result<Self, FilesError> {
        if self.csv == csv {
            return Ok(self);
        }
        if self.csv.exists() {
            return Err(FilesError::IsCopy { original: self.csv, state: state.into() });
        }
        Ok(StudySettings {
            csv: csv.to_path_buf(),
            folder: moved(&self.folder, &self.csv, csv),
            results: moved(&self.results, &self.csv, csv),
            data: self.data.as_deref().map(|data| moved(data, &self.csv, csv)),
            ..self
        })
    }
}

/// Where `path` is once the study of the CSV `from` lies at `to`.
fn moved(path: &Path, from: &Path, to: &Path) -> PathBuf {
    let (Some(from), Some(to)) = (from.parent(), to.parent()) else { return path.to_path_buf() };
    match path.strip_prefix(from) {
        // Joined to nothing a path would end in a slash.
        Ok(rest) if rest.as_os_str().is_empty() => to.to_path_buf(),
        Ok(rest) => to.join(rest),
        Err(_) => path.to_path_buf(),
    }
}

/// A file of a study's state; results and the folder beside the CSV may come from anybody.
pub(super) fn read_state(path: &Path) -> io::Result<Vec<u8>> {
    read_bounded(path, STATE_BYTES_MAX)
}

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), RecordFileError> {
    let text = serde_json::to_vec_pretty(value).map_err(|error| RecordFileError::Io {
        action: "write",
        path: path.to_path_buf(),
        source: error.into(),
    })?;
    file::write_atomically(path, &text)
}
