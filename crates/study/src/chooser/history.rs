//! The history of a study: its rows with their results, on which choosers base their decisions.

use feedrate_measure::derived::Derived;
use feedrate_measure::metric::{METRICS, Metric, MetricId};
use feedrate_measure::record::Record;
use feedrate_results::row::{Row, RowKey};
use feedrate_results::state::{Status, StudyState};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// All rows, in the order of the CSV.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// The rows with their states.
    pub runs: Vec<PastRun>,
}

/// A row and its state.
#[derive(Clone, Debug, PartialEq)]
pub struct PastRun {
    /// The row.
    pub row: Row,
    /// Its state.
    pub state: RunState,
}

impl PastRun {
    /// Whether the run is finished, but its result does not measure the storage.
    pub fn is_invalid(&self) -> bool {
        match &self.state {
            RunState::Done(measured) => measured.observation.invalid_reason.is_some(),
            _ => false,
        }
    }
}

/// State of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum RunState {
    /// To be run.
    Pending,
    /// Not run now: excluded by the user, or done without a result.
    Skipped,
    /// The run failed, for this reason.
    Failed(String),
    /// The run finished.
    Done(Box<FinishedRun>),
}

/// A finished run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FinishedRun {
    /// The folder of its results.
    pub run_dir: PathBuf,
    /// Fingerprint of the plan that was run.
    pub plan: Option<String>,
    /// Duration of the run and its setup, in seconds, without generating the dataset.
    pub seconds: f64,
    /// Its values; empty for choosers that read none.
    pub observation: Observation,
}

/// Values of a finished run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    values: BTreeMap<MetricId, f64>,
    /// Seconds that training waited for checkpoints; `None` without checkpoints.
    pub checkpoint_wait_s: Option<f64>,
    /// Reason why the result does not measure the storage.
    pub invalid_reason: Option<String>,
}

impl Observation {
    /// Reads all metrics of a record.
    pub fn new(record: &Record) -> Self {
        let derived = Derived::new(record);
        let values = METRICS.iter().filter_map(|metric| Some((metric.id, derived.value(metric)?)));
        Observation { values: values.collect(), ..Observation::default() }
    }

    /// An observation of a single metric.
    pub fn with_value(metric: &Metric, value: f64) -> Self {
        Observation { values: BTreeMap::from([(metric.id, value)]), ..Observation::default() }
    }

    /// The value of a metric; `None` if the run has none.
    pub fn value(&self, metric: &Metric) -> Option<f64> {
        self.values.get(&metric.id).copied()
    }
}

impl History {
    /// Combines `rows` with their results. `observe` reads the values of a run from its folder.
    pub fn new(
        rows: &[Row],
        state: &StudyState,
        pending: &[usize],
        mut observe: impl FnMut(&Path) -> Observation,
    ) -> Self {
        let row_states = state.row_states(rows).into_iter().enumerate();
        let states = row_states.map(|(index, row)| match (row.result(), row.reason()) {
            _ if pending.contains(&index) => RunState::Pending,
            (Some(attempt), _) => {
                let checked = attempt.checked();
                RunState::Done(Box::new(FinishedRun {
                    run_dir: attempt.run_dir.clone(),
                    plan: checked.map(|run| run.plan.clone()),
                    seconds: checked.map_or(0.0, |run| run.duration_s + run.setup_s.unwrap_or(0.0)),
                    observation: observe(&attempt.run_dir),
                }))
            }
            (None, Some(reason)) if row.status == Status::Failed => RunState::Failed(reason.into()),
            (None, _) => RunState::Skipped,
        });
        let runs = rows.iter().zip(states);
        History { runs: runs.map(|(row, state)| PastRun { row: row.clone(), state }).collect() }
    }

    /// Finished runs of the experiment with this key.
    pub fn finished_runs(&self, experiment: &RowKey) -> impl Iterator<Item = &FinishedRun> {
        self.runs.iter().filter(move |run| run.row.experiment_key() == *experiment).filter_map(
            |run| match &run.state {
                RunState::Done(measured) => Some(&**measured),
                _ => None,
            },
        )
    }

    /// The reason of the first failed run of the experiment with this key; `None` without one.
    pub fn failure(&self, experiment: &RowKey) -> Option<&str> {
        self.runs.iter().find_map(|run| match &run.state {
            RunState::Failed(reason) if run.row.experiment_key() == *experiment => {
                Some(reason.as_str())
            }
            _ => None,
        })
    }

    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.runs.iter().map(|run| &run.row)
    }
}
