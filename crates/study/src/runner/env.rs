//! Interface between a runner and its environment: plans, processes, datasets, time and reports. `machine` implements it; tests have their own.

use crate::chooser::{ChooserEvent, Observation};
use feedrate_analysis::answer::AnswerKind;
use feedrate_measure::metric::{AU_ALL_STEPS, AU_SUSTAINED, AU_WINDOWED, Metric};
use feedrate_results::row::Row;
use feedrate_results::state::{CheckResult, StudySettings};
use feedrate_spec::plan::PlanDoubt;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// A metric of a run.
#[derive(Clone, Copy, Debug)]
pub struct MetricValue {
    /// The metric.
    pub metric: &'static Metric,
    /// Its value.
    pub value: f64,
    /// Answer of the run; `None` if it has none.
    pub answer: Option<AnswerKind>,
}

impl MetricValue {
    /// The metric and its value: `AU 98.7 %`, with `, UNKNOWN` if the run does not show whether its accelerators were fed.
    pub(super) fn text(&self) -> String {
        let name = match self.metric.id {
            id if id == AU_ALL_STEPS.id || id == AU_SUSTAINED.id => "AU",
            id if id == AU_WINDOWED.id => "windowed AU",
            id => id.name(),
        };
        let is_unknown = self.answer == Some(AnswerKind::Unknown);
        let answer = if is_unknown { ", UNKNOWN" } else { "" };
        format!("{name} {}{answer}", self.metric.unit.text(self.value))
    }
}

/// The parts of a row's plan that a runner needs.
#[derive(Clone, Debug, PartialEq)]
pub struct RowPlan {
    /// Name of a bundled workload, or the file that is used.
    pub workload: String,
    /// The dataset; `None` if the run reads no files.
    pub dataset: Option<RowDataset>,
    /// Expected duration of the run by its plan, in seconds.
    pub run_s: f64,
    /// Expected time to generate the dataset, in seconds.
    pub generation_s: f64,
    /// Fingerprint of the settings. After a run by this plan, [`CheckResult::plan`] is equal.
    pub fingerprint: String,
}

/// The dataset of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowDataset {
    /// Its folder, which may not exist yet.
    pub folder: PathBuf,
    /// Fingerprint of its settings.
    pub fingerprint: String,
    /// Maximum bytes on the storage.
    pub bytes: u64,
}

/// Work that a separate process does.
#[derive(Clone, Copy, Debug)]
pub enum RunnerTask<'a> {
    /// Generate the dataset.
    Generate,
    /// Train, and write results to this folder. It already identifies the row.
    Run(&'a Path),
}

/// A row with everything needed to run it.
#[derive(Clone, Copy, Debug)]
pub struct RowJob<'a> {
    /// The row.
    pub row: &'a Row,
    /// Its plan.
    pub plan: &'a RowPlan,
    /// Settings of the study.
    pub settings: &'a StudySettings,
    /// Number of the attempt in the study, from 1.
    pub attempt: u64,
}

/// The reason why a task ended without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    /// The user wants to stop.
    Stopped,
    /// The task failed; contains the reason.
    Failed(String),
}

/// State of the machine before a run.
#[derive(Clone, Debug, Default)]
pub struct PreparedMachine {
    /// Description of the machine, as JSON.
    pub environment: serde_json::Value,
    /// Doubts about the results.
    pub doubts: Vec<PlanDoubt>,
}

/// Position of a row among those that this runner runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPlace {
    /// Number of the run, from 1.
    pub number: usize,
    /// Number of all runs, done or pending, within the runner's limit; `None` if a chooser adds rows.
    pub count: Option<usize>,
}

