//! Tests whether repeated runs change in the order in which they were made.

use super::design_matrix::DesignMatrix;
use crate::estimate::ResponseScale;
use crate::finding::{Finding, FindingKind, Quantity, Subject};
use crate::precision::ALPHA;
use feedrate_measure::stats::{Difference, slope};

/// A change of repeated runs in the order in which they were made.
pub(super) struct Drift {
    /// The change over the longest distance between two runs of one cell, on the scale of the response.
    change: Difference,
    runs: usize,
    cells: Vec<usize>,
    pub(super) p: f64,
    /// Whether the slope is also significant without its most influential run. A single slow run is no drift.
    rests_on_several: bool,
}

/// Fits one slope within all repeated cells, sentinels included (analysis of covariance, Montgomery, Design and Analysis of
/// Experiments, ch. 15.3). `None` for fewer than three degrees of freedom.
pub(super) fn fit_drift(matrix: &DesignMatrix) -> Option<Drift> {
    let mut cells = Vec::new();
    let mut repeated = Vec::new();
    for (index, (cell, runs)) in matrix.cells.iter().zip(&matrix.runs).enumerate() {
        let runs_with_values = runs.iter().zip(&cell.values);
        let ordered = runs_with_values
            .filter_map(|(run, &value)| Some(OrderedValue { order: f64::from(run.order?), value }));
        let ordered: Vec<OrderedValue> = ordered.collect();
        if 2 <= ordered.len() {
            cells.push(index);
            repeated.push(ordered);
        }
    }
    // The slope is not extrapolated beyond the longest distance between two runs of a cell.
    let span = repeated.iter().map(|cell| span(cell)).fold(0.0, f64::max);
    let slope = slope_within(&repeated)?;
    if slope.freedom < 3.0 {
        return None;
    }
    let change = Difference {
        estimate: slope.estimate * span,
        standard_error: slope.standard_error * span,
        freedom: slope.freedom,
    };
    Some(Drift {
        rests_on_several: rests_on_several(&repeated, &slope),
        change,
        runs: repeated.iter().map(Vec::len).sum(),
        cells,
        p: change.p()?,
    })
}

/// The value of a run with its place in the order of running.
#[derive(Clone, Copy)]
struct OrderedValue {
    order: f64,
    value: f64,
}

fn span(cell: &[OrderedValue]) -> f64 {
    let orders = || cell.iter().map(|run| run.order);
    orders().fold(f64::NEG_INFINITY, f64::max) - orders().fold(f64::INFINITY, f64::min)
}

/// A cell with its means subtracted.
fn centred(cell: &[OrderedValue]) -> Vec<OrderedValue> {
    let runs = cell.len() as f64;
    let order = cell.iter().map(|run| run.order).sum::<f64>() / runs;
    let value = cell.iter().map(|run| run.value).sum::<f64>() / runs;
    let centre =
        |run: &OrderedValue| OrderedValue { order: run.order - order, value: run.value - value };
    cell.iter().map(centre).collect()
}

/// The slope within cells of at least two runs; `None` without degrees of freedom.
fn slope_within(cells: &[Vec<OrderedValue>]) -> Option<Difference> {
    let runs: Vec<OrderedValue> = cells.iter().flat_map(|cell| centred(cell)).collect();
    let orders: Vec<f64> = runs.iter().map(|run| run.order).collect();
    let values: Vec<f64> = runs.iter().map(|run| run.value).collect();
    let fit = slope(&orders, &values)?;
    // `slope` subtracts one mean from the degrees of freedom, but each cell has a separate mean.
    let freedom = runs.len() as f64 - cells.len() as f64 - 1.0;
    let standard_error = fit.standard_error * (fit.freedom / freedom).sqrt();
    (0.0 < freedom).then_some(Difference { standard_error, freedom, ..fit })
}

/// Whether the slope is also significant without the run that increases it most (DFBETA, Belsley, Kuh and Welsch 1980, ch. 2.1).
fn rests_on_several(cells: &[Vec<OrderedValue>], slope: &Difference) -> bool {
    let centred: Vec<Vec<OrderedValue>> = cells.iter().map(|cell| centred(cell)).collect();
    let square: f64 = centred.iter().flatten().map(|run| run.order.powi(2)).sum();
    let influence = |run: &OrderedValue, runs: usize| {
        let residual = run.value - slope.estimate * run.order;
        let leverage = 1.0 / runs as f64 + run.order.powi(2) / square;
        slope.estimate.signum() * run.order * residual / (1.0 - leverage)
    };
    let mut largest: Option<(f64, [usize; 2])> = None;
    for (cell_index, cell) in centred.iter().enumerate() {
        for (run_index, run) in cell.iter().enumerate() {
            let influence = influence(run, cell.len());
            if largest.is_none_or(|(known, _)| known < influence) {
                largest = Some((influence, [cell_index, run_index]));
            }
        }
    }
    let Some((_, [cell, run])) = largest else { return false };
    let mut others = cells.to_vec();
    others[cell].remove(run);
    others.retain(|cell| 2 <= cell.len());
    slope_within(&others).and_then(|slope| slope.p()).is_some_and(|p| p < ALPHA)
}

impl Drift {
    /// The finding; `None` if the change is not significant, rests on one run, or exceeds the range of percentages.
    pub(super) fn finding(self, matrix: &DesignMatrix, tests: usize) -> Option<Finding> {
        let estimate = self.change.estimate;
        let is_possible = matrix.scale == ResponseScale::Logarithm || estimate.abs() <= 100.0;
        if ALPHA <= self.p || !self.rests_on_several || !is_possible {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_that_differs_from_its_repeats_is_no_drift() {
        let check = |values: [&[f64]; 2], expected: (bool, bool)| {
            let cells = values.map(|values| {
                let runs = values.iter().zip([1.0, 2.0, 3.0, 4.0, 20.0]);
                runs.map(|(&value, order)| OrderedValue { order, value }).collect::<Vec<_>>()
            });
            let slope = slope_within(&cells).unwrap();
            let is_significant = slope.p().unwrap() < ALPHA;
            assert_eq!((is_significant, rests_on_several(&cells, &slope)), expected, "{values:?}");
        };
        // Values of the last run of the first cell are far from the others.
        check([&[1.0, 1.1, 0.9, 1.0, 5.0], &[2.0, 1.9]], (true, false));
        check([&[1.0, 2.2, 2.9, 4.1, 20.0], &[2.0, 3.1, 3.9, 5.0]], (true, true));
        check([&[1.0, 1.3, 0.8, 1.1, 0.9], &[2.0, 1.9]], (false, false));
    }
}
