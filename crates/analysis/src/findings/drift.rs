//! Tests whether repeated runs change in the order in which they were made.

use super::design_matrix::DesignMatrix;
use crate::estimate::ResponseScale;
use crate::finding::{Finding, FindingKind, Quantity, Subject};
use crate::precision::ALPHA;
use feedrate_measure::stats::{Difference, mean, slope};

/// A change of repeated runs in the order in which they were made.
pub(super) struct Drift {
    /// The change over the longest distance between two runs of one cell, on the scale of the response.
    change: Difference,
    runs: usize,
    cells: Vec<usize>,
    pub(super) p: f64,
}

/// Fits one slope within all repeated cells, sentinels included (analysis of covariance, Montgomery, Design and Analysis of
/// Experiments, ch. 15.3). `None` for fewer than three degrees of freedom.
pub(super) fn fit_drift(matrix: &DesignMatrix) -> Option<Drift> {
    let mut orders = Vec::new();
    let mut values = Vec::new();
    let mut cells = Vec::new();
    // The slope is not extrapolated beyond the longest distance between two runs of a cell.
    let mut span = 0.0_f64;
    for (index, (cell, runs)) in matrix.cells.iter().zip(&matrix.runs).enumerate() {
        let runs_with_values = runs.iter().zip(&cell.values);
        let ordered =
            runs_with_values.filter_map(|(run, value)| Some((f64::from(run.order?), *value)));
        let (cell_orders, cell_values): (Vec<f64>, Vec<f64>) = ordered.unzip();
        if cell_orders.len() < 2 {
            continue;
        }
        let first = cell_orders.iter().copied().reduce(f64::min)?;
        span = cell_orders.iter().fold(span, |span, order| span.max(order - first));
        let mean_order = mean(&cell_orders)?;
        let mean_value = mean(&cell_values)?;
        orders.extend(cell_orders.iter().map(|order| order - mean_order));
        values.extend(cell_values.iter().map(|value| value - mean_value));
        cells.push(index);
    }
    let fit = slope(&orders, &values)?;
    // `slope` subtracts one mean from the degrees of freedom, but each cell has a separate mean.
    let freedom = values.len() as f64 - cells.len() as f64 - 1.0;
    if freedom < 3.0 {
        return None;
    }
    let change = Difference {
        estimate: fit.estimate * span,
        standard_error: fit.standard_error * span * (fit.freedom / freedom).sqrt(),
        freedom,
    };
    Some(Drift { change, runs: values.len(), cells, p: change.p()? })
}

impl Drift {
    /// The finding; `None` if the change is not significant or exceeds the range of percentages.
    pub(super) fn finding(self, matrix: &DesignMatrix, tests: usize) -> Option<Finding> {
        let estimate = self.change.estimate;
        let is_possible = matrix.scale == ResponseScale::Logarithm || estimate.abs() <= 100.0;
        if ALPHA <= self.p || !is_possible {
            return None;
        }
        let quantity = Quantity::LastRunAgainstFirst;
        let effect = matrix.scale.effect(quantity, estimate, Some(&self.change), self.runs);
        let mut finding = matrix.finding(FindingKind::Drift, &[], Subject::Drift, self.cells);
        finding.effects = vec![effect.with_p(Some(self.p), tests)];
        finding.magnitude = matrix.scale.magnitude(estimate);
        Some(finding)
    }
}
