//! Whether repeated runs change over the order of running.

use super::design_matrix::DesignMatrix;
use crate::estimate::ResponseScale;
use crate::finding::{Finding, FindingKind, Quantity, Subject};
use crate::precision::ALPHA;
use feedrate_measure::stats::{Difference, mean, slope};

/// Change of repeated runs over the order of running.
pub(super) struct Drift {
    /// From the first to the last run of the combination whose runs lie farthest apart, on the scale of the matrix.
    change: Difference,
    runs: usize,
    cells: Vec<usize>,
    pub(super) p: f64,
}

/// One slope within all cells that were repeated (analysis of covariance, Montgomery, Design and Analysis of Experiments, ch. 15.3): the sentinels of a
/// design, and every replicate. `None` of fewer than three degrees of freedom.
pub(super) fn drift(matrix: &DesignMatrix) -> Option<Drift> {
    let (mut orders, mut values, mut cells) = (Vec::new(), Vec::new(), Vec::new());
    // Nothing is told beyond the runs that were repeated farthest apart.
    let mut span = 0.0_f64;
    for (at, (cell, runs)) in matrix.cells.iter().zip(&matrix.runs).enumerate() {
        let known = runs.iter().zip(&cell.values);
        let known = known.filter_map(|(run, value)| Some((f64::from(run.order?), *value)));
        let (own_orders, own_values): (Vec<f64>, Vec<f64>) = known.unzip();
        if own_orders.len() < 2 {
            continue;
        }
        let first = own_orders.iter().copied().reduce(f64::min)?;
        span = own_orders.iter().fold(span, |span, order| span.max(order - first));
        let (order, value) = (mean(&own_orders)?, mean(&own_values)?);
        orders.extend(own_orders.iter().map(|one| one - order));
        values.extend(own_values.iter().map(|one| one - value));
        cells.push(at);
    }
    let found = slope(&orders, &values)?;
    // Each cell has a mean of its own, which the slope does not know of.
    let freedom = values.len() as f64 - cells.len() as f64 - 1.0;
    if freedom < 3.0 {
        return None;
    }
    let change = Difference {
        estimate: found.estimate * span,
        standard_error: found.standard_error * span * (found.freedom / freedom).sqrt(),
        freedom,
    };
    Some(Drift { change, runs: values.len(), cells, p: change.p()? })
}

impl Drift {
    pub(super) fn finding(self, matrix: &DesignMatrix, tests: usize) -> Option<Finding> {
        let is_possible =
            matrix.scale == ResponseScale::Logarithm || self.change.estimate.abs() <= 100.0;
        if ALPHA <= self.p || !is_possible {
            return None;
        }
        let (of, estimate) = (Quantity::LastRunAgainstFirst, self.change.estimate);
        let effect = matrix.scale.effect(of, estimate, Some(&self.change), self.runs);
        let mut finding = matrix.finding(FindingKind::Drift, &[], Subject::Drift, self.cells);
        finding.effects = vec![effect.tested(Some(self.p), tests)];
        finding.magnitude = matrix.scale.magnitude(estimate);
        Some(finding)
    }
}
