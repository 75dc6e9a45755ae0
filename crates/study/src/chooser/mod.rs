//! Choosers, which select the next row of a study from the results so far. Each chooser has a file and a row in [`CHOOSERS`].
//!
//! A choice depends only on the history. After a kill, a new chooser reads the results in the folder and makes the same choices.
//!
//! To add a chooser: copy `design.rs`, add its `mod` line and its row here.

mod history;
mod design;
mod until;
mod scale;
mod trials;
mod repeat;
#[cfg(test)]
mod tests;

pub use design::FixedDesign;
pub use history::{FinishedRun, History, Observation, PastRun, RunState};
pub use repeat::RepeatedRuns;
pub use scale::{NumberRange, ScaleEnd, ScaleLimits, ScaleRuns, ScaleSearch, score};
pub use trials::{BASELINE, Candidate, Trial, TrialResponse, Trials, UTILISATION};
pub use until::{PrecisionGoal, ReplicateChooser, ReplicateGroup, replicate_groups};

use feedrate_analysis::precision::PrecisionStatus;
use feedrate_measure::metric::{AU_ALL_STEPS, Metric};
use feedrate_results::row::Row;
use feedrate_spec::catalog::Member;

/// Every chooser.
pub static CHOOSERS: &[&Member] =
    &[&design::MEMBER, &until::MEMBER, &scale::MEMBER, &trials::MEMBER, &repeat::MEMBER];

/// An event that a chooser reports.
#[derive(Clone, Debug, PartialEq)]
pub enum ChooserEvent {
    /// A note for the user.
    Note(String),
    /// An experiment gets no more replicates.
    ReplicationEnded {
        /// Name of the experiment.
        label: String,
        /// Precision of its response.
        status: PrecisionStatus,
        /// Number of runs without a value of the response. With any such run, no replicates are added.
        runs_without_value: usize,
    },
}

/// Selects the next row of a study.
pub trait Chooser {
    /// The next row, which is pending in the history or new. `None` if the results suffice or the budget is spent.
    fn next(&mut self, history: &History) -> Option<Row>;

    /// Whether the history must contain the values of finished runs.
    fn reads_results(&self) -> bool {
        true
    }

    /// Whether the result of a finished run does not measure the storage. A restarted study repeats such runs.
    fn is_invalid(&self, past: &PastRun) -> bool {
        past.is_invalid()
    }

    /// The metric reported for each finished run; `None` for the deciding utilisation of the run.
    fn response(&self) -> Option<&'static Metric> {
        Some(&AU_ALL_STEPS)
    }

    /// The name of row `number` of the study (from 1) in progress lines: `run 3: 4 accelerators`. `None` for the default: experiment, replicate and
    /// position among the pending rows.
    fn label(&self, _row: &Row, _number: usize) -> Option<String> {
        None
    }

    /// Number of rows that will follow row `number`, which are not in the CSV yet; 0 if that depends on results.
    fn rows_after(&self, _number: usize) -> usize {
        0
    }

    /// The verdict on a value of the response, such as `holds`.
    fn verdict(&self, _value: f64) -> Option<String> {
        None
    }

    /// Returns the events since the last call.
    fn take_events(&mut self) -> Vec<ChooserEvent> {
        Vec::new()
    }
}
