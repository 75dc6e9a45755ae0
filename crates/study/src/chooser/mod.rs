//! Choosers decide which row of a study to run next from the results so far. One file a member, one row in [`CHOOSERS`].
//!
//! A chooser is a pure function of the history: after a kill it is built anew, reads the results of the folder, and chooses as before.
//!
//! To add one: copy `design.rs`, add its `mod` line and its row here.

mod history;
mod design;
mod until;
mod scale;
mod trials;
#[cfg(test)]
mod tests;

pub use design::FixedDesign;
pub use history::{History, Measured, Observation, PastRun, RunState};
pub use scale::{NumberRange, ScaleEnd, ScaleLimits, ScaleRuns, ScaleSearch, score};
pub use trials::{BASELINE, Candidate, Trial, TrialResponse, Trials, UTILISATION};
pub use until::{ReplicateGroup, UntilKnown, WantedPrecision, groups};

use feedrate_analysis::precision::PrecisionStatus;
use feedrate_measure::metric::{AU_ALL_STEPS, Metric};
use feedrate_results::row::Row;
use feedrate_spec::catalog::Member;

/// Every chooser.
pub static CHOOSERS: &[&Member] =
    &[&design::MEMBER, &until::MEMBER, &scale::MEMBER, &trials::MEMBER];

/// Something that a chooser reports.
#[derive(Clone, Debug, PartialEq)]
pub enum ChooserEvent {
    /// A note for the user.
    Note(String),
    /// An experiment gets no more replicates.
    ReplicationEnded {
        /// Name of the experiment.
        label: String,
        /// How well its response is known.
        status: PrecisionStatus,
        /// Runs whose response cannot be known; while there are any, none is added.
        runs_without_value: usize,
    },
}

/// Decides which row to run next.
pub trait Chooser {
    /// The next row, pending in the history or new; `None` when the question is answered or the budget is spent.
    fn next(&mut self, history: &History) -> Option<Row>;

    /// Whether the history must hold the values of finished runs.
    fn reads_results(&self) -> bool {
        true
    }

    /// Whether a finished run is to be repeated when the study is started again: it says nothing about the storage.
    fn is_worthless(&self, past: &PastRun) -> bool {
        past.is_worthless()
    }

    /// The metric reported for each finished run.
    fn response(&self) -> &'static Metric {
        &AU_ALL_STEPS
    }

    /// The name of a row in progress lines, the `number`th of its study from 1: `run 3: 4 accelerators`. `None` for its experiment, replicate
    /// and place among the pending rows.
    fn label(&self, _row: &Row, _number: usize) -> Option<String> {
        None
    }

    /// What a value of the response decides: `holds`.
    fn verdict(&self, _value: f64) -> Option<&'static str> {
        None
    }

    /// Events since the last call.
    fn take_events(&mut self) -> Vec<ChooserEvent> {
        Vec::new()
    }
}
