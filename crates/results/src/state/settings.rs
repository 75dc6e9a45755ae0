//! Settings that hold for all runs of a study, stored as one JSON file in the folder of its state from the first run on.

use crate::files::{FilesError, StudyFiles, io_error};
use crate::place::none_if_missing;
use feedrate_measure::record::file::{self, RecordFileError, read_bounded};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// Size limit of a file of the state.
const STATE_BYTES_MAX: u64 = 64 << 20;

/// Settings that hold for all runs of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudySettings {
    /// The CSV of the study. If the CSV is moved, paths below its folder are adjusted.
    pub csv: PathBuf,
    /// Identifier of the study, stored in each of its runs and datasets.
    pub id: String,
    /// Working folder of runs, to which relative paths of workloads refer.
    pub folder: PathBuf,
    /// Folder of results.
    pub results: PathBuf,
    /// Folder of all runs below `results`, named as in submissions to MLPerf Storage; `None` for a folder of each workload and experiment.
    /// It has two components.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mlperf_folder: Option<PathBuf>,
    /// Folder of datasets; `None` uses the folders of the workloads.
    pub data: Option<PathBuf>,
    /// Folder with workloads in `workload/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_dir: Option<PathBuf>,
    /// Share of files and samples to use in rows without a scale.
    pub scale: f64,
    /// Share of each record's bytes to use.
    pub shrink_records: f64,
    /// State of the page cache before runs of rows without such a setting.
    pub cache: String,
    /// The time of `${now:…}` in all workloads, in seconds since 1970, so that plans, datasets and runs agree; `None` in studies of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now_s: Option<i64>,
    /// Settings of the launcher.
    pub launching: LaunchSettings,
}

/// Settings for starting the processes of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LaunchSettings {
    /// Name of a member of the family `launch`.
    pub launch: String,
    /// Lines of bash to run before each run.
    pub prologue: Vec<String>,
    /// Additional arguments of the launcher.
    pub arguments: Vec<String>,
    /// Number of accelerators of each process; `None` means one.
    pub accelerators_per_rank: Option<u32>,
}

impl StudySettings {
    /// Reads the settings of a study; `None` before its first run.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn read(files: &StudyFiles) -> Result<Option<Self>, FilesError> {
        let use_error = io_error("use", &files.settings());
        let text = none_if_missing(read_state(&files.settings())).map_err(&use_error)?;
        let parsed = text.map(|text| serde_json::from_slice(&text)).transpose();
        parsed.map_err(|error| use_error(error.into()))
    }

    /// Writes the settings to the study's state and syncs them to disk.
    ///
    /// # Errors
    /// The file cannot be written. The old settings then remain.
    pub fn write(&self, files: &StudyFiles) -> Result<(), FilesError> {
        Ok(write_json(&files.settings(), self)?)
    }

    /// Refuses the settings of another study: the CSV that they name still exists.
    pub(super) fn refuse_copy(&self, files: &StudyFiles) -> Result<(), FilesError> {
        if self.csv == files.csv || !self.csv.exists() {
            return Ok(());
        }
        Err(FilesError::IsCopy { original: self.csv.clone(), state: files.state.clone() })
    }

    /// Adjusts the paths of a study that was moved or copied to `csv`.
    pub(super) fn relocate(self, csv: &Path) -> Self {
        if self.csv == csv {
            return self;
        }
        StudySettings {
            csv: csv.to_path_buf(),
            folder: relocate_path(&self.folder, &self.csv, csv),
            results: relocate_path(&self.results, &self.csv, csv),
            data: self.data.as_deref().map(|data| relocate_path(data, &self.csv, csv)),
            config_dir: self.config_dir.as_deref().map(|dir| relocate_path(dir, &self.csv, csv)),
            ..self
        }
    }
}

/// Adjusts a path after the study's CSV was moved. Paths outside the CSV's old folder stay unchanged.
fn relocate_path(path: &Path, old_csv: &Path, new_csv: &Path) -> PathBuf {
    let (Some(old_folder), Some(new_folder)) = (old_csv.parent(), new_csv.parent()) else {
        return path.to_path_buf();
    };
    match path.strip_prefix(old_folder) {
        // Joining an empty path would append a slash.
        Ok(rest) if rest.as_os_str().is_empty() => new_folder.to_path_buf(),
        Ok(rest) => new_folder.join(rest),
        Err(_) => path.to_path_buf(),
    }
}

/// Reads a file of a study's state. The size is limited, since results and state may come from others.
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
