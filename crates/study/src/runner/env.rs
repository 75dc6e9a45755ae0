//! The surroundings of a runner: plans, processes, datasets, time, somebody to tell. The binary gives them; tests give their own.

use crate::chooser::{ChooserEvent, Observation};
use feedrate_measure::metric::Metric;
use feedrate_results::row::Row;
use feedrate_results::state::{Checked, StudySettings};
use feedrate_spec::plan::PlanDoubt;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// A row's plan.
#[derive(Clone, Debug, PartialEq)]
pub struct RowPlan {
    /// `None` where no files are read.
    pub dataset: Option<RowDataset>,
    /// How long the run takes, by what the plan knows.
    pub run_s: f64,
    /// How long the making of its dataset takes.
    pub generation_s: f64,
    /// Fingerprint of its settings, that of [`Checked::plan`] once it is run.
    pub settings: String,
}

/// The dataset of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowDataset {
    /// Where it lies, or will lie.
    pub folder: PathBuf,
    /// Fingerprint of its settings.
    pub fingerprint: String,
    /// On the storage, at most.
    pub bytes: u64,
}

/// Work for processes of its own.
#[derive(Clone, Copy, Debug)]
pub enum RunnerTask<'a> {
    /// Make the dataset.
    Generate,
    /// Train, into this folder, which says whose run it is.
    Run(&'a Path),
}

/// A row that is run.
#[derive(Clone, Copy, Debug)]
pub struct RowJob<'a> {
    /// The row.
    pub row: &'a Row,
    /// Its plan.
    pub plan: &'a RowPlan,
    /// How runs are made.
    pub settings: &'a StudySettings,
    /// Counted over the study, from 1.
    pub attempt: u64,
}

/// The end of a task without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    /// The user wants to stop.
    Stopped,
    /// It went wrong.
    Failed(String),
}

/// The machine as it was found before a run.
#[derive(Clone, Debug, Default)]
pub struct PreparedMachine {
    /// The machine as it was.
    pub environment: serde_json::Value,
    /// Doubts about the figures.
    pub doubts: Vec<PlanDoubt>,
}

/// Place of a row among those that are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPlace {
    /// From 1, of this runner.
    pub number: usize,
    /// Number of pending runs with those that this runner has done; `None` where a chooser adds rows.
    pub count: Option<usize>,
}

/// Something to tell the user. `label` names a run: `unet3d/4`.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "labels of runs, folders of their results or of datasets, holders")]
pub enum RunnerEvent {
    /// A runner before this one died; what it had begun was looked at.
    Recovered {
        label: String,
        /// Its results were whole after all.
        is_complete: bool,
    },
    /// A row was set back: its older result counts no more.
    Superseded {
        label: String,
        /// Where the older result lies now.
        folder: PathBuf,
    },
    /// A row that this runner has done was set back: an older CSV was saved over the one that said so.
    MarkOverwritten { label: String },
    /// Somebody else makes the dataset of a run, which comes later then, where there are others.
    Busy { label: String, folder: PathBuf, holder: String },
    /// A dataset would be deleted, and somebody reads it.
    InUse { folder: PathBuf },
    /// A dataset was deleted.
    Deleted { folder: PathBuf, bytes: u64 },
    /// A dataset is made.
    Generating { folder: PathBuf, bytes: u64 },
    /// A row is begun: its dataset, the machine and the run.
    Begun {
        label: String,
        /// `None` where the label counts the runs.
        place: Option<RowPlace>,
        /// How long this and all others that are pending will take, as far as can be told.
        left_s: f64,
    },
    /// A run starts.
    Running { label: String, place: Option<RowPlace> },
    /// A run is done.
    Finished {
        label: String,
        /// `None` for a run of an earlier runner, and where the label counts the runs.
        place: Option<RowPlace>,
        /// Duration of the run alone.
        duration_s: f64,
        /// Name and value of the response; `None` where the run has none.
        result: Option<String>,
        /// The names of doubts about what was around it.
        doubts: Vec<String>,
    },
    /// A run came to no result.
    Failed { label: String, place: Option<RowPlace>, reason: String },
    /// Its row is no longer in the CSV.
    RowRemoved { label: String, run_dir: PathBuf },
    /// The chooser reports something.
    Chooser(ChooserEvent),
    /// The next run does not fit the time that is left.
    OutOfTime {
        label: String,
        /// How long it would take.
        expected_s: f64,
    },
}

/// The surroundings of a runner.
pub trait RunnerEnv {
    /// Plan a row.
    ///
    /// # Errors
    /// In words: what is wrong with it.
    fn plan(&mut self, row: &Row, settings: &StudySettings) -> Result<RowPlan, String>;

    /// Whether all of a row's dataset is there.
    fn has_complete_dataset(&mut self, row: &Row, settings: &StudySettings) -> bool;

    /// Who makes or removes the dataset in `folder` now, in words; `None` where nobody does.
    fn maker(&self, folder: &Path) -> Option<String>;

    /// Free bytes of the file system that `folder` lies on or will lie on; `None` where that cannot be told.
    fn free_bytes(&self, folder: &Path) -> Option<u64>;

    /// Datasets in these folders that the study of this id made and may delete, with their bytes.
    fn own_datasets(&mut self, roots: &BTreeSet<PathBuf>, study_id: &str)
    -> BTreeMap<PathBuf, u64>;

    /// Delete a dataset of the study. `false` where somebody reads it, so that it stays.
    ///
    /// # Errors
    /// It cannot be deleted.
    fn delete_dataset(&mut self, folder: &Path) -> io::Result<bool>;

    /// Run the row's hooks, and look once at the machine.
    ///
    /// # Errors
    /// A hook failed or was stopped.
    fn prepare(&mut self, job: &RowJob) -> Result<PreparedMachine, TaskEnd>;

    /// Generate or run in processes of its own, and wait for their end.
    ///
    /// # Errors
    /// It was stopped, or went wrong.
    fn execute(&mut self, job: &RowJob, task: RunnerTask) -> Result<(), TaskEnd>;

    /// Whether the results in `run_dir` are whole, and are those of this row and its own dataset.
    ///
    /// # Errors
    /// In words: why not.
    fn check(&mut self, run_dir: &Path, row: &Row, plan: &RowPlan) -> Result<Checked, String>;

    /// The response of a run whose results are whole; `None` where it cannot be known.
    fn value(&mut self, run_dir: &Path, response: &Metric) -> Option<f64>;

    /// All values of a run whose results are whole; none where they cannot be read.
    fn observe(&mut self, run_dir: &Path) -> Observation;

    /// Local wall-clock time as folders are called after it.
    fn stamp(&self) -> String;

    /// Seconds on a clock that never goes back.
    fn now_s(&self) -> f64;

    /// Whether the user wants to stop.
    fn is_stopped(&self) -> bool;

    /// Tell the user.
    fn tell(&mut self, event: RunnerEvent);
}
