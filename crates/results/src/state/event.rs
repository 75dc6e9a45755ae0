//! What a journal says happened. A later version may add events and fields; it never changes what one means.

use crate::row::RowKey;
use feedrate_spec::plan::PlanDoubt;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// How all runs of the study are made, from here on.
    Settings(Settings),
    /// A run is about to start.
    Begun {
        /// Counted over the study, from 1.
        attempt: u64,
        /// What is run.
        key: RowKey,
        /// Which of the rows with this key, from 0.
        ordinal: u32,
        /// The folder of its results.
        run_dir: PathBuf,
        /// Local wall-clock time.
        at: String,
    },
    /// Its results are whole and on the disk.
    Finished {
        /// Which.
        attempt: u64,
        /// What it came to.
        #[serde(flatten)]
        result: Checked,
    },
    /// It came to no result.
    Failed {
        /// Which.
        attempt: u64,
        /// In words.
        reason: String,
    },
    /// It was broken off from outside; what it measured is not used.
    BrokenOff {
        /// Which.
        attempt: u64,
    },
    /// The study's CSV says that it is done.
    Marked {
        /// Which.
        attempt: u64,
    },
    /// Its row was set back, so its result counts no more.
    Superseded {
        /// Which.
        attempt: u64,
    },
    /// A dataset that was not there is about to be made for this study, which may delete it.
    Claimed {
        /// Where it will lie.
        folder: PathBuf,
        /// Of its settings.
        fingerprint: String,
        /// On the storage.
        bytes: u64,
    },
    /// It is whole.
    Generated {
        /// Where it lies.
        folder: PathBuf,
        /// How long it took.
        duration_s: f64,
    },
    /// A dataset of this study was deleted.
    Deleted {
        /// Where it lay.
        folder: PathBuf,
    },
}

/// Results that are whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// From the start of the run to its end, without the making of its dataset.
    pub duration_s: f64,
    /// Stands for the plan that was run: replicates have the same.
    pub plan: String,
    /// What was seen around the run that makes its figures doubtful.
    pub doubts: Vec<PlanDoubt>,
}

/// How the runs of a study are made. The same from its first run to its last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The CSV of the study. Paths below its folder move with it.
    pub csv: PathBuf,
    /// Of this study, and no other; what it made carries it.
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

impl Settings {
    /// The same for a study that lies elsewhere now.
    pub(super) fn moved_to(&self, csv: &Path) -> Self {
        let moved = |path: &Path| moved(path, &self.csv, csv);
        Settings {
            csv: csv.to_path_buf(),
            folder: moved(&self.folder),
            results: moved(&self.results),
            data: self.data.as_deref().map(moved),
            ..self.clone()
        }
    }
}

/// Where `path` is once the study of the CSV `from` lies at `to`.
pub(super) fn moved(path: &Path, from: &Path, to: &Path) -> PathBuf {
    let (Some(from), Some(to)) = (from.parent(), to.parent()) else { return path.to_path_buf() };
    match path.strip_prefix(from) {
        // Joined to nothing a path would end in a slash.
        Ok(rest) if rest.as_os_str().is_empty() => to.to_path_buf(),
        Ok(rest) => to.join(rest),
        Err(_) => path.to_path_buf(),
    }
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
