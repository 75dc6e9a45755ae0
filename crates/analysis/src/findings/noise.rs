//! Finds runs that are far from the other runs of their cell. They are reported for inspection and never excluded.

use super::design_matrix::DesignMatrix;
use super::finding_about;
use crate::finding::{Caveat, EffectSize, EffectUnit, Finding, FindingKind, Quantity, Subject};
use crate::precision::CONFIDENCE;
use feedrate_measure::metric::Metric;
use feedrate_measure::stats::{OUTLIER_SCORE, median_interval, modified_z_scores};
use feedrate_results::run::Run;

/// One finding for each cell with outliers. Cells with too few runs to decide are skipped.
pub(super) fn outliers(matrix: &DesignMatrix) -> Vec<Finding> {
    (0..matrix.cells.len()).filter_map(|cell| cell_outliers(matrix, cell)).collect()
}

fn cell_outliers(matrix: &DesignMatrix, cell: usize) -> Option<Finding> {
    let runs = &matrix.runs[cell];
    let scores = modified_z_scores(&matrix.cells[cell].values)?;
    let mut outliers: Vec<&Run> = Vec::new();
    let mut named_scores = Vec::new();
    for (run, score) in runs.iter().zip(scores) {
        if OUTLIER_SCORE < score.abs() {
            outliers.push(run);
            named_scores.push((run.short_path(), score));
        }
    }
    if outliers.is_empty() {
        return None;
    }
    let subject = Subject::Outliers { runs: named_scores, cell_runs: runs.len() };
    Some(Finding {
        response: Some(matrix.response.id.name()),
        effects: median(matrix.response, runs).into_iter().collect(),
        caveats: vec![Caveat::OutliersAreCommon],
        is_supported: false,
        ..finding_about(FindingKind::Outlier, &matrix.design.workload, subject, &outliers)
    })
}

/// The median of runs with its interval; `None` for too few runs.
fn median(response: &Metric, runs: &[&Run]) -> Option<EffectSize> {
    let values: Vec<f64> = runs.iter().filter_map(|run| run.metric(response)).collect();
    let interval = median_interval(&values, CONFIDENCE)?;
    let unit = EffectUnit::Response;
    Some(EffectSize::new(Quantity::Median, unit, interval.estimate, Some(interval), values.len()))
}
