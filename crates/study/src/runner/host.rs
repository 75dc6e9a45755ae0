//! What a runner needs of the world: plans, processes, time, somebody to tell. The binary gives it; tests give their own.

use feedrate_analysis::precision::Standing;
use feedrate_measure::record::StudyRun;
use feedrate_results::response::Response;
use feedrate_results::row::Row;
use feedrate_results::state::{Checked, Settings};
use feedrate_spec::plan::PlanDoubt;
use std::path::{Path, PathBuf};

/// What a row comes to, before it is run.
#[derive(Clone, Debug, PartialEq)]
pub struct RowPlan {
    /// `None` where no files are read.
    pub dataset: Option<DatasetPlan>,
    /// How long the run takes, by what the plan knows.
    pub run_s: f64,
    /// How long the making of its dataset takes.
    pub generation_s: f64,
}

/// The dataset of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatasetPlan {
    /// Where it lies, or will lie.
    pub folder: PathBuf,
    /// Of its settings.
    pub fingerprint: String,
    /// On the storage, at most.
    pub bytes: u64,
}

/// What is done in processes of its own.
#[derive(Clone, Copy, Debug)]
pub enum Task<'a> {
    /// Make the dataset.
    Generate,
    /// Train, into this folder.
    Run {
        /// Made, and empty.
        run_dir: &'a Path,
        /// What the record says of it.
        about: &'a StudyRun,
    },
}

/// A row that is run.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Whose.
    pub row: &'a Row,
    /// What it comes to.
    pub plan: &'a RowPlan,
    /// How runs are made.
    pub settings: &'a Settings,
    /// Counted over the study, from 1.
    pub attempt: u64,
}

/// Why a task came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The user wants to stop.
    Stopped,
    /// It went wrong.
    Failed(String),
}

/// What was done and seen before a run.
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    /// The machine as it was.
    pub environment: serde_json::Value,
    /// What makes the figures doubtful.
    pub doubts: Vec<PlanDoubt>,
}

/// Something to tell the user.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A runner before this one died; what it had begun was looked at.
    Recovered {
        /// `unet3d/4`.
        label: String,
        /// Its results were whole after all.
        is_whole: bool,
    },
    /// A row was set back: its older result counts no more.
    Superseded {
        /// `unet3d/4`.
        label: String,
        /// Where the older result lies now.
        folder: PathBuf,
    },
    /// A row that this runner has done was set back: an older CSV was saved over the one that said so.
    SetBackMeanwhile {
        /// `unet3d/4`.
        label: String,
    },
    /// A dataset would be deleted, and somebody reads it.
    InUse {
        /// Where it lies.
        folder: PathBuf,
    },
    /// A dataset is deleted.
    Deleting {
        /// Where it lies.
        folder: PathBuf,
        /// On the storage.
        bytes: u64,
    },
    /// A dataset is made.
    Generating {
        /// Where it will lie.
        folder: PathBuf,
        /// On the storage.
        bytes: u64,
    },
    /// A run starts.
    Running {
        /// `unet3d/4`.
        label: String,
        /// From 1, of this runner.
        number: usize,
        /// Pending runs, this and those that this runner has done.
        of: usize,
        /// How long it will take, as far as can be told.
        expected_s: f64,
        /// All that are pending.
        left_s: f64,
    },
    /// A run is done.
    Finished {
        /// `unet3d/4`.
        label: String,
        /// The folder of its results.
        run_dir: PathBuf,
        /// Of the run alone.
        duration_s: f64,
        /// The names of doubts about what was around it.
        doubts: Vec<String>,
    },
    /// A run came to no result.
    Failed {
        /// `unet3d/4`.
        label: String,
        /// In words.
        reason: String,
    },
    /// Its row is no longer in the CSV.
    RowIsGone {
        /// `unet3d/4`.
        label: String,
        /// Where its results lie.
        run_dir: PathBuf,
    },
    /// An experiment gets no more replicates.
    Known {
        /// `unet3d/4`.
        label: String,
        /// How well its response is known.
        standing: Standing,
        /// Runs whose response cannot be known; while there are any, none is added.
        silent_runs: usize,
    },
    /// The next run does not fit the time that is left.
    OutOfTime {
        /// `unet3d/4`.
        label: String,
        /// How long it would take.
        expected_s: f64,
    },
}

/// The world of a runner.
pub trait Host {
    /// What a row comes to.
    ///
    /// # Errors
    /// In words: what is wrong with it.
    fn plan(&mut self, row: &Row, settings: &Settings) -> Result<RowPlan, String>;

    /// Whether all of a row's dataset is there.
    fn is_whole(&mut self, row: &Row, settings: &Settings) -> bool;

    /// Free bytes of the file system that `folder` lies on or will lie on; `None` where that cannot be told.
    fn free_bytes(&self, folder: &Path) -> Option<u64>;

    /// Get the machine ready for a run, and look at it.
    ///
    /// # Errors
    /// Why it cannot be made ready.
    fn prepare(&mut self, job: &Job) -> Result<Prepared, Ended>;

    /// Generate or run in processes of its own, and wait for their end.
    ///
    /// # Errors
    /// It was stopped, or went wrong.
    fn execute(&mut self, job: &Job, task: Task) -> Result<(), Ended>;

    /// Whether the results in `run_dir` are whole, and are those of this row and its own dataset.
    ///
    /// # Errors
    /// In words: why not.
    fn check(&mut self, run_dir: &Path, row: &Row, plan: &RowPlan) -> Result<Checked, String>;

    /// The response of a run whose results are whole; `None` where it cannot be known.
    fn value(&mut self, run_dir: &Path, response: &Response) -> Option<f64>;

    /// Local wall-clock time as folders are called after it.
    fn stamp(&self) -> String;

    /// Seconds on a clock that never goes back.
    fn now_s(&self) -> f64;

    /// Whether the user wants to stop.
    fn is_stopped(&self) -> bool;

    /// Tell the user.
    fn tell(&mut self, news: News);
}
