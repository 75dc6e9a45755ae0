//! Assesses the precision of a study's experiments and estimates how many more runs a target precision needs. Reads results; runs nothing.

use crate::chooser::{History, replicate_groups};
use crate::ledger::Ledger;
use crate::runner::RunnerEnv;
use feedrate_analysis::precision::{
    PilotEstimate, PrecisionStatus, PrecisionTarget, estimate_replicates, judge,
};
use feedrate_measure::metric::Metric;
use feedrate_results::place::label;
use feedrate_results::row::Row;

/// Precision of a study's experiments.
pub struct Precision {
    /// The required precision.
    pub target: PrecisionTarget,
    /// The metric.
    pub response: &'static Metric,
    /// Name and precision of each experiment.
    pub experiments: Vec<(String, PrecisionStatus)>,
    /// Relative difference between two experiments that the runs should detect.
    pub difference: f64,
    /// Number of runs needed; `None` if no experiment has two runs.
    pub estimate: Option<PilotEstimate>,
}

/// Assesses the experiments so far, and estimates the runs needed to reach `target` and to detect `difference`.
pub fn assess(
    target: PrecisionTarget,
    response: &'static Metric,
    difference: f64,
    ledger: &mut Ledger,
) -> Precision {
    let Ledger { rows, state, machine, .. } = ledger;
    let history = History::new(rows, state, &[], |run_dir| machine.observe(run_dir));
    let groups = replicate_groups(&history, response);
    let statuses = groups.iter().map(|group| {
        let first = Row { replicate: None, ..rows[group.rows[0]].clone() };
        (label(&first, rows), judge(response, &group.values, target, u64::MAX))
    });
    let experiments = statuses.collect();
    let pilots: Vec<Vec<f64>> = groups.into_iter().map(|group| group.values).collect();
    let estimate = estimate_replicates(&pilots, target, difference);
    Precision { target, response, experiments, difference, estimate }
}
