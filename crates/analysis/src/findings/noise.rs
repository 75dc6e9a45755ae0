//! Runs far from the others of their cell, where it was run often enough to decide. Tests no factor.

use super::about;
use super::design_matrix::DesignMatrix;
use crate::finding::{Caveat, EffectSize, EffectUnit, Finding, FindingKind, Quantity, Subject};
use crate::precision::CONFIDENCE;
use feedrate_measure::metric::Metric;
use feedrate_measure::stats::{OUTLIER_SCORE, median_interval, modified_z_scores};
use feedrate_results::run::Run;

/// Runs far from others of the same cell, where it was run often enough to say so: to be looked at, and never left out.
pub(super) fn outliers(matrix: &DesignMatrix) -> Vec<Finding> {
    (0..matrix.cells.len()).filter_map(|at| outliers_of_cell(matrix, at)).collect()
}

fn outliers_of_cell(matrix: &DesignMatrix, at: usize) -> Option<Finding> {
    let runs = &matrix.runs[at];
    let scores = modified_z_scores(&matrix.cells[at].values)?;
    let far = runs.iter().zip(scores).filter(|(_, score)| OUTLIER_SCORE < score.abs());
    let (far, named): (Vec<&Run>, Vec<(String, f64)>) =
        far.map(|(run, score)| (*run, (run.short_path(), score))).unzip();
    if far.is_empty() {
        return None;
    }
    let subject = Subject::Outliers { runs: named, cell_runs: runs.len() };
    Some(Finding {
        response: Some(matrix.response.id.name()),
        effects: median(matrix.response, runs).into_iter().collect(),
        caveats: vec![Caveat::OutliersAreCommon],
        is_supported: false,
        ..about(FindingKind::Outlier, &matrix.design.workload, subject, &far)
    })
}

/// Median of runs with its interval; `None` of too few.
fn median(response: &Metric, runs: &[&Run]) -> Option<EffectSize> {
    let values: Vec<f64> = runs.iter().filter_map(|run| run.metric(response)).collect();
    let interval = median_interval(&values, CONFIDENCE)?;
    let unit = EffectUnit::Response;
    Some(EffectSize::new(Quantity::Median, unit, interval.estimate, Some(interval), values.len()))
}
