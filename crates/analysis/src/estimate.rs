//! The estimator of all sentences and figures: weighted sums of the means of cells with a separate variance for each cell (Welch 1947,
//! Satterthwaite 1946).
//!
//! Storage noise grows with load, so a common variance would make the intervals of noisy cells too narrow. A cell with one run has no
//! variance, and estimates that use it have no interval.

use crate::finding::{EffectSize, EffectUnit, Quantity};
use crate::precision::CONFIDENCE;
use feedrate_measure::metric::{Metric, Unit};
use feedrate_measure::stats::{Cell, Combination, Difference, Interval};
use schemars::JsonSchema;
use serde::Serialize;

/// The scale on which noise is approximately normal and effects are additive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseScale {
    /// The values themselves, for percentages.
    Percent,
    /// Logarithms, for rates and durations.
    Logarithm,
}

impl ResponseScale {
    /// The scale of a response.
    pub fn new(response: &Metric) -> Self {
        if response.unit == Unit::Percent {
            ResponseScale::Percent
        } else {
            ResponseScale::Logarithm
        }
    }

    /// Converts the size of a difference to a share, to sort differences on both scales together.
    pub(crate) fn magnitude(self, difference: f64) -> f64 {
        match self {
            ResponseScale::Percent => difference.abs() / 100.0,
            ResponseScale::Logarithm => difference.abs(),
        }
    }

    /// Converts an estimate on this scale to a ratio or points, with the interval of `difference` if known.
    pub(crate) fn effect(
        self,
        quantity: Quantity,
        estimate: f64,
        difference: Option<&Difference>,
        n: usize,
    ) -> EffectSize {
        let scaled_interval = difference.and_then(|difference| difference.interval(CONFIDENCE));
        let (unit, interval) = match (self, &quantity) {
            (ResponseScale::Logarithm, _) => {
                (EffectUnit::Ratio, scaled_interval.map(Interval::exp))
            }
            // A difference of differences can exceed 100 points.
            (ResponseScale::Percent, Quantity::Together { .. }) => {
                (EffectUnit::Points, scaled_interval)
            }
            (ResponseScale::Percent, _) => {
                (EffectUnit::Points, scaled_interval.map(clamp_to_points))
            }
        };
        EffectSize::new(quantity, unit, self.to_response_unit(estimate), interval, n)
    }

    /// Transforms a value on this scale to the unit of the response, and a difference to a ratio or points.
    pub fn to_response_unit(self, value: f64) -> f64 {
        match self {
            ResponseScale::Percent => value,
            ResponseScale::Logarithm => value.exp(),
        }
    }
}

/// The central value of replicates: the mean of percentages, the geometric mean of rates and durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Middle {
    /// The central value; `None` if no run has a value.
    pub estimate: Option<f64>,
    /// The 95 % interval, by Student's t on logarithms for rates and on logits for percentages; `None` for fewer than two values.
    pub interval: Option<(f64, f64)>,
}

impl Middle {
    /// Computes the central value of values of `metric`, or of a quantity with the same kind of variation.
    pub fn new(metric: &Metric, values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        let interval = metric.average_interval(&values, CONFIDENCE);
        let single = if let [value] = values[..] { Some(value) } else { None };
        Middle {
            estimate: interval.map(|interval| interval.estimate).or(single),
            interval: interval.map(|interval| (interval.low, interval.high)),
        }
    }
}

/// Transforms a value to the scale of its response; `None` if it is not finite, or not positive and the scale is logarithmic.
pub fn scaled(response: &Metric, value: f64) -> Option<f64> {
    match ResponseScale::new(response) {
        _ if !value.is_finite() => None,
        ResponseScale::Percent => Some(value),
        ResponseScale::Logarithm => (value > 0.0).then(|| value.ln()),
    }
}

/// Limits the interval of a difference of percentages to the possible differences. This does not change its coverage.
pub(crate) fn clamp_to_points(interval: Interval) -> Interval {
    Interval { low: interval.low.max(-100.0), high: interval.high.min(100.0), ..interval }
}

/// Computes the unweighted mean of the means of cells in the unit of the response; for rates and durations the geometric mean. It has an
/// interval if each cell was repeated. `None` if a cell is empty or a value does not exist on the scale.
pub fn mean_of_cells(response: &Metric, cells: &[Vec<f64>]) -> Option<(f64, Option<Interval>)> {
    if let [values] = cells
        && let Some(interval) = response.average_interval(values, CONFIDENCE)
    {
        return Some((interval.estimate, Some(interval)));
    }
    if cells.iter().any(Vec::is_empty) {
        return None;
    }
    let to_scaled_cell = |values: &Vec<f64>| {
        let values = values.iter().map(|&value| scaled(response, value)).collect::<Option<_>>()?;
        Some(Cell { levels: Vec::new(), values })
    };
    let scaled_cells: Vec<Cell> = cells.iter().map(to_scaled_cell).collect::<Option<_>>()?;
    let scale = ResponseScale::new(response);
    let (mean, noise) = unweighted_mean(&scaled_cells);
    let scaled_interval = noise.and_then(|noise| noise.interval(CONFIDENCE));
    let interval = scaled_interval.map(|interval| Interval {
        estimate: scale.to_response_unit(interval.estimate),
        low: scale.to_response_unit(interval.low),
        high: scale.to_response_unit(interval.high),
    });
    (!cells.is_empty()).then(|| (scale.to_response_unit(mean), interval))
}

/// Computes the unweighted mean of the means of cells, with its standard error if each cell was repeated.
pub fn unweighted_mean(cells: &[Cell]) -> (f64, Option<Difference>) {
    let mean = Combination { weights: vec![1.0 / cells.len() as f64; cells.len()] };
    (mean.estimate(cells), mean.welch_difference(cells))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_mean_of_cells_follows_welch_and_satterthwaite() {
        let au = Metric::find("au_all_steps").unwrap();
        // Means 50 and 70, variances 4 and 16 of three runs each: the standard error is √(20 ÷ 3) ÷ 2 with
        // 20² ÷ (16 ÷ 2 + 256 ÷ 2) degrees of freedom.
        let cells = [vec![48.0, 50.0, 52.0], vec![66.0, 70.0, 74.0]];
        let (middle, interval) = mean_of_cells(au, &cells).unwrap();
        let interval = interval.unwrap();
        assert_eq!(middle, 60.0);
        let half = (interval.high - interval.low) / 2.0;
        // t(2.94) is 3.22.
        assert!((half - 3.22 * (20.0_f64 / 3.0).sqrt() / 2.0).abs() < 0.02, "{half}");
    }

    #[test]
    fn there_is_no_interval_if_a_cell_has_one_run() {
        let rate = Metric::find("samples_per_second").unwrap();
        let (middle, interval) = mean_of_cells(rate, &[vec![100.0, 100.0], vec![400.0]]).unwrap();
        assert!((middle - 200.0).abs() < 1e-9 && interval.is_none());
        assert_eq!(mean_of_cells(rate, &[vec![100.0], vec![0.0]]), None);
        assert_eq!(mean_of_cells(rate, &[vec![]]), None);
    }
}
