//! How well a study's experiments are known, and how many runs it takes to know them better.

use crate::chooser::{History, groups};
use crate::ledger::Ledger;
use crate::runner::RunnerEnv;
use feedrate_analysis::precision::{
    PilotEstimate, PrecisionStatus, PrecisionTarget, estimate, judge,
};
use feedrate_measure::metric::Metric;
use feedrate_results::place::label;
use feedrate_results::row::Row;

/// Precision of a study's experiments.
pub struct Precision {
    /// The precision that is wanted.
    pub until: PrecisionTarget,
    /// The metric.
    pub response: &'static Metric,
    /// Each by its name.
    pub standings: Vec<(String, PrecisionStatus)>,
    /// Relative difference between two experiments.
    pub difference: f64,
    /// `None` where no experiment has two runs.
    pub estimate: Option<PilotEstimate>,
}

/// The precision of the experiments so far, and the runs it takes to reach `until`.
pub fn known(
    until: PrecisionTarget,
    response: &'static Metric,
    difference: f64,
    ledger: &mut Ledger,
) -> Precision {
    let Ledger { rows, state, machine, .. } = ledger;
    let history = History::new(rows, state, &[], |run_dir| machine.observe(run_dir));
    let groups = groups(&history, response);
    let standings = groups.iter().map(|of| {
        let first = Row { replicate: None, ..rows[of.rows[0]].clone() };
        (label(&first, rows), judge(response, &of.values, until, u64::MAX))
    });
    let standings = standings.collect();
    let pilots: Vec<Vec<f64>> = groups.into_iter().map(|group| group.values).collect();
    let estimate = estimate(&pilots, until, difference);
    Precision { until, response, standings, difference, estimate }
}