/// An event to report to the user. `label` names a run: `unet3d/4`.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "labels of runs, folders of their results or of datasets, holders")]
pub enum RunnerEvent {
    /// The unfinished run of an earlier runner, which died, was checked.
    Recovered {
        label: String,
        /// Whether its results are complete.
        is_complete: bool,
    },
    /// The user set a row back to `N`. Its older result no longer counts.
    Superseded {
        label: String,
        /// Folder to which the older result was moved.
        folder: PathBuf,
    },
    /// A row that this runner finished is `N` again, because an older CSV was saved over the current one.
    MarkOverwritten { label: String },
    /// Some pending rows cannot be planned. They fail, and the others run.
    Unplanned { count: usize, others: usize },
    /// Another process generates the dataset of a run. Other rows are run first.
    Busy { label: String, folder: PathBuf, holder: String },
    /// A dataset was not deleted, because another process reads it.
    InUse { folder: PathBuf },
    /// A dataset was deleted.
    Deleted { folder: PathBuf, bytes: u64 },
    /// A dataset is being generated.
    Generating { folder: PathBuf, bytes: u64 },
    /// Work on a row starts: its dataset, its hooks and the run.
    RowStarted {
        label: String,
        /// `None` if the label has the number of the run.
        place: Option<RowPlace>,
        /// Expected time of this and all other pending rows, in seconds.
        left_s: f64,
    },
    /// A run starts.
    Running { label: String, place: Option<RowPlace> },
    /// A run has finished.
    Finished {
        label: String,
        /// `None` for a run of an earlier runner, or if the label has the number of the run.
        place: Option<RowPlace>,
        /// Duration of the run alone, in seconds.
        duration_s: f64,
        /// Name and value of the response; `None` if the run has no value.
        result: Option<String>,
        /// Names of doubts about the environment of the run.
        doubts: Vec<String>,
    },
    /// A run failed.
    Failed { label: String, place: Option<RowPlace>, reason: String },
    /// The work on a row was interrupted.
    Interrupted,
    /// The row of a finished run was removed from the CSV.
    RowRemoved { label: String, run_dir: PathBuf },
    /// An event of the chooser.
    Chooser(ChooserEvent),
    /// The next run would take longer than the remaining time.
    OutOfTime {
        label: String,
        /// Expected duration of the run, in seconds.
        expected_s: f64,
    },
}

/// The environment of a runner.
pub trait RunnerEnv {
    /// Plans a row.
    ///
    /// # Errors
    /// The row is invalid; returns the reason.
    fn plan(&mut self, row: &Row, settings: &StudySettings) -> Result<RowPlan, String>;

    /// The least `--scale` at which a row can be planned, if a smaller one is the reason that it cannot.
    fn scale_min(&self, _row: &Row, _settings: &StudySettings) -> Option<f64> {
        None
    }

    /// Whether all files of a row's dataset exist.
    fn has_complete_dataset(&mut self, row: &Row, settings: &StudySettings) -> bool;

    /// Describes the process that generates or removes the dataset in `folder`; `None` without one.
    fn dataset_writer(&self, folder: &Path) -> Option<String>;

    /// Free bytes of the file system of `folder`, which may not exist yet; `None` if unknown.
    fn free_bytes(&self, folder: &Path) -> Option<u64>;

    /// Datasets in these folders that the study generated and may delete, with their bytes.
    fn own_datasets(&mut self, roots: &BTreeSet<PathBuf>, study_id: &str)
    -> BTreeMap<PathBuf, u64>;

    /// Deletes a dataset of the study. Returns false if it is in use and stays.
    ///
    /// # Errors
    /// The dataset cannot be deleted.
    fn delete_dataset(&mut self, folder: &Path) -> io::Result<bool>;

    /// Runs the hooks of a row, and describes the machine.
    ///
    /// # Errors
    /// A hook failed or was stopped.
    fn prepare(&mut self, job: &RowJob) -> Result<PreparedMachine, TaskEnd>;

    /// Runs a task in separate processes and waits for their end.
    ///
    /// # Errors
    /// The task was stopped, or failed.
    fn execute(&mut self, job: &RowJob, task: RunnerTask) -> Result<(), TaskEnd>;

    /// Checks that the results in `run_dir` are complete, and belong to this row and its dataset.
    ///
    /// # Errors
    /// The results are incomplete or belong to another row; returns the reason.
    fn check_results(
        &mut self,
        run_dir: &Path,
        row: &Row,
        plan: &RowPlan,
    ) -> Result<CheckResult, String>;

    /// The response of a run with complete results, by default the deciding utilisation, and its value. `None` if it has no value.
    fn value(&mut self, run_dir: &Path, response: Option<&'static Metric>) -> Option<MetricValue>;

    /// All values of a run with complete results; empty if they cannot be read.
    fn observe(&mut self, run_dir: &Path) -> Observation;

    /// Local time, formatted for the name of a run's folder.
    fn stamp(&self) -> String;

    /// Seconds on a monotonic clock.
    fn now_s(&self) -> f64;

    /// Whether the user wants to stop.
    fn is_stopped(&self) -> bool;

    /// Reports an event to the user.
    fn report(&mut self, event: RunnerEvent);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_says_that_the_answer_is_unknown() {
        let check = |answer, expected: &str| {
            let result = MetricValue { metric: &AU_ALL_STEPS, value: 98.7, answer };
            assert_eq!(result.text(), expected);
        };
        check(None, "AU 98.7 %");
        check(Some(AnswerKind::Yes), "AU 98.7 %");
        check(Some(AnswerKind::Unknown), "AU 98.7 %, UNKNOWN");
    }
}
